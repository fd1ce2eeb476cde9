/** Authenticates the caller: the platform, by its credentials or by the session that these opened. */

import { createHmac, timingSafeEqual } from "node:crypto";
import type { Caller } from "../../../../core/model/caller.ts";
import { type ErrorCode, ProtocolError } from "../../../../core/model/errors.ts";
import type { Log } from "../../../../core/model/ports.ts";
import type { ExchangeRequest } from "../../../../core/wire/exchange.ts";
import { SESSION_HEADER } from "../../codec/card.ts";
import { digestSecret, type SignatureVerdict, secretsEqual, verifySignature } from "../../codec/signature.ts";
import { type Access, type Entry, secretOf } from "./options.ts";

export interface Authentication {
  readonly caller: Caller;
  readonly entry: Entry;
  /** `session`: by an `agentSessionId` alone, which cannot open further sessions. */
  readonly by: "credentials" | "session";
}

type DenialReason = "stale" | "bad-session" | "wrong-credentials" | "no-credentials";

/** The message sent to the caller reveals nothing that would help to guess keys. */
export class AccessDenied extends ProtocolError {
  readonly why: DenialReason;
  /** For the operator only. */
  readonly hint: string;

  constructor(why: DenialReason, hint: string) {
    super("UNAUTHENTICATED", MESSAGES[why]);
    this.why = why;
    this.hint = hint;
  }
}

const UNKNOWN = "The credentials are missing or wrong.";
const MESSAGES = {
  stale: "The signature is too old, or made by a clock that is ahead.",
  "bad-session": "The agent-session-id is not good, or no longer; initialize again.",
  "wrong-credentials": UNKNOWN,
  "no-credentials": UNKNOWN,
} as const satisfies Record<DenialReason, string>;

type RequestCredentials = Pick<ExchangeRequest, "headers" | "query">;

export function sessionScope(entry: Entry, agent: string): TokenScope {
  return { secret: secretOf(entry), purpose: `agent-session ${agent}` };
}

export function accessScope(entry: Entry, agent: string): TokenScope {
  return { secret: secretOf(entry), purpose: `access-token ${agent}` };
}

/** Throws AccessDenied. Always checks all entries of the agent. */
export function authenticate(
  from: RequestCredentials,
  entries: readonly Entry[],
  agent: string,
  now: number,
): Authentication {
  let stale = false;
  let found: Authentication | undefined;
  for (const entry of entries) {
    const verdict = verifyCredentials(from, entry, agent, now);
    stale ||= verdict === "stale";
    if (verdict === "good") found ??= foundBy("credentials", entry);
  }
  if (found !== undefined) return found;
  // Some callers send the value with a trailing space.
  const session = from.headers[SESSION_HEADER]?.trim() ?? "";
  for (const entry of entries) {
    if (isValidToken(sessionScope(entry, agent), session, now)) found ??= foundBy("session", entry);
  }
  if (found !== undefined) return found;
  if (stale) throw new AccessDenied("stale", clockHint(Number(from.headers.ts) - now));
  if (session !== "") throw new AccessDenied("bad-session", SESSION_HINT);
  if (entries.some(({ access }) => hasCredentials(from, access))) {
    throw new AccessDenied("wrong-credentials", KEY_HINT);
  }
  throw new AccessDenied("no-credentials", MISSING_HINT);
}

export function foundBy(by: Authentication["by"], entry: Entry): Authentication {
  return { by, entry, caller: callerOf(entry) };
}

const callers = new WeakMap<Entry, Caller>();

/** The same object for every request: the gate remembers what it knows about a caller by it. */
function callerOf(entry: Entry): Caller {
  let caller = callers.get(entry);
  if (caller === undefined) {
    caller = { owner: entry.owner, authenticated: true };
    callers.set(entry, caller);
  }
  return caller;
}

export const KEY_HINT =
  "The keys are not those of the settings here: compare them with those in the platform's console, which cuts longer " +
  "ones to 64 characters without a word.";
const SESSION_HINT = "The session has expired, or was opened with other keys or for another agent.";
const MISSING_HINT =
  "No credentials came where they are expected: compare the way of authentication in the platform's console with the " +
  "settings here, and see whether a proxy takes headers away.";

function clockHint(driftMs: number): string {
  const minutes = Math.round(Math.abs(driftMs) / 60_000);
  const direction = driftMs < 0 ? "behind" : "ahead of";
  return `The signed time is ${minutes} minutes ${direction} the clock of this machine: is that clock right?`;
}

/** Whether the request has credentials of the configured kind. */
function hasCredentials({ headers, query }: RequestCredentials, access: Access): boolean {
  switch (access.kind) {
    case "signature":
      return (headers.accesskey ?? headers.sign ?? headers.ts) !== undefined;
    case "api-key":
      return headers[access.header] !== undefined || apiKeyInQuery(query, access) !== null;
    case "oauth":
      return headers.authorization !== undefined;
  }
}

