import type {
  AgentService,
  Dialect,
  HttpServing,
  JsonRpcServing,
  ServeContext,
  ServeLimits,
} from "../dialects/contract.ts";
import type { Caller } from "../model/caller.ts";
import { ProtocolError } from "../model/errors.ts";
import type { Loss } from "../model/loss.ts";
import type { Ids } from "../model/ports.ts";
import {
  type ExchangeReply,
  type ExchangeRequest,
  type FullReply,
  isStreamReply,
  jsonReply,
} from "../wire/exchange.ts";
import { type JsonRpcRefusal, PARSE_ERROR, parseJsonRpc } from "../wire/json-rpc.ts";
import { CardDocuments } from "./card-document.ts";
import type { Cors } from "./cors.ts";

export interface RouterOptions {
  readonly dialects: readonly [Dialect, ...Dialect[]];
  readonly agents: ReadonlyMap<string, AgentService>;
  readonly defaultAgent: AgentService;
  readonly limits: ServeLimits;
  readonly cors: Cors;
  readonly now: () => number;
  /** Whether a Host header can be meant for this server: a page that rebinds its name to our address is not. */
  readonly isOwnHost: (host: string | undefined) => boolean;
  /** Paths at the root that belong to no agent, e.g. `/healthz`. */
  readonly operations: ReadonlyMap<string, () => Promise<FullReply> | FullReply>;
  readonly report: (losses: readonly Loss[]) => void;
  readonly ids: Ids;
  readonly authenticate: (exchange: ExchangeRequest) => Caller;
}

const AGENTS = "/agents/";
const WITHOUT_VERSION = "0.3";
const VERSION_FORM = /^(\d+\.\d+)(?:\.\d+)?$/;

/** From a request to the binding that answers it: agent by path, dialect by path, version and method. */
export class Router {
  readonly #options: RouterOptions;
  readonly #jsonRpc = new Map<string, JsonRpcServing>();
  readonly #fallbackRpc: JsonRpcServing;
  readonly #http = new Map<string, HttpServing>();
  readonly #cards = new Map<string, CardDocuments>();

  constructor(options: RouterOptions) {
    this.#options = options;
    for (const { serving } of options.dialects) {
      if (serving.jsonRpc !== undefined) this.#jsonRpc.set(serving.jsonRpc.version, serving.jsonRpc);
      if (serving.http !== undefined) this.#http.set(serving.http.prefix, serving.http);
      if (serving.card !== undefined) this.#cards.set(serving.card.path, new CardDocuments(serving.card, options.now));
    }
    const [fallback] = this.#jsonRpc.values();
    if (fallback === undefined) throw new Error("No dialect serves JSON-RPC.");
    this.#fallbackRpc = fallback;
  }

  /** Whether there is anything at a path; for servers that have paths of their own besides. */
  serves(method: string, path: string): boolean {
    if (path === "" || path === "/") return method === "POST" || method === "OPTIONS";
    if (path.startsWith(AGENTS) || this.#options.operations.has(path) || this.#cards.has(path)) return true;
    return this.#http.has(path.slice(1).split("/", 1)[0] ?? "");
  }

  handle(exchange: ExchangeRequest): Promise<ExchangeReply> | ExchangeReply {
    const { origin, host } = exchange.headers;
    if (!this.#options.isOwnHost(host)) return notAllowed("This host name is not ours; see server.publicUrl.");
    if (origin === undefined && !this.#options.cors.varies) return this.#route(exchange);
    return this.#handleFromBrowser(exchange, origin);
  }

  async #handleFromBrowser(exchange: ExchangeRequest, origin: string | undefined): Promise<ExchangeReply> {
    const reply = this.#isForeignWrite(exchange, origin)
      ? notAllowed("Browsers of this origin may not call; see server.cors in the configuration.")
      : await this.#route(exchange);
    const cors = exchange.method === "OPTIONS" ? undefined : this.#options.cors.headers(origin);
    return cors === undefined ? reply : withHeaders(reply, cors);
  }

  /** Errors about the HTTP request itself, before a binding has seen it. */
  refuse(status: 413 | 415, message: string): FullReply {
    return plainError(status, message);
  }

  #route(exchange: ExchangeRequest): Promise<ExchangeReply> | ExchangeReply {
    const operation = this.#options.operations.get(exchange.path);
    if (operation !== undefined) return this.#reading(exchange, operation);
    let service: AgentService | undefined = this.#options.defaultAgent;
    let path = exchange.path;
    if (path.startsWith(AGENTS)) {
      const end = path.indexOf("/", AGENTS.length);
      service = this.#options.agents.get(decoded(path.slice(AGENTS.length, end < 0 ? undefined : end)));
      path = end < 0 ? "" : path.slice(end);
    }
    if (service === undefined) return plainError(404, "There is no such agent here.");
    if (path === "" || path === "/") return this.#atBase(exchange, service);
    const card = this.#cards.get(path);
    if (card !== undefined) return this.#reading(exchange, () => card.reply(service.card, exchange));
    const slash = path.indexOf("/", 1);
    const http = this.#http.get(path.slice(1, slash < 0 ? undefined : slash));
    if (http === undefined) return plainError(404, "There is nothing at this path.");
    if (exchange.method === "OPTIONS") return this.#preflight(exchange, "GET, POST, DELETE, OPTIONS");
    const below = new Below(exchange, slash < 0 ? "" : path.slice(slash));
    const context = this.#contextOf(exchange, service);
    return context instanceof ProtocolError ? http.refuse(context, below) : http.handle(below, context);
  }

  #atBase(exchange: ExchangeRequest, service: AgentService): Promise<ExchangeReply> | ExchangeReply {
    if (exchange.method === "OPTIONS") return this.#preflight(exchange, "POST, OPTIONS");
    if (exchange.method !== "POST") return methodNotAllowed("POST, OPTIONS");
    const version = versionOf(exchange);
    const serving = this.#jsonRpc.get(version);
    const parsed = parseJsonRpc(exchange.body, this.#options.limits);
    if (!parsed.ok) return (serving ?? this.#fallbackRpc).refuse(unreadable(exchange, parsed), parsed.id);
    if (serving === undefined) return this.#fallbackRpc.refuse(this.#unknownVersion(version), parsed.request.id);
    const context = this.#contextOf(exchange, service);
    if (context instanceof ProtocolError) return serving.refuse(context, parsed.request.id);
    return serving.handle(parsed.request, exchange, context);
  }

  /** Or why the caller is refused. */
  #contextOf(exchange: ExchangeRequest, service: AgentService): ServeContext | ProtocolError {
    const { agents, defaultAgent, limits, authenticate, report, ids } = this.#options;
    let caller: Caller;
    try {
      caller = authenticate(exchange);
    } catch (error) {
      if (ProtocolError.is(error)) return error;
      throw error;
    }
    return {
      service,
      report,
      ids,
      caller,
      limits,
      // Below /agents/NAME the path has chosen already; the name again is no other partition.
      agentOfTenant: (tenant) => (service === defaultAgent || tenant === service.name ? agents.get(tenant) : undefined),
    };
  }

  #reading(
    exchange: ExchangeRequest,
    read: () => Promise<FullReply> | FullReply,
  ): Promise<ExchangeReply> | ExchangeReply {
    if (exchange.method === "OPTIONS") return this.#preflight(exchange, "GET, HEAD, OPTIONS");
    if (exchange.method !== "GET" && exchange.method !== "HEAD") return methodNotAllowed("GET, HEAD, OPTIONS");
    return read();
  }

