import { z } from "zod";
import { isOwnerName, RESERVED_OWNER } from "../../auth/verify/contract.ts";
import { hasUserInfo, TOKEN_ALGORITHMS } from "../../auth/verify/jwt.ts";
import { CERTIFICATE_NAMES, isKeyHeader } from "../../auth/verify/verifiers.ts";
import { duration, text } from "./value-types.ts";

const owner = text
  .refine((name) => name !== RESERVED_OWNER, { error: 'must be another name than "anonymous"' })
  .refine((name) => name === RESERVED_OWNER || isOwnerName(name), {
    error: "must have at most 256 characters, and no control characters",
  });
const scopes = z.array(text).exactOptional().describe("What the caller may ask of skills that want scopes.");

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
  owner: owner.describe("Whose tasks the caller's are. Several keys may have one owner."),
  scopes,
});

const places = z.strictObject({
  header: keyHeader.default("X-API-Key").describe("Header for API keys, besides `Authorization: Bearer`."),
  query: text.exactOptional().describe("Query parameter for API keys; none unless given."),
  cookie: token.exactOptional().describe("Cookie for API keys; none unless given."),
});

const basic = z.strictObject({
  user: owner.regex(/^[^:]+$/, { error: "must not have a colon in it" }).describe("Name to log in with by HTTP Basic."),
  password: text.describe("The password; keep it out of the file with a variable."),
  owner: owner.exactOptional().describe("Whose tasks the caller's are; the user unless given."),
  scopes,
});

const jwt = z.strictObject({
  issuer: issuer.describe(
    "Who issues the tokens, exactly as they spell it; its keys are found by discovery, on its own host or where the public can reach them.",
  ),
  audience: z
    .union([text, z.array(text).min(1, { error: "must name at least one" })], {
      error: ({ input }) => (input === undefined ? "is needed" : "must be a text or a list of texts"),
    })
    .describe("For whom tokens must be meant: one text, or a list of which one must fit."),
  algorithms: z
    .array(z.enum(TOKEN_ALGORITHMS))
    .min(1, { error: "must name at least one" })
    .exactOptional()
    .describe("Signatures that are accepted; unless given, all that need no shared secret."),
  ownerClaim: text.default("sub").describe("Claim that says whose tasks the caller's are."),
  clockSkew: duration.prefault("30s").describe("By how much clocks may differ."),
  jwksUrl: address
    .exactOptional()
    .describe("Where the keys are, for an issuer without discovery or with keys elsewhere inside the network."),
});

const mtls = z.strictObject({
  ca: text.describe("File of the authorities whose client certificates are trusted; needs `server.tls`."),
  owner: z
    .enum(CERTIFICATE_NAMES)
    .exactOptional()
    .describe("Name in the certificate that is the owner; unless given, the first of these there is."),
});

/** Who may call. */
export const auth = z.strictObject({
  anonymous: z.boolean().default(false).describe("Let anyone call who can reach the server, also from other machines."),
  apiKeys: z.array(apiKey).default([]).describe("API keys that are valid, any number at once."),
  apiKey: places.exactOptional().describe("Where API keys stand."),
  basic: z.array(basic).default([]).describe("Users with passwords."),
  jwt: jwt.exactOptional().describe("Tokens of an OAuth or OpenID Connect issuer."),
  mtls: mtls.exactOptional().describe("Client certificates."),
});

export const tls = z.strictObject({
  cert: text.describe("File of the certificate and those between it and a known authority, in PEM."),
  key: text.describe("File of its private key, in PEM."),
  ca: text.exactOptional().describe("File of authorities for client certificates, for a check of one's own."),
  requestClientCertificate: z
    .boolean()
    .exactOptional()
    .describe("Ask clients for certificates, for a check of one's own; `auth.mtls` does so by itself."),
});
