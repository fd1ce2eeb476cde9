import type { JsonObject } from "../model/json.ts";
import { CredentialsError, type TokenCheck, type Verification, type Verifier } from "./contract.ts";
import { isPromise } from "./promises.ts";

/** Tokens of several kinds after one word: the first kind that knows a token decides. */
export function createBearerVerifier(
  checks: readonly TokenCheck[],
  schemes: Readonly<Record<string, JsonObject>>,
): Verifier {
  const checkFrom = (token: string, first: number): Verification => {
    for (let at = first; at < checks.length; at++) {
      const found = checks[at]?.check(token);
      if (isPromise(found)) return found.then((caller) => caller ?? checkFrom(token, at + 1));
      if (found !== undefined) return found;
    }
    throw new CredentialsError("wrong-token", "The token is not valid.");
  };
  return {
    perRequest: true,
    verify({ headers: { authorization } }) {
      if (authorization === undefined || !/^bearer(?: |$)/i.test(authorization)) return undefined;
      return checkFrom(authorization.slice("bearer".length).trim(), 0);
    },
    schemes,
    challenge: { scheme: "Bearer" },
  };
}
