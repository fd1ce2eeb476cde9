import { resolve } from "node:path";
import { getHeapStatistics } from "node:v8";
import { bindDirectory, type RunServices } from "../agents/directory.ts";
import { startThread } from "../agents/threads.ts";
import { createGuardedFetch } from "../auth/guarded-fetch/guarded-fetch.ts";
import type { AgentService, Dialect } from "../dialects/contract.ts";
import type { Agent } from "../engine/agent.ts";
import { Engine } from "../engine/engine.ts";
import { DEFAULT_LIMITS, DEFAULT_TIMES } from "../engine/options.ts";
import type { ServerHost, ServerPart } from "../extension/contract.ts";
import { loadExtensions, loadedParts } from "../extension/installed.ts";
import { ProtocolError } from "../model/errors.ts";
import { fieldsOf } from "../model/json.ts";
import { type Loss, refusedLosses } from "../model/loss.ts";
import { type Log, type Meter, NO_MONITOR, SILENT_LOG } from "../model/ports.ts";
import { openStore } from "../store/open.ts";
import { Admission } from "./access/admission.ts";
import { type Authentication, createAuthentication } from "./access/authentication.ts";
import { type ByteBudgets, createByteBudgets } from "./access/byte-budgets.ts";
import type { ConnectionLimits } from "./access/connections.ts";
import { Gate } from "./access/gate.ts";
import { createTrustedProxies } from "./access/trusted-proxies.ts";
import type { FindAgents } from "./agent-chooser.ts";
import { createAgentDirectory } from "./agent-directory.ts";
import { ServedAgentService } from "./agent-service.ts";
import { AuditLog, toDeliveryRecord } from "./audit/audit-log.ts";
import type { CardForm } from "./cards/card-documents.ts";
import { createCardSigner, loadServerKeys, type ServerKeys } from "./cards/signing-keys.ts";
import { type Carriers, type CarriersOptions, openCarriers } from "./carriers/carriers.ts";
import { monotonic, systemClock, systemTools, uuidIds } from "./clock-and-ids.ts";
import { type CloseStack, openAll } from "./close-stack.ts";
import { buildDeclaredAgents } from "./config/code-agents.ts";
import { createDialects } from "./dialects.ts";
import { createCors } from "./http/cors.ts";
import { Counters, createMonitoringRoutes } from "./http/monitoring.ts";
import type { NodeHttpOptions } from "./http/node-http.ts";
import { Router } from "./http/router.ts";
import { resolveOptions, type ServeOptions, type ServerSettings } from "./options.ts";
import { connectByUrl } from "./outbound.ts";
import { openPush } from "./push.ts";
import { Upstreams } from "./upstreams.ts";

/** Everything behind the socket: what `serve` listens with and what frameworks mount. */
export type Core = Awaited<ReturnType<typeof openCore>>;

/** Read when a card is first created, by when the ports are known. */
interface ServerLocation {
  readonly baseUrl: () => string;
  /** `host:port` of gRPC, if it is served. */
  grpc(): string | undefined;
  /** Only this machine can reach the server. */
  readonly local?: boolean;
  /** Not all ports are open yet. */
  isStarting?(): boolean;
  /** Where connections are accepted; absent if the server does not listen itself. */
  readonly endpoint?: CarriersOptions["endpoint"];
  /** Where runs look for agents of other servers. Default: in the registry. */
  readonly find?: FindAgents;
}

/** Addresses of agents that others have registered: which may be reached, and which are those of this server. */
function foundAddresses(allowed: boolean | undefined, { baseUrl, find, local }: ServerLocation) {
  const allowPrivate = allowed ?? (local === true || find !== undefined);
  // Calls have their own limits, and streams have none.
  const unlimited = { timeoutMs: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };
  return {
    fetch: createGuardedFetch({ ...unlimited, allowPrivate }),
    isOwn: (url: string) => url.startsWith(`${baseUrl()}/`),
  };
}

type Report = (dialect: string, losses: readonly Loss[]) => void;

