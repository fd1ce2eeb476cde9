/** Where the platform trades its client credentials for a token (RFC 6749 §4.4). */

import { ProtocolError } from "../../model/errors.ts";
import { type ExchangeRequest, type FullReply, jsonReply, type RequestHead } from "../../wire/exchange.ts";
import { decodeUtf8, parseJson } from "../../wire/parse-json.ts";
import { isRecord } from "../shared/proto/json-reading.ts";
import { sameSecret } from "../xiaoyi/signature.ts";
import { accessScope } from "./access.ts";
import type { Entry } from "./entry.ts";
import { issueToken } from "./sealed-token.ts";

/** The platform asks again when one is used up. */
const TOKEN_SECONDS = 3_600;
const LARGEST_BODY = 16 * 1024;

const NOT_KEPT = { "cache-control": "no-store", pragma: "no-cache" };

interface TokenDesk {
  readonly agent: string;
  readonly entries: readonly Entry[];
  readonly now: number;
  readonly unique: string;
}

export function answerTokenRequest(exchange: ExchangeRequest, desk: TokenDesk): FullReply {
  const { agent, entries, now, unique } = desk;
  const words = readWords(exchange);
  if (words === undefined) return refused(400, "invalid_request");
  if (words.grantType !== "client_credentials") return refused(400, "unsupported_grant_type");
  let found: Entry | undefined;
  for (const entry of entries) {
    if (entry.access.kind !== "oauth") continue;
    const isId = sameSecret(words.clientId, entry.access.clientId);
    const isSecret = sameSecret(words.clientSecret, entry.access.clientSecret);
    if (isId && isSecret) found ??= entry;
  }
  if (found === undefined) return refused(401, "invalid_client");
  const token = issueToken(accessScope(found, agent), now + TOKEN_SECONDS * 1_000, unique);
  const answer = { access_token: token, token_type: "Bearer", expires_in: TOKEN_SECONDS };
  return jsonReply(200, JSON.stringify(answer), NOT_KEPT);
}

/** Throws INVALID_REQUEST for a body that is too long, or does not say how long it is where somebody has to ask. */
export function requireShortBody({ headers }: RequestHead): void {
  if (Number(headers["content-length"]) <= LARGEST_BODY) return;
  throw new ProtocolError("INVALID_REQUEST", "A request for a token is short, and says how long it is.");
}

interface TokenWords {
  readonly grantType: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

function readWords({ body, headers }: ExchangeRequest): TokenWords | undefined {
  if (body.length > LARGEST_BODY) return undefined;
  const form = readForm(body, headers["content-type"] ?? "");
  if (form === undefined) return undefined;
  const basic = readBasic(headers.authorization);
  return {
    grantType: form.get("grant_type") ?? "",
    clientId: basic?.id ?? form.get("client_id") ?? "",
    clientSecret: basic?.secret ?? form.get("client_secret") ?? "",
  };
}

/** A form, as the standard wants it, or JSON, as some consoles send it. */
function readForm(body: Buffer, contentType: string): URLSearchParams | undefined {
  try {
    const text = decodeUtf8(body);
    if (!/\bjson\b/i.test(contentType)) return new URLSearchParams(text);
    const value = parseJson(text);
    if (!isRecord(value)) return undefined;
    const texts = Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string");
    return new URLSearchParams(texts);
  } catch {
    // Not UTF-8 or not JSON: the answer says so in the standard's words.
    return undefined;
  }
}

/** Both halves are encoded like a form (RFC 6749 §2.3.1). */
function readBasic(header: string | undefined): { readonly id: string; readonly secret: string } | undefined {
  const encoded = /^basic\s+(\S+)\s*$/i.exec(header ?? "")?.[1];
  if (encoded === undefined) return undefined;
  const [id = "", ...secret] = Buffer.from(encoded, "base64").toString("utf8").split(":");
  return { id: formDecoded(id), secret: formDecoded(secret.join(":")) };
}

function formDecoded(text: string): string {
  return new URLSearchParams(`value=${text.replaceAll("&", "%26")}`).get("value") ?? "";
}

function refused(status: 400 | 401, error: string): FullReply {
  const challenge = status === 401 ? { "www-authenticate": "Basic" } : undefined;
  return jsonReply(status, JSON.stringify({ error }), { ...NOT_KEPT, ...challenge });
}
