import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import type { AgentService } from "../dialects/contract.ts";
import type { Agent } from "../engine/agent.ts";
import { Engine } from "../engine/engine.ts";
import type { EngineLimits, EngineTimes } from "../engine/options.ts";
import { ANONYMOUS, type Caller } from "../model/caller.ts";
import { type Log, SILENT_LOG } from "../model/ports.ts";
import type { TaskStore } from "../store/contract.ts";
import { openStore } from "../store/open.ts";
import { type ExchangeRequest, type FullReply, jsonReply } from "../wire/exchange.ts";
import { ServedAgentService } from "./agent-service.ts";
import { Cors, type CorsOptions } from "./cors.ts";
import { Counters } from "./counters.ts";
import { DIALECTS } from "./dialects.ts";
import { isLoopback } from "./loopback.ts";
import { createNodeServer, type NodeHttpOptions } from "./node-http.ts";
import { systemClock, uuidIds } from "./node-ports.ts";
import { ownHosts } from "./own-host.ts";
import { Router } from "./router.ts";

export interface ServeLimitOptions extends EngineLimits {
  /** Bytes of a request body; more is answered with 413. */
  readonly body: number;
  readonly parts: number;
  /** Levels of nesting in a request. */
  readonly depth: number;
}

export interface ServeTimeOptions extends EngineTimes {
  /** A silent stream says it is alive this often. */
  readonly keepAliveMs: number;
  readonly stalledReaderMs: number;
  /** How long runs may go on after the server was told to stop. */
  readonly drainMs: number;
}

export interface ServeOptions {
  /** By name; the name is part of the agent's URL. */
  readonly agents: Readonly<Record<string, Agent>>;
  /** The agent that also lives at the root; the first unless given. */
  readonly default?: string;
  readonly host?: string;
  /** 4000 unless given; 0 takes any free port. */
  readonly port?: number;
  /** Where callers reach this server, if that is not host and port. */
  readonly publicUrl?: string;
  /** `memory:` (the default here), `sqlite:<file>`, or a store of your own. */
  readonly store?: string | TaskStore;
  /** Relative store files are meant from here; the working directory unless given. */
  readonly baseDirectory?: string;
  readonly cors?: CorsOptions;
  /** Must be said before a server that anyone can reach takes callers it does not know. */
  readonly auth?: { readonly anonymous: boolean };
  /** Who is calling, by a check of your own; undefined is an anonymous caller. Throw a ProtocolError to refuse. */
  readonly authenticate?: (request: Pick<ExchangeRequest, "headers" | "remoteAddress">) => Caller | undefined;
  readonly limits?: Partial<ServeLimitOptions>;
  readonly times?: Partial<ServeTimeOptions>;
  readonly log?: Log | false;
}

export interface ServedAgentInfo {
  readonly name: string;
  readonly title: string;
  readonly url: string;
  readonly cardUrl: string;
  readonly isDefault: boolean;
}

export interface DragomanServer {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly store: string;
  readonly agents: readonly ServedAgentInfo[];
  /** Replaces the definition of an agent; turns under way finish with the old one. */
  replace(name: string, agent: Agent): void;
  /** Lets runs finish, then closes. Open streams end; their readers can resume. */
  close(reason?: string): Promise<void>;
  readonly closed: Promise<void>;
}

export const DEFAULT_SERVE_LIMITS = { body: 16 * 1024 * 1024, parts: 1_000, depth: 64 };
export const DEFAULT_SERVE_TIMES = { keepAliveMs: 15_000, stalledReaderMs: 60_000, drainMs: 10_000 };

/** Everything behind the socket: what `serve` listens with and what frameworks mount. */
export interface Core {
  readonly engine: Engine;
  readonly router: Router;
  readonly http: NodeHttpOptions;
  readonly store: TaskStore;
  readonly services: ReadonlyMap<string, ServedAgentService>;
  readonly drainMs: number;
}

/** `baseUrl` is asked for when a card is first made, by when the port is known. */
export async function createCore(
  options: ServeOptions,
  baseUrl: () => string,
  isOwnHost: (host: string | undefined) => boolean = () => true,
): Promise<Core> {
  const log = options.log || SILENT_LOG;
  const limits = { ...DEFAULT_SERVE_LIMITS, ...options.limits };
  const times = { ...DEFAULT_SERVE_TIMES, ...options.times };
  const names = Object.keys(options.agents);
  const defaultName = options.default ?? names[0];
  if (defaultName === undefined || !Object.hasOwn(options.agents, defaultName)) {
    throw new TypeError(names.length === 0 ? "There is no agent to serve." : `There is no agent "${defaultName}".`);
  }
  const store = await toStore(options, log);
  const counters = new Counters();
  const agents = new Map(Object.entries(options.agents));
  const engine = new Engine(
    { store, clock: systemClock, ids: uuidIds, log, meter: counters, limits: options.limits ?? {}, times },
    agents,
  );
  const services = new Map<string, ServedAgentService>();
  const authenticates = options.authenticate !== undefined;
  for (const name of names) {
    const interfaces = () => {
      const base = `${baseUrl()}/agents/${encodeURIComponent(name)}`;
      return DIALECTS.flatMap(({ serving }) => serving.interfaces?.(base) ?? []);
    };
    services.set(name, new ServedAgentService({ name, engine, log, interfaces, authenticates }));
  }
  const router = new Router({
    dialects: DIALECTS,
    agents: services,
    defaultAgent: services.get(defaultName) as AgentService,
    limits: { maxDepth: limits.depth, maxParts: limits.parts, keepAliveMs: times.keepAliveMs },
    cors: new Cors(options.cors ?? { origins: [] }),
    operations: operationsOf(engine, store, counters),
    now: systemClock.now,
    isOwnHost,
    ids: uuidIds,
    report: (losses) => {
      counters.count("losses", losses.length);
      for (const loss of losses) log.debug({ ...loss }, "A dialect could not say something.");
    },
    authenticate: (exchange) => options.authenticate?.(exchange) ?? ANONYMOUS,
  });
  const http: NodeHttpOptions = {
    handle: (exchange) => router.handle(exchange),
    refuse: (status) => router.refuse(status, REFUSALS[status](limits.body)),
    maxBodyBytes: limits.body,
    stalledReaderMs: times.stalledReaderMs,
    log,
    meter: counters,
  };
  await engine.start();
  return { engine, router, http, store, services, drainMs: times.drainMs };
}