function verifyCredentials(from: RequestCredentials, entry: Entry, agent: string, now: number): SignatureVerdict {
  const { access } = entry;
  const { headers } = from;
  switch (access.kind) {
    case "signature": {
      const verdict = verifySignature(access.secretKey, { sign: headers.sign, timestamp: headers.ts }, now);
      return secretsEqual(headers.accesskey ?? "", access.accessKey) ? verdict : "wrong";
    }
    case "api-key":
      return hasApiKey(from, access) ? "good" : "wrong";
    case "oauth":
      return isValidToken(accessScope(entry, agent), bearerTokenOf(headers.authorization), now) ? "good" : "wrong";
  }
}

type ApiKeyAccess = Extract<Access, { kind: "api-key" }>;

function hasApiKey({ headers, query }: RequestCredentials, access: ApiKeyAccess): boolean {
  const given = headers[access.header]?.trim() ?? "";
  // A value with a scheme can only be the whole key if that has one, too.
  const token = BEARER.test(access.apiKey) ? given : bearerTokenOf(given) || given;
  const inHeader = token !== "" && equalsApiKey(token, access);
  const inQuery = apiKeyInQuery(query, access) ?? "";
  return (inQuery !== "" && equalsApiKey(inQuery, access)) || inHeader;
}

/** The digests of configured keys, which are the same for every request. */
const keyDigests = new WeakMap<ApiKeyAccess, Buffer>();

function equalsApiKey(given: string, access: ApiKeyAccess): boolean {
  let expected = keyDigests.get(access);
  if (expected === undefined) {
    expected = digestSecret(access.apiKey);
    keyDigests.set(access, expected);
  }
  return timingSafeEqual(digestSecret(given), expected);
}

function apiKeyInQuery(query: string, { query: name }: ApiKeyAccess): string | null {
  return name === undefined ? null : new URLSearchParams(query).get(name);
}

const BEARER = /^bearer\s+(\S+)\s*$/i;

function bearerTokenOf(header: string | undefined): string {
  return BEARER.exec(header ?? "")?.[1] ?? "";
}

/**
 * Stateless tokens: they hold their expiry and are signed with a key derived from a credential, so every node can
 * verify them, any number may be valid at a time, and changing the credential revokes them all.
 */
interface TokenScope {
  readonly secret: string;
  /** The purpose and agent of the token: the same credential may be used for several. */
  readonly purpose: string;
}

const UNIQUE_CHARACTERS = 16;
const SIGNATURE_BYTES = 24;
const TOKEN = /^([0-9a-z]{1,9})\.([\w-]{1,16})\.([\w-]{32})$/;

/**
 * At most 64 characters: the platform's console truncates longer ones. `unique` distinguishes tokens of the same
 * moment.
 */
export function issueToken(scope: TokenScope, expiresAt: number, unique: string): string {
  const head = `${Math.ceil(expiresAt / 1_000).toString(36)}.${unique.replaceAll(/[^\w-]/g, "").slice(-UNIQUE_CHARACTERS)}`;
  return `${head}.${signatureOf(scope, head)}`;
}

export function isValidToken(scope: TokenScope, token: string, now: number): boolean {
  const match = TOKEN.exec(token);
  if (match === null) return false;
  const [, expiry = "", unique = "", signature = ""] = match;
  if (!secretsEqual(signature, signatureOf(scope, `${expiry}.${unique}`))) return false;
  return Number.parseInt(expiry, 36) * 1_000 > now;
}

function signatureOf({ purpose, secret }: TokenScope, head: string): string {
  const key = createHmac("sha256", secret).update(purpose).digest();
  const digest = createHmac("sha256", key).update(head).digest();
  return digest.subarray(0, SIGNATURE_BYTES).toString("base64url");
}

type RefusalReason = DenialReason | ErrorCode | "nothing-to-cancel";

/** Hints may quote input from the caller. */
const MAX_HINT_LENGTH = 200;

/** Logs each reason once per agent: a caller that sends one malformed request sends many. */
export class RefusalLog {
  readonly #log: Log;
  /** Bounded by the configured agents and the closed list of reasons. */
  readonly #logged = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** `agent` is undefined if the request was refused before its agent was determined. */
  note(agent: string | undefined, error: unknown): void {
    if (!ProtocolError.is(error)) this.#log.error({ agent, err: error }, "A request of Xiaoyi could not be answered.");
    else if (error instanceof AccessDenied) this.warn(agent, error.why, error.hint);
    else this.warn(agent, error.code, error.message.slice(0, MAX_HINT_LENGTH));
  }

  warn(agent: string | undefined, why: RefusalReason, hint: string): void {
    const key = JSON.stringify([agent, why]);
    if (this.#logged.has(key)) return;
    this.#logged.add(key);
    this.#log.warn({ agent, why, hint }, "A request of Xiaoyi was refused; others like it are not logged.");
  }
}
