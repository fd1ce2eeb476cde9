import type { IncomingHttpHeaders } from "node:http";
import { checkSignature, sameSecret } from "../signature.ts";

/** An agent as its owner registered it with the platform. */
export interface RegisteredAgent {
  readonly agentId: string;
  readonly accessKey: string;
  readonly secretKey: string;
  /** The other set of credentials, which uploads need. */
  readonly uid?: string;
  readonly apiKey?: string;
  /** Of the trigger that push notifications go through. */
  readonly apiId?: string;
}

export interface AdmissionRules {
  readonly agents: readonly RegisteredAgent[];
  readonly skewMs: number;
  readonly now: number;
}

export type Admission =
  | { readonly agent: RegisteredAgent; readonly claw: boolean }
  | { readonly status: 401 | 403; readonly why: string };

const refuse = (status: 401 | 403, why: string): Admission => ({ status, why });

/** Who signs a request: by access key and signature, or by user id and API key. */
export function admit(headers: IncomingHttpHeaders, rules: AdmissionRules): Admission {
  return headers["x-api-key"] === undefined ? admitSigned(headers, rules) : admitByKey(headers, rules);
}

function admitSigned(headers: IncomingHttpHeaders, { agents, now, skewMs }: AdmissionRules): Admission {
  const accessKey = single(headers["x-access-key"]);
  const signature = single(headers["x-sign"]);
  const timestamp = single(headers["x-ts"]);
  if (accessKey === undefined || signature === undefined || timestamp === undefined) {
    return refuse(401, "x-access-key, x-sign or x-ts is missing.");
  }
  const owned = agents.filter((agent) => sameSecret(agent.accessKey, accessKey));
  const [known] = owned;
  if (known === undefined) return refuse(401, "The access key is unknown.");
  const verdict = checkSignature(signature, timestamp, { secretKey: known.secretKey, now, skewMs });
  if (verdict === "valid") return { agent: known, claw: false };
  return refuse(401, SIGNATURE_FAULTS[verdict]);
}

const SIGNATURE_FAULTS = {
  wrong: "The signature does not match.",
  stale: "The signed time is too far off.",
  "no-time": "x-ts is not a time in milliseconds.",
} as const;

function admitByKey(headers: IncomingHttpHeaders, { agents }: AdmissionRules): Admission {
  const uid = single(headers["x-uid"]);
  const apiKey = single(headers["x-api-key"]);
  if (uid === undefined || apiKey === undefined) return refuse(401, "x-uid or x-api-key is missing.");
  if (single(headers["x-request-from"]) !== "openclaw") return refuse(401, "x-request-from is not openclaw.");
  const known = agents.find((agent) => agent.uid === uid && sameSecret(agent.apiKey ?? "", apiKey));
  return known?.apiKey === undefined ? refuse(401, "The API key is unknown.") : { agent: known, claw: true };
}

/** A link is for one agent, which its headers name as well. */
export function admitLink(headers: IncomingHttpHeaders, rules: AdmissionRules): Admission {
  const admission = admit(headers, rules);
  if ("status" in admission) return admission;
  const agentId = single(headers["x-agent-id"]);
  if (agentId === undefined) return refuse(401, "x-agent-id is missing.");
  const { accessKey, uid } = admission.agent;
  const named = rules.agents.find((agent) => agent.agentId === agentId);
  const isOwn = named !== undefined && (admission.claw ? named.uid === uid : named.accessKey === accessKey);
  return isOwn ? { ...admission, agent: named } : refuse(403, "The agent does not belong to these credentials.");
}

const single = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value);
