import { resolve } from "node:path";
import type { SigningKeyOptions } from "../auth/signatures/keys.ts";
import { isPromise } from "../auth/verify/contract.ts";
import type { AuthOptions } from "../auth/verify/create-authenticator.ts";
import type { AgentService } from "../dialects/contract.ts";
import type { Agent } from "../engine/agent.ts";
import { Engine } from "../engine/engine.ts";
import type { EngineLimits, EngineTimes } from "../engine/options.ts";
import type { Caller } from "../model/caller.ts";
import { ProtocolError } from "../model/errors.ts";
import type { Loss } from "../model/loss.ts";
import { type Log, type Meter, NO_MONITOR, type RunMonitor, SILENT_LOG } from "../model/ports.ts";
import type { TaskStore } from "../store/contract.ts";
import { openStore } from "../store/open.ts";
import { Admission, type AdmissionLimits, DEFAULT_REQUESTS, OwnerLimitError } from "./access/admission.ts";
import { createAuthentication, type DeclaredSecurity, type OwnCheck } from "./access/authentication.ts";
import {
  DEFAULT_UNSENT_LIMITS,
  IncomingByteBudget,
  SHARE_WITHOUT_CREDENTIALS,
  UnsentByteBudget,
} from "./access/byte-budgets.ts";
import { type ConnectionLimits, DEFAULT_CONNECTION_LIMITS } from "./access/connections.ts";
import type { TlsOptions } from "./access/tls.ts";
import { ServedAgentService } from "./agent-service.ts";
import { AuditLog, type AuditOptions, toCallRecord, toDeliveryRecord } from "./audit/audit-log.ts";
import type { CardForm } from "./cards/card-documents.ts";
import { createCardSigner, loadServerKeys } from "./cards/signing-keys.ts";
import { systemClock, uuidIds } from "./clock-and-ids.ts";
import { createDialects } from "./dialects.ts";
import { Cors, type CorsOptions } from "./http/cors.ts";
import { Counters, createMonitoringRoutes } from "./http/monitoring.ts";
import type { NodeHttpOptions } from "./http/node-http.ts";
import { Router } from "./http/router.ts";
import { collectSecrets, Redactor, withRedaction } from "./logging/redact.ts";
import { openPush, type PushOptions } from "./push.ts";
import { NO_LINKS, openLinks, openPhones, openXiaoyi, type XiaoyiOptions } from "./xiaoyi/open-xiaoyi.ts";

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
  /** Path below which everything over HTTP is served, for a proxy that passes paths on unchanged. Default: `/`. */
  readonly path?: string;
  /** Card for readers that name no version: `hybrid` (default) can be read as 1.0 and as 0.3. */
  readonly card?: "hybrid" | "v1" | "v03";
  /** Refuse what the dialect of a caller cannot express, instead of leaving it out. Default: false. */
  readonly strict?: boolean;
  /** Whether callers may register webhooks, and how they are notified. Default: true. */
  readonly push?: boolean | PushOptions;
  /** `memory:` (default), `sqlite:<file>`, or a `TaskStore`. */
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
   * caller is anonymous. Throw a ProtocolError to refuse.
   */
  readonly authenticate?: OwnCheck;
  /** What cards say of a check of your own. */
  readonly security?: DeclaredSecurity;
  /** Files for serving over TLS, HTTP and gRPC alike; read again when they change. */
  readonly tls?: TlsOptions;
  /** A record of who did what, apart from the log. */
  readonly audit?: AuditOptions;
  /** How agents are connected to Huawei's assistant Xiaoyi. */
  readonly xiaoyi?: XiaoyiOptions;
  /** Limits on what callers may ask for; see below. */
  readonly limits?: Partial<ServeLimitOptions>;
  /** Durations in milliseconds; see below. */
  readonly times?: Partial<ServeTimeOptions>;
  /**
   * An object with `debug`, `info`, `warn` and `error`, each `(fields, message)`, such as a pino logger. Default:
   * silent.
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

/** Everything behind the socket: what `serve` listens with and what frameworks mount. */
export interface Core {
  readonly engine: Engine;
  readonly router: Router;
  readonly http: NodeHttpOptions;
  readonly store: TaskStore;
  readonly log: Log;
  readonly meter: Meter;
  readonly services: ReadonlyMap<string, ServedAgentService>;
  readonly connections: ConnectionLimits;
  /** Where a dialect that is spoken beside the router says what it lost. */
  reportFor(dialect: string): (losses: readonly Loss[]) => void;
  /** Lets runs finish, then ends everything; `drainMs` is for how long at most, if not as configured. */
  close(drainMs?: number): Promise<void>;
}

