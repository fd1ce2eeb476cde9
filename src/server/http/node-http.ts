import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Duplex } from "node:stream";
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
import { errorReply, refuseUpgrade, WebSocketOrPlainRequest } from "./error-replies.ts";
import { endResponse, StreamPump } from "./stream-pump.ts";

export interface NodeHttpOptions extends UnreadLimits {
  readonly handle: (exchange: ReceivedRequest) => Promise<ExchangeReply> | ExchangeReply;
  /** The reply to a request whose body is too large, has an unsupported encoding, or exceeds the byte budget. */
  readonly refuse: (status: 413 | 415 | 429, exchange: RequestHead, message?: string) => FullReply;
  /** The reply to a request that is refused regardless of its body; otherwise whether its caller has authenticated. */
  readonly screen: (exchange: RequestHead) => Promise<FullReply | { readonly hasCredentials: boolean }>;
  readonly maxBodyBytes: number;
  readonly arriving: IncomingByteBudget;
}

const NO_BODY = Buffer.alloc(0);
/** Longer than the usual idle timeout of proxies, so that they close first. */
const KEEP_ALIVE_MS = 65_000;
const LINGER_MS = 1_000;
/** The operating system usually buffers a shorter response at once, so it need not be checked against the budget. */
const LARGE_ANSWER_BYTES = 64 * 1024;
/** Interval of checks for late requests. */
const TIMEOUT_CHECK_MS = 5_000;

/** Handles upgrades to WebSocket; without it such requests are answered like any other. */
type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

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
    ...(takeUpgrade !== undefined && { IncomingMessage: WebSocketOrPlainRequest }),
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
  const answer = (request: IncomingMessage, response: ServerResponse) => open(request, response)?.begin();
  const server =
    tls === undefined
      ? createServer(settings, answer)
      : createSecureServer({ ...settings, ...tls.serverOptions }, answer);
  if ("setSecureContext" in server) tls?.onChange((material) => server.setSecureContext(material));
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    void open(request, response)?.beginBeforeBody();
  });
  limitConnections(server, limits);
  if (takeUpgrade !== undefined) {
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (mount === "" || removeMountPath(request, mount)) takeUpgrade(request, socket, head);
      else refuseUpgrade(socket, outsideMountReply(mount));
    });
  }
  return server;
}

function outsideMountReply(mount: string): FullReply {
  return errorReply(404, `Everything here is below ${mount}.`);
}

/** Strips the mount path from the request's URL; returns false, without a change, for a URL outside of it. */
function removeMountPath(request: IncomingMessage, mount: string): boolean {
  const rest = pathBelowMount(toOriginForm(request.url ?? "/"), mount);
  if (rest === undefined) return false;
  request.url = rest;
  return true;
}

/** The path below the mount path, with a leading slash; undefined for a path outside of it. */
export function pathBelowMount(target: string, mount: string): string | undefined {
  if (!target.startsWith(mount)) return undefined;
  const rest = target.slice(mount.length);
  if (rest.startsWith("/")) return rest;
  return rest === "" || rest.startsWith("?") ? `/${rest}` : undefined;
}

/** Whether it has two hosts (RFC 9112 §3.2) or two credentials. Joined values contain a comma, which few others do. */
function isAmbiguous({ headers: { host, authorization }, rawHeaders }: IncomingMessage): boolean {
  return (
    (host?.includes(",") === true && isRepeated("host", rawHeaders)) ||
    (authorization?.includes(",") === true && isRepeated("authorization", rawHeaders))
  );
}

