import { z } from "zod";
import { DEFAULT_TIMES } from "../../core/engine/options.ts";
import type { ConfigSection } from "../../core/extension/contract.ts";
import { formatDuration } from "../../core/model/duration.ts";
import { passwordsOf } from "../../core/server/config/secrets.ts";
import { membersOf } from "../../core/server/config/shown-values.ts";
import { optional, text, timer } from "../../core/yaml/value-types.ts";

/** A shorter lease would end whenever the database answers slowly. */
const MIN_LEASE_MS = 1_000;
const POSTGRES_URL = /^postgres(?:ql)?:\/\/[^/]/;

export interface ClusterOptions {
  /** The store is refused if it belongs to a cluster of another name. Default: `default`. */
  readonly name?: string;
  /** Address of the same database that passes by a pooler, for the connection that listens for changes. Default: `store`. */
  readonly listenUrl?: string;
}

const schema = z.strictObject({
  name: optional(
    text,
    "Name of the cluster: tables that belong to one of another name are refused. Default: `default`.",
  ),
  lease: timer
    .refine((milliseconds) => milliseconds >= MIN_LEASE_MS, { error: "must be at least 1s" })
    .prefault("15s")
    .describe("How long a node counts as alive after its last heartbeat; then other nodes take over its tasks."),
  listenUrl: optional(
    z.string().regex(POSTGRES_URL, { error: 'must be "postgres://user@host/database"' }),
    "Address of the same database that passes by a pooler such as PgBouncer, for the connection that listens for changes; default: that of `store`.",
  ),
});

export const clusterSection: ConfigSection<z.output<typeof schema>, ClusterOptions> = {
  schema: schema.prefault({}).describe("Several nodes on one PostgreSQL."),
  options: z.strictObject({ name: text.optional(), listenUrl: text.optional() }),
  toConfig: ({ lease: _, ...joined }) => joined,
  times: ({ lease }) => ({ leaseMs: lease }),
  warnings(joined, { store, times: { leaseMs } }) {
    const isSet = Object.keys(joined).length > 0 || leaseMs !== DEFAULT_TIMES.leaseMs;
    if (!isSet || /^postgres(ql)?:/.test(store)) return [];
    return ["The section cluster has no effect: only nodes on one PostgreSQL are a cluster (store: postgres://…)."];
  },
  *shown(joined, { times: { leaseMs } }) {
    yield ["cluster.lease", formatDuration(leaseMs)];
    yield* membersOf("cluster", { ...joined });
  },
  secrets: ({ listenUrl }) => passwordsOf(listenUrl),
};
