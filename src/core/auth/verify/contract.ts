import { type Caller, toNetworkPrefix } from "../../model/caller.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { PeerCertificate } from "../../wire/tls.ts";

/** Checks that need no waiting are not made to wait, so results are looked at before they are awaited. */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** The credentials of a request, over any carrier. */
export interface RequestCredentials {
  /** Names are lower-case; the metadata of a call over gRPC. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Raw, without the question mark. */
  readonly query: string;
  readonly remoteAddress: string | undefined;
  readonly certificate?: PeerCertificate | undefined;
}

/** Undefined where the request carries nothing of this kind; throws UNAUTHENTICATED where what it carries is wrong. */
export type Verification = Caller | undefined | Promise<Caller | undefined>;

/** One way to show who one is. */
export interface Verifier {
  /**
   * What it reads is written into each request. Of several such credentials in one request all must be valid and name
   * the same caller: another server, or a proxy, might look at the other one.
   */
  readonly perRequest?: true;
  verify(presented: RequestCredentials): Verification;
  /** As cards declare it: each scheme alone is enough. */
  readonly schemes: Readonly<Record<string, JsonObject>>;
  readonly challenge?: Challenge;
}

/** One challenge of a `WWW-Authenticate` header (RFC 9110 §11.6.1). */
export interface Challenge {
  readonly scheme: "Bearer" | "Basic" | "ClientCertificate";
  readonly parameters?: Readonly<Record<string, string>>;
}

/** One kind of token that may stand after `Bearer`. Undefined: not of this kind. */
export type TokenCheck = (token: string, remoteAddress?: string) => Verification;

/** Anyone can send credentials that take long to check, and each keeps a request waiting. */
const MAX_PENDING_CHECKS = 256;

/**
 * Checks of credentials that wait for something. An address may have as many as it leaves to others: one alone has half
 * of them, the next one half of the rest, so that a few addresses cannot have the checks of all others refused.
 */
export class PendingChecks {
  readonly #byAddress = new Map<string, number>();
  #total = 0;

  /** Throws RESOURCE_EXHAUSTED, unless `isTrusted`, if too many are pending. */
  run(address: string | undefined, check: () => Verification, isTrusted = false): Verification {
    const holder = toNetworkPrefix(address ?? "");
    const held = address === undefined ? 0 : (this.#byAddress.get(holder) ?? 0);
    if (held >= MAX_PENDING_CHECKS - this.#total && !isTrusted) {
      throw new ProtocolError("RESOURCE_EXHAUSTED", "Too many credentials are being checked.", { retryAfter: 1 });
    }
    const found = check();
    if (!isPromise(found)) return found;
    this.#add(holder, 1);
    return Promise.resolve(found).finally(() => this.#add(holder, -1));
  }

  #add(holder: string, count: number): void {
    this.#total += count;
    const held = (this.#byAddress.get(holder) ?? 0) + count;
    if (held > 0) this.#byAddress.set(holder, held);
    else this.#byAddress.delete(holder);
  }
}

/** Why a caller was refused. Never contains what was presented. */
export class CredentialsError extends ProtocolError {
  readonly problem: "missing" | "wrong" | "wrong-token";

  constructor(problem: CredentialsError["problem"], message: string, options?: { readonly cause?: unknown }) {
    super("UNAUTHENTICATED", message, options);
    this.problem = problem;
  }
}

/** Of several credentials in one request, the first; throws where they name different callers. */
export function requireSameCaller(one: Caller | undefined, other: Caller): Caller {
  if (one === undefined || one.owner === other.owner) return one ?? other;
  throw new CredentialsError("wrong", "The request has credentials of different callers.");
}

/** Owner of what anonymous callers have made; no credentials may be given that owner. */
export const RESERVED_OWNER = "anonymous";
const MAX_OWNER_LENGTH = 256;

/** What is not seen where a name is shown makes it look like another. */
const CONTROL_CHARACTER = /\p{Cc}/u;

/** Whether tasks may belong to such a name. */
export function isOwnerName(value: unknown): value is string {
  if (typeof value !== "string" || value === "" || value === RESERVED_OWNER) return false;
  return value.length <= MAX_OWNER_LENGTH && !CONTROL_CHARACTER.test(value);
}

export function toCaller(owner: string, scopes: readonly string[] | undefined): Caller {
  return { owner, authenticated: true, scopes };
}
