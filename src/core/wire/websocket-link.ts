/** A WebSocket as a link, in either direction. */

import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocket, WebSocketServer } from "ws";
import type { Clock } from "../model/ports.ts";
import { ABNORMAL_CLOSURE, type Closure, NORMAL_CLOSURE } from "./connection.ts";
import { createDeferred, type Deferred, type Link, LinkError, LinkInbox } from "./link.ts";

export interface WebSocketLinkOptions {
  readonly clock: Clock;
  /** Asks this often whether the other side is still there, and closes the link if it does not answer in time. */
  readonly ping?: { readonly everyMs: number; readonly deadlineMs: number };
  /** Bytes that have not left from which on `send` answers with a promise. */
  readonly highWaterBytes?: number;
  /** Bytes that have not left at which `send` refuses. */
  readonly maxBufferedBytes?: number;
  /** Messages that have not been read at which the other side is made to wait. */
  readonly maxUnread?: number;
}

export interface WebSocketLink extends Link {
  /** Ends the connection immediately, without a close frame. */
  terminate(reason: string): void;
}

/** One message, in either direction: more ends the link with code 1009. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

const MESSAGE_TOO_BIG = 1009;
/** How long the other side may take to close, too. */
const CLOSE_TIMEOUT_MS = 2_000;

/**
 * `socket` is open, has had no listeners, and leaves pings to be answered here (`autoPong: false`); `carrier` is what it
 * runs on.
 */
export function toWebSocketLink(socket: WebSocket, carrier: Duplex, options: WebSocketLinkOptions): WebSocketLink {
  const { clock, ping, highWaterBytes = 256 * 1024, maxBufferedBytes = 64 * 1024 * 1024, maxUnread = 256 } = options;
  let ownClosure: Closure | undefined;
  let room: Deferred | undefined;
  let gathering = false;
  let pongUnderWay = false;
  let unansweredPing: Buffer | undefined;
  /** By what was sent with them, in order: who asked for a pong. */
  const awaitedPongs = new Map<string, (received: boolean) => void>();
  const timers = new Set<() => void>();
  const inbox = new LinkInbox({
    onRead() {
      if (socket.isPaused && inbox.size < maxUnread / 2) socket.resume();
    },
    onReaderDone: () => close(),
  });

  function later(milliseconds: number, run: () => void): () => void {
    const cancel = clock.after(milliseconds, () => {
      timers.delete(cancel);
      run();
    });
    timers.add(cancel);
    return () => {
      timers.delete(cancel);
      cancel();
    };
  }

  const onFlushed = (): void => {
    if (room === undefined || socket.bufferedAmount >= highWaterBytes) return;
    room.resolve();
    room = undefined;
  };

  /**
   * What is sent at one time leaves in one piece: handing it to the operating system costs more than all else that is
   * done about a frame. It leaves before the next event: the end of the link must not be noticed in between.
   */
  function gather(): void {
    if (gathering) return;
    gathering = true;
    carrier.cork();
    process.nextTick(() => {
      gathering = false;
      carrier.uncork();
    });
  }

  function send(text: string): void | Promise<void> {
    if (socket.readyState !== WebSocket.OPEN) throw new LinkError("closed");
    if (socket.bufferedAmount >= maxBufferedBytes) throw new LinkError("buffer-full");
    gather();
    socket.send(text, onFlushed);
    if (socket.bufferedAmount < highWaterBytes) return;
    room ??= createDeferred();
    return room.promise;
  }

  function received(): Promise<boolean> {
    if (socket.readyState !== WebSocket.OPEN) return Promise.resolve(false);
    // Not to be guessed: a side that reads nothing could answer all the same, and would never be noticed.
    const payload = randomUUID();
    socket.ping(payload);
    return new Promise((answer) => {
      awaitedPongs.set(payload, answer);
    });
  }

  /** A pong stands for earlier pings too (RFC 6455 §5.5.3). */
  function onPong(data: Buffer): void {
    const last = data.toString("latin1");
    if (!awaitedPongs.has(last)) return;
    for (const [payload, answer] of awaitedPongs) {
      awaitedPongs.delete(payload);
      answer(true);
      if (payload === last) return;
    }
  }

  /**
   * One pong leaves at a time, and only the newest ping is answered after it (RFC 6455 §5.5.3): pongs to a side that
   * sends pings and reads nothing would pile up otherwise.
   */
  function onPing(data: Buffer): void {
    if (pongUnderWay) {
      unansweredPing = data;
      return;
    }
    if (socket.readyState !== WebSocket.OPEN) return;
    pongUnderWay = true;
    socket.pong(data, undefined, () => {
      pongUnderWay = false;
      const next = unansweredPing;
      unansweredPing = undefined;
      if (next !== undefined) onPing(next);
    });
  }

  function terminate(reason: string): void {
    ownClosure ??= { code: ABNORMAL_CLOSURE, reason };
    inbox.clear();
    socket.terminate();
  }

  function close(code = NORMAL_CLOSURE, reason = ""): void {
    inbox.clear();
    if (socket.readyState !== WebSocket.OPEN || ownClosure !== undefined) return;
    ownClosure = { code, reason };
    // A paused socket would not receive the other side's close frame.
    socket.resume();
    socket.close(code, reason);
    later(CLOSE_TIMEOUT_MS, () => socket.terminate());
  }

  function pingLater(everyMs: number, deadlineMs: number): void {
    later(everyMs, () => {
      const cancel = later(deadlineMs, () => terminate("The other side did not answer a ping in time."));
      void received().then((alive) => {
        cancel();
        if (alive) pingLater(everyMs, deadlineMs);
      });
    });
  }

  socket.on("message", (data: Buffer) => {
    if (ownClosure !== undefined) return;
    inbox.push(data.toString());
    if (inbox.size >= maxUnread) socket.pause();
  });
  socket.on("ping", onPing);
  socket.on("pong", onPong);
  socket.on("error", (error: Error & { readonly code?: string }) => {
    const code = error.code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH" ? MESSAGE_TOO_BIG : ABNORMAL_CLOSURE;
    ownClosure ??= { code, reason: error.message };
  });
  carrier.on("error", (error: Error) => {
    ownClosure ??= { code: ABNORMAL_CLOSURE, reason: error.message };
  });
  const closed = new Promise<Closure>((resolve) => {
    socket.on("close", (code, reason) => {
      for (const cancel of timers) cancel();
      for (const answer of awaitedPongs.values()) answer(false);
      awaitedPongs.clear();
      room?.resolve();
      room = undefined;
      inbox.close();
      resolve(ownClosure ?? { code, reason: reason.toString() });
    });
  });
  if (ping !== undefined) pingLater(ping.everyMs, ping.deadlineMs);
  return { send, messages: inbox.messages, received, close, closed, terminate };
}

/** Accepts one upgrade request of an HTTP server. An invalid request is rejected, without a link. */
type AcceptWebSocket = (
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
    server.handleUpgrade(request, socket, head, (webSocket) => onLink(toWebSocketLink(webSocket, socket, options)));
  };
}
