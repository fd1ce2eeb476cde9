import { isPromise, type RequestCredentials } from "../../auth/verify/contract.ts";
import type {
  AgentService,
  CardServing,
  Dialect,
  HttpServing,
  ServeContext,
  ServeLimits,
} from "../../dialects/contract.ts";
import { ANONYMOUS, type Caller } from "../../model/caller.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import type { IdGenerator } from "../../model/ports.ts";
import type { ExchangeReply, ExchangeRequest, FullReply, RequestHead } from "../../wire/exchange.ts";
import { type JsonRpcRequest, parseJsonRpc } from "../../wire/json-rpc.ts";
import type { RpcRequest } from "../../wire/rpc.ts";
import { CardDocuments, type CardForm } from "../cards/card-documents.ts";
import type { Cors } from "./cors.ts";
import {
  DialectSelector,
  type JsonRpcDialect,
  missingVersionError,
  PrefixedRequest,
  toParseError,
  versionOf,
} from "./dialect-selector.ts";
import { CODE_OF_STATUS, errorReply, forbidden, methodNotAllowed, unknownHost, withHeaders } from "./error-replies.ts";

interface RouterOptions {
  readonly dialects: readonly [Dialect, ...Dialect[]];
  readonly agents: ReadonlyMap<string, AgentService>;
  readonly defaultAgent: AgentService;
  readonly limits: ServeLimits;
  readonly cors: Cors;
  readonly now: () => number;
  /** Whether a Host header can be meant for this server: a page that rebinds its name to our address is not. */
  readonly isOwnHost: (host: string | undefined) => boolean;
  /** Paths at the root that belong to no agent, e.g. `/healthz`. */
  readonly serverRoutes: ReadonlyMap<string, (exchange: ExchangeRequest) => Promise<FullReply> | FullReply>;
  /** Throws LOSS_REFUSED where nothing may be lost. */
  readonly report: (dialect: string, losses: readonly Loss[]) => void;
  readonly ids: IdGenerator;
  /** Throws a ProtocolError for whoever is not let in. */
  readonly authenticate: (presented: RequestCredentials) => Caller | Promise<Caller>;
  /** The same for one who will be asked again, and must not count twice. */
  readonly recognise: (presented: RequestCredentials) => Caller | Promise<Caller>;
  /** A refusal with a word on how one is let in to that agent, or to the server where the address names none. */
  readonly challenged: (error: ProtocolError, agent: string | undefined) => ProtocolError;
  /** Why a request is refused for where it comes from, before anyone looks at it; undefined for most. */
  readonly admit?: (from: RequestCredentials) => ProtocolError | undefined;
  /** Hears of callers that were not let in. */
  readonly onRefused?: (
    error: ProtocolError,
    from: RequestCredentials,
    agent: string | undefined,
    dialect: string,
  ) => void;
  readonly cardForm: CardForm;
}

type Known = Caller | ProtocolError;

const AGENTS_PREFIX = "/agents/";

interface HttpBinding {
  readonly dialect: string;
  readonly serving: HttpServing;
}

/** From a request to the binding that answers it: agent by path, dialect by path, version and method. */
export class Router {
  readonly #options: RouterOptions;
  readonly #speakers: DialectSelector;
  readonly #http = new Map<string, HttpBinding>();
  readonly #cards = new Map<string, CardDocuments>();

  constructor(options: RouterOptions) {
    this.#options = options;
    this.#speakers = new DialectSelector(options.dialects);
    const cards = new Map<string, CardServing[]>();
    for (const { name, serving } of options.dialects) {
      for (const http of serving.http ?? []) this.#http.set(http.prefix, { dialect: name, serving: http });
      for (const card of serving.cards ?? []) cards.set(card.path, [...(cards.get(card.path) ?? []), card]);
    }
    for (const [path, servings] of cards) {
      this.#cards.set(path, new CardDocuments(servings, options.cardForm, options.now));
    }
  }

