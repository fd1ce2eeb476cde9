/** Taking WebSockets from those who dial. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { MAX_MESSAGE_BYTES, toLink, type WebSocketLink, type WebSocketLinkOptions } from "./websocket-link.ts";

/** Takes one upgrade request of an HTTP server. What is no proper request is refused, and no link comes of it. */
export type AcceptWebSocket = (
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  onLink: (link: WebSocketLink) => void,
) => void;

export function createWebSocketAcceptor(options: WebSocketLinkOptions): AcceptWebSocket {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
    autoPong: false,
  });
  return (request, socket, head, onLink) => {
    server.handleUpgrade(request, socket, head, (webSocket) => onLink(toLink(webSocket, socket, options)));
  };
}
