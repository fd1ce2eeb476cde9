import { ANONYMOUS, type Caller, toNetworkPrefix } from "../../model/caller.ts";
import type { SecurityRequirement } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import {
  type Challenge,
  CredentialsError,
  isPromise,
  type RequestCredentials,
  requireSameCaller,
  type Verification,
  type Verifier,
} from "./contract.ts";

interface AuthenticatorOptions {
  /** Asked in this order; the first for which a request carries something decides, if no other `perRequest` disagrees. */
  readonly verifiers: readonly Verifier[];
  /** Whether callers without credentials are accepted. */
  readonly anonymous: boolean;
  /** Per minute and address. */
  readonly failedLogins: number;
  readonly now: () => number;
  /** What cards call the place in a challenge. */
  readonly realm?: string;
}

/** Decides who calls; describes on cards and in refusals how to authenticate. All three come from the same verifiers. */
export class Authenticator {
  /** For the card: what is accepted, by name. */
  readonly schemes: Readonly<Record<string, JsonObject>>;
  /** For the card: any one of these is enough. */
  readonly requirements: readonly SecurityRequirement[];
  readonly #verifiers: readonly Verifier[];
  readonly #challenges: readonly Challenge[];
  readonly #anonymous: boolean;
  readonly #failedLogins: FailedLoginLimiter;
  readonly #realm: string;

  constructor({ verifiers, anonymous, failedLogins, now, realm = "dragoman" }: AuthenticatorOptions) {
    this.#verifiers = verifiers;
    this.#anonymous = anonymous;
    this.#failedLogins = new FailedLoginLimiter(failedLogins, now);
    this.#realm = realm;
    this.#challenges = verifiers.flatMap(({ challenge }) => challenge ?? []);
    this.schemes = Object.assign({}, ...verifiers.map(({ schemes }) => schemes));
    const alternatives = Object.keys(this.schemes).map((name) => ({ schemes: { [name]: { list: [] } } }));
    // An empty requirement among others means that none of them has to be met.
    this.requirements = anonymous && alternatives.length > 0 ? [...alternatives, { schemes: {} }] : alternatives;
  }

  /** Throws a ProtocolError for callers that are refused. Waits only where a check has to. */
  authenticate(presented: RequestCredentials): Caller | Promise<Caller> {
    const { remoteAddress } = presented;
    this.#failedLogins.check(remoteAddress);
    try {
      const caller = this.#ask(presented, 0);
      return isPromise(caller) ? caller.catch((error: unknown) => this.#refuse(error, remoteAddress)) : caller;
    } catch (error) {
      return this.#refuse(error, remoteAddress);
    }
  }

  #ask(presented: RequestCredentials, first: number, known?: Caller): Caller | Promise<Caller> {
    let caller = known;
    for (let at = first; at < this.#verifiers.length; at++) {
      const verifier = this.#verifiers[at] as Verifier;
      if (caller !== undefined && verifier.perRequest !== true) continue;
      const found: Verification = verifier.verify(presented);
      if (isPromise(found)) {
        const before = caller;
        return found.then((one) => {
          const agreed = one === undefined ? before : requireSameCaller(before, one);
          return agreed !== undefined && verifier.perRequest !== true ? agreed : this.#ask(presented, at + 1, agreed);
        });
      }
      if (found === undefined) continue;
      caller = requireSameCaller(caller, found);
      if (verifier.perRequest !== true) return caller;
    }
    if (caller !== undefined) return caller;
    if (presented.headers.authorization !== undefined && this.#challenges.length > 0) {
      throw new CredentialsError("wrong", "This kind of authorization is not accepted here.");
    }
    if (this.#anonymous) return ANONYMOUS;
    throw new CredentialsError("missing", "Credentials are needed.");
  }

  #refuse(error: unknown, address: string | undefined): never {
    const isGuess = error instanceof CredentialsError ? error.problem !== "missing" : isUnauthenticated(error);
    if (isGuess) this.#failedLogins.count(address);
    throw error;
  }

