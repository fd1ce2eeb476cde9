import { isPromise } from "../../auth/verify/contract.ts";
import type {
  AgentService,
  CardServing,
  Dialect,
  HttpServing,
  SelfAdmittingHttpServing,
} from "../../dialects/contract.ts";
import { ANONYMOUS, type Caller } from "../../model/caller.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { ExchangeReply, ExchangeRequest, FullReply, ReceivedRequest, RequestHead } from "../../wire/exchange.ts";
import { type JsonRpcRequest, parseJsonRpc } from "../../wire/json-rpc.ts";
import type { Addressee, Gate, Verdict } from "../access/gate.ts";
import { type CardForm, type CardReply, createCardDocuments } from "../cards/card-documents.ts";
import type { Cors } from "./cors.ts";
import { DialectSelector, PrefixedHead, PrefixedRequest, toParseError, versionOf } from "./dialect-selector.ts";
import {
  CODE_OF_STATUS,
  errorReply,
  forbidden,
  methodNotAllowed,
  type Screening,
  unknownHost,
  withHeaders,
} from "./error-replies.ts";

interface RouterOptions {
  readonly dialects: readonly [Dialect, ...Dialect[]];
  readonly agents: ReadonlyMap<string, AgentService>;
  readonly defaultAgent: AgentService;
  readonly gate: Gate;
  readonly cors: Cors;
  readonly now: () => number;
  /** Whether a Host header may address this server; protects against DNS rebinding. */
  readonly isOwnHost: (host: string | undefined) => boolean;
  /** Paths at the root that belong to no agent, e.g. `/healthz`. */
  readonly serverRoutes: ReadonlyMap<string, (exchange: RequestHead) => Promise<FullReply> | FullReply>;
  readonly cardForm: CardForm;
  /** Bindings at the root that belong to no agent. */
  readonly prefixes?: readonly HttpServing[];
}

const AGENTS_PREFIX = "/agents/";

interface HttpBinding {
  readonly dialect: string;
  readonly serving: HttpServing;
}

/** The agent that a path names, and the rest of the path. */
interface Location extends Addressee {
  readonly path: string;
}

/** Finds the binding for a request: agent by path, dialect by path, version and method. */
export class Router {
  readonly #options: RouterOptions;
  readonly #selector: DialectSelector;
  readonly #http = new Map<string, HttpBinding>();
  readonly #cards = new Map<string, CardReply>();

  constructor(options: RouterOptions) {
    this.#options = options;
    this.#selector = new DialectSelector(options.dialects);
    const cards = new Map<string, CardServing[]>();
    for (const { name, serving } of options.dialects) {
      for (const http of serving.http ?? []) this.#http.set(http.prefix, { dialect: name, serving: http });
      for (const card of serving.cards ?? []) cards.set(card.path, [...(cards.get(card.path) ?? []), card]);
    }
    for (const [path, servings] of cards) {
      this.#cards.set(path, createCardDocuments(servings, options.cardForm, options.now));
    }
  }

