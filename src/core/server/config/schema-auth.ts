import { z } from "zod";
import { isOwnerName, RESERVED_OWNER } from "../../auth/verify/contract.ts";
import { hasUserInfo, TOKEN_ALGORITHMS } from "../../auth/verify/jwt.ts";
import { CERTIFICATE_NAMES, isKeyHeader } from "../../auth/verify/verifiers.ts";
import { duration, optional, text } from "../../yaml/value-types.ts";

const owner = text
  .refine((name) => name !== RESERVED_OWNER, { error: 'must be another name than "anonymous"' })
  .refine((name) => name === RESERVED_OWNER || isOwnerName(name), {
    error: "must have at most 256 characters, and no control characters",
  });
const scopes = optional(z.array(text), "Scopes of the caller, for skills that require them.");

const TOKEN_ERROR = "must be letters, digits, dashes and the like, as the name of a header or cookie is";
const token = text.regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { error: TOKEN_ERROR });

const keyHeader = token.refine(isKeyHeader, { error: "must be a header that has no other meaning" });

const ADDRESS_ERROR = "must be an http or https address without login";
const address = z
  .url({ protocol: /^https?$/, error: ADDRESS_ERROR })
  .refine((url) => !hasUserInfo(url), { error: ADDRESS_ERROR });
const ISSUER_ERROR = "must be an http or https address without query, fragment or login";
const issuer = z
  .url({ protocol: /^https?$/, error: ISSUER_ERROR })
  .refine((url) => !/[?#]/.test(url) && !hasUserInfo(url), { error: ISSUER_ERROR });

const apiKey = z.strictObject({
  key: text.describe("The key; keep it out of the file with a variable."),
  owner: owner.describe("Owner of the caller's tasks. Several keys may have the same owner."),
  scopes,
});

const places = z.strictObject({
  header: keyHeader.default("X-API-Key").describe("Header for API keys, besides `Authorization: Bearer`."),
  query: optional(text, "Query parameter for API keys; default: none."),
  cookie: optional(token, "Cookie for API keys; default: none."),
});

const basic = z.strictObject({
  user: owner.regex(/^[^:]+$/, { error: "must not have a colon in it" }).describe("Name to log in with by HTTP Basic."),
  password: text.describe("The password; keep it out of the file with a variable."),
  owner: optional(owner, "Owner of the caller's tasks; default: the user."),
  scopes,
});

const jwt = z.strictObject({
  issuer: issuer.describe(
    "Who issues the tokens, exactly as they spell it; its keys are found by discovery, on its own host or where the public can reach them.",
  ),
  audience: z
    .union([text, z.array(text).min(1, { error: "must name at least one" })], {
      error: ({ input }) => (input === undefined ? "is required" : "must be a string or a list of strings"),
    })
    .describe("Audience that tokens must have: a string, or a list of which one must match."),
  algorithms: optional(
    z.array(z.enum(TOKEN_ALGORITHMS)).min(1, { error: "must name at least one" }),
    "Accepted signature algorithms; default: all asymmetric ones.",
  ),
  ownerClaim: text.default("sub").describe("Claim that names the owner of the caller's tasks."),
  clockSkew: duration.prefault("30s").describe("Allowed clock difference."),
  jwksUrl: optional(
    address,
    "Where the keys are, for an issuer without discovery or with keys elsewhere inside the network.",
  ),
});

const mtls = z.strictObject({
  ca: text.describe(
    "PEM file of the certificate authorities whose client certificates are trusted; needs `server.tls`.",
  ),
  owner: optional(
    z.enum(CERTIFICATE_NAMES),
    "Name in the certificate that is the owner; default: the first of these that is present.",
  ),
});

/** Who may call. */
export const auth = z.strictObject({
  anonymous: z.boolean().default(false).describe("Allow calls without credentials, also from other machines."),
  apiKeys: z.array(apiKey).default([]).describe("API keys that are valid, any number at once."),
  apiKey: optional(places, "Where API keys are sent."),
  basic: z.array(basic).default([]).describe("Users with passwords."),
  jwt: optional(jwt, "Tokens of an OAuth or OpenID Connect issuer."),
  mtls: optional(mtls, "Client certificates."),
});

export const tls = z.strictObject({
  cert: text.describe("PEM file with the certificate and its chain."),
  key: text.describe("PEM file with its private key."),
  ca: optional(text, "PEM file of certificate authorities for client certificates, for an `authenticate` of your own."),
  requestClientCertificate: optional(
    z.boolean(),
    "Ask clients for certificates, for an `authenticate` of your own; `auth.mtls` implies it.",
  ),
});
