import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** Only the timestamp is signed: Base64 of HMAC-SHA256 with the secret key over decimal milliseconds. */
export function sign(secretKey: string, timestamp: string): string {
  return createHmac("sha256", secretKey).update(timestamp).digest("base64");
}

/** Maximum clock skew of a signed timestamp, in either direction. Documented for calls; assumed for the link. */
export const DEFAULT_SKEW_MS = 15 * 60_000;

function equalSecrets(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

const digest = (text: string) => createHash("sha256").update(text).digest();

/** An agent as registered with the platform. */
export interface RegisteredAgent {
  readonly agentId: string;
  readonly accessKey: string;
  readonly secretKey: string;
  /** The second set of credentials, required for uploads. */
  readonly uid?: string;
  readonly apiKey?: string;
  readonly apiId?: string;
}

interface AuthenticationRules {
  readonly agents: readonly RegisteredAgent[];
  readonly skewMs: number;
  readonly now: number;
}

export type AuthenticationResult =
  | { readonly agent: RegisteredAgent; readonly claw: boolean }
  | { readonly status: 401 | 403; readonly reason: string };

const refuse = (status: 401 | 403, why: string): AuthenticationResult => ({ status, reason: why });

/** Identifies the caller by access key and signature, or by user id and API key. */
export function authenticate(headers: IncomingHttpHeaders, rules: AuthenticationRules): AuthenticationResult {
  return headers["x-api-key"] === undefined ? authenticateSigned(headers, rules) : authenticateByKey(headers, rules);
}

function authenticateSigned(
  headers: IncomingHttpHeaders,
  { agents, now, skewMs }: AuthenticationRules,
): AuthenticationResult {
  const accessKey = firstValue(headers["x-access-key"]);
  const signature = firstValue(headers["x-sign"]);
  const timestamp = firstValue(headers["x-ts"]);
  if (accessKey === undefined || signature === undefined || timestamp === undefined) {
    return refuse(401, "x-access-key, x-sign or x-ts is missing.");
  }
  const known = agents.find((agent) => equalSecrets(agent.accessKey, accessKey));
  if (known === undefined) return refuse(401, "The access key is unknown.");
  if (!/^\d{1,16}$/.test(timestamp)) return refuse(401, "x-ts is not a time in milliseconds.");
  if (!equalSecrets(signature, sign(known.secretKey, timestamp))) return refuse(401, "The signature does not match.");
  const isFresh = Math.abs(now - Number(timestamp)) < skewMs;
  return isFresh ? { agent: known, claw: false } : refuse(401, "The signed time is too far off.");
}

function authenticateByKey(headers: IncomingHttpHeaders, { agents }: AuthenticationRules): AuthenticationResult {
  const uid = firstValue(headers["x-uid"]);
  const apiKey = firstValue(headers["x-api-key"]);
  if (uid === undefined || apiKey === undefined) return refuse(401, "x-uid or x-api-key is missing.");
  if (firstValue(headers["x-request-from"]) !== "openclaw") return refuse(401, "x-request-from is not openclaw.");
  const known = agents.find((agent) => agent.uid === uid && equalSecrets(agent.apiKey ?? "", apiKey));
  return known?.apiKey === undefined ? refuse(401, "The API key is unknown.") : { agent: known, claw: true };
}

/** A link belongs to one agent, which must also be named in the headers. */
export function authenticateLink(headers: IncomingHttpHeaders, rules: AuthenticationRules): AuthenticationResult {
  const admission = authenticate(headers, rules);
  if ("status" in admission) return admission;
  const agentId = firstValue(headers["x-agent-id"]);
  if (agentId === undefined) return refuse(401, "x-agent-id is missing.");
  const { accessKey, uid } = admission.agent;
  const named = rules.agents.find((agent) => agent.agentId === agentId);
  const isOwn = named !== undefined && (admission.claw ? named.uid === uid : named.accessKey === accessKey);
  return isOwn ? { ...admission, agent: named } : refuse(403, "The agent does not belong to these credentials.");
}

const firstValue = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value);
