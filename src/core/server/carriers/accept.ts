/** The endpoints that peers dial. Requests are checked before the upgrade to WebSocket. */

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { AcceptedConnections, ConnectionRefusal, Conversation } from "../../dialects/carrier.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Clock, Log } from "../../model/ports.ts";
import { canParseUrl } from "../../model/url.ts";
import { GOING_AWAY } from "../../wire/connection.ts";
import type { Link } from "../../wire/link.ts";
import { createWebSocketAcceptor } from "../../wire/websocket-link.ts";
import type { Gate } from "../access/gate.ts";
import { errorReply, refuseUpgrade } from "../http/error-replies.ts";
import type { UpgradeHandler } from "../http/node-http.ts";

export interface AcceptorOptions {
  readonly gate: Pick<Gate, "checkAddress" | "refuse">;
  readonly clock: Clock;
  readonly log: Log;
  readonly endpoint: {
    /** URL where peers reach this server, if it differs from the one they dialled. */
    readonly publicUrl: string | undefined;
    /** Path prefix of this server; empty for the root. */
    readonly mount: string;
  };
}

interface Acceptor {
  readonly upgrade: UpgradeHandler;
  /** Closes all connections and accepts no more. */
  close(): void;
}

const PING = { everyMs: 30_000, deadlineMs: 10_000 };
/** Interval between log lines about refused requests: a peer with wrong credentials retries forever. */
const REFUSAL_LOG_INTERVAL_MS = 60_000;

export function createAcceptor(
  accepting: readonly (AcceptedConnections & { readonly name: string; readonly dialect: string })[],
  { clock, endpoint, gate, log }: AcceptorOptions,
): Acceptor {
  const accept = createWebSocketAcceptor({ clock, ping: PING });
  const open = new Set<Link>();
  const paths = accepting.map(({ path }) => path).join(", ");
  let refusedAt = Number.NEGATIVE_INFINITY;
  let closed = false;

  function refuse(socket: Duplex, { about, message, retryAfter, status }: ConnectionRefusal, carrier: string): void {
    refuseUpgrade(socket, retryAfter === undefined ? errorReply(status, message) : tooMany(message, retryAfter));
    if (clock.now() - refusedAt < REFUSAL_LOG_INTERVAL_MS) return;
    refusedAt = clock.now();
    log.warn({ carrier, ...about, status }, "A connection was refused; others are not logged for a minute.");
  }

  async function converse({ about, converse }: Conversation<Link>, link: Link): Promise<void> {
    open.add(link);
    log.info(about, "Connection accepted.");
    try {
      const { code, reason } = await converse(link);
      log.info({ ...about, code, reason }, "Connection closed.");
    } catch (error) {
      log.error({ ...about, err: error }, "An accepted connection failed unexpectedly.");
      link.close();
    } finally {
      open.delete(link);
    }
  }

  return {
    upgrade(request, socket, head, { recognise, remoteAddress }) {
      const path = request.url?.split("?", 1)[0];
      const found = accepting.find((one) => one.path === path);
      if (found === undefined) {
        refuseUpgrade(socket, errorReply(404, `There is nothing at this path. Agents dial ${paths}.`));
        return;
      }
      if (closed) {
        refuseUpgrade(socket, errorReply(503, "The server is shutting down."));
        return;
      }
      const limited = gate.checkAddress(remoteAddress, undefined, found.dialect);
      if (limited !== undefined) {
        refuseUpgrade(socket, tooMany(limited.message, limited.retryAfter));
        return;
      }
      const { mount, publicUrl } = endpoint;
      const dialled = originOf(request);
      const result = found.admit({
        headers: request.headers,
        baseUrl: publicUrl ?? (dialled === undefined ? undefined : dialled + mount),
      });
      if ("status" in result) {
        if (result.status !== 429) {
          const code = result.status === 401 ? "UNAUTHENTICATED" : "PERMISSION_DENIED";
          gate.refuse(new ProtocolError(code, result.message), remoteAddress, undefined, found.dialect);
        }
        refuse(socket, result, found.name);
      } else {
        recognise();
        accept(request, socket, head, (link) => void converse(result, link));
      }
    },
    close() {
      closed = true;
      for (const link of open) link.close(GOING_AWAY, "The server is shutting down.");
    },
  };
}

function tooMany(message: string, retryAfter = 1) {
  return errorReply(429, message, { "retry-after": String(retryAfter) });
}

const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/** Where a peer reaches this server: at the name that it dialled, else at the address of the socket. */
function originOf({ headers: { host }, socket }: IncomingMessage): string | undefined {
  const scheme = "encrypted" in socket && socket.encrypted === true ? "https" : "http";
  const named = `${scheme}://${host}`;
  if (host !== undefined && HOST.test(host) && canParseUrl(named)) return named;
  const { localAddress, localPort } = socket;
  if (localAddress === undefined || localPort === undefined) return undefined;
  const address = localAddress.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
  return `${scheme}://${address.includes(":") ? `[${address}]` : address}:${localPort}`;
}
