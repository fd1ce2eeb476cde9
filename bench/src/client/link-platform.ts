import { createHmac } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { type LinkCredentials, linkCredentials } from "../contestants/protocol.ts";

interface Waiting {
  frames: number;
  /** Text that the response must contain before it is complete. */
  readonly words: string;
  heard: boolean;
  /** Content that identifies the last frame to wait for. */
  readonly mark: string;
  readonly resolve: (frames: number) => void;
  readonly reject: (error: Error) => void;
}

const host = "127.0.0.1";
const path = "/openclaw/v1/ws/link";
/** A response is a JSON string inside an envelope: quotes in it are escaped, those of the envelope are not. */
const finalMark = '\\"final\\":true';
const taskMark = '"taskId":"';

/**
 * The part of Xiaoyi's platform that a load needs: it accepts one link of one agent, sends messages and counts the
 * response frames. Frames are searched, not parsed, so that the platform costs little compared to the agent.
 */
export class LinkPlatform {
  readonly #server: WebSocketServer;
  readonly #waiting = new Map<string, Waiting>();
  #link: WebSocket | undefined;
  #introduced = false;
  #onIntroduced = () => {};

  private constructor(server: WebSocketServer) {
    this.#server = server;
    server.on("connection", (link) => this.#take(link));
  }

  static async open(): Promise<LinkPlatform> {
    const verifyClient = ({ req }: { req: IncomingMessage }) => isSigned(req.headers, linkCredentials);
    const server = new WebSocketServer({ host, port: 0, path, verifyClient, perMessageDeflate: false });
    await once(server, "listening");
    return new LinkPlatform(server);
  }

  get url(): string {
    return `ws://${host}:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  /** Resolves when an agent has connected and identified itself. */
  async linked(): Promise<void> {
    if (this.#introduced) return;
    await new Promise<void>((resolve) => {
      this.#onIntroduced = resolve;
    });
  }

  /** Sends a message to the agent; resolves with the number of frames when the response has ended. */
  say(session: string, task: string, text: string): Promise<number> {
    return this.#send(messageFrame(session, task, text), task, { words: text, mark: finalMark });
  }

  /** Sends a message to the agent; resolves when its text was echoed, although the response continues. */
  begin(session: string, task: string, text: string): Promise<number> {
    return this.#send(messageFrame(session, task, text), task, { words: text, mark: text });
  }

  /** Cancels a task; resolves when its response has ended. */
  cancel(session: string, task: string): Promise<number> {
    return this.#send(cancelFrame(session, task), task, { words: "", mark: finalMark });
  }

  close(): void {
    this.#link?.terminate();
    this.#server.close();
  }

  #send(frame: string, task: string, expected: Pick<Waiting, "mark" | "words">): Promise<number> {
    return new Promise((resolve, reject) => {
      if (this.#link === undefined) return reject(new Error("there is no link"));
      this.#waiting.set(task, { ...expected, frames: 0, heard: false, resolve, reject });
      this.#link.send(frame);
    });
  }

  #take(link: WebSocket): void {
    this.#link = link;
    link.on("message", (data: Buffer) => this.#receive(data.toString("latin1")));
    link.on("close", () => {
      this.#link = undefined;
      this.#introduced = false;
      for (const { reject } of this.#waiting.values()) reject(new Error("the agent closed the link"));
      this.#waiting.clear();
    });
  }

  #receive(frame: string): void {
    const start = frame.indexOf(taskMark);
    if (start < 0) {
      if (frame.includes("clawd_bot_init")) this.#meet();
      return;
    }
    const task = frame.slice(start + taskMark.length, frame.indexOf('"', start + taskMark.length));
    const waiting = this.#waiting.get(task);
    if (waiting === undefined) return;
    waiting.frames++;
    waiting.heard ||= frame.includes(waiting.words);
    if (!frame.includes(waiting.mark)) return;
    this.#waiting.delete(task);
    if (waiting.heard) waiting.resolve(waiting.frames);
    else waiting.reject(new Error(`an answer ended without its words: ${frame.slice(0, 500)}`));
  }

  #meet(): void {
    this.#introduced = true;
    this.#onIntroduced();
  }
}

function isSigned(headers: IncomingMessage["headers"], { agentId, ak, sk }: LinkCredentials): boolean {
  const time = String(headers["x-ts"]);
  const signature = createHmac("sha256", sk).update(time).digest("base64");
  return headers["x-agent-id"] === agentId && headers["x-access-key"] === ak && headers["x-sign"] === signature;
}

function messageFrame(session: string, task: string, text: string): string {
  const message = { kind: "message", messageId: `m-${task}`, role: "user", parts: [{ kind: "text", text }] };
  return requestFrame(session, task, "message/stream", { id: task, sessionId: session, message });
}

function cancelFrame(session: string, task: string): string {
  return requestFrame(session, task, "tasks/cancel", { id: task, sessionId: session });
}

function requestFrame(session: string, task: string, method: string, params: object): string {
  const { agentId } = linkCredentials;
  const names = { agentId, deviceId: "device", conversationId: session, sessionId: `app-${session}` };
  return JSON.stringify({ jsonrpc: "2.0", id: `r-${task}`, method, ...names, params });
}
