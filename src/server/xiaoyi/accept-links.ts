/** The endpoint that agents dial, in the platform's place. Who dials is judged before a WebSocket is made of it. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { LinkCaller, LinkTools } from "../../dialects/contract.ts";
import { sameSecret, verifySignature } from "../../dialects/xiaoyi/signature.ts";
import type { Log } from "../../model/ports.ts";
import { createWebSocketAcceptor, refuseUpgrade } from "../../wire/websocket-accept.ts";
import type { WebSocketLink } from "../../wire/websocket-link.ts";
import type { DialIn, DialInCredentials } from "./dial-in-agent.ts";

export const LINK_PATH = "/openclaw/v1/ws/link";

export type AcceptLinksOptions = Omit<LinkTools, "peerId" | "patienceMs">;

export interface AcceptedLinks {
  /** Takes an upgrade request of the HTTP server. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Ends all links and takes no more. */
  close(): void;
}

const PING = { everyMs: 30_000, deadlineMs: 10_000 };
const GOING_AWAY = 1001;
/** Between two lines of the log about refused dials: whoever has wrong credentials tries again and again. */
const REFUSALS_APART_MS = 60_000;
/** What a stranger may put into the log. */
const LONGEST_LOGGED_ID = 64;

interface Door {
  readonly name: string;
  readonly credentials: DialInCredentials;
  readonly caller: LinkCaller;
}

/** The agents are waited for from now on. */
export function acceptLinks(dialIns: ReadonlyMap<string, DialIn>, options: AcceptLinksOptions): AcceptedLinks {
  const { clock, log } = options;
  const doors = [...dialIns].map(([name, dialIn]): Door => {
    return { name, credentials: dialIn.credentials, caller: dialIn.open(options) };
  });
  const accept = createWebSocketAcceptor({ clock, ping: PING });
  let refusedAt = Number.NEGATIVE_INFINITY;
  let closed = false;

  function refuse(socket: Duplex, { status, why }: Refusal, headers: IncomingHttpHeaders): void {
    refuseUpgrade(socket, status);
    if (clock.now() - refusedAt < REFUSALS_APART_MS) return;
    refusedAt = clock.now();
    const agentId = headerOf(headers, "x-agent-id")?.slice(0, LONGEST_LOGGED_ID);
    log.warn({ agentId, status, why }, "An agent that dialled in was refused; others are not logged for a minute.");
  }

  return {
    upgrade(request, socket, head) {
      if (request.url?.split("?", 1)[0] !== LINK_PATH) {
        refuseUpgrade(socket, 404);
        return;
      }
      if (closed) {
        refuseUpgrade(socket, 503);
        return;
      }
      const judged = judge(request.headers, doors, clock.now());
      if ("status" in judged) refuse(socket, judged, request.headers);
      else accept(request, socket, head, (link) => void converse(judged, link, log));
    },
    close() {
      closed = true;
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
  readonly why: "credentials-missing" | "credentials-wrong" | "time-stale" | "other-agent";
}

/** Every key is compared, so that how long this takes says nothing about which one was nearly right. */
function judge(headers: IncomingHttpHeaders, doors: readonly Door[], now: number): Door | Refusal {
  const accessKey = headerOf(headers, "x-access-key");
  const agentId = headerOf(headers, "x-agent-id");
  const signed = { timestamp: headerOf(headers, "x-ts"), sign: headerOf(headers, "x-sign") };
  if (accessKey === undefined || agentId === undefined) return { status: 401, why: "credentials-missing" };
  const known = doors.filter(({ credentials }) => sameSecret(accessKey, credentials.ak));
  const verdicts = known.map((door) => ({ door, verdict: verifySignature(door.credentials.sk, signed, now) }));
  const good = verdicts.filter(({ verdict }) => verdict === "good");
  if (good.length === 0) {
    const stale = verdicts.some(({ verdict }) => verdict === "stale");
    return { status: 401, why: stale ? "time-stale" : "credentials-wrong" };
  }
  const own = good.find(({ door }) => door.credentials.agentId === agentId);
  return own?.door ?? { status: 403, why: "other-agent" };
}

function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}
