/** Who is calling: the platform by its credentials, or by the session that these opened. */
import { ProtocolError } from "../../model/errors.ts";
import type { ExchangeRequest } from "../../wire/exchange.ts";
import { sameSecret, verifySignature } from "../xiaoyi/signature.ts";
import { type Access, type Entry, secretOf } from "./entry.ts";
import { isGoodToken, type TokenScope } from "./sealed-token.ts";
import { SESSION_HEADER } from "./version.ts";

export interface Admission {
  readonly entry: Entry;
  /** `session`: by an `agentSessionId` alone, which opens no further session. */
  readonly by: "credentials" | "session";
}

/** Why somebody is not let in. */
export type Denial = "stale" | "bad-session" | "wrong-credentials" | "no-credentials";

/** The peer is told in words that help nobody who tries keys. */
export class AccessDenied extends ProtocolError {
  readonly why: Denial;
  /** For whoever runs the server, and nobody else. */
  readonly hint: string;

  constructor(why: Denial, hint: string) {
    super("UNAUTHENTICATED", WORDS[why]);
    this.why = why;
    this.hint = hint;
  }
}

const UNKNOWN = "The credentials are missing or wrong.";
const WORDS = {
  stale: "The signature is too old, or made by a clock that is ahead.",
  "bad-session": "The agent-session-id is not good, or no longer; initialize again.",
  "wrong-credentials": UNKNOWN,
  "no-credentials": UNKNOWN,
} as const satisfies Record<Denial, string>;

type From = Pick<ExchangeRequest, "headers" | "query">;

export function sessionScope(entry: Entry, agent: string): TokenScope {
  return { secret: secretOf(entry), purpose: `agent-session ${agent}` };
}

export function accessScope(entry: Entry, agent: string): TokenScope {
  return { secret: secretOf(entry), purpose: `access-token ${agent}` };
}

/** Throws AccessDenied. Every entry of the agent is tried, always all of them. */
export function admit(from: From, entries: readonly Entry[], agent: string, now: number): Admission {
  let stale = false;
  let found: Admission | undefined;
  for (const entry of entries) {
    const verdict = judgeCredentials(from, entry, agent, now);
    stale ||= verdict === "stale";
    if (verdict === "good") found ??= { entry, by: "credentials" };
  }
  if (found !== undefined) return found;
  // Some send the value with a space at its end.
  const session = from.headers[SESSION_HEADER]?.trim() ?? "";
  for (const entry of entries) {
    if (isGoodToken(sessionScope(entry, agent), session, now)) found ??= { entry, by: "session" };
  }
  if (found !== undefined) return found;
  if (stale) throw new AccessDenied("stale", clockHint(Number(from.headers.ts) - now));
  if (session !== "") throw new AccessDenied("bad-session", SESSION_HINT);
  if (entries.some(({ access }) => saysAnything(from, access))) {
    throw new AccessDenied("wrong-credentials", KEY_HINT);
  }
  throw new AccessDenied("no-credentials", NOTHING_HINT);
}

export const KEY_HINT =
  "The keys are not those of the settings here: compare them with those in the platform's console, which cuts longer " +
  "ones to 64 characters without a word.";
const SESSION_HINT = "The session has expired, or was opened with other keys or for another agent.";
const NOTHING_HINT =
  "No credentials came where they are expected: compare the way of authentication in the platform's console with the " +
  "settings here, and see whether a proxy takes headers away.";

function clockHint(driftMs: number): string {
  const minutes = Math.round(Math.abs(driftMs) / 60_000);
  const direction = driftMs < 0 ? "behind" : "ahead of";
  return `The signed time is ${minutes} minutes ${direction} the clock of this machine: is that clock right?`;
}

/** Whether something is there that could be right. */
function saysAnything({ headers, query }: From, access: Access): boolean {
  switch (access.kind) {
    case "signature":
      return (headers.accesskey ?? headers.sign ?? headers.ts) !== undefined;
    case "api-key":
      return headers[access.header] !== undefined || keyInQuery(query, access) !== null;
    case "oauth":
      return headers.authorization !== undefined;
  }
}

type Verdict = "good" | "stale" | "wrong";

function judgeCredentials(from: From, entry: Entry, agent: string, now: number): Verdict {
  const { access } = entry;
  switch (access.kind) {
    case "signature":
      return judgeSignature(from, access, now);
    case "api-key":
      return hasApiKey(from, access) ? "good" : "wrong";
    case "oauth":
      return isGoodToken(accessScope(entry, agent), bearerIn(from.headers.authorization), now) ? "good" : "wrong";
  }
}

function judgeSignature({ headers }: From, access: Extract<Access, { kind: "signature" }>, now: number): Verdict {
  const verdict = verifySignature(access.secretKey, { sign: headers.sign, timestamp: headers.ts }, now);
  return sameSecret(headers.accesskey ?? "", access.accessKey) ? verdict : "wrong";
}

type ApiKeyAccess = Extract<Access, { kind: "api-key" }>;

function hasApiKey({ headers, query }: From, access: ApiKeyAccess): boolean {
  const given = headers[access.header]?.trim() ?? "";
  const candidates = [given, bearerIn(given), keyInQuery(query, access) ?? ""];
  return candidates.map((candidate) => sameSecret(candidate, access.apiKey)).includes(true);
}

function keyInQuery(query: string, { query: name }: ApiKeyAccess): string | null {
  return name === undefined ? null : new URLSearchParams(query).get(name);
}

const BEARER = /^bearer\s+(\S+)\s*$/i;

function bearerIn(header: string | undefined): string {
  return BEARER.exec(header ?? "")?.[1] ?? "";
}
