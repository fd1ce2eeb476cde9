import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { isPromise } from "../../auth/verify/contract.ts";
import type { Caller } from "../../model/caller.ts";
import {
  type ExchangeReply,
  type ExchangeRequest,
  type FullReply,
  isStreamReply,
  MAX_CREDENTIALS_BYTES,
  type ReceivedRequest,
  type RequestHead,
  type StreamReply,
} from "../../wire/exchange.ts";
import type { PeerCertificate } from "../../wire/tls.ts";
import {
  type IncomingByteBudget,
  LARGE_REQUEST_BYTES,
  TOO_MUCH_UNSENT,
  type UnreadLimits,
} from "../access/byte-budgets.ts";
import { type ConnectionLimits, limitConnections, peerCertificateOf } from "../access/connections.ts";
import type { TlsFiles } from "../access/tls.ts";
import type { TrustedProxies } from "../access/trusted-proxies.ts";
import { BodyBuffer, bodyReadByFramework, statusOfBody } from "./body-buffer.ts";
import { errorReply, refuseUpgrade, type Screening, TOO_MANY_HEADERS } from "./error-replies.ts";
import { outsideMountReply, removeMountPath, toOriginForm } from "./mount-path.ts";
import { hasManyHeaders, isExcess, MAX_HEADERS, QueuedRequest, queueOf, RequestQueue } from "./request-queue.ts";
import { endResponse, StreamPump } from "./stream-pump.ts";

export interface NodeHttpOptions extends UnreadLimits {
  readonly handle: (exchange: ReceivedRequest) => Promise<ExchangeReply> | ExchangeReply;
  /** The reply to a request whose body is too large, has an unsupported encoding, or exceeds the byte budget. */
  readonly refuse: (status: 413 | 415 | 429, exchange: RequestHead, message?: string) => FullReply;
  /** The reply to a request that is refused regardless of its body; otherwise whether its caller has authenticated. */
  readonly screen: (exchange: RequestHead) => Screening | Promise<Screening>;
  readonly maxBodyBytes: number;
  readonly arriving: IncomingByteBudget;
  readonly requiresCredentials: boolean;
  readonly proxies: TrustedProxies;
}

const NO_BODY = Buffer.alloc(0);
/** Longer than the usual idle timeout of proxies, so that they close first. */
const KEEP_ALIVE_MS = 65_000;
const LINGER_MS = 1_000;
/** The operating system usually buffers a shorter response at once, so it need not be checked against the budget. */
const LARGE_ANSWER_BYTES = 64 * 1024;
/** Interval of checks for late requests. */
const TIMEOUT_CHECK_MS = 5_000;

/** Who asks for an upgrade. */
interface UpgradePeer {
  /** The caller's own, also behind a proxy. */
  readonly remoteAddress: string | undefined;
  /** To be called once its credentials were accepted. */
  recognise(): void;
}

/** Handles upgrades to WebSocket; without it such requests are answered like any other. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer, peer: UpgradePeer) => void;

interface NodeServerOptions {
  readonly limits: ConnectionLimits;
  /** Serves TLS if present. */
  readonly tls?: TlsFiles | undefined;
  readonly takeUpgrade?: UpgradeHandler | undefined;
  /** Path prefix without a trailing slash; empty for the root. */
  readonly mount?: string;
}

