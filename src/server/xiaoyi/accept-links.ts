/** The endpoint that agents dial, in the platform's place. Who dials is judged before a WebSocket is made of it. */

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { LinkCaller } from "../../dialects/contract.ts";
import {
  SIGNATURE_WINDOW_MS,
  type SignatureVerdict,
  secretsEqual,
  verifySignature,
} from "../../dialects/xiaoyi/signature.ts";
import type { Log } from "../../model/ports.ts";
import type { FullReply, RequestHead } from "../../wire/exchange.ts";
import { createWebSocketAcceptor, type WebSocketLink } from "../../wire/websocket-link.ts";
import { errorReply, refuseUpgrade } from "../http/error-replies.ts";
import type { DialIn, DialInCredentials, DialInTools } from "./dial-in-agent.ts";
import { OfferedFiles, originOf } from "./files/offered-files.ts";

export const LINK_PATH = "/openclaw/v1/ws/link";

export interface AcceptLinksOptions extends Omit<DialInTools, "files"> {
  /** Where agents reach this server, if that is not where they dialled. */
  readonly publicUrl: string | undefined;
  /** Path below which this server answers; empty for the root. */
  readonly mount?: string;
}

export interface AcceptedLinks {
  /** Takes an upgrade request of the HTTP server. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Answers a request for a file that was sent to an agent; undefined for any other. */
  answerFile(request: RequestHead): FullReply | undefined;
  /** Ends all links and takes no more. */
  close(): void;
}

const PING = { everyMs: 30_000, deadlineMs: 10_000 };
const GOING_AWAY = 1001;
/** Between two lines of the log about refused dials: an agent with wrong credentials tries again and again. */
const REFUSAL_LOG_INTERVAL_MS = 60_000;
/** What a stranger may put into the log. */
const MAX_LOGGED_ID_LENGTH = 64;

interface DialInEndpoint {
  readonly name: string;
  readonly credentials: DialInCredentials;
  readonly caller: LinkCaller;
  /** Where the agent reaches this server. */
  origin: string | undefined;
}

/** The agents are waited for from now on. */
export function acceptLinks(dialIns: ReadonlyMap<string, DialIn>, options: AcceptLinksOptions): AcceptedLinks {
  const { publicUrl, mount = "", ...tools } = options;
  const { clock, log } = tools;
  const files = new OfferedFiles(clock);
  const endpoints = [...dialIns].map(([name, dialIn]): DialInEndpoint => {
    const { credentials } = dialIn;
    const offers = files.offersTo(credentials.agentId, () => endpoint.origin);
    const endpoint: DialInEndpoint = {
      name,
      credentials,
      caller: dialIn.open({ ...tools, files: offers }),
      origin: publicUrl,
    };
    return endpoint;
  });
  const accept = createWebSocketAcceptor({ clock, ping: PING });
  let refusedAt = Number.NEGATIVE_INFINITY;
  let closed = false;

  function refuse(socket: Duplex, { status, why }: Refusal, headers: IncomingHttpHeaders): void {
    refuseUpgrade(socket, errorReply(status, REASONS[why]));
    if (clock.now() - refusedAt < REFUSAL_LOG_INTERVAL_MS) return;
    refusedAt = clock.now();
    const agentId = headerOf(headers, "x-agent-id")?.slice(0, MAX_LOGGED_ID_LENGTH);
    log.warn({ agentId, status, why }, "An agent that dialled in was refused; others are not logged for a minute.");
  }

  return {
    upgrade(request, socket, head) {
      if (request.url?.split("?", 1)[0] !== LINK_PATH) {
        refuseUpgrade(socket, errorReply(404, `There is nothing at this path. Agents dial ${LINK_PATH}.`));
        return;
      }
      if (closed) {
        refuseUpgrade(socket, errorReply(503, "The server is shutting down."));
        return;
      }
      const result = authenticate(request.headers, endpoints, clock.now());
      if ("status" in result) {
        refuse(socket, result, request.headers);
        return;
      }
      accept(request, socket, head, (link) => {
        const dialled = originOf(request);
        result.origin = publicUrl ?? (dialled && dialled + mount);
        void serveLink(result, link, log);
      });
    },
    answerFile: (request) => files.answer(request),
    close() {
      closed = true;
      files.close();
      for (const { caller } of endpoints) caller.close(GOING_AWAY, "The server is shutting down.");
    },
  };
}

async function serveLink({ caller, credentials, name }: DialInEndpoint, link: WebSocketLink, log: Log): Promise<void> {
  const about = { agent: name, agentId: credentials.agentId };
  log.info(about, "An agent has dialled in.");
  try {
    const { code, reason } = await caller.attach(link);
    log.info({ ...about, code, reason }, "The link of an agent has closed.");
  } catch (error) {
    log.error({ ...about, err: error }, "The link of an agent failed unexpectedly.");
  }
}

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

/** Every key is compared, so that how long this takes says nothing about which one was nearly right. */
function authenticate(
  headers: IncomingHttpHeaders,
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

/** By the signature or by the key, whichever the configuration has for the agent. */
function verifyCredentials(
  headers: IncomingHttpHeaders,
  credentials: DialInCredentials,
  now: number,
): SignatureVerdict {
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

function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}