export function createCore(
  options: ServeOptions,
  where: ServerLocation,
  isOwnHost: (host: string | undefined) => boolean = () => true,
): Promise<Core> {
  return openAll(async (closing) => {
    await loadExtensions("config", "calling", "serving");
    return openCore(await buildAll(resolveOptions(options)), where, isOwnHost, closing);
  });
}

async function buildAll(settings: ServerSettings): Promise<ServerSettings> {
  const around = { ...settings, folder: settings.baseDirectory, strict: settings.strict === true };
  return { ...settings, agents: await buildDeclaredAgents(settings.agents, around) };
}

async function openCore(
  settings: ServerSettings,
  where: ServerLocation,
  isOwnHost: (host: string | undefined) => boolean,
  closing: CloseStack,
) {
  const { limits, log, times } = settings;
  const counters = new Counters();
  const report: Report = (dialect, losses) => reportLosses(dialect, losses, settings.strict === true, counters, log);
  const services = new Map<string, ServedAgentService>();
  const keys = await loadServerKeys(settings);
  const tools = { ...systemTools, log, meter: counters };
  const dialects = createDialects(tools, settings);
  const { baseUrl } = where;
  const authentication = createAuthentication({ ...settings, ...limits, baseUrl, now: systemClock.now });
  const audit = await openAudit(settings, counters, closing);
  let carriers: Carriers | undefined;
  closing.add(() => Promise.all(dialects.map(({ serving }) => serving.close?.())));
  closing.add(() => carriers?.close());
  const mentionLog = where.local === true && !authentication.identifies && log !== SILENT_LOG;
  const around = { where, dialects, report, keys, audit, counters, closing, mentionLog };
  const { engine, store } = await openEngine(settings, around);
  const admission = new Admission(limits, systemClock.now, counters);
  const shared = { engine, log, clock: systemClock, ids: uuidIds, authentication, admission, audit };
  const sign = keys.card && createCardSigner(keys.card, baseUrl);
  for (const name of settings.names) {
    const interfaces = () => interfacesOf(name, settings, dialects, where);
    services.set(name, new ServedAgentService({ name, interfaces, sign, ...shared }));
  }
  const upstreams = new Upstreams(settings.agents, report);
  closing.add(() => upstreams.close());
  const parts = await openParts(closing, {
    ...systemTools,
    ...where,
    options: settings,
    records: engine.records,
    services,
    defaultName: settings.defaultName,
    upstreams,
    isOpen: !authentication.identifies || settings.auth?.anonymous === true,
    admission,
    audit,
    log,
    meter: counters,
    keepAliveMs: times.keepAliveMs,
    streamsPerOwner: limits.streamsPerOwner ?? DEFAULT_LIMITS.streamsPerOwner,
  });
  const finding = parts.find((part) => part.find !== undefined);
  const find = where.find ?? finding?.find;
  const { createAgentChooser } = loadedParts("serving").find((part) => part.createAgentChooser !== undefined) ?? {};
  const chooser =
    find &&
    createAgentChooser?.({ ...systemTools, log, find, ...foundAddresses(finding?.allowsPrivateTargets, where) });
  const connect = (url: string) => connectByUrl(url, log);
  const findPeer = (address: string) => carriers?.findPeer(address);
  const directory = createAgentDirectory({ services, upstreams, connect, findPeer, chooser });
  const runServices: RunServices = {
    records: engine.records,
    findProfile: (name) => services.get(name)?.profile,
    countTokens: (agent, kind, count) => counters.countTokens(agent, kind, count),
  };
  for (const agent of Object.values(settings.agents)) bindDirectory(agent, directory, runServices);
  const budgets = createByteBudgets(limits, authentication.identifies);
  const monitoring = createMonitoringRoutes({
    engine,
    store,
    counters,
    audit,
    authentication,
    connections: () => carriers?.states() ?? new Map(),
    upstreams: () => upstreams.statuses,
    budgets,
    partMetrics: () => parts.map(({ metrics }) => metrics?.() ?? "").join(""),
    isStarting: () => where.isStarting?.() === true,
  });
  const defaultAgent = services.get(settings.defaultName) as AgentService;
  const gate = new Gate({
    authentication,
    admission,
    audit,
    agents: services,
    defaultAgent,
    limits: {
      maxDepth: limits.depth,
      maxValues: limits.values,
      maxParts: limits.parts,
      keepAliveMs: times.keepAliveMs,
    },
    report,
    ids: uuidIds,
  });
  const router = new Router({
    dialects,
    agents: services,
    defaultAgent,
    gate,
    cors: createCors(settings.cors ?? { origins: [] }, settings.auth?.apiKey?.header),
    serverRoutes: new Map([
      ...monitoring,
      ...keys.routes,
      ...parts.flatMap(({ routes = new Map() }) => [...routes]),
      ...authentication.metadataPaths(settings.names, () => skillScopesOf(services.values())),
    ]),
    now: systemClock.now,
    isOwnHost,
    cardForm: CARD_FORMS[settings.card ?? "hybrid"],
    prefixes: parts.flatMap(({ serving }) => serving ?? []),
  });
  await engine.start();
  for (const part of parts) part.start?.();
  carriers = await openCarriers({
    dialects,
    agents: settings.agents,
    tools,
    gate,
    endpoint: where.endpoint,
    serveRoute: (route) => engine.serveRoute(route),
    hold: engine.cluster.isShared
      ? { records: engine.records, node: engine.node, leaseMs: times.leaseMs ?? DEFAULT_TIMES.leaseMs, monotonic }
      : undefined,
    hostFor: (dialect) => ({
      ids: uuidIds,
      report: (losses) => report(dialect, losses),
      agents: services,
      limits: gate.limits,
      context: (agent, caller) => gate.enter(caller, agent, dialect),
      replies: engine.replies,
      records: engine.records,
    }),
  });
  closing.add(() => carriers?.settle());
  return {
    engine,
    dialects,
    gate,
    router,
    http: createHttp(settings, router, carriers, budgets, counters, authentication),
    /** Handles upgrade requests; undefined if no dialect accepts any. */
    upgrade: carriers.upgrade,
    store,
    services: services as ReadonlyMap<string, ServedAgentService>,
    /** New messages of an agent go to its new definition. */
    replaceAgent(name: string, agent: Agent) {
      bindDirectory(agent, directory, runServices);
      carriers?.bind(agent);
      engine.replaceAgent(name, agent);
      upstreams.replace(name, agent);
    },
    connections: limits as ConnectionLimits,
    parts,
    /** Waits for running tasks, at most `drainMs` (default: as configured), then closes everything. */
    async close(drainMs = times.drainMs) {
      await engine.drain(drainMs);
      await closing.close();
    },
  };
}

