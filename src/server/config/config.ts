import { resolve } from "node:path";
import type { BuiltinName } from "../../agents/builtin-names.ts";
import type { SkillDefinition } from "../../agents/define.ts";
import type { TckOptions } from "../../agents/tck.ts";
import type { SigningKeyOptions } from "../../auth/signatures/keys.ts";
import type { AuthOptions } from "../../auth/verify/create-authenticator.ts";
import type { Agent } from "../../engine/agent.ts";
import type { TlsOptions } from "../access/tls.ts";
import type { ParsedAgent, ParsedConfig } from "./schema.ts";
import { type DialInCredentials, type SectionConfigs, toSectionConfigs } from "./sections.ts";

/** A validated configuration: defaults filled in, times in milliseconds, sizes in bytes, paths absolute. */
export interface DragomanConfig extends SectionConfigs {
  /** Folder that relative paths were resolved against. */
  readonly folder: string;
  readonly server: {
    readonly host: string;
    readonly port: number;
    /** Undefined: the one after `port`; false: gRPC is disabled. */
    readonly grpcPort: number | false | undefined;
    /** Without a trailing slash. */
    readonly publicUrl: string | undefined;
    readonly grpcPublicUrl: string | undefined;
    readonly path: string;
    readonly card: ParsedConfig["server"]["card"];
    readonly cors: { readonly origins: readonly string[] };
    readonly watchdogMs: number | false;
    /** File paths are absolute. */
    readonly tls: TlsOptions | undefined;
  };
  /** `memory:`, or `sqlite:` and an absolute path. */
  readonly store: string;
  /** Name of an existing agent. */
  readonly default: string;
  /** In file order; at least one. */
  readonly agents: ReadonlyMap<string, AgentConfig>;
  readonly auth: AuthOptions;
  readonly signing: SigningKeyOptions | undefined;
  readonly strict: boolean;
  readonly push: PushConfig;
  readonly limits: ParsedConfig["limits"];
  readonly times: {
    readonly cancelGraceMs: number;
    readonly idempotencyMs: number;
    readonly compactAfterMs: number;
    readonly pruneAfterMs: number | undefined;
  };
  /** The file path is absolute. */
  readonly audit: { readonly file: string; readonly required: boolean } | undefined;
  readonly log: {
    readonly level: ParsedConfig["log"]["level"];
    /** Undefined: depends on whether stderr is a terminal. */
    readonly pretty: boolean | undefined;
  };
  /** Origins of values, by path; a value without an entry is a default. */
  readonly origins: ReadonlyMap<string, Origin>;
}

interface PushConfig {
  readonly enabled: boolean;
  /** Absent: true if only this machine can reach the server. */
  readonly allowPrivateTargets?: boolean;
  readonly attempts: number;
  readonly timeoutMs: number;
  readonly hmac: { readonly secret: string } | undefined;
  readonly jwt: NonNullable<ParsedConfig["push"]["jwt"]> | undefined;
}

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
  readonly concurrency?: number;
  readonly onCrash?: Agent["onCrash"];
  readonly timeoutMs?: number;
}

export type AgentSource =
  | ({ readonly kind: "builtin"; readonly use: BuiltinName } & Pick<TckOptions, "streaming" | "requiredExtension">)
  | { readonly kind: "module"; readonly file: string; readonly isolate: boolean }
  | {
      readonly kind: "process";
      readonly command: readonly [string, ...string[]];
      readonly format: "text" | "json";
      readonly cwd: string;
      readonly env: Readonly<Record<string, string>>;
      readonly stderr: "log" | "caller";
    }
  | ({ readonly kind: "link"; readonly patienceMs?: number } & DialInCredentials);

export interface AgentConfig {
  readonly source: AgentSource;
  readonly overrides: AgentOverrides;
}

