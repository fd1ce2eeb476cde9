import type { SigningKeyOptions } from "../auth/signatures/keys.ts";
import type { AuthOptions } from "../auth/verify/create-authenticator.ts";
import type { Agent } from "../engine/agent.ts";
import type { EngineLimits, EngineTimes } from "../engine/options.ts";
import { type Log, type RunMonitor, SILENT_LOG } from "../model/ports.ts";
import type { TaskStore } from "../store/contract.ts";
import { type AdmissionLimits, DEFAULT_REQUESTS } from "./access/admission.ts";
import type { DeclaredSecurity, OwnCheck } from "./access/authentication.ts";
import { DEFAULT_UNSENT_LIMITS } from "./access/byte-budgets.ts";
import { type ConnectionLimits, DEFAULT_CONNECTION_LIMITS } from "./access/connections.ts";
import type { TlsOptions } from "./access/tls.ts";
import type { AuditOptions } from "./audit/audit-log.ts";
import { secretsOfDeclared } from "./config/code-agents.ts";
import { collectSecrets } from "./config/secrets.ts";
import type { CorsOptions } from "./http/cors.ts";
import { Redactor, withRedaction } from "./logging/redact.ts";
import { STDERR_LOG } from "./logging/stderr-log.ts";
import type { PushOptions } from "./push.ts";

interface ServeLimitOptions extends EngineLimits, AdmissionLimits, ConnectionLimits {
  /** Bytes of a request body; more is answered with 413. */
  readonly body: number;
  /** Maximum number of parts of a message. */
  readonly parts: number;
  /** Levels of nesting in a request. */
  readonly depth: number;
  /** Values in the JSON of a request, members and items of all levels together. */
  readonly values: number;
  /** Bytes of requests that are on their way in, of all callers together. */
  readonly arriving: number;
  /** Bytes of answers that wait to be read, of all callers together. */
  readonly unsent: number;
  /** Bytes of answers that wait to be read by one owner; callers without credentials count as one. */
  readonly unsentPerOwner: number;
  /** Wrong credentials from one address within a minute; then it is refused for the rest of it. */
  readonly failedLogins: number;
}

interface ServeTimeOptions extends EngineTimes {
  /** A silent stream sends a keep-alive this often. */
  readonly keepAliveMs: number;
  /** A stream whose reader takes nothing for this long is closed; the reader can resume. */
  readonly stalledReaderMs: number;
  /** Maximum time for running tasks to finish when the server closes. */
  readonly drainMs: number;
}

/** Extensions add sections to these, by their keys. */
export interface ServeOptions {
  /** Agents by name; the name is part of the URL, `/agents/NAME`. */
  readonly agents: Readonly<Record<string, Agent>>;
  /** Name of the agent that also lives at the root. Default: the first. */
  readonly default?: string;
  /** Address to listen on. Default: `127.0.0.1`. */
  readonly host?: string;
  /** Port to listen on; 0 takes any free one. Default: 4000. */
  readonly port?: number;
  /** Port of gRPC; 0 takes any free one, false serves no gRPC. Default: the one after `port`. */
  readonly grpcPort?: number | false;
  /** URL where callers reach this server, with its path; written into cards. Default: host and port. */
  readonly publicUrl?: string;
  /** `host:port` where callers reach gRPC. Default: the host of `publicUrl` and `grpcPort`. */
  readonly grpcPublicUrl?: string;
  /** Addresses or networks of proxies that set `X-Forwarded-For`: callers are then counted by the address in it. */
  readonly trustProxy?: readonly string[];
  /** Path below which everything over HTTP is served, for a proxy that passes paths on unchanged. Default: `/`. */
  readonly path?: string;
  /** Card for readers that name no version: `hybrid` (default) can be read as 1.0 and as 0.3. */
  readonly card?: "hybrid" | "v1" | "v03";
  /** Refuse what the dialect of a caller cannot express, instead of leaving it out. Default: false. */
  readonly strict?: boolean;
  /** Whether callers may register webhooks, and how they are notified. Default: true. */
  readonly push?: boolean | PushOptions;
  /** `memory:` (default), `sqlite:<file>`, `postgres://user:password@host:port/database`, or a `TaskStore`. */
  readonly store?: string | TaskStore;
  /** Folder of relative files. Default: the working directory. */
  readonly baseDirectory?: string;
  /** Signs every card; the public key is published at `/.well-known/jwks.json`. */
  readonly signing?: SigningKeyOptions;
  /** Origins whose web pages may call. Default: none. */
  readonly cors?: CorsOptions;
  /** Who may call. Default: anyone on this machine; a server that other machines can reach is then not started. */
  readonly auth?: AuthOptions;
  /**
   * Who is calling, by a check of your own, asked before those of `auth`. For undefined they are asked; without any, the
   * caller is anonymous. Throw a ProtocolError to refuse. At most 256 checks wait at a time, of one address at most half
   * of them; more requests are answered with 429.
   */
  readonly authenticate?: OwnCheck;
  /** What cards declare for a custom `authenticate`. */
  readonly security?: DeclaredSecurity;
  /** Files for serving over TLS, HTTP and gRPC alike; read again when they change. */
  readonly tls?: TlsOptions;
  /** A record of who did what, apart from the log. */
  readonly audit?: AuditOptions;
  /** Limits on what callers may ask for; see below. */
  readonly limits?: Partial<ServeLimitOptions>;
  /** Durations in milliseconds; see below. */
  readonly times?: Partial<ServeTimeOptions>;
  /**
   * An object with `debug`, `info`, `warn` and `error`, each `(fields, message)`, such as a pino logger; false logs
   * nothing. Default: warnings and errors, those of agents included, are written to stderr.
   */
  readonly log?: Log | false;
  /** Receives which agent's code runs, for a watchdog of your own. */
  readonly monitor?: RunMonitor;
}

export const DEFAULT_SERVE_LIMITS = {
  body: 16 * 1024 * 1024,
  parts: 1_000,
  depth: 64,
  values: 200_000,
  arriving: 512 * 1024 * 1024,
  failedLogins: 300,
  ...DEFAULT_UNSENT_LIMITS,
  ...DEFAULT_REQUESTS,
  ...DEFAULT_CONNECTION_LIMITS,
};
export const DEFAULT_SERVE_TIMES = { keepAliveMs: 15_000, stalledReaderMs: 60_000, drainMs: 10_000 };

/** Options with defaults applied, as the parts of the server use them. */
export type ServerSettings = ReturnType<typeof resolveOptions>;

/** Throws a TypeError if the default agent does not exist. */
export function resolveOptions(options: ServeOptions) {
  const names = Object.keys(options.agents);
  const defaultName = options.default ?? names[0];
  if (defaultName === undefined || !Object.hasOwn(options.agents, defaultName)) {
    throw new TypeError(names.length === 0 ? "There is no agent to serve." : `There is no agent "${defaultName}".`);
  }
  return {
    ...options,
    names,
    defaultName,
    log: toLog(options),
    limits: { ...DEFAULT_SERVE_LIMITS, ...options.limits },
    times: { ...DEFAULT_SERVE_TIMES, ...options.times },
    push: options.push ?? true,
    store: options.store ?? "memory:",
    baseDirectory: options.baseDirectory ?? process.cwd(),
  };
}

/** The log that the options ask for, without secrets. */
export function toLog(options: ServeOptions): Log {
  if (options.log === false) return SILENT_LOG;
  return withRedaction(
    options.log ?? STDERR_LOG,
    new Redactor([...collectSecrets(options), ...secretsOfDeclared(options.agents)]),
  );
}
