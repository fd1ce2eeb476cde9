import { createHash } from "node:crypto";
import type { JSONWebKeySet, JWTPayload } from "jose";
import type { Caller } from "../../model/caller.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Log } from "../../model/ports.ts";
import { CredentialsError, isOwnerName, PendingChecks, type TokenCheck, toCaller } from "./contract.ts";
import { discoverJwksUrl, type Fetch, fetchJson, RemoteKeys } from "./issuer-keys.ts";

/** Loaded with the first token: few servers accept any, and loading it would delay the start. */
const jose = () => import("jose");

/** Only those whose verifying key cannot be used for signing. `none` and the HMACs never are. */
export const TOKEN_ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
] as const;
type TokenAlgorithm = (typeof TOKEN_ALGORITHMS)[number];

/** Whether a URL contains user and password: an issuer's URL is public. */
export function hasUserInfo(address: string): boolean {
  return /^[^/]*\/\/[^/?#]*@/.test(address);
}

export interface JwtOptions {
  /** Exactly as tokens spell it. */
  readonly issuer: string;
  /** A token must be meant for one of these. */
  readonly audience: string | readonly string[];
  /** Signature algorithms that are accepted. Default: all asymmetric ones. */
  readonly algorithms?: readonly TokenAlgorithm[];
  /** Claim that names the owner of the caller's tasks. Default: `sub`. */
  readonly ownerClaim?: string;
  /** Milliseconds by which clocks may differ. Default: 30,000. */
  readonly clockSkew?: number;
  /** Where the keys are, for issuers without discovery. */
  readonly jwksUrl?: string;
}

interface JwtTools {
  readonly fetch: Fetch;
  readonly now: () => number;
  readonly log: Log;
}

/** What an access token may call itself (RFC 9068 §4): an ID token or a logout token has another type. */
const ACCESS_TOKEN_TYPES: ReadonlySet<string> = new Set(["jwt", "at+jwt", "application/jwt", "application/at+jwt"]);
const JWT_PATTERN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** JSON Web Tokens of one issuer. */
export function createJwtCheck(options: JwtOptions, { fetch, now, log }: JwtTools): TokenCheck {
  const { issuer, audience, algorithms = TOKEN_ALGORITHMS, ownerClaim = "sub", jwksUrl } = options;
  const { clockSkew: clockSkewMs = 30_000 } = options;
  const keys = new RemoteKeys({
    load: async () => toKeySet(await fetchJson(fetch, jwksUrl ?? (await discoverJwksUrl(fetch, issuer)))),
    now,
    log,
  });
  const known = createTokenCache(now);
  const pending = new PendingChecks();

  const verify = async (token: string): Promise<Caller> => {
    const { jwtVerify } = await jose();
    const { payload, protectedHeader } = await jwtVerify(token, keys.find, {
      issuer,
      audience: typeof audience === "string" ? audience : [...audience],
      algorithms: [...algorithms],
      clockTolerance: clockSkewMs / 1_000,
      currentDate: new Date(now()),
      requiredClaims: ["exp"],
    });
    const { typ } = protectedHeader;
    if (typ !== undefined && !ACCESS_TOKEN_TYPES.has(typ.toLowerCase()))
      throw invalidToken("The token is not an access token.");
    const owner = payload[ownerClaim];
    if (!isOwnerName(owner)) throw invalidToken(`The token has no owner in "${ownerClaim}".`);
    const expires = (payload.exp ?? 0) * 1_000 + clockSkewMs;
    const caller = { ...toCaller(owner, scopesOf(payload)), expires };
    known.add(token, caller, expires);
    return caller;
  };

  return (token, remoteAddress) => {
    if (!JWT_PATTERN.test(token)) return undefined;
    const caller = known.find(token);
    if (caller !== undefined) return caller;
    // Tokens that were good before are not refused because of others.
    return pending.run(remoteAddress, () => verify(token).catch(throwCredentialsError), known.hasSeen(token));
  };
}

async function throwCredentialsError(error: unknown): Promise<never> {
  if (ProtocolError.is(error)) throw error;
  const { errors } = await jose();
  if (error instanceof errors.JWTExpired) throw invalidToken("The token has expired.", error);
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === "nbf") throw invalidToken("The token is not valid yet.", error);
    if (error.reason === "missing") throw invalidToken(`The token has no "${error.claim}".`, error);
    throw invalidToken(`The token is not for here: "${error.claim}" does not fit.`, error);
  }
  if (error instanceof errors.JOSEError) throw invalidToken("The token is not valid.", error);
  throw error;
}

function invalidToken(message: string, cause?: unknown): CredentialsError {
  return new CredentialsError("wrong-token", message, { cause });
}

/** Both spellings in use: a text with spaces (RFC 9068 §2.2.3), or a list. */
function scopesOf({ scope, scp }: JWTPayload): readonly string[] {
  return [...new Set([scope, scp].flatMap(splitScopes))];
}

function splitScopes(value: unknown): readonly string[] {
  if (typeof value === "string") return value.split(" ").filter((word) => word !== "");
  return Array.isArray(value) ? value.filter((word) => typeof word === "string") : [];
}

function toKeySet({ keys }: Readonly<Record<string, unknown>>): JSONWebKeySet {
  if (!Array.isArray(keys)) throw new TypeError("The document of keys has none.");
  return { keys };
}

/** A token may be used for long; that its key was withdrawn is noticed after this time. */
const MAX_AGE_MS = 60_000;
const MAX_TOKENS = 10_000;

/** Tokens that were found good a moment ago: callers send the same one with every request. Keeps digests, not tokens. */
function createTokenCache(now: () => number) {
  const entries = new Map<string, { readonly caller: Caller; readonly until: number }>();
  return {
    find(token: string): Caller | undefined {
      if (entries.size === 0) return undefined;
      const digest = digestOf(token);
      const entry = entries.get(digest);
      return entry !== undefined && entry.until > now() ? entry.caller : undefined;
    },
    /** Whether it was good, though perhaps long ago. */
    hasSeen: (token: string): boolean => entries.has(digestOf(token)),
    add(token: string, caller: Caller, expires: number): void {
      const digest = digestOf(token);
      entries.delete(digest);
      const [oldest] = entries.keys();
      if (oldest !== undefined && entries.size >= MAX_TOKENS) entries.delete(oldest);
      entries.set(digest, { caller, until: Math.min(expires, now() + MAX_AGE_MS) });
    },
  };
}

function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}
