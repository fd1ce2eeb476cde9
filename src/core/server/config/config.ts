import { resolve } from "node:path";
import { parsePeerAddress } from "../../../features/chat/a2a-lite/address.ts";
import type { RemoteCredentials } from "../../../features/gateway/config-schema.ts";
import { type LlmConfig, toLlmConfig } from "../../../features/llm/config.ts";
import { parseReference, type RegistryReference } from "../../../features/registry/client/reference.ts";
import { toRegistryConfig } from "../../../features/registry/server/config.ts";
import type { Workflow } from "../../../features/workflow/definition/plan.ts";
import type { TckOptions } from "../../../features/writers/tck.ts";
import { type BuiltinName, WRITER_NAMES, type WriterName } from "../../agents/builtin-names.ts";
import type { SkillDefinition } from "../../agents/define.ts";
import type { Agent } from "../../engine/agent.ts";
import { DEFAULT_TIMES } from "../../engine/options.ts";
import { omitUndefined } from "../../model/json.ts";
import type { ParsedAgent, ParsedConfig } from "./schema.ts";
import { type DialInCredentials, toSectionConfigs } from "./sections.ts";

/** A validated configuration: defaults filled in, times in milliseconds, sizes in bytes, paths absolute. */
export type DragomanConfig = ReturnType<typeof toConfig>;

export interface Origin {
  /** `dragoman.yaml:3:5`, or `command line`. */
  readonly place: string;
  /** Environment variables used in the value. */
  readonly variables: readonly string[];
}

/** Settings of an agent other than its source; absent: as defined by the agent itself. */
export interface AgentOverrides {
  readonly name?: string;
  readonly description?: string;
  readonly skills?: readonly SkillDefinition[];
  readonly inputModes?: readonly string[];
  readonly concurrency?: number;
  readonly onCrash?: Agent["onCrash"];
  readonly repeatTextInStatus?: boolean;
  readonly timeoutMs?: number;
}

export type AgentSource =
  | ({ readonly kind: "builtin"; readonly use: BuiltinName } & Pick<TckOptions, "streaming" | "requiredExtension">)
  | { readonly kind: "writer"; readonly use: WriterName; readonly llm: LlmConfig }
  | { readonly kind: "llm"; readonly llm: LlmConfig }
  | { readonly kind: "module"; readonly file: string; readonly isolate: boolean }
  | {
      readonly kind: "process";
      readonly command: readonly [string, ...string[]];
      readonly format: "text" | "json";
      readonly cwd: string;
      readonly env: Readonly<Record<string, string>>;
      readonly stderr: "log" | "caller";
    }
  | ({ readonly kind: "link"; readonly patienceMs?: number } & DialInCredentials)
  /** One of the three. */
  | { readonly kind: "workflow"; readonly file?: string; readonly inline?: object; readonly built?: Workflow }
  | RemoteSource
  /** A participant of a chat room. */
  | { readonly kind: "peer"; readonly address: string }
  | { readonly kind: "found"; readonly wanted: RegistryReference };

export interface RemoteSource {
  readonly kind: "remote";
  readonly url: string;
  readonly streaming?: boolean;
  readonly dialect?: string;
  readonly binding?: string;
  readonly credentials?: RemoteCredentials;
  readonly origins?: readonly string[];
}

export interface AgentConfig {
  readonly source: AgentSource;
  readonly overrides: AgentOverrides;
}

/** What the section `cluster` has no effect on; undefined: it has one, or nothing is set there. */
export function findUnusedCluster({ store, cluster, times }: DragomanConfig): string | undefined {
  const isSet = Object.keys(cluster).length > 0 || times.leaseMs !== DEFAULT_TIMES.leaseMs;
  if (!isSet || /^postgres(ql)?:/.test(store)) return undefined;
  return "The section cluster has no effect: only nodes on one PostgreSQL are a cluster (store: postgres://…).";
}

