import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { toNetworkPrefix } from "../../model/caller.ts";
import { RPC_CODES } from "../../wire/rpc.ts";
import { IncomingByteBudget, UnsentByteBudget } from "../access/byte-budgets.ts";
import { DEFAULT_CONNECTION_LIMITS, LISTEN_BACKLOG, limitConnections, peerOf } from "../access/connections.ts";
import type { TlsFiles } from "../access/tls.ts";
import { Call } from "./call.ts";
import { Connection, FloodGuard, RESET_COST, UnadmittedCalls } from "./connection.ts";
import { Decompressor } from "./message-framing.ts";
import {
  type CallHandler,
  createMethodHandler,
  type MethodOptions,
  type RpcService,
  toRpcService,
} from "./method-handler.ts";
import type { GrpcEndpoint, GrpcOptions } from "./node-grpc.ts";
import { CoarseTimeouts } from "./request-reader.ts";
import { HEALTH_METHODS, HEALTH_SERVICE, Health } from "./services/health.ts";
import {
  createReflectionHandler,
  REFLECTION_METHOD,
  REFLECTION_SERVICES,
  ReflectionSessions,
} from "./services/reflection-calls.ts";

/** Plain text without `tls`. New certificates are applied while the server runs. */
export function createHttp2Server(
  maxConcurrentStreams: number,
  tls: Pick<TlsFiles, "serverOptions" | "onChange"> | undefined,
): Http2Server | Http2SecureServer {
  const options: ServerOptions = {
    settings: { maxConcurrentStreams, enablePush: false },
    // Both are limited elsewhere, by the sizes of messages and metadata; exceeding Node's own limits closes
    // connections.
    maxSessionMemory: Number.MAX_SAFE_INTEGER,
    maxSendHeaderBlockLength: Number.MAX_SAFE_INTEGER,
  };
  if (tls === undefined) return createServer(options);
  const server = createSecureServer({ ...options, ...tls.serverOptions });
  tls.onChange((material) => server.setSecureContext(material));
  return server;
}

/** Methods by service. */
type MethodsByService = ReadonlyMap<string, readonly string[]>;

const MAX_NAME_LENGTH = 200;

/** `path` is `/service/method`. */
function describeUnimplemented(path: string, offer: MethodsByService): string {
  const [, service = "", method = ""] = path.slice(0, MAX_NAME_LENGTH).split("/");
  const methods = offer.get(service);
  if (methods !== undefined) return `${service} has no method "${method}"; it has ${methods.join(", ")}.`;
  const [served, own] = [[...offer.keys()], service.split(".").at(-1)];
  const alike = served.filter((name) => name.split(".").at(-1) === own);
  const hint = alike.length > 0 ? `it is served as ${alike.join(" and ")}` : `served are ${served.join(", ")}`;
  return `There is no service "${service}" here; ${hint}.`;
}

const DEFAULT_MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/**
 * For health and reflection, which are open to all: their requests only contain the name of a service, file or type.
 */
const MAX_OPEN_MESSAGE_BYTES = 4 * 1024;
const DEFAULT_MAX_CONCURRENT_CALLS = 10_000;
/** Until a caller on the connection is known, where credentials are required. */
const MAX_UNKNOWN_CONCURRENT_CALLS = 16;
/** What a connection without a known caller may send: it has no large messages to send. */
const RECEIVED_CHECK_MS = 250;
const MAX_RECEIVED_PER_CHECK = 32 * 1024;
const MAX_RECEIVED_BURST = 128 * 1024;
/** The same while no caller is being checked: Node keeps the headers of a call until they are complete. */
const MAX_RECEIVED_IDLE = 16 * 1024;
const DEFAULT_KEEP_ALIVE = { afterMs: 60_000, timeoutMs: 20_000 };

type Methods = Readonly<Record<string, { readonly streams: boolean }>>;