  /** Whether anything is served at a path; for servers with other routes. */
  serves(method: string, path: string): boolean {
    if (path === "" || path === "/") return method === "POST" || method === "OPTIONS";
    if (path.startsWith(AGENTS_PREFIX) || this.#options.serverRoutes.has(path) || this.#cards.has(path)) return true;
    const found = this.#bindingAt({ isNamed: false, path }, undefined);
    return found !== undefined && serves(found.place, this.#options.defaultAgent);
  }

  handle(exchange: ReceivedRequest): Promise<ExchangeReply> | ExchangeReply {
    const { origin, host } = exchange.headers;
    if (!this.#options.isOwnHost(host)) return unknownHost();
    if (origin === undefined && !this.#options.cors.varies) return this.#route(exchange);
    return this.#handleFromBrowser(exchange, origin);
  }

  async #handleFromBrowser(exchange: ReceivedRequest, origin: string | undefined): Promise<ExchangeReply> {
    const reply = this.#refusesPage(exchange, origin) ?? (await this.#route(exchange));
    const cors = exchange.method === "OPTIONS" ? undefined : this.#options.cors.headers(origin);
    return cors === undefined ? reply : withHeaders(reply, cors);
  }

  /**
   * The reply to a request that is refused regardless of its body, so that only authorised callers can send large ones;
   * otherwise whether the caller has authenticated.
   */
  screen(exchange: RequestHead): Screening | Promise<Screening> {
    const { gate, isOwnHost } = this.#options;
    if (!isOwnHost(exchange.headers.host)) return unknownHost();
    const at = this.#locate(exchange.path);
    const found = this.#bindingAt(at, exchange)?.place;
    const dialect = this.#dialectAt(found, exchange);
    const serving = found?.serving;
    const isOwn = found !== undefined && at.service !== undefined && serves(found, at.service);
    const own = isOwn && serving?.screen !== undefined ? serving : undefined;
    const judge = (verdict: Verdict): Screening => {
      if (!ProtocolError.is(verdict)) return { hasCredentials: verdict.authenticated };
      const reply = this.#refusal(verdict, found, exchange);
      const headers = this.#options.cors.headers(exchange.headers.origin);
      return (headers === undefined ? reply : withHeaders(reply, headers)) as FullReply;
    };
    if (own !== undefined) {
      const error = this.#screenBy(own, dialect, exchange, at.service?.name);
      return error === undefined ? { hasCredentials: own.allowsAnonymous !== true } : judge(error);
    }
    const verdict = gate.screen(exchange, at, dialect);
    return isPromise(verdict) ? verdict.then(judge) : judge(verdict);
  }

  #screenBy(
    serving: SelfAdmittingHttpServing,
    dialect: string,
    exchange: RequestHead,
    agent = "",
  ): ProtocolError | undefined {
    const error = serving.screen(exchange, agent);
    return error && this.#options.gate.refuse(error, exchange.remoteAddress, agent, dialect);
  }

  /** Errors about the HTTP request itself, before a binding has seen it, encoded by the binding it was addressed to. */
  refuse(status: 413 | 415 | 429, message: string, exchange: RequestHead): FullReply {
    const error = new ProtocolError(CODE_OF_STATUS[status], message, status === 429 ? { retryAfter: 1 } : {});
    const at = this.#locate(exchange.path);
    const { path } = at;
    if (path === "" || path === "/") return { ...(this.#refusal(error, undefined, exchange) as FullReply), status };
    const found = this.#bindingAt(at, exchange);
    if (found === undefined) return errorReply(status, message);
    return { ...(found.place.serving.refuse(error, exchange, status) as FullReply), status };
  }

  #route(exchange: ReceivedRequest): Promise<ExchangeReply> | ExchangeReply {
    const operation = this.#options.serverRoutes.get(exchange.path);
    if (operation !== undefined) return this.#reading(exchange, () => operation(exchange));
    const at = this.#locate(exchange.path);
    const { path, service } = at;
    const isBase = path === "" || path === "/";
    const found = isBase ? undefined : this.#bindingAt(at, exchange);
    const refusal = this.#options.gate.checkAddress(
      exchange.remoteAddress,
      service?.name,
      this.#dialectAt(found?.place, exchange),
    );
    if (refusal !== undefined) return this.#refusal(refusal, found?.place, exchange);
    if (service === undefined) return this.#withoutAgent(exchange, at);
    if (isBase) return this.#atBase(exchange, at, service);
    const card = this.#cards.get(path);
    if (card !== undefined) return this.#reading(exchange, () => card(service.card, versionOf(exchange), exchange));
    if (found === undefined || !serves(found.place, service)) return errorReply(404, "There is nothing at this path.");
    if (exchange.method === "OPTIONS") return this.#preflight(exchange, "GET, POST, DELETE, OPTIONS");
    const { dialect, serving } = found.place;
    const { gate } = this.#options;
    const { below } = found;
    if (serving.screen !== undefined) return this.#atOwnGate(serving, dialect, exchange, below, service);
    const answer = (caller: Verdict): Promise<ExchangeReply> | ExchangeReply =>
      ProtocolError.is(caller)
        ? serving.refuse(caller, exchange)
        : serving.handle(new PrefixedRequest(exchange.admit(caller), below), gate.contextFor(caller, service, dialect));
    const verdict = gate.admit(exchange, at, dialect);
    return isPromise(verdict) ? verdict.then(answer) : answer(verdict);
  }

  /**
   * Clients that resolve the card's path against `/agents/NAME`, as against a page, ask beside the agent for it. If there
   * is only one agent, that is the one they mean.
   */
  #withoutAgent(exchange: RequestHead, { path }: Location): ExchangeReply | Promise<ExchangeReply> {
    const cards = `${AGENTS_PREFIX}.well-known`;
    const card = exchange.path === `${cards}${path}` ? this.#cards.get(`/.well-known${path}`) : undefined;
    if (card === undefined) return errorReply(404, "Agent not found.");
    const [only, ...others] = this.#options.agents.values();
    if (only !== undefined && others.length === 0) {
      return this.#reading(exchange, () => card(only.card, versionOf(exchange), exchange));
    }
    const hint = `An agent's card is below its address, ${AGENTS_PREFIX}NAME/.well-known${path}.`;
    return errorReply(404, `${hint} Give the address with a slash at its end: ${AGENTS_PREFIX}NAME/`);
  }

  /** The binding authenticates its callers itself, and the gate counts them. */
  #atOwnGate(
    serving: SelfAdmittingHttpServing,
    dialect: string,
    exchange: ReceivedRequest,
    below: string,
    service: AgentService,
  ): Promise<ExchangeReply> {
    const { gate } = this.#options;
    const context = gate.contextFor(ANONYMOUS, service, dialect);
    return serving.handle(new PrefixedHead(exchange, below), context, (check) => {
      const judge = () => check(exchange.credentialsBody);
      const admitted = gate.admitBy(judge, exchange.remoteAddress, service.name, dialect);
      return { ...admitted, exchange: new PrefixedRequest(exchange.admit(admitted.caller), below) };
    });
  }