export function toConfig(parsed: ParsedConfig, folder: string, origins: ReadonlyMap<string, Origin>): DragomanConfig {
  const { server, retention, log } = parsed;
  const agents = new Map(Object.entries(parsed.agents).map(([name, agent]) => [name, toAgentConfig(agent, folder)]));
  const [first] = agents.keys();
  const chosen = parsed.default ?? first;
  if (chosen === undefined) throw new TypeError("A configuration without agents was not refused.");
  return {
    folder,
    server: {
      host: server.host,
      port: server.port,
      grpcPort: server.grpc ? server.grpcPort : false,
      publicUrl: server.publicUrl,
      grpcPublicUrl: server.grpcPublicUrl,
      path: server.path,
      card: server.card,
      cors: server.cors,
      watchdogMs: server.watchdog,
      tls: server.tls === undefined ? undefined : absoluteTls(server.tls, folder),
    },
    store: absoluteStore(parsed.store, folder),
    default: chosen,
    agents,
    auth: absoluteAuth(parsed.auth, folder),
    signing: parsed.signing && { ...parsed.signing, keyFile: resolve(folder, parsed.signing.keyFile) },
    ...toSectionConfigs(parsed),
    strict: parsed.strict,
    push: toPushConfig(parsed.push, folder),
    limits: parsed.limits,
    times: {
      cancelGraceMs: parsed.cancelGrace,
      idempotencyMs: retention.idempotency,
      compactAfterMs: retention.compactAfter,
      pruneAfterMs: retention.pruneAfter,
    },
    audit: parsed.audit && { ...parsed.audit, file: resolve(folder, parsed.audit.file) },
    log: { level: log.level, pretty: log.pretty },
    origins,
  };
}

function toPushConfig({ timeout, hmac, jwt, ...rest }: ParsedConfig["push"], folder: string): PushConfig {
  return {
    ...rest,
    timeoutMs: timeout,
    hmac,
    jwt: jwt === undefined ? undefined : { ...jwt, keyFile: resolve(folder, jwt.keyFile) },
  };
}

function toAgentConfig(parsed: ParsedAgent, folder: string): AgentConfig {
  const { use, module, isolate, exec, link, format, cwd, env, stderr, streaming, requiredExtension, timeout, ...rest } =
    parsed;
  return {
    source: toSource(parsed, folder),
    overrides: timeout === undefined ? rest : { ...rest, timeoutMs: timeout },
  };
}

function toSource(parsed: ParsedAgent, folder: string): AgentSource {
  const { use, module, isolate = false, exec, link, format, cwd, env, stderr, streaming, requiredExtension } = parsed;
  if (use !== undefined) {
    return {
      kind: "builtin",
      use,
      ...(streaming !== undefined && { streaming }),
      ...(requiredExtension !== undefined && { requiredExtension }),
    };
  }
  if (module !== undefined) return { kind: "module", file: resolve(folder, module), isolate };
  if (link !== undefined) {
    const { patience, ...credentials } = link;
    return { kind: "link", ...credentials, ...(patience === undefined ? undefined : { patienceMs: patience }) };
  }
  const [program, ...values] = exec ?? [];
  if (program === undefined) throw new TypeError("An agent of no kind was not refused.");
  return {
    kind: "process",
    command: [program, ...values],
    format: format ?? "text",
    cwd: resolve(folder, cwd ?? "."),
    env: env ?? {},
    stderr: stderr ?? "log",
  };
}

function absoluteAuth(auth: ParsedConfig["auth"], folder: string): AuthOptions {
  const { mtls } = auth;
  return mtls === undefined ? auth : { ...auth, mtls: { ...mtls, ca: resolve(folder, mtls.ca) } };
}

function absoluteTls(tls: TlsOptions, folder: string): TlsOptions {
  const { cert, key, ca } = tls;
  return {
    ...tls,
    cert: resolve(folder, cert),
    key: resolve(folder, key),
    ...(ca !== undefined && { ca: resolve(folder, ca) }),
  };
}

function absoluteStore(store: string, folder: string): string {
  return store.startsWith("sqlite:") ? `sqlite:${resolve(folder, store.slice("sqlite:".length))}` : store;
}