export function toConfig(parsed: ParsedConfig, folder: string, findOrigins: () => ReadonlyMap<string, Origin>) {
  const { cluster, server, retention, auth, signing, audit, registry } = parsed;
  const { lease, ...joined } = cluster;
  const { grpc, watchdog, tls, ...reached } = server;
  const { timeout, ...push } = parsed.push;
  const agents = new Map(Object.entries(parsed.agents).map(([name, agent]) => [name, toAgentConfig(agent, folder)]));
  const [first = ""] = agents.keys();
  const absolute = (file: string) => resolve(folder, file);
  const unlisted = Object.entries(parsed.agents).flatMap(([name, { visibility }]) =>
    visibility === "private" ? [name] : [],
  );
  return {
    /** Folder that relative paths were resolved against. */
    folder,
    server: {
      ...reached,
      /** Absent: the one after `port`; false: gRPC is disabled. */
      ...(!grpc && { grpcPort: false as const }),
      watchdogMs: watchdog,
      ...(tls && {
        tls: { ...tls, cert: absolute(tls.cert), key: absolute(tls.key), ...(tls.ca && { ca: absolute(tls.ca) }) },
      }),
    },
    /** `memory:`, `sqlite:` and an absolute path, or the URL of a PostgreSQL database. */
    store: parsed.store.replace(/^sqlite:(.*)$/, (_, file: string) => `sqlite:${absolute(file)}`),
    cluster: joined,
    /** Name of an existing agent. */
    default: parsed.default ?? first,
    /** In file order; at least one. */
    agents: agents as ReadonlyMap<string, AgentConfig>,
    auth: auth.mtls === undefined ? auth : { ...auth, mtls: { ...auth.mtls, ca: absolute(auth.mtls.ca) } },
    ...(signing && { signing: { ...signing, keyFile: absolute(signing.keyFile) } }),
    ...toSectionConfigs(parsed),
    strict: parsed.strict,
    push: {
      ...push,
      timeoutMs: timeout,
      ...(push.jwt && { jwt: { ...push.jwt, keyFile: absolute(push.jwt.keyFile) } }),
    },
    registry: toRegistryConfig(registry, unlisted, absolute),
    limits: parsed.limits,
    times: {
      leaseMs: lease,
      cancelGraceMs: parsed.cancelGrace,
      idempotencyMs: retention.idempotency,
      compactAfterMs: retention.compactAfter,
      pruneAfterMs: retention.pruneAfter,
    },
    ...(audit && { audit: { ...audit, file: absolute(audit.file) } }),
    log: parsed.log,
    /** Finds the origins of values, by path; a value without an entry is a default. */
    findOrigins,
  };
}

export function toAgentConfig(parsed: ParsedAgent, folder: string): AgentConfig {
  const { use, module, isolate, exec, link, llm, workflow, format, cwd, env, stderr, ...others } = parsed;
  const { streaming, requiredExtension, remote, dialect, binding, credentials, origins, timeout, ...described } =
    others;
  const { visibility, ...rest } = described;
  return {
    source: toSource(parsed, folder),
    overrides: timeout === undefined ? rest : { ...rest, timeoutMs: timeout },
  };
}

function toSource(parsed: ParsedAgent, folder: string): AgentSource {
  const { use, module, isolate = false, exec, link, format = "text", cwd = ".", env = {}, stderr = "log" } = parsed;
  const { llm, streaming, requiredExtension, workflow } = parsed;
  const writer = WRITER_NAMES.find((name) => name === use);
  if (llm !== undefined && writer !== undefined) return { kind: "writer", use: writer, llm: toLlmConfig(llm) };
  if (llm !== undefined) return { kind: "llm", llm: toLlmConfig(llm) };
  if (use !== undefined) {
    const given = { ...(streaming !== undefined && { streaming }), ...(requiredExtension && { requiredExtension }) };
    return { kind: "builtin", use, ...given };
  }
  if (module !== undefined) return { kind: "module", file: resolve(folder, module), isolate };
  if (link !== undefined) {
    const { patience, ...credentials } = link;
    return { kind: "link", ...credentials, ...(patience === undefined ? undefined : { patienceMs: patience }) };
  }
  const { remote: url, dialect, binding, credentials, origins } = parsed;
  const wanted = url === undefined ? undefined : parseReference(url);
  if (wanted !== undefined) return { kind: "found", wanted };
  if (url !== undefined && parsePeerAddress(url) !== undefined) return { kind: "peer", address: url };
  if (url !== undefined)
    return { kind: "remote", url, ...omitUndefined({ dialect, binding, credentials, origins, streaming }) };
  if (typeof workflow === "string") return { kind: "workflow", file: resolve(folder, workflow) };
  if (workflow !== undefined) return { kind: "workflow", inline: workflow };
  const [program, ...values] = exec ?? [];
  if (program === undefined) throw new TypeError("An agent of no kind was not refused.");
  return { kind: "process", command: [program, ...values], format, cwd: resolve(folder, cwd), env, stderr };
}
