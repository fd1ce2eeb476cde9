import { IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { FullReply } from "../wire/exchange.ts";

const UPGRADE_ASKED = Symbol("upgrade asked");

/**
 * Once somebody takes upgrades, Node hands over every request that asks for one, to whatever protocol. Many clients ask
 * for HTTP/2 in passing (`Upgrade: h2c`) and expect an answer in HTTP/1.1.
 */
export class WebSocketOrPlainRequest extends IncomingMessage {
  declare [UPGRADE_ASKED]: boolean | null;

  /** Set and asked for by Node's server. */
  get upgrade(): boolean {
    return this[UPGRADE_ASKED] === true && this.headers.upgrade?.toLowerCase() === "websocket";
  }

  set upgrade(asked: boolean | null) {
    this[UPGRADE_ASKED] = asked;
  }
}

/** Answers an upgrade request instead of upgrading, and ends the connection, which Node no longer looks after. */
export function refuseUpgrade(socket: Duplex, { body = "", headers, status }: FullReply): void {
  socket.on("error", () => {});
  const fields = { ...headers, connection: "close", "content-length": Buffer.byteLength(body) };
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`.trimEnd(),
    ...Object.entries(fields).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}