  /** The value of `WWW-Authenticate` for a refusal, if there is one. */
  challenge(error: ProtocolError, resourceMetadata: string): string | undefined {
    if (error.code !== "UNAUTHENTICATED" && error.code !== "PERMISSION_DENIED") return undefined;
    const challenges = this.#challenges.filter(({ scheme }) => error.code === "UNAUTHENTICATED" || scheme === "Bearer");
    if (challenges.length === 0) return undefined;
    return challenges.map((challenge) => this.#written(challenge, error, resourceMetadata)).join(", ");
  }

  #written({ scheme, parameters }: Challenge, error: ProtocolError, resourceMetadata: string): string {
    const all = {
      realm: this.#realm,
      ...parameters,
      ...(scheme === "Bearer" && { ...bearerError(error), resource_metadata: resourceMetadata }),
    };
    const list = Object.entries(all).map(([name, value]) => `${name}="${toQuotable(value)}"`);
    return `${scheme} ${list.join(", ")}`;
  }
}

/** A custom check refuses with its own message. */
function isUnauthenticated(error: unknown): boolean {
  return ProtocolError.is(error) && error.code === "UNAUTHENTICATED";
}

/** RFC 6750 §3.1: nothing is wrong with a request that shows nothing. */
function bearerError(error: ProtocolError): Readonly<Record<string, string>> {
  if (error.code === "PERMISSION_DENIED") {
    const { scopes } = error.metadata ?? {};
    return { error: "insufficient_scope", ...(scopes !== undefined && { scope: scopes }) };
  }
  const isWrongToken = error instanceof CredentialsError && error.problem === "wrong-token";
  return isWrongToken ? { error: "invalid_token", error_description: error.message } : {};
}

/** What may stand between quotes without being escaped. */
function toQuotable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, "?").replace(/["\\]/g, "'");
}

const WINDOW_MS = 60_000;
/** Addresses that are remembered; of more, those that have been quiet longest are forgotten. */
const MAX_ADDRESSES = 10_000;

interface Failures {
  recordFailure: number;
  readonly until: number;
}

/** Refuses addresses that guess credentials. Costs nothing while none do. */
class FailedLoginLimiter {
  readonly #most: number;
  readonly #now: () => number;
  readonly #failures = new Map<string, Failures>();

  constructor(mostPerMinute: number, now: () => number) {
    this.#most = mostPerMinute;
    this.#now = now;
  }

  /** Throws RESOURCE_EXHAUSTED, also for right credentials: otherwise guessing could continue until one is right. */
  check(address: string | undefined): void {
    if (address === undefined || this.#failures.size === 0) return;
    const key = toNetworkPrefix(address);
    const failures = this.#failures.get(key);
    if (failures === undefined) return;
    const leftMs = failures.until - this.#now();
    if (leftMs <= 0) this.#failures.delete(key);
    else if (failures.recordFailure >= this.#most) {
      throw new ProtocolError("RESOURCE_EXHAUSTED", "Too many failed logins from this address.", {
        retryAfter: Math.ceil(leftMs / 1_000),
      });
    }
  }

  count(address: string | undefined): void {
    if (address === undefined) return;
    const key = toNetworkPrefix(address);
    const now = this.#now();
    const failures = this.#failures.get(key);
    this.#failures.delete(key);
    if (failures !== undefined && failures.until > now) failures.recordFailure++;
    // Those that failed last stand last.
    this.#failures.set(key, failures?.until !== undefined && failures.until > now ? failures : newFailures(now));
    if (this.#failures.size <= MAX_ADDRESSES) return;
    const [oldest] = this.#failures.keys();
    if (oldest !== undefined) this.#failures.delete(oldest);
  }
}

function newFailures(now: number): Failures {
  return { recordFailure: 1, until: now + WINDOW_MS };
}
