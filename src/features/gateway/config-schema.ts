import { z } from "zod";
import { hasUserInfo } from "../../core/auth/verify/jwt.ts";
import { isKeyHeader } from "../../core/auth/verify/verifiers.ts";
import { DIALECT_NAMES } from "../../core/client/dialect-names.ts";
import { canParseUrl } from "../../core/model/url.ts";
import { optional, text } from "../../core/yaml/value-types.ts";
import { parsePeerAddress } from "../chat/a2a-lite/address.ts";
import { parseReference } from "../registry/client/reference.ts";

const ADDRESS_ERROR = "must be an http or https address without login";
const address = z
  .url({ protocol: /^https?$/, error: ADDRESS_ERROR })
  .refine((url) => !hasUserInfo(url), { error: ADDRESS_ERROR });

const ORIGIN_ERROR = "must be an origin such as https://api.example.com";
const origin = z
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
export const CREDENTIAL_KINDS = ["bearer", "apiKey", "basic", "oauth", "ak"] as const;
export const REMOTE_ONLY = ["dialect", "binding", "credentials", "origins"] as const;

const REMOTE_ERROR = `${ADDRESS_ERROR}, a2a-lite:<network>/<room>#<peer>, skill:<id>, or the name of an agent in the registry`;
const reference = z.string().refine((text) => parseReference(text) !== undefined);
const chatPeer = z.string().refine((text) => parsePeerAddress(text) !== undefined);

export const remoteKeys = {
  remote: optional(
    z.union([address, chatPeer, reference], { error: REMOTE_ERROR }),
    "URL of a remote agent or of its card, in any dialect: the agent is served from it. It may be in a private network. Or `skill:<id>`, or the name or id of an agent: it is looked up in the registry of this server and its peers when a task begins. Or `a2a-lite:<network>/<room>#<peer>`: a participant of a chat room, which is called over the entry of `channels` that is in that room.",
  ),
  dialect: optional(z.enum(DIALECT_NAMES), "With `remote`: dialect in which it is called; default: as its card says."),
  binding: optional(
    z.enum(["JSONRPC", "HTTP+JSON", "GRPC"]),
    "With `remote`: binding over which it is called; default: as its card says.",
  ),
  credentials: optional(credentials, "With `remote`: how to log in there."),
  origins: optional(
    z.array(origin).min(1, { error: "must name at least one" }),
    "With `remote`: other origins that its card may refer to. Only these also receive the credentials, may be in private networks, and may be called over gRPC.",
  ),
};

export type RemoteCredentials = z.output<typeof credentials>;