/** The handlers of all services by path, with those of the endpoint's own. */
function createHandlers(options: GrpcOptions, arrivals: CoarseTimeouts, leaving: CoarseTimeouts) {
  const { log, meter, stalledReaderMs, maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES } = options;
  const { arriving = new IncomingByteBudget(Number.POSITIVE_INFINITY) } = options;
  const { unsent = new UnsentByteBudget(Number.POSITIVE_INFINITY) } = options;
  const common = { log, meter, stalledReaderMs, arrivals, leaving, arriving, unsent };
  const own = { ...common, maxMessageBytes, decompressor: new Decompressor() };
  // A separate decompressor: admitted callers do not queue behind callers that need no admission.
  const maxOpenBytes = Math.min(maxMessageBytes, MAX_OPEN_MESSAGE_BYTES);
  const open = { ...common, maxMessageBytes: maxOpenBytes, decompressor: new Decompressor() };
  const servings = options.services.map(({ serving }) => serving);
  const names = [...servings.map(({ service }) => service), HEALTH_SERVICE, ...REFLECTION_SERVICES];
  const health = new Health(names);
  const sessions = new ReflectionSessions(servings, names);
  const offer = new Map<string, readonly string[]>();
  const handlers = new Map<string, CallHandler>();
  const add = (service: string, methods: Methods, answering: RpcService, methodOptions: MethodOptions): void => {
    if (offer.has(service)) throw new TypeError(`Two services are called "${service}".`);
    offer.set(service, Object.keys(methods));
    for (const [method, { streams }] of Object.entries(methods)) {
      const handler = createMethodHandler(service, method, streams, answering, methodOptions);
      handlers.set(`/${service}/${method}`, handler);
    }
  };
  for (const binding of options.services) {
    add(binding.serving.service, binding.serving.methods, toRpcService(binding, options), own);
  }
  add(HEALTH_SERVICE, HEALTH_METHODS, health, open);
  for (const service of REFLECTION_SERVICES) {
    offer.set(service, [REFLECTION_METHOD]);
    handlers.set(`/${service}/${REFLECTION_METHOD}`, createReflectionHandler(sessions, open));
  }
  return { handlers, health, offer, sessions };
}

