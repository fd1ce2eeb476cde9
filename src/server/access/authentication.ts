import { isPromise, type RequestCredentials, type Verifier } from "../../auth/verify/contract.ts";
import { type AuthOptions, createAuthenticator, identifiesCallers } from "../../auth/verify/create-authenticator.ts";
import type { Caller } from "../../model/caller.ts";
import type { SecurityRequirement } from "../../model/card.ts";
import { ProtocolError, withChallenge } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Log } from "../../model/ports.ts";
import { type ExchangeRequest, type FullReply, jsonReply } from "../../wire/exchange.ts";
import { hostNameOf, isLoopback } from "./loopback.ts";

/** What cards declare about a custom check, in the format of A2A 1.0. */
export interface DeclaredSecurity {
  readonly schemes: Readonly<Record<string, JsonObject>>;
  readonly requirements: readonly SecurityRequirement[];
}

/**
 * A custom check of credentials. Returns undefined if it cannot identify the caller; throws a ProtocolError to refuse.
 */
export type OwnCheck = (request: RequestCredentials) => Caller | undefined | Promise<Caller | undefined>;

interface AuthenticationOptions {
  readonly auth: AuthOptions;
  readonly own: OwnCheck | undefined;
  readonly declared: DeclaredSecurity | undefined;
  readonly failedLogins: number;
  readonly baseUrl: () => string;
  readonly now: () => number;
  readonly log: Log;
}

/** Authenticates callers, declares security in cards, and challenges callers that are refused. */
export interface Authentication {
  /** Whether callers can authenticate. */
  readonly identifies: boolean;
  readonly security: DeclaredSecurity;
  authenticate(presented: RequestCredentials): Caller | Promise<Caller>;
  /** Adds a challenge to a refusal: how to authenticate to that agent, or to the server as a whole. */
  challenged(error: ProtocolError, agent: string | undefined): ProtocolError;
  /** Protected resource metadata (RFC 9728) by path, for the server as a whole and for each agent. */
  metadataPaths(agents: readonly string[], scopes: () => readonly string[]): ReadonlyMap<string, () => FullReply>;
  /** Replies only to authenticated callers and to requests from this machine. */
  guarded(reply: () => FullReply): (exchange: ExchangeRequest) => FullReply | Promise<FullReply>;
}

const METADATA_PATH = "/.well-known/oauth-protected-resource";

export function createAuthentication(options: AuthenticationOptions): Authentication {
  const { auth, own, declared, failedLogins, baseUrl, now, log } = options;
  const authenticator = createAuthenticator(auth, {
    ...(own !== undefined && { customVerifier: toVerifier(own, declared) }),
    now,
    log,
    failedLogins,
  });
  const authenticate = (presented: RequestCredentials) => authenticator.authenticate(presented);
  const identifies = own !== undefined || identifiesCallers(auth);
  return {
    identifies,
    security: {
      schemes: authenticator.schemes,
      requirements: declared?.requirements ?? authenticator.requirements,
    },
    authenticate,
    challenged(error, agent) {
      if (error.code !== "UNAUTHENTICATED" && error.code !== "PERMISSION_DENIED") return error;
      const metadata = `${baseUrl()}${METADATA_PATH}${agent === undefined ? "" : agentPath(agent)}`;
      return withChallenge(error, authenticator.challenge(error, metadata));
    },
    metadataPaths(agents, scopes) {
      if (!identifiesCallers(auth)) return new Map();
      const issuers = auth.jwt === undefined ? [] : [auth.jwt.issuer];
      return new Map(
        ["", ...agents.map(agentPath)].map((place) => [
          `${METADATA_PATH}${place}`,
          () => resourceMetadata(`${baseUrl()}${place}`, issuers, scopes()),
        ]),
      );
    },
    guarded: (reply) => (exchange) => {
      if (!identifies || isLocalRequest(exchange)) return reply();
      const needed = new ProtocolError("UNAUTHENTICATED", "Credentials are needed.");
      const challenge = authenticator.challenge(needed, `${baseUrl()}${METADATA_PATH}`);
      return replyIfAuthenticated(authenticate, exchange, reply, unauthenticatedReply(challenge));
    },
  };
}

const agentPath = (agent: string) => `/agents/${encodeURIComponent(agent)}`;

function toVerifier(check: OwnCheck, declared: DeclaredSecurity | undefined): Verifier {
  return { verify: check, schemes: declared?.schemes ?? {} };
}

function resourceMetadata(resource: string, issuers: readonly string[], scopes: readonly string[]): FullReply {
  const document = {
    resource,
    ...(issuers.length > 0 && { authorization_servers: issuers }),
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ["header"],
  };
  return jsonReply(200, JSON.stringify(document), { "cache-control": "public, max-age=60" });
}

/** Headers added by proxies, and by browsers for cross-origin requests. */
const FORWARDING_HEADERS = [
  "origin",
  "forwarded",
  "via",
  "x-real-ip",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
];

/** A request through a local proxy, or from a page that bound its name to our address (DNS rebinding), is not local. */
function isLocalRequest({ remoteAddress, headers }: ExchangeRequest): boolean {
  if (remoteAddress === undefined || !isLoopback(remoteAddress)) return false;
  if (headers.host !== undefined && !isLoopback(hostNameOf(headers.host))) return false;
  return FORWARDING_HEADERS.every((name) => headers[name] === undefined);
}

function replyIfAuthenticated(
  authenticate: Authentication["authenticate"],
  exchange: ExchangeRequest,
  reply: () => FullReply,
  unauthenticated: FullReply,
): FullReply | Promise<FullReply> {
  const answer = (caller: Caller) => (caller.authenticated ? reply() : unauthenticated);
  const refuse = (error: unknown): FullReply => {
    if (!ProtocolError.is(error)) throw error;
    return error.code === "RESOURCE_EXHAUSTED" ? tooManyRequestsReply(error) : unauthenticated;
  };
  try {
    const caller = authenticate(exchange);
    return isPromise(caller) ? caller.then(answer).catch(refuse) : answer(caller);
  } catch (error) {
    return refuse(error);
  }
}

const UNAUTHENTICATED_BODY = '{"error":{"code":401,"status":"UNAUTHENTICATED","message":"Credentials are needed."}}';

function unauthenticatedReply(challenge: string | undefined): FullReply {
  return jsonReply(401, UNAUTHENTICATED_BODY, challenge === undefined ? undefined : { "www-authenticate": challenge });
}

function tooManyRequestsReply({ message, retryAfter = 60 }: ProtocolError): FullReply {
  const body = JSON.stringify({ error: { code: 429, status: "RESOURCE_EXHAUSTED", message } });
  return jsonReply(429, body, { "retry-after": String(Math.ceil(retryAfter)) });
}