/** Asked for when a card is first made, by when the ports are known. */
interface ServerLocation {
  baseUrl(): string;
  /** `host:port` of gRPC, if it is served. */
  grpc(): string | undefined;
  /** Nobody but this machine can reach the server. */
  readonly local?: boolean;
  /** Not all ports are open yet. */
  isStarting?(): boolean;
}

export async function createCore(
  options: ServeOptions,
  where: ServerLocation,
  isOwnHost: (host: string | undefined) => boolean = () => true,
): Promise<Core> {
  const log = options.log ? withRedaction(options.log, new Redactor(collectSecrets(options))) : SILENT_LOG;
  const limits = { ...DEFAULT_SERVE_LIMITS, ...options.limits };
  const times = { ...DEFAULT_SERVE_TIMES, ...options.times };
  const names = Object.keys(options.agents);
  const defaultName = options.default ?? names[0];
  if (defaultName === undefined || !Object.hasOwn(options.agents, defaultName)) {
    throw new TypeError(names.length === 0 ? "There is no agent to serve." : `There is no agent "${defaultName}".`);
  }
  const keys = await loadServerKeys(options);
  const counters = new Counters();
  const agents = new Map(Object.entries(options.agents));
  const report = (dialect: string, losses: readonly Loss[]) =>
    reportLosses(dialect, losses, options.strict === true, counters, log);
  const services = new Map<string, ServedAgentService>();
  const phones = openPhones(options, { log, meter: counters, serviceOf: (name) => services.get(name) });
  const dialects = createDialects(openXiaoyi(options, phones, log));
  const push = openPush(options.push ?? true, {
    dialects,
    clock: systemClock,
    ids: uuidIds,
    report,
    where,
    local: where.local === true,
    key: keys.push,
  });
  const authentication = createAuthentication({
    auth: options.auth ?? {},
    own: options.authenticate,
    declared: options.security,
    failedLogins: limits.failedLogins,
    baseUrl: () => where.baseUrl(),
    now: systemClock.now,
    log,
  });
  const sign = keys.card && createCardSigner(keys.card, () => where.baseUrl());
  const urlOf = (name: string) => `${where.baseUrl()}/agents/${encodeURIComponent(name)}`;
  const audit = await openAudit(options, log, counters);
  const store = await openTaskStore(options, log);
  const engine = new Engine(
    {
      store,
      clock: systemClock,
      ids: uuidIds,
      log,
      meter: counters,
      monitor: options.monitor ?? NO_MONITOR,
      random: Math.random,
      toAgentId: urlOf,
      ...push.engine,
      onPushAttempt: (tried) => audit?.record(toDeliveryRecord(tried)),
      limits: { ...options.limits, ...push.limits },
      times: { ...times, ...push.times },
    },
    agents,
  );
  const admission = new Admission(limits, systemClock.now, counters);
  for (const name of names) {
    const interfaces = () => {
      const place = { base: urlOf(name), rpc: where.grpc(), name, isDefault: name === defaultName };
      return dialects.flatMap(({ serving }) => serving.interfaces?.(place) ?? []);
    };
    const shared = { engine, log, clock: systemClock, ids: uuidIds, authentication, sign, admission, audit };
    services.set(name, new ServedAgentService({ name, interfaces, ...shared }));
  }
  let links = NO_LINKS;
  const router = new Router({
    dialects,
    agents: services,
    defaultAgent: services.get(defaultName) as AgentService,
    limits: {
      maxDepth: limits.depth,
      maxValues: limits.values,
      maxParts: limits.parts,
      keepAliveMs: times.keepAliveMs,
    },
    cors: new Cors(options.cors ?? { origins: [] }, options.auth?.apiKey?.header),
    serverRoutes: new Map([
      ...createMonitoringRoutes({
        engine,
        store,
        counters,
        authentication,
        linkStates: () => links.states,
        buffered: () => ({ arriving: http.arriving.held, unsent: http.unsent.held }),
        isStarting: () => where.isStarting?.() === true,
      }),
      ...keys.published.routes(),
      ...authentication.metadataPaths(names, () => skillScopesOf(services.values())),
    ]),
    now: systemClock.now,
    isOwnHost,
    ids: uuidIds,
    report,
    cardForm: CARD_FORMS[options.card ?? "hybrid"],
    authenticate: (presented) => {
      const caller = authentication.authenticate(presented);
      const admit = (known: Caller) => admission.admit(known, presented.remoteAddress);
      return isPromise(caller) ? caller.then(admit) : admit(caller);
    },
    recognise: authentication.authenticate,
    challenged: authentication.challenged,
    admit: ({ remoteAddress }) => admission.checkAddress(remoteAddress),
    onRefused: (error, { remoteAddress }, agent, dialect) =>
      audit?.record(
        toCallRecord({
          ...(error instanceof OwnerLimitError && { caller: error.caller }),
          address: remoteAddress,
          agent,
          dialect,
          operation: "authenticate",
          result: error.code,
        }),
      ),
  });
  const http: NodeHttpOptions = {
    handle: (exchange) => router.handle(exchange),
    refuse: (status, exchange, message = BODY_ERROR_MESSAGES[status](limits.body)) =>
      router.refuse(status, message, exchange),
    screen: (exchange) => router.screen(exchange),
    maxBodyBytes: limits.body,
    // Where none can be shown, all callers are without credentials and have all of it.
    arriving: new IncomingByteBudget(
      limits.arriving,
      authentication.identifies ? limits.arriving * SHARE_WITHOUT_CREDENTIALS : limits.arriving,
    ),
    unsent: new UnsentByteBudget(limits.unsent, authentication.identifies ? limits.unsentPerOwner : limits.unsent),
    stalledReaderMs: times.stalledReaderMs,
    log,
    meter: counters,
  };
  const since = systemClock.now();
  await engine.start();
  const contextOf = (agent: string, caller: Caller, dialect: string) => {
    const service = services.get(agent);
    return service && router.contextFor(caller, service, dialect);
  };
  try {
    links = await openLinks(options, { contextOf, log, phones, since });
    await phones.start();
  } catch (error) {
    await engine.close();
    await phones.stop();
    await audit?.close();
    throw error;
  }
  const close = async (drainMs = times.drainMs) => {
    await engine.drain(drainMs);
    await links.stop();
    await engine.close();
    await phones.stop();
    await audit?.close();
  };
  const reportFor = (dialect: string) => (losses: readonly Loss[]) => report(dialect, losses);
  return { engine, router, http, store, log, meter: counters, services, connections: limits, reportFor, close };
}