const REFUSALS = {
  413: (bytes: number) => `The request body is larger than ${bytes} bytes.`,
  415: () => "Request bodies must not be compressed.",
} as const satisfies Record<413 | 415, (bytes: number) => string>;

/** Starts a server in this process. */
export async function serve(options: ServeOptions): Promise<DragomanServer> {
  const host = options.host ?? "127.0.0.1";
  if (!isLoopback(host) && options.authenticate === undefined && options.auth?.anonymous !== true) {
    throw new TypeError(
      `"${host}" can be reached from other machines; to let anyone call, say auth: { anonymous: true }.`,
    );
  }
  let url = "";
  const isOwnHost = options.authenticate === undefined ? ownHosts(host, options.publicUrl) : undefined;
  const core = await createCore(options, () => options.publicUrl?.replace(/\/+$/, "") ?? url, isOwnHost);
  const server = createNodeServer(core.http);
  try {
    const { port } = await listen(server, host, options.port ?? 4000);
    url = `http://${urlHost(host)}:${port}`;
    return runningServer(options, core, server, { url: options.publicUrl?.replace(/\/+$/, "") ?? url, host, port });
  } catch (error) {
    await core.engine.close();
    throw error;
  }
}

function runningServer(
  options: ServeOptions,
  core: Core,
  server: Server,
  where: { readonly url: string; readonly host: string; readonly port: number },
): DragomanServer {
  const names = [...core.services.keys()];
  const defaultName = options.default ?? names[0];
  let closing: Promise<void> | undefined;
  let resolveClosed = () => {};
  const closed = new Promise<void>((resolve) => {
    resolveClosed = resolve;
  });
  const close = async () => {
    server.close();
    await core.engine.drain(core.drainMs);
    await core.engine.close();
    server.closeIdleConnections();
    await endConnections(server);
    resolveClosed();
  };
  return {
    ...where,
    store: core.store.description,
    agents: names.map((name) => {
      const url = `${where.url}/agents/${encodeURIComponent(name)}`;
      const title = core.services.get(name)?.profile.name ?? name;
      return { name, title, url, cardUrl: `${url}/.well-known/agent-card.json`, isDefault: name === defaultName };
    }),
    replace(name, agent) {
      core.engine.replace(name, agent);
      core.services.get(name)?.changed();
    },
    close() {
      closing ??= close();
      return closing;
    },
    closed,
  };
}

/** Answers that are being written get a moment to leave; whatever is still open then is cut. */
function endConnections(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), 1_000);
    server.close(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function listen(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve(server.address() as AddressInfo);
    });
  });
}

/** A wildcard is no address to call: cards then name one that other machines can reach. IPv6 needs brackets in a URL. */
function urlHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return outwardAddress() ?? "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}

function outwardAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return addresses.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
}

async function toStore(options: ServeOptions, log: Log): Promise<TaskStore> {
  if (typeof options.store === "object") return options.store;
  const baseDirectory = options.baseDirectory ?? process.cwd();
  return openStore(options.store ?? "memory:", { baseDirectory, clock: systemClock, log });
}

function operationsOf(engine: Engine, store: TaskStore, counters: Counters) {
  const alive = (): FullReply => jsonReply(200, '{"status":"ok"}');
  const ready = async (): Promise<FullReply> => {
    try {
      await store.numbers([]);
      return jsonReply(200, '{"status":"ready"}');
    } catch {
      return jsonReply(503, '{"status":"store unavailable"}');
    }
  };
  const metrics = (): FullReply => {
    const { tasks, queued, streams } = engine.load;
    const body = counters.render({
      tasks_live: { help: "Tasks queued or running here.", value: tasks },
      tasks_queued: { help: "Tasks waiting for their agent.", value: queued },
      streams_open: { help: "Open streams.", value: streams },
      resident_memory_bytes: { help: "Memory of the process.", value: process.memoryUsage.rss() },
    });
    return { status: 200, headers: { "content-type": "text/plain; version=0.0.4" }, body };
  };
  return new Map<string, () => FullReply | Promise<FullReply>>([
    ["/healthz", alive],
    ["/readyz", ready],
    ["/metrics", metrics],
  ]);
}