/** What extensions run beside the agents, in their order. */
async function openParts(closing: CloseStack, host: ServerHost): Promise<readonly ServerPart[]> {
  const parts: ServerPart[] = [];
  for (const { open } of loadedParts("serving")) {
    const part = await open?.(host);
    if (part === undefined) continue;
    closing.add(() => part.close?.());
    parts.push(part);
  }
  return parts;
}

interface EngineParts {
  readonly where: ServerLocation;
  readonly dialects: readonly Dialect[];
  readonly report: Report;
  readonly keys: ServerKeys;
  readonly audit: AuditLog | undefined;
  readonly counters: Counters;
  readonly closing: CloseStack;
  readonly mentionLog: boolean;
}

/** Of the heap, that what is kept of tasks under way may take up: while it is written, it takes up twice as much. */
const MAX_HEAP_SHARE = 1 / 4;

/** The engine with its store and push sender; not started. */
async function openEngine(settings: ServerSettings, parts: EngineParts) {
  const { log, limits, times, monitor = NO_MONITOR } = settings;
  const { where, audit, counters, closing, mentionLog } = parts;
  const push = openPush(settings.push, { ...systemTools, ...parts, ...where, key: parts.keys.push });
  const store =
    typeof settings.store === "object"
      ? settings.store
      : await openStore(settings.store, {
          baseDirectory: settings.baseDirectory,
          clock: systemClock,
          log,
          thread: { start: startThread },
          cluster: { ...fieldsOf(fieldsOf(settings).cluster), leaseMs: times.leaseMs },
        });
  let engine: Engine | undefined;
  closing.add(() => (engine ?? store).close());
  engine = new Engine(
    {
      ...systemTools,
      monotonic,
      store,
      log,
      meter: counters,
      monitor,
      mentionLog,
      toAgentId: (name) => urlOf(name, where),
      ...push.engine,
      onPushAttempt: (tried) => audit?.record(toDeliveryRecord(tried)),
      limits: { ...limits, ...push.limits },
      liveBytes: MAX_HEAP_SHARE * getHeapStatistics().heap_size_limit,
      times: { ...times, ...push.times },
    },
    new Map(Object.entries(settings.agents)),
  );
  return { engine, store };
}

