/** The token endpoint, where the platform exchanges its client credentials for a token (RFC 6749 §4.4). */

import type { AdmitBy, CodecTools } from "../../../../core/dialects/contract.ts";
import { invalidParams, ProtocolError } from "../../../../core/model/errors.ts";
import { type Fields, fieldsOf, isObject, type JsonObject, listOf } from "../../../../core/model/json.ts";
import type { Message } from "../../../../core/model/message.ts";
import { type FullReply, jsonReply, MAX_CREDENTIALS_BYTES, type RequestHead } from "../../../../core/wire/exchange.ts";
import { decodeUtf8, parseJson } from "../../../../core/wire/parse-json.ts";
import { VERSION } from "../../codec/card.ts";
import type { DecodedMessage } from "../../codec/decode-message.ts";
import { XIAOYI_EXTENSION, xiaoyiMetadata } from "../../codec/metadata.ts";
import { phoneText } from "../../codec/phone-texts.ts";
import { secretsEqual } from "../../codec/signature.ts";
import { AccessDenied, type Authentication, accessScope, foundBy, issueToken, KEY_HINT } from "./access.ts";
import type { Entry } from "./options.ts";

/** The platform requests a new token when one expires. */
const TOKEN_SECONDS = 3_600;

const NO_STORE = { "cache-control": "no-store", pragma: "no-cache" };

/** The request is not one for a token. The message is an error code of RFC 6749 §5.2. */
export class TokenRequestError extends Error {
  declare readonly message: "invalid_request" | "unsupported_grant_type";
}

/** Throws if the client is refused. */
export function answerTokenRequest(
  head: RequestHead,
  context: {
    readonly agent: string;
    readonly entries: readonly Entry[];
    readonly now: number;
    readonly unique: string;
    readonly admit: AdmitBy;
  },
): FullReply {
  const { admit, agent, entries, now, unique } = context;
  const { entry } = admit((body) => authenticateClient(decodeTokenRequest(head, body), entries));
  const token = issueToken(accessScope(entry, agent), now + TOKEN_SECONDS * 1_000, unique);
  const answer = { access_token: token, token_type: "Bearer", expires_in: TOKEN_SECONDS };
  return jsonReply(200, JSON.stringify(answer), NO_STORE);
}

function authenticateClient(
  { clientId, clientSecret }: ReturnType<typeof decodeTokenRequest>,
  entries: readonly Entry[],
): Authentication {
  let found: Entry | undefined;
  for (const entry of entries) {
    if (entry.access.kind !== "oauth") continue;
    const isId = secretsEqual(clientId, entry.access.clientId);
    const isSecret = secretsEqual(clientSecret, entry.access.clientSecret);
    if (isId && isSecret) found ??= entry;
  }
  if (found === undefined) throw new AccessDenied("wrong-credentials", KEY_HINT);
  return foundBy("credentials", found);
}

/** Throws INVALID_REQUEST if the body is too long, or has no declared length. */
export function requireShortBody({ headers }: RequestHead): void {
  if (Number(headers["content-length"]) <= MAX_CREDENTIALS_BYTES) return;
  throw new ProtocolError("INVALID_REQUEST", "A request for a token is short, and says how long it is.");
}

function decodeTokenRequest({ headers }: RequestHead, body: Buffer | undefined) {
  const form = body && decodeForm(body, headers["content-type"] ?? "");
  if (form === undefined) throw new TokenRequestError("invalid_request");
  if (form.get("grant_type") !== "client_credentials") throw new TokenRequestError("unsupported_grant_type");
  const basic = decodeBasic(headers.authorization);
  return {
    clientId: basic?.id ?? form.get("client_id") ?? "",
    clientSecret: basic?.secret ?? form.get("client_secret") ?? "",
  };
}

/** A form, as specified, or JSON, as some consoles send it. */
function decodeForm(body: Buffer, contentType: string): URLSearchParams | undefined {
  try {
    const text = decodeUtf8(body);
    if (!/\bjson\b/i.test(contentType)) return new URLSearchParams(text);
    const value = parseJson(text);
    if (!isObject(value)) return undefined;
    const texts = Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string");
    return new URLSearchParams(texts);
  } catch {
    // Not UTF-8 or not JSON: reported by the error response of RFC 6749.
    return undefined;
  }
}

/** Both parts are form-encoded (RFC 6749 §2.3.1). */
function decodeBasic(header: string | undefined): { readonly id: string; readonly secret: string } | undefined {
  const encoded = /^basic\s+(\S+)\s*$/i.exec(header ?? "")?.[1];
  if (encoded === undefined) return undefined;
  const [id = "", ...secret] = Buffer.from(encoded, "base64").toString("utf8").split(":");
  return { id: decodeFormValue(id), secret: decodeFormValue(secret.join(":")) };
}

function decodeFormValue(text: string): string {
  return new URLSearchParams(`value=${text.replaceAll("&", "%26")}`).get("value") ?? "";
}

export function tokenErrorReply(status: 400 | 401, error: string): FullReply {
  const challenge = status === 401 ? { "www-authenticate": "Basic" } : undefined;
  return jsonReply(status, JSON.stringify({ error }), { ...NO_STORE, ...challenge });
}

export async function authorize(
  params: unknown,
  { accounts, language }: Entry,
  ids: CodecTools["ids"],
): Promise<object> {
  if (accounts === undefined) {
    throw new ProtocolError("UNSUPPORTED_OPERATION", phoneText(language, "loginNotOffered"));
  }
  const { authCode } = firstPartData(params);
  if (typeof authCode !== "string" || authCode === "") {
    throw invalidParams("params.message.parts[0].data.authCode", "is required");
  }
  const account = await accounts.exchange(authCode);
  const agentLoginSessionId = ids.context();
  await accounts.bindings.save(agentLoginSessionId, account);
  return { version: VERSION, agentLoginSessionId };
}

/** An unknown login counts as already ended. */
export async function deauthorize(params: unknown, { accounts }: Entry): Promise<object> {
  const { agentLoginSessionId } = firstPartData(params);
  if (typeof agentLoginSessionId === "string") await accounts?.bindings.forget(agentLoginSessionId);
  return { version: VERSION };
}

function firstPartData(params: unknown): Fields {
  const { parts } = fieldsOf(fieldsOf(params).message);
  return fieldsOf(fieldsOf(listOf(parts)[0]).data);
}

/** Adds the user's account to the message. A login that has ended is not passed on, as it is no longer verified. */
export async function withAccount(decoded: DecodedMessage, { accounts }: Entry): Promise<Message> {
  const { loginSessionId, message } = decoded;
  if (loginSessionId === undefined || accounts === undefined) return message;
  const account = await accounts.bindings.find(loginSessionId);
  const { agentLoginSessionId, ...others } = xiaoyiMetadata(message.metadata) ?? {};
  const mark: JsonObject = account === undefined ? others : { ...others, agentLoginSessionId: loginSessionId, account };
  return { ...message, metadata: { ...message.metadata, [XIAOYI_EXTENSION]: mark } };
}
