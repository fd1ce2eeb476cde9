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
import { RPC_CODES } from "../../wire/rpc.ts";
import { IncomingByteBudget, UnsentByteBudget } from "../access/byte-budgets.ts";
import { DEFAULT_CONNECTION_LIMITS, limitConnections } from "../access/connections.ts";
import type { TlsFiles } from "../access/tls.ts";
import { Call } from "./call.ts";
import { Connection, FloodGuard } from "./connection.ts";
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
const DEFAULT_KEEP_ALIVE = { afterMs: 60_000, timeoutMs: 20_000 };

type Methods = Readonly<Record<string, { readonly streams: boolean }>>;

export async function openEndpoint(options: GrpcOptions): Promise<GrpcEndpoint> {
  const endpoint = new Endpoint(options);
  await endpoint.listen();
  return endpoint;
}

class Endpoint implements GrpcEndpoint {
  readonly #options: GrpcOptions;
  readonly #server: Http2Server | Http2SecureServer;
  readonly #arrivals: CoarseTimeouts;
  readonly #leaving: CoarseTimeouts;
  readonly #guard: FloodGuard;
  readonly #health: Health;
  readonly #sessions: ReflectionSessions;
  /** By address of the peer; used to find the socket of a session. */
  readonly #sockets = new Map<string, Socket>();
  readonly #connections = new Set<Connection>();
  readonly #offer = new Map<string, readonly string[]>();
  /** By path. */
  readonly #handlers = new Map<string, CallHandler>();
  #port = 0;
  #closing: Promise<void> | undefined;

  constructor(options: GrpcOptions) {
    this.#options = options;
    const { log, meter, stalledReaderMs, maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES } = options;
    const { arriving = new IncomingByteBudget(Number.POSITIVE_INFINITY) } = options;
    const { unsent = new UnsentByteBudget(Number.POSITIVE_INFINITY) } = options;
    const limits = { ...DEFAULT_CONNECTION_LIMITS, ...options.connections };
    this.#arrivals = new CoarseTimeouts(limits.requestTimeout);
    this.#leaving = new CoarseTimeouts(stalledReaderMs);
    const [arrivals, leaving] = [this.#arrivals, this.#leaving];
    const common = { log, meter, stalledReaderMs, arrivals, leaving, arriving, unsent };
    const own = { ...common, maxMessageBytes, decompressor: new Decompressor() };
    // A separate decompressor: admitted callers do not queue behind callers that need no admission.
    const maxOpenBytes = Math.min(maxMessageBytes, MAX_OPEN_MESSAGE_BYTES);
    const open = { ...common, maxMessageBytes: maxOpenBytes, decompressor: new Decompressor() };
    const servings = options.services.map(({ serving }) => serving);
    const names = [...servings.map(({ service }) => service), HEALTH_SERVICE, ...REFLECTION_SERVICES];
    this.#health = new Health(names);
    this.#sessions = new ReflectionSessions(servings, names);
    for (const binding of options.services) {
      const { service, methods } = binding.serving;
      this.#add(service, methods, toRpcService(binding, options), own);
    }
    this.#add(HEALTH_SERVICE, HEALTH_METHODS, this.#health, open);
    for (const service of REFLECTION_SERVICES) {
      this.#offer.set(service, [REFLECTION_METHOD]);
      this.#handlers.set(`/${service}/${REFLECTION_METHOD}`, createReflectionHandler(this.#sessions, open));
    }
    this.#server = createHttp2Server(options.maxConcurrentCalls ?? DEFAULT_MAX_CONCURRENT_CALLS, options.tls);
    this.#server.on("connection", (socket: Socket) => {
      const peer = peerOf(socket);
      this.#sockets.set(peer, socket);
      socket.once("close", () => this.#sockets.delete(peer));
    });
    this.#guard = new FloodGuard(limits.resetsPerAddress, options.now ?? Date.now);
    limitConnections(this.#server, limits, (network) => this.#guard.isBlocked(network));
    this.#server.on("session", (session: ServerHttp2Session) => this.#connect(session));
  }

  get port(): number {
    return this.#port;
  }

  #add(service: string, methods: Methods, answering: RpcService, options: MethodOptions): void {
    if (this.#offer.has(service)) throw new TypeError(`Two services are called "${service}".`);
    this.#offer.set(service, Object.keys(methods));
    for (const [method, { streams }] of Object.entries(methods)) {
      const handler = createMethodHandler(service, method, streams, answering, options);
      this.#handlers.set(`/${service}/${method}`, handler);
    }
  }

  #connect(session: ServerHttp2Session): void {
    const { keepAlive = DEFAULT_KEEP_ALIVE, log } = this.#options;
    const connection = new Connection(
      session,
      this.#sockets.get(peerOf(session.socket)),
      keepAlive,
      this.#onUnadmitted,
      log,
    );
    this.#connections.add(connection);
    session.once("close", () => this.#connections.delete(connection));
    const onStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw: string[]) => {
      if (connection.isCut) stream.on("error", ignore);
      else this.#take(new Call(stream, headers, raw, connection, log));
    };
    session.on("stream", onStream);
  }

