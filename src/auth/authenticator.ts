import { ANONYMOUS, type Caller } from "../model/caller.ts";
import type { SecurityRequirement } from "../model/card.ts";
import { ProtocolError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import {
  agreeing,
  type Challenge,
  CredentialsError,
  type Presented,
  type Verification,
  type Verifier,
} from "./contract.ts";
import { FailedLogins } from "./failed-logins.ts";
import { isPromise } from "./promises.ts";

export interface AuthenticatorOptions {
  /** Asked in this order; the first for which a request carries something decides, if no other `perRequest` disagrees. */
  readonly verifiers: readonly Verifier[];
  /** Whether callers are let in who show nothing. */
  readonly anonymous: boolean;
  /** Per minute and address. */
  readonly failedLogins: number;
  readonly now: () => number;
  /** What cards call the place in a challenge. */
  readonly realm?: string;
}

/** Decides who calls; says on cards and in refusals how one is let in. All three come from the same verifiers. */
export class Authenticator {
  /** For the card: what is accepted, by name. */
  readonly schemes: Readonly<Record<string, JsonObject>>;
  /** For the card: any one of these is enough. */
  readonly requirements: readonly SecurityRequirement[];
  readonly #verifiers: readonly Verifier[];
  readonly #challenges: readonly Challenge[];
  readonly #anonymous: boolean;
  readonly #failedLogins: FailedLogins;
  readonly #realm: string;

  constructor({ verifiers, anonymous, failedLogins, now, realm = "dragoman" }: AuthenticatorOptions) {
    this.#verifiers = verifiers;
    this.#anonymous = anonymous;
    this.#failedLogins = new FailedLogins(failedLogins, now);
    this.#realm = realm;
    this.#challenges = verifiers.flatMap(({ challenge }) => challenge ?? []);
    this.schemes = Object.assign({}, ...verifiers.map(({ schemes }) => schemes));
    const alternatives = Object.keys(this.schemes).map((name) => ({ schemes: { [name]: { list: [] } } }));
    // An empty requirement among others says that none of them has to be met.
    this.requirements = anonymous && alternatives.length > 0 ? [...alternatives, { schemes: {} }] : alternatives;
  }

  /** Throws a ProtocolError for whoever is not let in. Waits only where a check has to. */
  authenticate(presented: Presented): Caller | Promise<Caller> {
    const { remoteAddress } = presented;
    this.#failedLogins.admit(remoteAddress);
    try {
      const caller = this.#ask(presented, 0);
      return isPromise(caller) ? caller.catch((error: unknown) => this.#refuse(error, remoteAddress)) : caller;
    } catch (error) {
      return this.#refuse(error, remoteAddress);
    }
  }

  #ask(presented: Presented, first: number, known?: Caller): Caller | Promise<Caller> {
    let caller = known;
    for (let at = first; at < this.#verifiers.length; at++) {
      const verifier = this.#verifiers[at] as Verifier;
      if (caller !== undefined && verifier.perRequest !== true) continue;
      const found: Verification = verifier.verify(presented);
      if (isPromise(found)) {
        const before = caller;
        return found.then((one) => {
          const agreed = one === undefined ? before : agreeing(before, one);
          return agreed !== undefined && verifier.perRequest !== true ? agreed : this.#ask(presented, at + 1, agreed);
        });
      }
      if (found === undefined) continue;
      caller = agreeing(caller, found);
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

  /** The value of `WWW-Authenticate` for a refusal, if there is anything to say. */
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
    const list = Object.entries(all).map(([name, value]) => `${name}="${quotable(value)}"`);
    return `${scheme} ${list.join(", ")}`;
  }
}

/** A check of one's own refuses in its own words. */
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
function quotable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, "?").replace(/["\\]/g, "'");
}
