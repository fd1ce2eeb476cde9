/**
 * Exchanges a login's authorization code for the user's account, at the server where the user logged in (RFC 6749
 * §4.1.3).
 */

import type { Records } from "../../../core/dialects/carrier.ts";
import { parseResponse } from "../../../core/dialects/shared/responses.ts";
import { ProtocolError } from "../../../core/model/errors.ts";
import { isObject, type JsonObject, type JsonValue, omitUndefined } from "../../../core/model/json.ts";
import { CarrierError, type Exchanger } from "../../../core/wire/exchange.ts";
import { type Language, phoneText } from "../codec/phone-texts.ts";
import type { Bindings } from "../runtime/http/options.ts";
import { parseRecord, SPACES } from "./record-map.ts";
import { createTrustedExchanger, isSafeUrl } from "./trusted-exchanger.ts";

export interface AccountServer {
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri?: string;
}

const TIMEOUT_MS = 10_000;
const MAX_RESPONSE_BYTES = 256 * 1024;

/** Throws a TypeError for a server to which the secret would be sent unencrypted. */
export function createAccountExchange(
  { clientId, clientSecret, redirectUri, tokenUrl }: AccountServer,
  language: Language,
  exchanger: Exchanger = createTrustedExchanger(MAX_RESPONSE_BYTES),
): (authCode: string) => Promise<JsonObject> {
  if (!isSafeUrl(tokenUrl)) throw new TypeError("xiaoyi.http: account.tokenUrl must be an https address.");
  return async (authCode) => {
    const form = new URLSearchParams({
      grant_type: "authorization_code",
      code: authCode,
      client_id: clientId,
      client_secret: clientSecret,
      ...omitUndefined({ redirect_uri: redirectUri }),
    });
    const { status, text } = await post(exchanger, tokenUrl, form.toString(), language);
    const answer = parseObject(text);
    if (status >= 500) throw unavailable(language);
    if (status !== 200 || answer === undefined || answer.error !== undefined) {
      throw new ProtocolError("INVALID_PARAMS", phoneText(language, "loginRefused"));
    }
    return accountOf(answer);
  };
}

async function post(exchanger: Exchanger, url: string, body: string, language: Language) {
  const headers = { "content-type": "application/x-www-form-urlencoded", accept: "application/json" };
  try {
    const answer = await exchanger({ method: "POST", url, headers, body, timeoutMs: TIMEOUT_MS });
    return { status: answer.status, text: await answer.text() };
  } catch (error) {
    throw error instanceof CarrierError ? unavailable(language, error) : error;
  }
}

function unavailable(language: Language, cause?: unknown): ProtocolError {
  return new ProtocolError("UNAVAILABLE", phoneText(language, "loginUnavailable"), { retryAfter: 5, cause });
}

const TOKEN_NAME = /token|expires|secret/i;

/** The user's account, from the members beside the tokens and the claims of the ID token; tokens are not stored. */
function accountOf(answer: JsonObject): JsonObject {
  const beside = Object.entries(answer).filter(([name]) => !TOKEN_NAME.test(name));
  return { ...Object.fromEntries(beside), ...claimsOf(answer.id_token) };
}

/** Not verified: it was received directly from the server that signed it (OpenID Connect Core §3.1.3.7). */
function claimsOf(token: JsonValue | undefined): JsonObject {
  const payload = typeof token === "string" ? token.split(".")[1] : undefined;
  if (payload === undefined) return {};
  return parseObject(Buffer.from(payload, "base64url").toString("utf8")) ?? {};
}

function parseObject(text: string): JsonObject | undefined {
  const value = parseResponse(text);
  return isObject(value) ? value : undefined;
}

/** Maximum number of logins; the oldest are evicted, and those users are asked to log in again. */
const MAX_BINDINGS = 100_000;

/** The accounts of the users who logged in to one entry. */
export function createBindings(records: () => Records, agent: string, owner: string): Bindings {
  const keyOf = (loginSessionId: string) => JSON.stringify([agent, owner, loginSessionId]);
  return {
    async save(id, account) {
      const record = { space: SPACES.logins, key: keyOf(id), value: JSON.stringify(account), keep: MAX_BINDINGS };
      await records().put(record);
    },
    async find(id) {
      const account = parseRecord(await records().record(SPACES.logins, keyOf(id)));
      return isObject(account) ? account : undefined;
    },
    forget: (id) => records().delete(SPACES.logins, keyOf(id)),
  };
}
