/** How this server logs in elsewhere, as a configuration says. */

import { z } from "zod";
import { hasUserInfo } from "../../auth/verify/jwt.ts";
import { isKeyHeader } from "../../auth/verify/verifiers.ts";
import { type Fields, isObject } from "../../model/json.ts";
import { canParseUrl } from "../../model/url.ts";
import type { Finding, Path } from "../../yaml/problems.ts";
import { optional, text } from "../../yaml/value-types.ts";

export const ADDRESS_ERROR = "must be an http or https address without login";
export const address = z
  .url({ protocol: /^https?$/, error: ADDRESS_ERROR })
  .refine((url) => !hasUserInfo(url), { error: ADDRESS_ERROR });

const ORIGIN_ERROR = "must be an origin such as https://api.example.com";
export const origin = z
  .url({ protocol: /^https?$/, error: ORIGIN_ERROR })
  .refine((url) => canParseUrl(url) && new URL(url).origin === url.replace(/\/$/, "").toLowerCase(), {
    error: ORIGIN_ERROR,
  });

const basic = z.strictObject({
  user: text.describe("Name to log in with by HTTP Basic."),
  password: text.describe("The password; keep it out of the file with a variable."),
});

const oauth = z.strictObject({
  tokenUrl: optional(address, "Where tokens are requested; or name the `issuer`."),
  issuer: optional(address, "Issuer of the tokens, whose token endpoint is found by OpenID discovery."),
  clientId: text.describe("Id of this server there."),
  clientSecret: text.describe("Its secret; keep it out of the file with a variable."),
  scopes: optional(z.array(text), "Scopes to request; default: none."),
});

export const credentials = z.strictObject({
  bearer: optional(text, "A token, sent as `Authorization: Bearer`."),
  apiKey: optional(text, "An API key, sent where the card of the agent expects it; default: the header `X-API-Key`."),
  header: optional(
    text.refine(isKeyHeader, { error: "must be a header that has no other meaning" }),
    "With `apiKey`: header for the key, whatever the card says.",
  ),
  basic: optional(basic, "User and password, sent by HTTP Basic."),
  oauth: optional(oauth, "Tokens that are requested with client credentials, and renewed."),
  ak: optional(text, "With `sk`: id of the key that signs requests, in dialects with signed requests."),
  sk: optional(text, "With `ak`: the key itself, which is never sent."),
});

/** Ways to authenticate, of which one is used. */
const CREDENTIAL_KINDS = ["bearer", "apiKey", "basic", "oauth", "ak"] as const;
/** Not inferred from the schema, whose types would become part of the public ones. */
export interface RemoteCredentials {
  /** A token, sent as `Authorization: Bearer`. */
  readonly bearer?: string;
  /** An API key, sent where the card of the agent expects it. Default: the header `X-API-Key`. */
  readonly apiKey?: string;
  /** With `apiKey`: header for the key, whatever the card says. */
  readonly header?: string;
  /** User and password, sent by HTTP Basic. */
  readonly basic?: { readonly user: string; readonly password: string };
  /** Tokens that are requested with client credentials, at `tokenUrl` or as the `issuer` says. */
  readonly oauth?: {
    readonly tokenUrl?: string;
    readonly issuer?: string;
    readonly clientId: string;
    readonly clientSecret: string;
    readonly scopes?: readonly string[];
  };
  /** With `sk`: id of the key that signs requests, in dialects with signed requests. */
  readonly ak?: string;
  /** With `ak`: the key itself, which is never sent. */
  readonly sk?: string;
}

/** One way to log in, with all that belongs to it. */
export function checkCredentials(credentials: unknown, path: Path): readonly Finding[] {
  if (!isObject(credentials)) return [];
  const kinds = CREDENTIAL_KINDS.filter((kind) => credentials[kind] !== undefined);
  const { ak, apiKey, header, oauth, sk }: Fields = credentials;
  const findings: Finding[] = [];
  if (kinds.length === 0) findings.push({ path, message: `needs one of ${CREDENTIAL_KINDS.join(", ")}` });
  if (kinds.length > 1) findings.push({ path, message: `has ${kinds.join(" and ")}; only one of them can be used` });
  if (header !== undefined && apiKey === undefined) {
    findings.push({ path: [...path, "header"], message: "has a meaning only beside apiKey" });
  }
  if ((ak === undefined) !== (sk === undefined)) findings.push({ path, message: "needs both ak and sk" });
  if (isObject(oauth) && (oauth.tokenUrl === undefined) === (oauth.issuer === undefined)) {
    findings.push({ path: [...path, "oauth"], message: "needs either tokenUrl or issuer" });
  }
  return findings;
}

export function secretsOfCredentials(credentials: RemoteCredentials | undefined): readonly string[] {
  const { apiKey, basic, bearer, oauth, sk } = credentials ?? {};
  return [apiKey, basic?.password, bearer, oauth?.clientSecret, sk].filter((secret) => secret !== undefined);
}
