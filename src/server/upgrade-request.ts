import { IncomingMessage } from "node:http";

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