/** `rawHeaders` alternates names and values. */
function isRepeated(name: string, rawHeaders: readonly string[]): boolean {
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
  /** Chunks received so far, counted against the budget; undefined if the body arrived in one chunk. */
  #chunks: Buffer[] | undefined;
  #size = 0;

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
    return this.#request.socket.remoteAddress;
  }
  get certificate(): PeerCertificate | undefined {
    return peerCertificateOf(this.#request.socket);
  }

  get credentialsBody(): Buffer | undefined {
    return this.body.length <= MAX_CREDENTIALS_BYTES ? this.body : undefined;
  }

  admit({ owner }: Caller): ExchangeRequest {
    this.#owner = owner;
    return this;
  }

  /** For a caller that expects 100 Continue. */
  async beginBeforeBody(): Promise<void> {
    this.#expectsContinue = true;
    await this.#screen(() => this.begin());
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
      if (announced > LARGE_REQUEST_BYTES) void this.#screenLarge();
    }
  }

  #readBody(announced: number): void {
    this.#request.on("data", (chunk: Buffer) => {
      // A body in one chunk is not counted: nothing is buffered while waiting.
      if (chunk.length === announced) this.body = chunk;
      else if (this.#size + chunk.length > this.#options.maxBodyBytes) this.#refuse(413);
      else if (!this.#buffer(chunk)) this.#bufferIfAuthenticated(chunk);
      else if (this.#size > LARGE_REQUEST_BYTES) void this.#screenLarge();
    });
    this.#request.on("end", () => {
      if (this.#isRejected) return;
      if (this.#chunks !== undefined) {
        this.body = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks, this.#size);
        this.#release();
      }
      void this.#answer();
    });
  }

  /** Returns false, and buffers nothing, if the budget is exceeded. */
  #buffer(chunk: Buffer): boolean {
    if (!this.#options.arriving.take(chunk.length, this.#hasCredentials)) return false;
    this.#size += chunk.length;
    if (this.#chunks === undefined) {
      this.#chunks = [chunk];
      this.#request.once("close", this.#release);
    } else this.#chunks.push(chunk);
    return true;
  }

  /** Retries after authentication: only the share of callers without credentials may be exhausted. */
  #bufferIfAuthenticated(chunk: Buffer): void {
    if (this.#isScreened) {
      this.#refuse(429);
      return;
    }
    this.#request.pause();
    void this.#screen(() => {
      if (this.#request.destroyed) return;
      if (this.#buffer(chunk)) this.#request.resume();
      else this.#refuse(429);
    });
  }

  /** Discards what has been read of the body. */
  readonly #release = (): void => {
    this.#options.arriving.release(this.#size, this.#hasCredentials);
    this.#size = 0;
    this.#chunks = undefined;
  };

  /** Pauses a large request until its caller is authorised. */
  async #screenLarge(): Promise<void> {
    if (this.#isScreened) return;
    this.#request.pause();
    await this.#screen(() => this.#request.resume());
  }

  /** At most once per request. */
  async #screen(proceed: () => void): Promise<void> {
    this.#isScreened = true;
    try {
      const screened = await this.#options.screen(this);
      if ("status" in screened) {
        this.reject(screened);
        return;
      }
      if (screened.hasCredentials) this.#options.arriving.recognise(this.#size);
      this.#hasCredentials = screened.hasCredentials;
      proceed();
    } catch (error) {
      this.#options.log.error({ err: error }, "A request could not be checked.");
      this.#response.destroy();
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

  #refuse(status: 413 | 415 | 429): void {
    this.reject(this.#options.refuse(status, this));
  }

  /** Discards the rest of the body and closes the connection after the response. */
  reject(reply: FullReply): void {
    this.#isRejected = true;
    this.#release();
    this.#request.removeAllListeners("data");
    this.#response.shouldKeepAlive = false;
    this.#finish({ ...reply, headers: { ...reply.headers, connection: "close" } });
    // A caller that is still sending would miss the response if the connection were closed at once.
    this.#request.resume();
    this.#response.once("finish", () => {
      const { socket } = this.#request;
      const timer = setTimeout(() => socket.destroy(), LINGER_MS);
      timer.unref();
      socket.once("close", () => clearTimeout(timer));
    });
  }
}

/** The status with which a body is refused because of its headers. */
export function statusOfBody(encoding: string | undefined, announced: number, maxBytes: number): 413 | 415 | undefined {
  if (encoding !== undefined && !/^(identity)?$/i.test(encoding)) return 415;
  return announced > maxBytes ? 413 : undefined;
}

/** Alternating names and values, which Node passes on without further processing. */
function toHeaderList(headers: Readonly<Record<string, string>>, length: number): string[] {
  const list = ["content-length", String(length)];
  for (const name in headers) list.push(name, headers[name] as string);
  return list;
}

/** The body, if a parser of the framework has already consumed it. */
function bodyReadByFramework(request: IncomingMessage): Buffer | undefined {
  if (!request.readableEnded || !("body" in request)) return undefined;
  const { body } = request;
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body ?? ""));
}

/** Converts absolute-form request targets (RFC 9112 §3.2.2). */
function toOriginForm(url: string): string {
  if (url.startsWith("/")) return url;
  const path = url.replace(/^https?:\/\/[^/?]*/i, "");
  return path.startsWith("/") ? path : `/${path}`;
}