export function createNodeServer(
  options: NodeHttpOptions,
  { limits, tls, takeUpgrade, mount = "" }: NodeServerOptions,
): Server {
  const settings = {
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: limits.headersTimeout,
    requestTimeout: Math.max(limits.requestTimeout, limits.headersTimeout),
    connectionsCheckingInterval: Math.min(TIMEOUT_CHECK_MS, limits.headersTimeout, limits.requestTimeout),
    maxHeaderSize: limits.headers,
    IncomingMessage: QueuedRequest,
    // Otherwise Node drops all but the first, which may not be the one that a proxy used.
    joinDuplicateHeaders: true,
  };
  const open = (request: IncomingMessage, response: ServerResponse): NodeExchange | undefined => {
    const isBelow = mount === "" || removeMountPath(request, mount);
    const exchange = new NodeExchange(options, request, response);
    if (isBelow && !isAmbiguous(request)) return exchange;
    exchange.reject(
      isBelow ? errorReply(400, "The request names more than one host or caller.") : outsideMountReply(mount),
    );
    return undefined;
  };
  const answer = (request: IncomingMessage, response: ServerResponse) =>
    queueOf(request)?.start(response, () => open(request, response)?.begin());
  const server =
    tls === undefined
      ? createServer(settings, answer)
      : createSecureServer({ ...settings, ...tls.serverOptions }, answer);
  if ("setSecureContext" in server) tls?.onChange((material) => server.setSecureContext(material));
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    queueOf(request)?.start(response, () => open(request, response)?.beginBeforeBody());
  });
  server.maxHeadersCount = 2 * MAX_HEADERS;
  const rules = { ...options, takesUpgrades: takeUpgrade !== undefined, penalties: new Map() };
  const unknown = limitConnections(server, limits, options);
  server.prependListener(tls === undefined ? "connection" : "secureConnection", (socket: Socket) => {
    new RequestQueue(socket, rules, () => unknown.recognise(socket));
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (hasManyHeaders(request)) refuseUpgrade(socket, TOO_MANY_HEADERS);
    else if (isExcess(request) || takeUpgrade === undefined) {
      options.meter.count("requests_limited");
      socket.destroy();
    } else if (mount === "" || removeMountPath(request, mount)) {
      takeUpgrade(request, socket, head, {
        remoteAddress: callerAddressOf(options, request),
        recognise: () => queueOf(request)?.recognise(),
      });
    } else refuseUpgrade(socket, outsideMountReply(mount));
  });
  return server;
}

function callerAddressOf({ proxies }: NodeHttpOptions, { headers, socket }: IncomingMessage): string | undefined {
  // Node joins repeated headers, so every value is one string.
  return proxies.callerAddress(socket.remoteAddress, headers as ExchangeRequest["headers"]);
}

/** Whether it has two hosts (RFC 9112 §3.2) or two credentials. Joined values contain a comma, which few others do. */
function isAmbiguous({ headers, rawHeaders }: IncomingMessage): boolean {
  const names = ["host", "authorization"] as const;
  return names.some((name) => headers[name]?.includes(",") === true && isRepeated(name, rawHeaders));
}

function isRepeated(name: string, rawHeaders: readonly string[]): boolean {
  // Names and values alternate.
  return rawHeaders.filter((text, at) => at % 2 === 0 && text.toLowerCase() === name).length > 1;
}

/** The same for a framework with its own server. `url` is relative to the mount point. */
export function serveNodeRequest(
  options: NodeHttpOptions,
  request: IncomingMessage,
  response: ServerResponse,
  url?: string,
): void {
  new NodeExchange(options, request, response, url).begin();
}

/** One request and its response. */
class NodeExchange implements ReceivedRequest, ExchangeRequest {
  readonly path: string;
  readonly query: string;
  body: Buffer = NO_BODY;
  #owner: string | undefined;
  readonly #options: NodeHttpOptions;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #isScreened = false;
  /** The caller sends its body only after 100 Continue. */
  #expectsContinue = false;
  #isRejected = false;
  #hasCredentials = false;
  /** What was received so far; undefined if the body arrived in one chunk. */
  #buffer: BodyBuffer | undefined;
  /** Bytes counted against the budget. */
  #charged = 0;

  constructor(options: NodeHttpOptions, request: IncomingMessage, response: ServerResponse, url = request.url ?? "/") {
    this.#options = options;
    this.#request = request;
    this.#response = response;
    const target = toOriginForm(url);
    const question = target.indexOf("?");
    this.path = question < 0 ? target : target.slice(0, question);
    this.query = question < 0 ? "" : target.slice(question + 1);
  }