async function openAudit(
  { audit: options, baseDirectory, log }: ServerSettings,
  meter: Meter,
  closing: CloseStack,
): Promise<AuditLog | undefined> {
  if (options === undefined) return undefined;
  const file = resolve(baseDirectory, options.file);
  const audit = new AuditLog({ ...options, file }, { clock: systemClock, log, meter });
  await audit.open();
  closing.add(() => audit.close());
  return audit;
}

const urlOf = (name: string, where: ServerLocation) => `${where.baseUrl()}/agents/${encodeURIComponent(name)}`;

function interfacesOf(
  name: string,
  { defaultName }: ServerSettings,
  dialects: readonly Dialect[],
  where: ServerLocation,
) {
  const place = { base: urlOf(name, where), rpc: where.grpc(), name, isDefault: name === defaultName };
  return dialects.flatMap(({ serving }) => serving.interfaces?.(place) ?? []);
}

function createHttp(
  { limits, log, times, trustProxy = [] }: ServerSettings,
  router: Router,
  carriers: Carriers,
  budgets: ByteBudgets,
  meter: Meter,
  { requiresCredentials }: Authentication,
): NodeHttpOptions {
  return {
    // Carriers first: access to a file offered over a connection is authorised by its URL, not by the caller.
    handle: (exchange) => carriers.answer(exchange) ?? router.handle(exchange),
    refuse: (status, exchange, message = BODY_ERROR_MESSAGES[status](limits.body)) =>
      router.refuse(status, message, exchange),
    screen: (exchange) => router.screen(exchange),
    maxBodyBytes: limits.body,
    requiresCredentials,
    proxies: createTrustedProxies(trustProxy),
    ...budgets,
    stalledReaderMs: times.stalledReaderMs,
    log,
    meter,
  };
}

const BODY_ERROR_MESSAGES = {
  413: (bytes: number) => `The request body is larger than ${bytes} bytes.`,
  415: () => "Request bodies must not be compressed.",
  429: () => "Too many large requests are on their way in.",
} as const satisfies Record<413 | 415 | 429, (bytes: number) => string>;

const CARD_FORMS = {
  hybrid: "hybrid",
  v1: { version: "1.0" },
  v03: { version: "0.3" },
} as const satisfies Record<NonNullable<ServeOptions["card"]>, CardForm>;

function skillScopesOf(services: Iterable<ServedAgentService>): readonly string[] {
  return [...new Set([...services].flatMap(({ profile }) => profile.skills.flatMap(({ scopes = [] }) => scopes)))];
}

/** Counts and logs losses; throws in strict mode. */
function reportLosses(dialect: string, losses: readonly Loss[], strict: boolean, counters: Counters, log: Log): void {
  counters.countLosses(dialect, losses);
  for (const { kind, path, reason } of losses) {
    log.debug({ dialect, kind, path, reason }, "A dialect could not express a value.");
  }
  const refused = strict ? refusedLosses(losses) : [];
  const [first] = refused;
  if (first === undefined) return;
  const violations = refused.map(({ path, reason }) => ({ field: path, description: reason }));
  throw new ProtocolError("LOSS_REFUSED", `${first.path} cannot be expressed here: ${first.reason}`, { violations });
}
