import { resolve } from "node:path";
import type { SkillDefinition } from "../../agents/define.ts";
import type { Agent } from "../../engine/agent.ts";
import { DEFAULT_TIMES } from "../../engine/options.ts";
import { omitUndefined } from "../../model/json.ts";
import { kindsOf } from "./agent-kinds.ts";
import type { GeneralKeys, ParsedAgent, ParsedConfig } from "./schema.ts";
import { sectionTimes, toSectionConfigs } from "./sections.ts";

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

export interface AgentConfig {
  /** The key that makes it an agent of its kind. */
  readonly kind: string;
  /** What the kind made of its keys. */
  // biome-ignore lint/suspicious/noExplicitAny: only the kind knows.
  readonly source: any;
  readonly overrides: AgentOverrides;
}

export function toConfig(parsed: ParsedConfig, folder: string, findOrigins: () => ReadonlyMap<string, Origin>) {
  const { server, retention, auth, signing, audit } = parsed;
  const { grpc, watchdog, tls, ...reached } = server;
  const { timeout, ...push } = parsed.push;
  const agents = new Map(Object.entries(parsed.agents).map(([name, agent]) => [name, toAgentConfig(agent, folder)]));
  const [first = ""] = agents.keys();
  const absolute = (file: string) => resolve(folder, file);
  const sections = toSectionConfigs(parsed, { absolute, agents: parsed.agents });
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
    /** `memory:`, `sqlite:` and an absolute path, or a URL. */
    store: parsed.store.replace(/^sqlite:(.*)$/, (_, file: string) => `sqlite:${absolute(file)}`),
    /** Name of an existing agent. */
    default: parsed.default ?? first,
    /** In file order; at least one. */
    agents: agents as ReadonlyMap<string, AgentConfig>,
    auth: auth.mtls === undefined ? auth : { ...auth, mtls: { ...auth.mtls, ca: absolute(auth.mtls.ca) } },
    ...(signing && { signing: { ...signing, keyFile: absolute(signing.keyFile) } }),
    /** Those of extensions, by key. */
    sections,
    strict: parsed.strict,
    push: {
      ...push,
      timeoutMs: timeout,
      ...(push.jwt && { jwt: { ...push.jwt, keyFile: absolute(push.jwt.keyFile) } }),
    },
    limits: parsed.limits,
    times: {
      leaseMs: DEFAULT_TIMES.leaseMs,
      cancelGraceMs: parsed.cancelGrace,
      idempotencyMs: retention.idempotency,
      compactAfterMs: retention.compactAfter,
      pruneAfterMs: retention.pruneAfter,
      ...sectionTimes(parsed),
    },
    ...(audit && { audit: { ...audit, file: absolute(audit.file) } }),
    log: parsed.log,
    /** Finds the origins of values, by path; a value without an entry is a default. */
    findOrigins,
  };
}

export function toAgentConfig(parsed: ParsedAgent, folder: string): AgentConfig {
  const [found] = kindsOf(parsed);
  if (found === undefined) throw new TypeError("An agent of no kind was not refused.");
  const [kind, { toSource }] = found;
  return { kind, source: toSource(parsed, folder), overrides: toOverrides(parsed) };
}

export function toOverrides({ timeout, ...parsed }: GeneralKeys): AgentOverrides {
  const { name, description, skills, inputModes, concurrency, onCrash, repeatTextInStatus } = parsed;
  const given = { name, description, skills, inputModes, concurrency, onCrash, repeatTextInStatus };
  return omitUndefined({ ...given, timeoutMs: timeout });
}
