import type { RequestCredentials } from "../../auth/verify/contract.ts";
import { type AuthOptions, createAuthenticator, identifiesCallers } from "../../auth/verify/create-authenticator.ts";
import type { Caller } from "../../model/caller.ts";
import type { SecurityRequirement } from "../../model/card.ts";
import { ProtocolError, withChallenge } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Log } from "../../model/ports.ts";
import { type FullReply, jsonReply, type RequestHead } from "../../wire/exchange.ts";
import { errorReply } from "../http/error-replies.ts";
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
  readonly auth?: AuthOptions | undefined;
  readonly authenticate?: OwnCheck | undefined;
  readonly security?: DeclaredSecurity | undefined;
  readonly failedLogins: number;
  readonly baseUrl: () => string;
  readonly now: () => number;
  readonly log: Log;
}

export type Authentication = ReturnType<typeof createAuthentication>;

const METADATA_PATH = "/.well-known/oauth-protected-resource";

/** Authenticates callers, declares security in cards, and challenges callers that are refused. */
export function createAuthentication(options: AuthenticationOptions) {
  const { auth = {}, authenticate: own, security: declared, baseUrl } = options;
  const customVerifier = own && { verify: own, schemes: declared?.schemes ?? {} };
  const authenticator = createAuthenticator(auth, { ...options, customVerifier });
  const { authenticate } = authenticator;
  const identifies = own !== undefined || identifiesCallers(auth);
  return {
    /** Whether callers can authenticate. */
    identifies,
    /** Whether callers have to. A custom check may leave them anonymous. */
    requiresCredentials: identifiesCallers(auth) && auth.anonymous !== true,
    security: {
      schemes: authenticator.schemes,
      requirements: declared?.requirements ?? authenticator.requirements,
    },
    authenticate,
    /** Adds a challenge to a refusal: how to authenticate to that agent, or to the server as a whole. */
    challenged(error: ProtocolError, agent: string | undefined): ProtocolError {
      if (error.code !== "UNAUTHENTICATED" && error.code !== "PERMISSION_DENIED") return error;
      const metadata = `${baseUrl()}${METADATA_PATH}${agent === undefined ? "" : agentPath(agent)}`;
      return withChallenge(error, authenticator.challenge(error, metadata));
    },
    /** Protected resource metadata (RFC 9728) by path, for the server as a whole and for each agent. */
    metadataPaths(agents: readonly string[], scopes: () => readonly string[]): ReadonlyMap<string, () => FullReply> {
      if (!identifiesCallers(auth)) return new Map();
      const issuers = auth.jwt === undefined ? [] : [auth.jwt.issuer];
      return new Map(
        ["", ...agents.map(agentPath)].map((place) => [
          `${METADATA_PATH}${place}`,
          () => resourceMetadata(`${baseUrl()}${place}`, issuers, scopes()),
        ]),
      );
    },
    /** Replies only to authenticated callers and to requests from this machine. */
    guarded: (reply: () => FullReply | Promise<FullReply>) => async (exchange: RequestHead) => {
      if (!identifies || isLocalRequest(exchange)) return reply();
      try {
        if ((await authenticate(exchange)).authenticated) return reply();
      } catch (error) {
        if (!ProtocolError.is(error)) throw error;
        const { code, message, retryAfter = 60 } = error;
        if (code === "RESOURCE_EXHAUSTED")
          return errorReply(429, message, { "retry-after": `${Math.ceil(retryAfter)}` });
      }
      const needed = new ProtocolError("UNAUTHENTICATED", "Credentials are needed.");
      const challenge = authenticator.challenge(needed, `${baseUrl()}${METADATA_PATH}`);
      return errorReply(401, needed.message, challenge === undefined ? undefined : { "www-authenticate": challenge });
    },
  };
}

const agentPath = (agent: string) => `/agents/${encodeURIComponent(agent)}`;

function resourceMetadata(resource: string, issuers: readonly string[], scopes: readonly string[]): FullReply {
  const document = {
    resource,
    authorization_servers: issuers.length > 0 ? issuers : undefined,
    scopes_supported: scopes.length > 0 ? scopes : undefined,
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
function isLocalRequest({ remoteAddress, headers }: RequestHead): boolean {
  if (remoteAddress === undefined || !isLoopback(remoteAddress)) return false;
  if (headers.host !== undefined && !isLoopback(hostNameOf(headers.host))) return false;
  return FORWARDING_HEADERS.every((name) => headers[name] === undefined);
}