  /** Whether there is anything at a path; for servers that have paths of their own besides. */
  serves(method: string, path: string): boolean {
    if (path === "" || path === "/") return method === "POST" || method === "OPTIONS";
    if (path.startsWith(AGENTS_PREFIX) || this.#options.serverRoutes.has(path) || this.#cards.has(path)) return true;
    const found = this.#httpAt(path, undefined);
    return found !== undefined && found.place.serving.serves?.(this.#options.defaultAgent.name) !== false;
  }

  handle(exchange: ExchangeRequest): Promise<ExchangeReply> | ExchangeReply {
    const { origin, host } = exchange.headers;
    if (!this.#options.isOwnHost(host)) return unknownHost();
    if (origin === undefined && !this.#options.cors.varies) return this.#route(exchange);
    return this.#handleFromBrowser(exchange, origin);
  }

  async #handleFromBrowser(exchange: ExchangeRequest, origin: string | undefined): Promise<ExchangeReply> {
    const reply = this.#refusesPage(exchange, origin) ?? (await this.#route(exchange));
    const cors = exchange.method === "OPTIONS" ? undefined : this.#options.cors.headers(origin);
    return cors === undefined ? reply : withHeaders(reply, cors);
  }

  /**
   * What a request is refused with whatever is in its body, so that only those who are let in can send much; for most,
   * whether its caller has shown credentials.
   */
  async screen(exchange: RequestHead): Promise<FullReply | { readonly hasCredentials: boolean }> {
    const { cors, isOwnHost } = this.#options;
    const { host, origin } = exchange.headers;
    if (!isOwnHost(host)) return unknownHost();
    const { path, service } = this.#agentAt(exchange.path);
    const place = this.#httpAt(path, exchange)?.place.serving;
    const known =
      service !== undefined && place?.screen !== undefined && place.serves?.(service.name) !== false
        ? place.screen(exchange, service.name)
        : await this.#authenticated(exchange, service && agentNameInPath(exchange, service), true);
    if (known === undefined) return { hasCredentials: place?.allowsAnonymous !== true };
    if (!ProtocolError.is(known)) return { hasCredentials: known.authenticated };
    const { dialect, reply } = this.#refusal(known, exchange, path);
    this.#options.onRefused?.(known, exchange, service?.name, dialect);
    const headers = cors.headers(origin);
    return (headers === undefined ? reply : withHeaders(reply, headers)) as FullReply;
  }

  /** Errors about the HTTP request itself, before a binding has seen it, in the words of the one it was meant for. */
  refuse(status: 413 | 415 | 429, message: string, exchange: RequestHead): FullReply {
    const error = new ProtocolError(CODE_OF_STATUS[status], message, status === 429 ? { retryAfter: 1 } : {});
    const path = removeAgentPrefix(exchange.path);
    if (path === "" || path === "/") {
      const speaker = this.#speakers.fallback(versionOf(exchange));
      return { ...(speaker.serving.refuse(error, null) as FullReply), status };
    }
    const found = this.#httpAt(path, exchange);
    if (found === undefined) return errorReply(status, message);
    return { ...(found.place.serving.refuse(error, exchange, status) as FullReply), status };
  }

  #route(exchange: ExchangeRequest): Promise<ExchangeReply> | ExchangeReply {
    const operation = this.#options.serverRoutes.get(exchange.path);
    if (operation !== undefined) return this.#reading(exchange, () => operation(exchange));
    const { path, service } = this.#agentAt(exchange.path);
    const refusal = this.#options.admit?.(exchange);
    if (refusal !== undefined) {
      const { dialect, reply } = this.#refusal(refusal, exchange, path);
      this.#options.onRefused?.(refusal, exchange, service?.name, dialect);
      return reply;
    }
    if (service === undefined) return errorReply(404, "There is no such agent here.");
    if (path === "" || path === "/") return this.#atBase(exchange, service);
    const card = this.#cards.get(path);
    if (card !== undefined)
      return this.#reading(exchange, () => card.reply(service.card, versionOf(exchange), exchange));
    const found = this.#httpAt(path, exchange);
    if (found === undefined || found.place.serving.serves?.(service.name) === false) {
      return errorReply(404, "There is nothing at this path.");
    }
    if (exchange.method === "OPTIONS") return this.#preflight(exchange, "GET, POST, DELETE, OPTIONS");
    const { place } = found;
    const below = new PrefixedRequest(exchange, found.below);
    if (place.serving.screen !== undefined) return this.#atPlace(place, below, service, ANONYMOUS);
    const answer = (caller: Known) => {
      if (!ProtocolError.is(caller)) exchange.caller = caller;
      return this.#atPlace(place, below, service, caller);
    };
    const known = this.#authenticated(exchange, agentNameInPath(exchange, service));
    return isPromise(known) ? known.then(answer) : answer(known);
  }

  #atPlace(
    { dialect, serving }: HttpBinding,
    exchange: ExchangeRequest,
    service: AgentService,
    caller: Known,
  ): Promise<ExchangeReply> | ExchangeReply {
    if (ProtocolError.is(caller)) {
      this.#options.onRefused?.(caller, exchange, service.name, dialect);
      return serving.refuse(caller, exchange);
    }
    return serving.handle(exchange, this.contextFor(caller, service, dialect));
  }

  /** The agent a path names, and what of the path is below it. */
  #agentAt(path: string): { readonly service: AgentService | undefined; readonly path: string } {
    const { agents, defaultAgent } = this.#options;
    if (!path.startsWith(AGENTS_PREFIX)) return { service: defaultAgent, path };
    const end = path.indexOf("/", AGENTS_PREFIX.length);
    const service = agents.get(decodeSegment(path.slice(AGENTS_PREFIX.length, end < 0 ? undefined : end)));
    return { service, path: end < 0 ? "" : path.slice(end) };
  }

