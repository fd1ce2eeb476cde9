import { CredentialsError, toCaller, type Verifier } from "./contract.ts";
import { Secrets } from "./secrets.ts";

export interface BasicEntry {
  /** Without a colon (RFC 7617 §2). */
  readonly user: string;
  readonly password: string;
  /** The user unless given. */
  readonly owner?: string;
  readonly scopes?: readonly string[];
}

const BASIC = /^basic +([A-Za-z0-9+/_-]*={0,2}) *$/i;

/** User and password, which travel with every request: for use over TLS. */
export function createBasicVerifier(entries: readonly BasicEntry[]): Verifier {
  const logins = new Secrets(
    entries.map(({ user, password, owner = user, scopes }) => [`${user}:${password}`, toCaller(owner, scopes)]),
  );
  return {
    perRequest: true,
    verify({ headers: { authorization } }) {
      if (authorization === undefined || !/^basic(?: |$)/i.test(authorization)) return undefined;
      const encoded = BASIC.exec(authorization)?.[1];
      const caller = encoded === undefined ? undefined : logins.find(Buffer.from(encoded, "base64").toString("utf8"));
      if (caller === undefined) throw new CredentialsError("wrong", "User or password is not valid.");
      return caller;
    },
    schemes: { basic: { httpAuthSecurityScheme: { scheme: "Basic" } } },
    challenge: { scheme: "Basic", parameters: { charset: "UTF-8" } },
  };
}
