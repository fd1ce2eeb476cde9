import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Duplex } from "node:stream";
import type { Caller } from "../../model/caller.ts";
import {
  type ExchangeReply,
  type ExchangeRequest,
  type FullReply,
  isStreamReply,
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
  readonly handle: (exchange: ExchangeRequest) => Promise<ExchangeReply> | ExchangeReply;
  /** The answer to a request whose body is too large, encoded in a way we do not read, or one of too many. */
  readonly refuse: (status: 413 | 415 | 429, exchange: RequestHead, message?: string) => FullReply;
  /** The answer to a request that is refused whatever its body says, or whether its caller has shown credentials. */
  readonly screen: (exchange: RequestHead) => Promise<FullReply | { readonly hasCredentials: boolean }>;
  readonly maxBodyBytes: number;
  readonly arriving: IncomingByteBudget;
}

const NO_BODY = Buffer.alloc(0);
/** Longer than the usual idle time of proxies, so that they close first. */
const KEEP_ALIVE_MS = 65_000;
const LINGER_MS = 1_000;
/** The operating system usually takes a shorter answer at once, so that it need not be refused for those that wait. */
const LARGE_ANSWER_BYTES = 64 * 1024;

/** Late requests are looked for this often. */
const TIMEOUT_CHECK_MS = 5_000;

/** Takes requests to go on with a WebSocket; without it they are answered like any other. */
type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

interface NodeServerOptions {
  readonly limits: ConnectionLimits;
  /** Over TLS where files for it are given. */
  readonly tls?: TlsFiles | undefined;
  readonly takeUpgrade?: UpgradeHandler | undefined;
  /** Path without a slash at its end below which everything is served; empty for the root. */
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
    // Rather than to forget all but the first, which may not be the one that a proxy went by.
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

/** Leaves of the request's URL what follows the mount path; false, and nothing changed, for one that is elsewhere. */
function removeMountPath(request: IncomingMessage, mount: string): boolean {
  const rest = pathBelowMount(toOriginForm(request.url ?? "/"), mount);
  if (rest === undefined) return false;
  request.url = rest;
  return true;
}

/** What follows the mount path, always with a slash at its beginning; undefined for what is not below it. */
export function pathBelowMount(target: string, mount: string): string | undefined {
  if (!target.startsWith(mount)) return undefined;
  const rest = target.slice(mount.length);
  if (rest.startsWith("/")) return rest;
  return rest === "" || rest.startsWith("?") ? `/${rest}` : undefined;
}

/** Whether it names two hosts (RFC 9112 §3.2) or two callers. What is joined has a comma in it, and little else has. */
function isAmbiguous({ headers: { host, authorization }, rawHeaders }: IncomingMessage): boolean {
  return (
    (host?.includes(",") === true && isRepeated("host", rawHeaders)) ||
    (authorization?.includes(",") === true && isRepeated("authorization", rawHeaders))
  );
}

/** Names and values stand in turn. */
function isRepeated(name: string, rawHeaders: readonly string[]): boolean {
  return rawHeaders.filter((text, at) => at % 2 === 0 && text.toLowerCase() === name).length > 1;
}

/** The same for a framework that has its own server. `path` is what follows the mount point. */
export function serveNodeRequest(
  options: NodeHttpOptions,
  request: IncomingMessage,
  response: ServerResponse,
  url?: string,
): void {
  new NodeExchange(options, request, response, url).begin();
}

/** One request and its response. */
class NodeExchange implements ExchangeRequest {
  readonly path: string;
  readonly query: string;
  body: Buffer = NO_BODY;
  caller: Caller | undefined;
  readonly #options: NodeHttpOptions;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #isScreened = false;
  /** The caller sends its body only after it is asked to continue. */
  #isWaitedFor = false;
  #isTurnedAway = false;
  #hasCredentials = false;
  /** What has come of a body that did not come at once, counted as bytes on their way in. */
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
  /** Node joins repeated headers of these names, so every value is one string. */
  get headers(): Readonly<Record<string, string | undefined>> {
    return this.#request.headers as Readonly<Record<string, string | undefined>>;
  }
  get remoteAddress(): string | undefined {
    return this.#request.socket.remoteAddress;
  }
  get certificate(): PeerCertificate | undefined {
    return peerCertificateOf(this.#request.socket);
  }
  /** The caller hung up before it had its answer. */
  get #gone(): boolean {
    return this.#response.destroyed;
  }

  /** For a caller that expects 100 Continue. */
  async beginBeforeBody(): Promise<void> {
    this.#isWaitedFor = true;
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
      if (this.#isWaitedFor) this.#response.writeContinue();
      if (announced > LARGE_REQUEST_BYTES) void this.#screenLarge();
    }
  }