  /** Connections with authenticated callers stay open, even from a blocked address. */
  readonly #onUnadmitted = (connection: Connection, cost: number): void => {
    const { network } = connection;
    const excess = this.#guard.charge(network, cost);
    if (excess === undefined) return;
    const { log, meter } = this.#options;
    meter.count("requests_limited");
    connection.closeForAbuse();
    if (excess === "all") return;
    log.warn({ network }, "Too many calls from an address were reset or refused; it is refused for a while.");
    for (const one of this.#connections) if (!one.isKnown && one.network === network) one.closeForAbuse();
  };

  #take(call: Call): void {
    if (call.isOver) return;
    const { headers } = call;
    if (headers["content-type"]?.startsWith("application/grpc") !== true) call.refuse({ ":status": 415 });
    else if (headers[":method"] !== "POST") call.refuse({ ":status": 405, allow: "POST" });
    else if (call.startDeadline()) {
      const path = headers[":path"] ?? "";
      const handler = this.#handlers.get(path);
      if (handler !== undefined) handler(call);
      else call.fail({ code: RPC_CODES.UNIMPLEMENTED, message: describeUnimplemented(path, this.#offer) });
    }
  }

  listen(): Promise<void> {
    const { host, port, log } = this.#options;
    return new Promise((resolve, reject) => {
      const onFailure = (error: NodeJS.ErrnoException) => {
        this.#arrivals.close();
        this.#leaving.close();
        reject(listenError(error, host, port));
      };
      this.#server.once("error", onFailure);
      this.#server.listen(port, host, () => {
        this.#port = (this.#server.address() as AddressInfo).port;
        this.#server.off("error", onFailure);
        this.#server.on("error", (error) => log.error({ err: error }, "The gRPC listener failed."));
        resolve();
      });
    });
  }

  drain(): void {
    this.#health.drain();
  }

  close(graceMs: number): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#health.close();
    this.#sessions.close();
    for (const connection of this.#connections) connection.closeGracefully();
    const timer = setTimeout(() => this.#cut(), graceMs);
    await closed;
    clearTimeout(timer);
    this.#arrivals.close();
    this.#leaving.close();
  }

  #cut(): void {
    for (const connection of this.#connections) connection.destroy();
    for (const socket of this.#sockets.values()) socket.destroy();
  }
}

function peerOf({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress} ${remotePort}`;
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const { code } = error;
  const why = code === "EADDRINUSE" ? "the port is in use" : error.message;
  return Object.assign(new Error(`gRPC cannot listen on ${host}:${port}: ${why}.`, { cause: error }), { code, port });
}

function ignore(): void {}