  #preflight(exchange: ExchangeRequest, allow: string): FullReply {
    return { status: 204, headers: this.#options.cors.preflight(exchange.headers.origin, allow), body: undefined };
  }

  /** A page from elsewhere must not use a visitor's browser to reach an agent on the visitor's own machine. */
  #isForeignWrite(exchange: ExchangeRequest, origin: string | undefined): boolean {
    if (origin === undefined) return false;
    if (exchange.method !== "POST" && exchange.method !== "DELETE") return false;
    const { host } = exchange.headers;
    return !this.#options.cors.allows(origin) && origin !== `http://${host}` && origin !== `https://${host}`;
  }

  #unknownVersion(version: string): ProtocolError {
    const spoken = [...this.#jsonRpc.keys()].join(", ");
    return new ProtocolError("VERSION_NOT_SUPPORTED", `A2A ${version} is not spoken here; these are: ${spoken}.`, {
      metadata: { requestedVersion: version, supportedVersions: spoken },
    });
  }
}

/** The same request as its binding sees it: from its own prefix on. */
class Below implements ExchangeRequest {
  readonly path: string;
  readonly #outer: ExchangeRequest;

  constructor(outer: ExchangeRequest, path: string) {
    this.#outer = outer;
    this.path = path;
  }

  get method() {
    return this.#outer.method;
  }
  get query() {
    return this.#outer.query;
  }
  get headers() {
    return this.#outer.headers;
  }
  get body() {
    return this.#outer.body;
  }
  get remoteAddress() {
    return this.#outer.remoteAddress;
  }
}

/** What does not claim to be JSON is refused for that, rather than for not being JSON. */
function unreadable(exchange: ExchangeRequest, { code, message }: JsonRpcRefusal): ProtocolError {
  const contentType = exchange.headers["content-type"];
  if (contentType !== undefined && !/\bjson\b/i.test(contentType)) {
    return new ProtocolError("CONTENT_TYPE_NOT_SUPPORTED", "The request must be JSON.", { metadata: { contentType } });
  }
  return new ProtocolError(code === PARSE_ERROR ? "PARSE_ERROR" : "INVALID_REQUEST", message);
}

/** `Major.Minor` the caller asks for, by header or query. None at all means 0.3 (A2A §3.6). */
function versionOf(exchange: ExchangeRequest): string {
  const header = exchange.headers["a2a-version"]?.trim();
  if (header === "1.0") return header;
  const named = header || (exchange.query === "" ? "" : (new URLSearchParams(exchange.query).get("A2A-Version") ?? ""));
  if (named === "") return WITHOUT_VERSION;
  return VERSION_FORM.exec(named)?.[1] ?? named.slice(0, 32);
}

function decoded(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function withHeaders(reply: ExchangeReply, headers: Readonly<Record<string, string>>): ExchangeReply {
  const vary = [reply.headers.vary, headers.vary].filter((value) => value !== undefined).join(", ");
  const merged = { ...reply.headers, ...headers, ...(vary === "" ? undefined : { vary }) };
  return isStreamReply(reply) ? { ...reply, headers: merged } : { ...reply, headers: merged };
}

function methodNotAllowed(allow: string): FullReply {
  const reply = plainError(405, `This path takes ${allow}.`);
  return { ...reply, headers: { ...reply.headers, allow } };
}

const notAllowed = (message: string) => plainError(403, message);

type PlainStatus = 403 | 404 | 405 | 413 | 415;

const STATUS_NAMES = {
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  405: "UNIMPLEMENTED",
  413: "INVALID_ARGUMENT",
  415: "INVALID_ARGUMENT",
} as const satisfies Record<PlainStatus, string>;

function plainError(status: PlainStatus, message: string): FullReply {
  return jsonReply(status, JSON.stringify({ error: { code: status, status: STATUS_NAMES[status], message } }));
}