export async function openEndpoint(options: GrpcOptions): Promise<GrpcEndpoint> {
  const { log, meter, keepAlive = DEFAULT_KEEP_ALIVE } = options;
  const limits = { ...DEFAULT_CONNECTION_LIMITS, ...options.connections };
  const arrivals = new CoarseTimeouts(limits.requestTimeout);
  const leaving = new CoarseTimeouts(options.stalledReaderMs);
  const { handlers, health, offer, sessions } = createHandlers(options, arrivals, leaving);
  const { maxConcurrentCalls = DEFAULT_MAX_CONCURRENT_CALLS, proxies, requiresCredentials = false } = options;
  const unknownCalls = requiresCredentials ? MAX_UNKNOWN_CONCURRENT_CALLS : maxConcurrentCalls;
  const server = createHttp2Server(Math.min(unknownCalls, maxConcurrentCalls), options.tls);
  /** By address of the peer; used to find the socket of a session. */
  const sockets = new Map<string, Socket>();
  const connections = new Set<Connection>();
  const guard = new FloodGuard(limits.resetsPerAddress, options.now ?? Date.now);

  /** Connections with authenticated callers stay open, even from a blocked address. */
  const onUnadmitted = (connection: Connection, cost: number): void => {
    const { network } = connection;
    const excess = guard.charge(network, cost);
    if (excess === undefined) return;
    meter.count("requests_limited");
    connection.closeForAbuse();
    if (excess === "all" || proxies?.has(connection.remoteAddress) === true) return;
    log.warn({ network }, "Too many calls from an address were reset or refused; it is refused for a while.");
    for (const one of connections) if (!one.isKnown && one.network === network) one.closeForAbuse();
  };
  const checkReceived = (): void => {
    for (const connection of connections) {
      if (connection.isKnown || connection.isCut) continue;
      const excess = connection.excessReceived(MAX_RECEIVED_PER_CHECK);
      if (excess <= (connection.isAwaitingCheck ? MAX_RECEIVED_BURST : MAX_RECEIVED_IDLE)) continue;
      meter.count("requests_limited");
      if (excess > MAX_RECEIVED_BURST && proxies?.has(connection.remoteAddress) !== true) {
        guard.block(connection.network);
      }
      connection.closeForAbuse();
    }
  };
  const receivedTimer = requiresCredentials ? setInterval(checkReceived, RECEIVED_CHECK_MS).unref() : undefined;
  const unadmitted = new UnadmittedCalls<Call>();
  /** Counts a call without an admitted caller as long as its stream is open, and closes an older one if there are many. */
  const countOpen = (call: Call): void => {
    if (call.stream.closed) return;
    const network = toNetworkPrefix(call.remoteAddress ?? "");
    const excess = unadmitted.add(call, network, proxies?.has(call.remoteAddress) === true);
    call.stream.once("close", () => unadmitted.delete(call, network));
    if (excess === undefined) return;
    meter.count("requests_limited");
    excess.connection.countUnadmitted(RESET_COST);
    if (excess.isOver) excess.stream.close();
    else if (excess.stream.headersSent) excess.reset();
    else excess.failAndClose({ code: RPC_CODES.RESOURCE_EXHAUSTED, message: "Too many calls are open." });
  };
  const take = (call: Call): void => {
    if (call.isOver) return;
    const { headers } = call;
    if (headers["content-type"]?.startsWith("application/grpc") !== true) call.refuse({ ":status": 415 });
    else if (headers[":method"] !== "POST") call.refuse({ ":status": 405, allow: "POST" });
    else if (call.startDeadline()) {
      const path = headers[":path"] ?? "";
      const handler = handlers.get(path);
      if (handler !== undefined) handler(call);
      else call.fail({ code: RPC_CODES.UNIMPLEMENTED, message: describeUnimplemented(path, offer) });
    }
  };
  // Before Node's own listener, which opens the session of a plain connection at once.
  server.prependListener("connection", (socket: Socket) => {
    const peer = peerOf(socket);
    sockets.set(peer, socket);
    socket.once("close", () => sockets.delete(peer));
  });
  const unknown = limitConnections(server, limits, options, (network) => guard.isBlocked(network));
  const onKnown = (session: ServerHttp2Session): void => {
    unknown.recognise(session.socket);
    if (unknownCalls < maxConcurrentCalls && !session.destroyed)
      session.settings({ maxConcurrentStreams: maxConcurrentCalls });
  };
  server.on("session", (session: ServerHttp2Session) => {
    const socket = sockets.get(peerOf(session.socket));
    const connection = new Connection(session, socket, keepAlive, { proxies, onUnadmitted, onKnown }, log);
    connections.add(connection);
    session.once("close", () => connections.delete(connection));
    session.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw: string[]) => {
      if (connection.isCut) {
        stream.on("error", ignore);
        return;
      }
      const call = new Call(stream, headers, raw, connection, log);
      take(call);
      if (!requiresCredentials || call.caller !== undefined) return;
      if (call.admission === undefined) countOpen(call);
      else call.admission.catch(() => countOpen(call));
    });
  });

  const stopTimeouts = (): void => {
    arrivals.close();
    leaving.close();
    clearInterval(receivedTimer);
  };
  const close = async (graceMs: number): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    health.close();
    sessions.close();
    for (const connection of connections) connection.closeGracefully();
    const timer = setTimeout(() => {
      for (const connection of connections) connection.destroy();
      for (const socket of sockets.values()) socket.destroy();
    }, graceMs);
    await closed;
    clearTimeout(timer);
    stopTimeouts();
  };
  let closing: Promise<void> | undefined;
  const port = await listen(server, options).catch((error: unknown) => {
    stopTimeouts();
    throw error;
  });
  return {
    port,
    drain: () => health.drain(),
    close(graceMs) {
      closing ??= close(graceMs);
      return closing;
    },
  };
}

function listen(server: Http2Server | Http2SecureServer, { host, port, log }: GrpcOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const onFailure = (error: NodeJS.ErrnoException) => reject(listenError(error, host, port));
    server.once("error", onFailure);
    server.listen({ port, host, backlog: LISTEN_BACKLOG }, () => {
      server.off("error", onFailure);
      server.on("error", (error) => log.error({ err: error }, "The gRPC listener failed."));
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const { code } = error;
  const why = code === "EADDRINUSE" ? "the port is in use" : error.message;
  return Object.assign(new Error(`gRPC cannot listen on ${host}:${port}: ${why}.`, { cause: error }), { code, port });
}

function ignore(): void {}
