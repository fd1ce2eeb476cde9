/** The endpoint that agents dial, in the platform's place. Who dials is judged before a WebSocket is made of it. */

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { LinkCaller } from "../../dialects/contract.ts";
import {
  SIGNATURE_WINDOW_MS,
  type SignatureVerdict,
  sameSecret,
  verifySignature,
} from "../../dialects/xiaoyi/signature.ts";
import type { Log } from "../../model/ports.ts";
import type { FullReply, RequestHead } from "../../wire/exchange.ts";
import { createWebSocketAcceptor, type WebSocketLink } from "../../wire/websocket-link.ts";
import { errorReply, refuseUpgrade } from "../http/error-replies.ts";
import type { DialIn, DialInCredentials, DialInTools } from "./dial-in-agent.ts";
import { OfferedFiles, originOf } from "./offered-files.ts";

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
const REFUSALS_APART_MS = 60_000;
/** What a stranger may put into the log. */
const MAX_LOGGED_ID = 64;

interface Door {
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
  const doors = [...dialIns].map(([name, dialIn]): Door => {
    const { credentials } = dialIn;
    const offers = files.offersTo(credentials.agentId, () => door.origin);
    const door: Door = { name, credentials, caller: dialIn.open({ ...tools, files: offers }), origin: publicUrl };
    return door;
  });
  const accept = createWebSocketAcceptor({ clock, ping: PING });
  let refusedAt = Number.NEGATIVE_INFINITY;
  let closed = false;

  function refuse(socket: Duplex, { status, why }: Refusal, headers: IncomingHttpHeaders): void {
    refuseUpgrade(socket, errorReply(status, REASONS[why]));
    if (clock.now() - refusedAt < REFUSALS_APART_MS) return;
    refusedAt = clock.now();
    const agentId = headerOf(headers, "x-agent-id")?.slice(0, MAX_LOGGED_ID);
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
      const judged = judge(request.headers, doors, clock.now());
      if ("status" in judged) {
        refuse(socket, judged, request.headers);
        return;
      }
      accept(request, socket, head, (link) => {
        const dialled = originOf(request);
        judged.origin = publicUrl ?? (dialled && dialled + mount);
        void converse(judged, link, log);
      });
    },
    answerFile: (request) => files.answer(request),
    close() {
      closed = true;
      files.close();
      for (const { caller } of doors) caller.close(GOING_AWAY, "The server is shutting down.");
    },
  };
}

async function converse({ caller, credentials, name }: Door, link: WebSocketLink, log: Log): Promise<void> {
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
function judge(headers: IncomingHttpHeaders, doors: readonly Door[], now: number): Door | Refusal {
  const agentId = headerOf(headers, "x-agent-id");
  const given = headerOf(headers, "x-access-key") ?? headerOf(headers, "x-api-key");
  if (given === undefined || agentId === undefined) return { status: 401, why: "credentials-missing" };
  const verdicts = doors.map((door) => ({ door, verdict: verdictOn(headers, door.credentials, now) }));
  const good = verdicts.filter(({ verdict }) => verdict === "good");
  if (good.length === 0) {
    const stale = verdicts.some(({ verdict }) => verdict === "stale");
    return { status: 401, why: stale ? "time-stale" : "credentials-wrong" };
  }
  const own = good.find(({ door }) => door.credentials.agentId === agentId);
  return own?.door ?? { status: 403, why: "other-agent" };
}

/** By the signature or by the key, whichever the configuration has for the agent. */
function verdictOn(headers: IncomingHttpHeaders, credentials: DialInCredentials, now: number): SignatureVerdict {
  const { ak, apiKey, sk, uid } = credentials;
  const accessKey = headerOf(headers, "x-access-key") ?? "";
  const signed = { timestamp: headerOf(headers, "x-ts"), sign: headerOf(headers, "x-sign") };
  const verdict =
    ak !== undefined && sk !== undefined && sameSecret(accessKey, ak) ? verifySignature(sk, signed, now) : "wrong";
  if (uid === undefined || apiKey === undefined) return verdict;
  const isUser = sameSecret(headerOf(headers, "x-uid") ?? "", uid);
  const hasKey = sameSecret(headerOf(headers, "x-api-key") ?? "", apiKey);
  return isUser && hasKey ? "good" : verdict;
}

function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}