  /** In the words of whoever would have answered, as far as that can be told without looking into the body. */
  #refusal(
    error: ProtocolError,
    exchange: RequestHead,
    path: string,
  ): { readonly dialect: string; readonly reply: ExchangeReply } {
    const found = path === "" || path === "/" ? undefined : this.#httpAt(path, exchange);
    if (found !== undefined) {
      const { dialect, serving } = found.place;
      return { dialect, reply: serving.refuse(error, exchange) };
    }
    const { dialect, serving } = this.#speakers.fallback(versionOf(exchange));
    return { dialect, reply: serving.refuse(error, null) };
  }

  /** What answers below a base. Of two that fit, the one whose version the caller names, else the one that says more. */
  #httpAt(
    path: string,
    exchange: RequestHead | undefined,
  ): { readonly place: HttpBinding; readonly below: string } | undefined {
    const slash = path.indexOf("/", 1);
    const short = this.#http.get(path.slice(1, slash < 0 ? undefined : slash));
    const atShort = short && { place: short, below: slash < 0 ? "" : path.slice(slash) };
    if (slash < 0) return atShort;
    const next = path.indexOf("/", slash + 1);
    const long = this.#http.get(path.slice(1, next < 0 ? undefined : next));
    if (long === undefined) return atShort;
    if (atShort !== undefined && exchange !== undefined && versionOf(exchange) === atShort.place.serving.version) {
      return atShort;
    }
    return { place: long, below: next < 0 ? "" : path.slice(next) };
  }

  #atBase(exchange: ExchangeRequest, service: AgentService): Promise<ExchangeReply> | ExchangeReply {
    if (exchange.method === "OPTIONS") return this.#preflight(exchange, "POST, OPTIONS");
    if (exchange.method !== "POST") return methodNotAllowed("POST, OPTIONS");
    const known = this.#authenticated(exchange, agentNameInPath(exchange, service));
    if (isPromise(known)) return known.then((caller) => this.#byJsonRpc(exchange, service, caller));
    return this.#byJsonRpc(exchange, service, known);
  }

  /** Whoever is not let in learns nothing else, also not that the request could not have been answered. */
  #byJsonRpc(exchange: ExchangeRequest, service: AgentService, caller: Known): Promise<ExchangeReply> | ExchangeReply {
    const version = versionOf(exchange);
    const parsed = parseJsonRpc(exchange.body, this.#options.limits);
    if (ProtocolError.is(caller)) {
      const { dialect, serving } = parsed.ok
        ? this.#speakers.selectForRefusal(version, parsed.request.method)
        : this.#speakers.fallback(version);
      this.#options.onRefused?.(caller, exchange, service.name, dialect);
      return serving.refuse(caller, parsed.ok ? parsed.request.id : parsed.id);
    }
    exchange.caller = caller;
    if (!parsed.ok) return this.#speakers.fallback(version).serving.refuse(toParseError(exchange, parsed), parsed.id);
    const { request } = parsed;
    if (version === undefined) return this.#withoutVersion(request, exchange, service, caller);
    let speaker: JsonRpcDialect;
    try {
      speaker = this.#speakers.selectByVersion(version);
    } catch (error) {
      return this.#speakers.defaultDialect.serving.refuse(error as ProtocolError, request.id);
    }
    const { dialect, serving } = speaker;
    return serving.handle(request, exchange, this.contextFor(caller, service, dialect));
  }

  async #withoutVersion(
    request: JsonRpcRequest,
    exchange: ExchangeRequest,
    service: AgentService,
    caller: Caller,
  ): Promise<ExchangeReply> {
    const strict = this.#speakers.selectRequiringVersion(request.method);
    if (strict !== undefined) {
      const [version = ""] = strict.serving.versions;
      return strict.serving.refuse(missingVersionError(request.method, version), request.id);
    }
    const { dialect, serving } = await this.#speakers.selectByTask(request, service, caller);
    return serving.handle(request, exchange, this.contextFor(caller, service, dialect));
  }

  /** For a call on the gRPC endpoint, where the request itself names the agent; or why the caller is refused. */
  rpcContext(
    { metadata, remoteAddress, certificate }: RpcRequest,
    dialect: string,
  ): ServeContext | ProtocolError | Promise<ServeContext | ProtocolError> {
    const { defaultAgent, admit, onRefused } = this.#options;
    const presented = { headers: metadata, query: "", remoteAddress, certificate };
    const contextFor = (caller: Known) => {
      if (!ProtocolError.is(caller)) return this.contextFor(caller, defaultAgent, dialect);
      // The agent is named in the message, which nobody has looked at.
      onRefused?.(caller, presented, undefined, dialect);
      return caller;
    };
    const known = admit?.(presented) ?? this.#authenticated(presented, undefined);
    return isPromise(known) ? known.then(contextFor) : contextFor(known);
  }

  /** Who makes a call on the gRPC endpoint that would take up much, or why it is refused whatever is in its message. */
  async screenRpc(
    { metadata, remoteAddress, certificate }: Omit<RpcRequest, "message">,
    dialect: string,
  ): Promise<Known> {
    const presented = { headers: metadata, query: "", remoteAddress, certificate };
    const known = await this.#authenticated(presented, undefined, true);
    if (ProtocolError.is(known)) this.#options.onRefused?.(known, presented, undefined, dialect);
    return known;
  }

  /** Who calls, or why it is refused. */
  #authenticated(
    presented: RequestCredentials,
    agent: string | undefined,
    isFirstLook = false,
  ): Known | Promise<Known> {
    const refused = (error: unknown): ProtocolError => {
      if (!ProtocolError.is(error)) throw error;
      return this.#options.challenged(error, agent);
    };
    try {
      const { authenticate, recognise } = this.#options;
      const caller = isFirstLook ? recognise(presented) : authenticate(presented);
      return isPromise(caller) ? caller.catch(refused) : caller;
    } catch (error) {
      return refused(error);
    }
  }

  /** For a caller who is known already. */
  contextFor(caller: Caller, service: AgentService, dialect: string): ServeContext {
    const { agents, defaultAgent, limits, report, ids } = this.#options;
    return {
      service,
      report: (losses) => report(dialect, losses),
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

  /**
   * A page from elsewhere must not use a visitor's browser to reach an agent on the visitor's own machine; one that may
   * call must say what it sends, since a browser asks us first only about what is not a form or plain text.
   */
  #refusesPage({ method, headers }: RequestHead, origin: string | undefined): FullReply | undefined {
    if (origin === undefined || (method !== "POST" && method !== "DELETE")) return undefined;
    const { host, "content-type": contentType = "" } = headers;
    if (origin === `http://${host}` || origin === `https://${host}`) return undefined;
    if (!this.#options.cors.allows(origin)) {
      return forbidden("Browsers of this origin may not call; see server.cors in the configuration.");
    }
    if (method === "DELETE" || /\bjson\b/i.test(contentType)) return undefined;
    return errorReply(415, "Pages of other origins must send the header Content-Type: application/json.");
  }
}

function agentNameInPath({ path }: RequestHead, { name }: AgentService): string | undefined {
  return path.startsWith(AGENTS_PREFIX) ? name : undefined;
}

/** What of a path is below the agent it names. */
function removeAgentPrefix(path: string): string {
  if (!path.startsWith(AGENTS_PREFIX)) return path;
  const end = path.indexOf("/", AGENTS_PREFIX.length);
  return end < 0 ? "" : path.slice(end);
}

function decodeSegment(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