async function openAudit(options: ServeOptions, log: Log, meter: Meter): Promise<AuditLog | undefined> {
  if (options.audit === undefined) return undefined;
  const file = resolve(options.baseDirectory ?? process.cwd(), options.audit.file);
  const audit = new AuditLog({ ...options.audit, file }, { clock: systemClock, log, meter });
  await audit.open();
  return audit;
}

function skillScopesOf(services: Iterable<ServedAgentService>): readonly string[] {
  return [...new Set([...services].flatMap(({ profile }) => profile.skills.flatMap(({ scopes = [] }) => scopes)))];
}

const CARD_FORMS = {
  hybrid: "hybrid",
  v1: { version: "1.0" },
  v03: { version: "0.3" },
} as const satisfies Record<NonNullable<ServeOptions["card"]>, CardForm>;

/** Counted and written down in any case; refused where nothing may be lost. */
function reportLosses(dialect: string, losses: readonly Loss[], strict: boolean, counters: Counters, log: Log): void {
  const [first] = losses;
  if (first === undefined) return;
  counters.countLosses(dialect, losses);
  for (const { kind, path, reason } of losses) {
    log.debug({ dialect, kind, path, reason }, "A dialect could not say something.");
  }
  if (!strict) return;
  const violations = losses.map(({ path, reason }) => ({ field: path, description: reason }));
  throw new ProtocolError("LOSS_REFUSED", `${first.path} cannot be said here: ${first.reason}`, { violations });
}

const BODY_ERROR_MESSAGES = {
  413: (bytes: number) => `The request body is larger than ${bytes} bytes.`,
  415: () => "Request bodies must not be compressed.",
  429: () => "Too many large requests are on their way in.",
} as const satisfies Record<413 | 415 | 429, (bytes: number) => string>;

async function openTaskStore(options: ServeOptions, log: Log): Promise<TaskStore> {
  if (typeof options.store === "object") return options.store;
  const baseDirectory = options.baseDirectory ?? process.cwd();
  return openStore(options.store ?? "memory:", { baseDirectory, clock: systemClock, log });
}