  #readBody(announced: number): void {
    this.#request.on("data", (chunk: Buffer) => {
      // Nothing is held for a caller that may never send the rest.
      if (chunk.length === announced) this.body = chunk;
      else if (this.#size + chunk.length > this.#options.maxBodyBytes) this.#refuse(413);
      else if (!this.#keep(chunk)) this.#keepIfRecognised(chunk);
      else if (this.#size > LARGE_REQUEST_BYTES) void this.#screenLarge();
    });
    this.#request.on("end", () => {
      if (this.#isTurnedAway) return;
      if (this.#chunks !== undefined) {
        this.body = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks, this.#size);
        this.#release();
      }
      void this.#answer();
    });
  }

  /** False, and nothing is kept, if there is no room. */
  #keep(chunk: Buffer): boolean {
    if (!this.#options.arriving.take(chunk.length, this.#hasCredentials)) return false;
    this.#size += chunk.length;
    if (this.#chunks === undefined) {
      this.#chunks = [chunk];
      this.#request.once("close", this.#release);
    } else this.#chunks.push(chunk);
    return true;
  }

  /** The share of those without credentials is used up, which is no reason to refuse one that has some. */
  #keepIfRecognised(chunk: Buffer): void {
    if (this.#isScreened) {
      this.#refuse(429);
      return;
    }
    this.#request.pause();
    void this.#screen(() => {
      if (this.#request.destroyed) return;
      if (this.#keep(chunk)) this.#request.resume();
      else this.#refuse(429);
    });
  }

  /** Forgets what has been read of the body. */
  readonly #release = (): void => {
    this.#options.arriving.release(this.#size, this.#hasCredentials);
    this.#size = 0;
    this.#chunks = undefined;
  };

  /** Of a request that turns out to be large no more is read until its caller is authorised. */
  async #screenLarge(): Promise<void> {
    if (this.#isScreened) return;
    this.#request.pause();
    await this.#screen(() => this.#request.resume());
  }

  /** Once for each request. */
  async #screen(goOn: () => void): Promise<void> {
    this.#isScreened = true;
    try {
      const screened = await this.#options.screen(this);
      if ("status" in screened) {
        this.reject(screened);
        return;
      }
      if (screened.hasCredentials) this.#options.arriving.recognise(this.#size);
      this.#hasCredentials = screened.hasCredentials;
      goOn();
    } catch (error) {
      this.#options.log.error({ err: error }, "A request could not be judged.");
      this.#response.destroy();
    }
  }

  async #answer(): Promise<void> {
    try {
      const reply = await this.#options.handle(this);
      // A stream may last for hours; what it was asked with need not.
      this.body = NO_BODY;
      if (this.#gone) {
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
    const { status, headers, body } = reply;
    if (status === 204 || status === 304) {
      this.#response.writeHead(status, headers).end();
      return;
    }
    const length = body === undefined ? 0 : Buffer.byteLength(body);
    const owner = this.caller?.owner;
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
    // With the first frames if they come at once, and without them if not.
    setImmediate(() => {
      if (!response.destroyed) response.flushHeaders();
    });
    new StreamPump(this.#options, response, frames, this.caller?.owner).start();
  }

  #refuse(status: 413 | 415 | 429): void {
    this.reject(this.#options.refuse(status, this));
  }

  /** The rest of the body is thrown away, and the connection cannot be used again. */
  reject(reply: FullReply): void {
    this.#isTurnedAway = true;
    this.#release();
    this.#request.removeAllListeners("data");
    this.#response.shouldKeepAlive = false;
    this.#finish({ ...reply, headers: { ...reply.headers, connection: "close" } });
    // A caller that is still sending would miss the answer if the connection were cut at once.
    this.#request.resume();
    this.#response.once("finish", () => {
      const { socket } = this.#request;
      const timer = setTimeout(() => socket.destroy(), LINGER_MS);
      timer.unref();
      socket.once("close", () => clearTimeout(timer));
    });
  }
}

/** The status of a request whose body is not read, as far as its headers tell. */
export function statusOfBody(encoding: string | undefined, announced: number, maxBytes: number): 413 | 415 | undefined {
  if (encoding !== undefined && !/^(identity)?$/i.test(encoding)) return 415;
  return announced > maxBytes ? 413 : undefined;
}

/** Names and values in turn, the form Node passes on without another look. */
function toHeaderList(headers: Readonly<Record<string, string>>, length: number): string[] {
  const list = ["content-length", String(length)];
  for (const name in headers) list.push(name, headers[name] as string);
  return list;
}

/** The body, where a parser of the framework's has taken it already: it would never come again. */
function bodyReadByFramework(request: IncomingMessage): Buffer | undefined {
  if (!request.readableEnded || !("body" in request)) return undefined;
  const { body } = request;
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body ?? ""));
}

/** Requests may name the whole URL (RFC 9112 §3.2.2). */
function toOriginForm(url: string): string {
  if (url.startsWith("/")) return url;
  const path = url.replace(/^https?:\/\/[^/?]*/i, "");
  return path.startsWith("/") ? path : `/${path}`;
}