  #locate(path: string): Location {
    const { agents, defaultAgent } = this.#options;
    if (!path.startsWith(AGENTS_PREFIX)) return { service: defaultAgent, isNamed: false, path };
    const end = path.indexOf("/", AGENTS_PREFIX.length);
    const service = agents.get(decodeSegment(path.slice(AGENTS_PREFIX.length, end < 0 ? undefined : end)));
    return { service, isNamed: true, path: end < 0 ? "" : path.slice(end) };
  }

  /** The most likely dialect, as far as it can be known without the body. */
  #dialectAt(place: HttpBinding | undefined, exchange: RequestHead): string {
    return place?.dialect ?? this.#selector.fallback(versionOf(exchange)).dialect;
  }

  #refusal(error: ProtocolError, place: HttpBinding | undefined, exchange: RequestHead): ExchangeReply {
    if (place !== undefined) return place.serving.refuse(error, exchange);
    return this.#selector.fallback(versionOf(exchange)).serving.refuse(error, null);
  }

  #bindingAt(at: Pick<Location, "isNamed" | "path">, exchange: RequestHead | undefined) {
    const serving = at.isNamed
      ? undefined
      : this.#options.prefixes?.find(({ prefix }) => at.path.startsWith(`/${prefix}/`));
    if (serving === undefined) return this.#httpAt(at.path, exchange);
    return { place: { dialect: serving.prefix, serving }, below: at.path.slice(serving.prefix.length + 1) };
  }

  /**
   * The binding below a base. If two match, the one whose version the caller names, else the one with the longer
   * prefix.
   */
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

  #atBase(exchange: ReceivedRequest, at: Location, service: AgentService): Promise<ExchangeReply> | ExchangeReply {
    const allow = "GET, HEAD, POST, OPTIONS";
    if (exchange.method === "OPTIONS") return this.#preflight(exchange, allow);
    const card = this.#cards.get(CARD_PATH);
    if ((exchange.method === "GET" || exchange.method === "HEAD") && card !== undefined) {
      const document = () => withHeaders(card(service.card, versionOf(exchange), exchange), { vary: "Accept" });
      return acceptsJson(exchange) ? this.#reading(exchange, document) : methodNotAllowed("POST, OPTIONS");
    }
    if (exchange.method !== "POST") return methodNotAllowed(allow);
    const version = versionOf(exchange);
    const verdict = this.#options.gate.admit(exchange, at, this.#selector.fallback(version).dialect);
    return isPromise(verdict)
      ? verdict.then((settled) => this.#byJsonRpc(exchange, version, service, settled))
      : this.#byJsonRpc(exchange, version, service, verdict);
  }

  /** A refused caller learns nothing else, not even that the request was invalid: it was not parsed. */
  #byJsonRpc(
    received: ReceivedRequest,
    version: string | undefined,
    service: AgentService,
    caller: Verdict,
  ): Promise<ExchangeReply> | ExchangeReply {
    const { dialect, serving } = this.#selector.fallback(version);
    if (ProtocolError.is(caller)) return serving.refuse(caller, null);
    const { gate } = this.#options;
    const exchange = received.admit(caller);
    const parsed = parseJsonRpc(exchange.body, gate.limits);
    if (!parsed.ok) return serving.refuse(toParseError(exchange, parsed), parsed.id);
    const { request } = parsed;
    if (version === undefined) return this.#withoutVersion(request, exchange, service, caller);
    const unknown = this.#selector.checkVersion(version);
    if (unknown !== undefined) return serving.refuse(unknown, request.id);
    return serving.handle(request, exchange, gate.contextFor(caller, service, dialect));
  }

  async #withoutVersion(
    request: JsonRpcRequest,
    exchange: ExchangeRequest,
    service: AgentService,
    caller: Caller,
  ): Promise<ExchangeReply> {
    const { dialect, serving } = await this.#selector.selectByTask(request, service, caller);
    return serving.handle(request, exchange, this.#options.gate.contextFor(caller, service, dialect));
  }

  #reading(exchange: RequestHead, read: () => Promise<FullReply> | FullReply): Promise<ExchangeReply> | ExchangeReply {
    if (exchange.method === "OPTIONS") return this.#preflight(exchange, "GET, HEAD, OPTIONS");
    if (exchange.method !== "GET" && exchange.method !== "HEAD") return methodNotAllowed("GET, HEAD, OPTIONS");
    return read();
  }

  #preflight(exchange: RequestHead, allow: string): FullReply {
    return { status: 204, headers: this.#options.cors.preflight(exchange.headers.origin, allow), body: undefined };
  }

  /**
   * A page of another origin must not use a visitor's browser to reach an agent on the visitor's machine. An allowed
   * page must declare JSON: browsers send forms and plain text without a preflight.
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

/** Programs that are given an agent's address get its card there, too; a browser's user has no use for it. */
const CARD_PATH = "/.well-known/agent-card.json";

function acceptsJson({ headers: { accept = "*/*" } }: RequestHead): boolean {
  return !accept.includes("text/html") && /\*\/\*|\bjson\b/.test(accept);
}

function serves({ serving }: HttpBinding, { name }: AgentService): boolean {
  return serving.serves?.(name) !== false;
}

function decodeSegment(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
