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

type From = Pick<ExchangeRequest, "headers" | "query">;

export function sessionScope(entry: Entry, agent: string): TokenScope {
  return { secret: secretOf(entry), purpose: `agent-session ${agent}` };
}

export function accessScope(entry: Entry, agent: string): TokenScope {
  return { secret: secretOf(entry), purpose: `access-token ${agent}` };
}

/** Throws UNAUTHENTICATED. Every entry of the agent is tried, always all of them. */
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
  throw new ProtocolError("UNAUTHENTICATED", stale ? STALE : session === "" ? UNKNOWN : EXPIRED);
}

const STALE = "The signature is too old, or made by a clock that is ahead.";
const UNKNOWN = "The credentials are missing or wrong.";
const EXPIRED = "The agent-session-id is not good, or no longer; initialize again.";

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

function hasApiKey({ headers, query }: From, access: Extract<Access, { kind: "api-key" }>): boolean {
  const given = headers[access.header]?.trim() ?? "";
  const inQuery = access.query === undefined ? null : new URLSearchParams(query).get(access.query);
  const candidates = [given, bearerIn(given), inQuery ?? ""];
  return candidates.map((candidate) => sameSecret(candidate, access.apiKey)).includes(true);
}

const BEARER = /^bearer\s+(\S+)\s*$/i;

function bearerIn(header: string | undefined): string {
  return BEARER.exec(header ?? "")?.[1] ?? "";
}
