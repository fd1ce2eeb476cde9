/** Servers on one store, as if on several machines. */
import { afterAll } from "vitest";
import { DEFAULT_TIMES } from "../../src/core/engine/options.ts";
import { SharedStoreAccess } from "../../src/core/engine/testing/stores.ts";
import { SILENT_LOG } from "../../src/core/model/ports.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import type { TaskStore } from "../../src/core/store/contract.ts";
import { createMemoryStore } from "../../src/core/store/memory/memory-store.ts";
import { openStore } from "../../src/core/store/open.ts";
import {
  hasPostgres,
  type PostgresServer,
  startPostgres,
} from "../../src/features/cluster/postgres/testing/start-postgres.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import type { Binding } from "../support/bindings.ts";
import { startServer } from "../support/lifecycle.ts";
import { Stage } from "../support/stage.ts";
import { WireClient } from "../support/wire-client.ts";

export interface ClusterStore {
  readonly name: string;
  /** How each node opens it. */
  create(): (leaseMs: number) => Promise<TaskStore>;
}

const memory: ClusterStore = {
  name: "memory",
  create() {
    const store = createMemoryStore({ clock: systemClock });
    return async () => ({ ...store, durable: true, close: () => Promise.resolve() });
  },
};

let servers: Promise<PostgresServer> | undefined;
let schemas = 0;
afterAll(async () => (await servers)?.close());

const postgres: ClusterStore = {
  name: "postgres",
  create() {
    const schema = `cluster_${++schemas}`;
    return async (leaseMs) => {
      servers ??= startPostgres();
      const url = (await servers).url(schema);
      return openStore(url, { baseDirectory: "", clock: systemClock, log: SILENT_LOG, cluster: { leaseMs } });
    };
  },
};

export const CLUSTER_STORES: readonly ClusterStore[] = hasPostgres() ? [memory, postgres] : [memory];

export interface Node {
  readonly server: DragomanServer;
  readonly stage: Stage;
  /** Whether the node reaches the store. */
  readonly access: SharedStoreAccess;
  client(agent?: string): WireClient;
  /** The status and the body of a path. */
  read(path: string): Promise<{ readonly status: number; readonly text: string }>;
}

export interface NodeOptions extends Partial<ServeOptions> {
  /** Of runs on this node; default: one of its own. */
  readonly stage?: Stage;
}

/** Starts nodes one after the other; all are closed with the test. */
export class Cluster {
  readonly #open: (leaseMs: number) => Promise<TaskStore>;
  readonly #binding: Binding;

  constructor(binding: Binding, spec: ClusterStore) {
    this.#open = spec.create();
    this.#binding = binding;
  }

  async start({ stage = new Stage(), ...options }: NodeOptions = {}): Promise<Node> {
    const access = new SharedStoreAccess();
    const server = await startServer({
      store: access.wrap(await this.#open(options.times?.leaseMs ?? DEFAULT_TIMES.leaseMs)),
      agents: { stage: stage.agent(), patient: stage.agent({ onCrash: "resume" }) },
      push: { allowPrivateTargets: true },
      ...options,
    });
    return {
      server,
      stage,
      access,
      client: (agent = "stage") => new WireClient(this.#binding, `${server.url}/agents/${agent}`),
      async read(path) {
        const response = await fetch(server.url + path);
        return { status: response.status, text: await response.text() };
      },
    };
  }
}
