/** The endpoint that agents dial; the server acts as the platform. */

import type { Carrier, ConnectionRefusal, UpgradeRequest } from "../../../core/dialects/carrier.ts";
import type { LinkCaller, LinkTools } from "../../../core/dialects/contract.ts";
import type { LogFields } from "../../../core/model/ports.ts";
import type { Link } from "../../../core/wire/link.ts";
import { nonEmptyString } from "../codec/control.ts";
import { SIGNATURE_WINDOW_MS, type SignatureVerdict, secretsEqual, verifySignature } from "../codec/signature.ts";
import { linkCalling } from "../runtime/link/call/call-link.ts";
import { DIAL_IN_CARRIER, type DialIn, type DialInCredentials } from "./dial-in-agent.ts";
import { OfferedFiles } from "./files/offered-files.ts";

export const LINK_PATH = "/openclaw/v1/ws/link";

/** How long a new message waits for an agent that is not connected. */
const CONNECT_MS = 10_000;
/**
 * After an agent's link was replaced while it was open, the next one is not replaced for this time, doubled each time
 * that it happens again: two processes with the same credentials would otherwise disconnect each other without end.
 */
const REPLACED_MS = { baseMs: 5_000, capMs: 60_000 };
/** Limits what an unauthenticated agent can write to the log. */
const MAX_LOGGED_ID_LENGTH = 64;

interface DialInEndpoint {
  readonly name: string;
  readonly credentials: DialInCredentials;
  readonly caller: LinkCaller;
  /** The URL at which the agent reaches this server. */
  baseUrl: string | undefined;
  /** Links that have not closed: more than one only while one replaces another. */
  open: number;
  /** How often in a row the link was replaced while it was open, and when it may be replaced again. */
  replaced: { readonly times: number; readonly until: number };
}

/** Shared by all agents that dial in. */
type DialInTools = Omit<LinkTools, "peerId" | "connectMs" | "patienceMs" | "files">;

/** Once created, calls can wait for the agents to connect. */
export function createDialInCarrier(dialIns: ReadonlyMap<string, DialIn>, tools: DialInTools): Carrier<Link> {
  const files = new OfferedFiles(tools.clock);
  const endpoints = [...dialIns].map(([name, { credentials, patienceMs }]): DialInEndpoint => {
    const { agentId: peerId } = credentials;
    const offers = files.offersTo(peerId, () => endpoint.baseUrl);
    const caller = linkCalling.open({ ...tools, files: offers, peerId, connectMs: CONNECT_MS, patienceMs });
    const endpoint: DialInEndpoint = {
      name,
      credentials,
      caller,
      baseUrl: undefined,
      open: 0,
      replaced: { times: 0, until: 0 },
    };
    return endpoint;
  });
  function noteReplaced(endpoint: DialInEndpoint, about: LogFields): void {
    const now = tools.clock.now();
    const { capMs, baseMs } = REPLACED_MS;
    const { until } = endpoint.replaced;
    // The pause before it has been over for as long as the longest: this is not the same quarrel.
    const times = now - until > capMs ? 1 : endpoint.replaced.times + 1;
    endpoint.replaced = { times, until: now + Math.min(capMs, baseMs * 2 ** (times - 1)) };
    if (times === 2) tools.log.warn(about, LINK_REPLACED);
  }
  return {
    name: DIAL_IN_CARRIER,
    accept: {
      path: LINK_PATH,
      admit({ baseUrl, headers }) {
        const result = authenticate(headers, endpoints, tools.clock.now());
        if ("why" in result) return toRefusal(result, headers);
        const { caller, credentials, name } = result;
        const about = { agent: name, agentId: credentials.agentId };
        const waitMs = result.open > 0 ? result.replaced.until - tools.clock.now() : 0;
        if (waitMs > 0) {
          return { status: 429, retryAfter: Math.ceil(waitMs / 1000), message: LINK_IN_USE, about };
        }
        return {
          about,
          async converse(link) {
            result.baseUrl = baseUrl;
            if (result.open > 0) noteReplaced(result, about);
            result.open++;
            try {
              return await caller.attach(link);
            } finally {
              result.open--;
            }
          },
        };
      },
      answer: (request) => files.answer(request),
    },
    peer: (id) => endpoints.find(({ credentials }) => credentials.agentId === id)?.caller,
    settle: async () => {},
    close() {},
  };
}

const LINK_IN_USE = "Another connection of this agent has the link. Is it started twice?";
const LINK_REPLACED =
  "Connections of one agent replace each other: is it started twice? The newer one keeps the link for a while each time.";

function toRefusal({ status, why }: Refusal, headers: UpgradeHeaders): ConnectionRefusal {
  const agentId = headerOf(headers, "x-agent-id")?.slice(0, MAX_LOGGED_ID_LENGTH);
  return { status, message: REASONS[why], about: { agentId, why } };
}

type UpgradeHeaders = UpgradeRequest["headers"];

interface Refusal {
  readonly status: 401 | 403;
  readonly why: keyof typeof REASONS;
}

const REASONS = {
  "credentials-missing": "x-agent-id is required, with x-access-key, x-ts and x-sign or with x-uid and x-api-key.",
  "credentials-wrong": "The access key, the signature, the user id or the API key is wrong.",
  "time-stale": `x-ts is more than ${SIGNATURE_WINDOW_MS / 60_000} minutes away from the time of this server.`,
  "other-agent": "The credentials do not belong to the agent that x-agent-id names.",
} as const;

/** Compares every key, so that timing does not reveal which one was nearly right. */
function authenticate(
  headers: UpgradeHeaders,
  endpoints: readonly DialInEndpoint[],
  now: number,
): DialInEndpoint | Refusal {
  const agentId = headerOf(headers, "x-agent-id");
  const given = headerOf(headers, "x-access-key") ?? headerOf(headers, "x-api-key");
  if (given === undefined || agentId === undefined) return { status: 401, why: "credentials-missing" };
  const verdicts = endpoints.map((endpoint) => ({
    endpoint,
    verdict: verifyCredentials(headers, endpoint.credentials, now),
  }));
  const good = verdicts.filter(({ verdict }) => verdict === "good");
  if (good.length === 0) {
    const stale = verdicts.some(({ verdict }) => verdict === "stale");
    return { status: 401, why: stale ? "time-stale" : "credentials-wrong" };
  }
  const own = good.find(({ endpoint }) => endpoint.credentials.agentId === agentId);
  return own?.endpoint ?? { status: 403, why: "other-agent" };
}

/** By signature or by API key, whichever is configured for the agent. */
function verifyCredentials(headers: UpgradeHeaders, credentials: DialInCredentials, now: number): SignatureVerdict {
  const { ak, apiKey, sk, uid } = credentials;
  const accessKey = headerOf(headers, "x-access-key") ?? "";
  const signed = { timestamp: headerOf(headers, "x-ts"), sign: headerOf(headers, "x-sign") };
  const verdict =
    ak !== undefined && sk !== undefined && secretsEqual(accessKey, ak) ? verifySignature(sk, signed, now) : "wrong";
  if (uid === undefined || apiKey === undefined) return verdict;
  const isUser = secretsEqual(headerOf(headers, "x-uid") ?? "", uid);
  const hasKey = secretsEqual(headerOf(headers, "x-api-key") ?? "", apiKey);
  return isUser && hasKey ? "good" : verdict;
}

function headerOf(headers: UpgradeHeaders, name: string): string | undefined {
  return nonEmptyString(headers[name]);
}