  get method(): string {
    return this.#request.method ?? "GET";
  }
  /** Node joins repeated headers, so every value is one string. */
  get headers(): Readonly<Record<string, string | undefined>> {
    return this.#request.headers as Readonly<Record<string, string | undefined>>;
  }
  get remoteAddress(): string | undefined {
    return callerAddressOf(this.#options, this.#request);
  }
  get certificate(): PeerCertificate | undefined {
    return peerCertificateOf(this.#request.socket);
  }

  get credentialsBody(): Buffer | undefined {
    return this.body.length <= MAX_CREDENTIALS_BYTES ? this.body : undefined;
  }

  admit({ authenticated, owner }: Caller): ExchangeRequest {
    this.#owner = owner;
    if (authenticated) queueOf(this.#request)?.recognise();
    return this;
  }

  /** For a caller that expects 100 Continue. */
  beginBeforeBody(): void {
    this.#expectsContinue = true;
    this.#screen(() => this.begin());
  }

  begin(): void {
    const request = this.#request;
    const read = bodyReadByFramework(request);
    if (read !== undefined) {
      this.body = read;
      void this.#answer();
      return;
    }
    const announced = Number(request.headers["content-length"] ?? 0);
    const refused = statusOfBody(request.headers["content-encoding"], announced, this.#options.maxBodyBytes);
    if (refused !== undefined) this.#refuse(refused);
    else if (announced === 0 && request.headers["transfer-encoding"] === undefined) {
      request.resume();
      void this.#answer();
    } else {
      this.#readBody(announced);
      if (this.#expectsContinue) this.#response.writeContinue();
      // The chunks that have arrived are parsed without a pause, before any of them is seen here.
      if (announced > LARGE_REQUEST_BYTES || announced === 0) this.#screenFirst();
    }
  }

  #readBody(announced: number): void {
    this.#request.on("data", (chunk: Buffer) => {
      // A body in one chunk is not counted: nothing is buffered while waiting.
      if (chunk.length === announced) this.body = chunk;
      else if ((this.#buffer?.length ?? 0) + chunk.length > this.#options.maxBodyBytes) this.#refuse(413);
      else if (!this.#isScreened) this.#bufferIfAdmitted(chunk);
      else if (!this.#take(chunk)) this.#refuse(429);
      else if (this.#buffer?.isFragmented === true) this.#refuse(413, "The request body has too many small chunks.");
    });
    this.#request.on("end", () => {
      if (this.#isRejected) return;
      if (this.#buffer !== undefined) {
        this.body = this.#buffer.concat();
        this.#release();
      }
      void this.#answer();
    });
  }

  /** Returns false, and buffers nothing, if the budget is exceeded. */
  #take(chunk: Buffer): boolean {
    if (this.#buffer === undefined) {
      this.#buffer = new BodyBuffer();
      this.#request.once("close", this.#release);
    }
    const cost = this.#buffer.costOf(chunk);
    if (!this.#options.arriving.take(cost, this.#hasCredentials)) return false;
    this.#charged += cost;
    this.#buffer.push(chunk);
    return true;
  }

  /** Nothing is buffered for a caller that is refused. */
  #bufferIfAdmitted(chunk: Buffer): void {
    this.#request.pause();
    this.#screen(() => {
      if (this.#request.destroyed) return;
      if (this.#take(chunk)) this.#request.resume();
      else this.#refuse(429);
    });
  }

  /** Discards what has been read of the body. */
  readonly #release = (): void => {
    this.#options.arriving.release(this.#charged, this.#hasCredentials);
    this.#charged = 0;
    this.#buffer = undefined;
  };

  /** Pauses a request until its caller is authorised. */
  #screenFirst(): void {
    if (this.#isScreened) return;
    this.#request.pause();
    this.#screen(() => this.#request.resume());
  }

  /** At most once per request. Waits only where a check has to. */
  #screen(proceed: () => void): void {
    this.#isScreened = true;
    const settle = (screened: Screening): void => {
      if ("status" in screened) {
        this.reject(screened);
        return;
      }
      this.#hasCredentials = screened.hasCredentials;
      if (screened.hasCredentials) queueOf(this.#request)?.recognise();
      proceed();
    };
    const fail = (error: unknown): void => {
      this.#options.log.error({ err: error }, "A request could not be checked.");
      this.#response.destroy();
    };
    try {
      const screened = this.#options.screen(this);
      if (isPromise(screened)) screened.then(settle).catch(fail);
      else settle(screened);
    } catch (error) {
      fail(error);
    }
  }

  async #answer(): Promise<void> {
    try {
      const reply = await this.#options.handle(this);
      // A stream may last for hours; the request body is not retained.
      this.body = NO_BODY;
      // The caller disconnected before the response.
      if (this.#response.destroyed) {
        if (isStreamReply(reply)) await reply.frames[Symbol.asyncIterator]().return?.();
        return;
      }
      if (isStreamReply(reply)) this.#stream(reply);
      else this.#finish(reply);
    } catch (error) {
      this.#options.log.error({ err: error }, "A request could not be answered.");
      if (this.#response.headersSent) this.#response.destroy();
      else this.#finish({ status: 500, headers: {}, body: undefined });
    }
  }

  #finish(reply: FullReply): void {
    const { status, headers } = reply;
    if (status === 204 || status === 304) {
      this.#response.writeHead(status, headers).end();
      return;
    }
    // A long text is encoded once, not first for its length and then for the socket.
    const isLong = typeof reply.body === "string" && reply.body.length > LARGE_ANSWER_BYTES;
    const body = isLong ? Buffer.from(reply.body) : reply.body;
    const length = body === undefined ? 0 : Buffer.byteLength(body);
    const owner = this.#owner;
    const { method } = this.#request;
    if (length > LARGE_ANSWER_BYTES && method !== "HEAD" && !this.#options.unsent.fits(length, owner)) {
      this.#finish(this.#options.refuse(429, this, TOO_MUCH_UNSENT));
      return;
    }
    this.#response.writeHead(status, toHeaderList(headers, length));
    if (method === "HEAD") this.#response.end();
    else endResponse(this.#options, this.#response, body, owner);
  }

  #stream(reply: StreamReply): void {
    const response = this.#response;
    const frames = reply.frames[Symbol.asyncIterator]();
    response.writeHead(reply.status, reply.headers);
    if (this.#request.method === "HEAD") {
      void frames.return?.();
      response.end();
      return;
    }
    // Together with the first frames if they are available at once, otherwise alone.
    setImmediate(() => {
      if (!response.destroyed) response.flushHeaders();
    });
    new StreamPump(this.#options, response, frames, this.#owner).start();
  }

  #refuse(status: 413 | 415 | 429, message?: string): void {
    this.reject(this.#options.refuse(status, this, message));
  }

  /** Discards the rest of the body and closes the connection after the response. */
  reject(reply: FullReply): void {
    this.#isRejected = true;
    this.#release();
    this.#request.removeAllListeners("data");
    this.#response.shouldKeepAlive = false;
    this.#finish({ ...reply, headers: { ...reply.headers, connection: "close" } });
    // A caller that is still sending would miss the response if the connection were closed at once.
    if (this.#request instanceof QueuedRequest) this.#request.discard();
    else this.#request.resume();
    this.#response.once("finish", () => {
      const { socket } = this.#request;
      const timer = setTimeout(() => socket.destroy(), LINGER_MS);
      timer.unref();
      socket.once("close", () => clearTimeout(timer));
    });
  }
}

/** Alternating names and values, which Node passes on without further processing. */
function toHeaderList(headers: Readonly<Record<string, string>>, length: number): string[] {
  const list = ["content-length", String(length)];
  for (const name in headers) list.push(name, headers[name] as string);
  return list;
}
