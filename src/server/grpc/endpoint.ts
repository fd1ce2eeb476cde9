import { type AddressInfo, createServer, type Server as Listener, type Socket } from "node:net";
import { createServer as createSecureServer } from "node:tls";
import { Server, ServerCredentials, setLogger } from "@grpc/grpc-js";
import { boundConnections, type ConnectionLimits, DEFAULT_CONNECTION_LIMITS } from "../connections.ts";
import { Arrivals } from "./arrivals.ts";
import { type Answer, answerOf, streamHandler, unaryHandler } from "./calls.ts";
import { carryCalls, type Outgoing } from "./carried-call.ts";
import { Connections } from "./connections.ts";
import { Envelope } from "./envelope.ts";
import { HEALTH_METHODS, HEALTH_SERVICE, Health } from "./health.ts";
import { libraryLog } from "./library-log.ts";
import type { GrpcEndpoint, GrpcOptions } from "./node-grpc.ts";
import { REFLECTION_METHOD, REFLECTION_SERVICES, reflectionHandler, Talks } from "./reflection-calls.ts";
import { explainUnimplemented } from "./unimplemented.ts";

const DEFAULT_MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
const DEFAULT_MAX_CONCURRENT_CALLS = 10_000;
const DEFAULT_KEEP_ALIVE = { afterMs: 60_000, timeoutMs: 20_000 };

type Methods = Readonly<Record<string, { readonly streams: boolean }>>;

export async function openEndpoint(options: GrpcOptions): Promise<GrpcEndpoint> {
  setLogger(libraryLog(options.log));
  const endpoint = new Endpoint(options);
  await endpoint.listen();
  return endpoint;
}

class Endpoint implements GrpcEndpoint {
  readonly #options: GrpcOptions;
  readonly #limits: ConnectionLimits;
  readonly #server: Server;
  readonly #arrivals: Arrivals;
  readonly #health: Health;
  readonly #talks: Talks;
  readonly #listener: Listener;
  readonly #connections = new Connections();
  readonly #offer = new Map<string, readonly string[]>();
  #port = 0;
  #closing: Promise<void> | undefined;

  constructor(options: GrpcOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_CONNECTION_LIMITS, ...options.connections };
    this.#arrivals = new Arrivals(this.#limits.requestTimeout);
    const { afterMs, timeoutMs } = options.keepAlive ?? DEFAULT_KEEP_ALIVE;
    this.#server = new Server({
      "grpc.max_receive_message_length": options.maxMessageBytes ?? DEFAULT_MAX_MESSAGE_BYTES,
      "grpc.max_concurrent_streams": options.maxConcurrentCalls ?? DEFAULT_MAX_CONCURRENT_CALLS,
      "grpc.keepalive_time_ms": afterMs,
      "grpc.keepalive_timeout_ms": timeoutMs,
      "grpc.enable_channelz": 0,
      interceptors: [carryCalls(this.#arrivals, this.#connections)],
    });
    const names = [...options.services.map(({ service }) => service), HEALTH_SERVICE, ...REFLECTION_SERVICES];
    this.#health = new Health(names);
    this.#talks = new Talks(options.services, names);
    for (const serving of options.services) {
      this.#add(serving.service, serving.methods, answerOf(serving, options));
    }
    this.#add(HEALTH_SERVICE, HEALTH_METHODS, (request) => this.#health.answer(request));
    for (const service of REFLECTION_SERVICES) this.#addReflection(service);
    explainUnimplemented(this.#server, this.#offer);
    this.#listener = this.#createListener();
  }

  get port(): number {
    return this.#port;
  }

  #add(service: string, methods: Methods, answer: Answer): void {
    if (this.#offer.has(service)) throw new TypeError(`Two services are called "${service}".`);
    this.#offer.set(service, Object.keys(methods));
    for (const [method, { streams }] of Object.entries(methods)) {
      const path = `/${service}/${method}`;
      if (streams) {
        const handler = streamHandler(service, method, answer, this.#options);
        this.#server.register(path, handler, serialize, deserialize, "serverStream");
      } else {
        const handler = unaryHandler(service, method, answer, this.#options);
        this.#server.register(path, handler, serialize, deserialize, "unary");
      }
    }
  }

  #addReflection(service: string): void {
    const handler = reflectionHandler(this.#talks, this.#options.log);
    this.#offer.set(service, [REFLECTION_METHOD]);
    this.#server.register(`/${service}/${REFLECTION_METHOD}`, handler, serialize, deserialize, "bidi");
  }

  /**
   * Listens itself rather than through the library, whose errors are text and which also prints them. So does TLS: the
   * library neither takes new certificates while it serves nor leaves it to us what to say to one it does not trust.
   */
  #createListener(): Listener {
    const { tls } = this.#options;
    const injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
    const take = (socket: Socket) => {
      // One that was hung up on already.
      if (socket.destroyed) return;
      this.#connections.ready(socket);
      injector.injectConnection(socket);
    };
    const listener =
      tls === undefined
        ? createServer({ noDelay: true }, take)
        : createSecureServer({ noDelay: true, ALPNProtocols: ["h2"], ...tls.serverOptions }, take);
    if ("setSecureContext" in listener) tls?.onChange((material) => listener.setSecureContext(material));
    listener.on("connection", (socket: Socket) => this.#connections.opened(socket));
    boundConnections(listener, this.#limits);
    return listener;
  }

  listen(): Promise<void> {
    const { host, port, log } = this.#options;
    return new Promise((resolve, reject) => {
      this.#listener.once("error", (error: NodeJS.ErrnoException) => {
        this.#arrivals.close();
        reject(listenError(error, host, port));
      });
      this.#listener.listen(port, host, () => {
        this.#port = (this.#listener.address() as AddressInfo).port;
        this.#listener.removeAllListeners("error");
        this.#listener.on("error", (error) => log.error({ err: error }, "The gRPC listener failed."));
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
    const closed = new Promise<void>((resolve) => this.#listener.close(() => resolve()));
    this.#health.close();
    this.#talks.close();
    this.#server.tryShutdown(() => {});
    const timer = setTimeout(() => this.#cut(), graceMs);
    await closed;
    clearTimeout(timer);
    this.#arrivals.close();
    this.#server.forceShutdown();
  }

  #cut(): void {
    this.#server.forceShutdown();
    this.#connections.cut();
  }
}

function serialize(message: Outgoing): Buffer {
  if (!(message instanceof Uint8Array)) throw new TypeError("A batch was not taken apart.");
  return Buffer.isBuffer(message) ? message : Buffer.from(message.buffer, message.byteOffset, message.byteLength);
}

function deserialize(bytes: Buffer): Envelope {
  return new Envelope(bytes);
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const { code } = error;
  const why = code === "EADDRINUSE" ? "the port is in use" : error.message;
  return Object.assign(new Error(`gRPC cannot listen on ${host}:${port}: ${why}.`, { cause: error }), { code, port });
}
