import { WebSocket } from "ws";
import { type Fields, fieldsOf } from "../../../../core/model/json.ts";
import { type RegisteredAgent, sign } from "../authentication.ts";
import type { Simulator } from "../simulator.ts";
import { ChangeNotifier } from "../waiting.ts";

interface Closure {
  readonly code: number;
  readonly reason: string;
}

/** Signed headers of an agent, built by hand. */
export function signedHeaders(agent: RegisteredAgent, now: number): Record<string, string> {
  const ts = String(now);
  return {
    "x-access-key": agent.accessKey,
    "x-sign": sign(agent.secretKey, ts),
    "x-ts": ts,
    "x-agent-id": agent.agentId,
  };
}

/** The status with which an upgrade was refused, or undefined if it was accepted. */
export async function tryUpgrade(url: string, headers: Record<string, string>): Promise<number | undefined> {
  const socket = new WebSocket(url, { headers });
  return new Promise((resolve, reject) => {
    socket.once("open", () => {
      socket.terminate();
      resolve(undefined);
    });
    socket.once("unexpected-response", (_request, response) => {
      response.resume();
      socket.terminate();
      resolve(response.statusCode);
    });
    socket.once("error", reject);
  });
}

/** A peer that sends exactly what a test specifies, valid or not. */
export class RawAgent {
  readonly frames: Fields[] = [];
  readonly texts: string[] = [];
  readonly socket: WebSocket;
  readonly agentId: string;
  closure: Closure | undefined;
  pongs = 0;
  readonly #changes = new ChangeNotifier();
  #read = 0;

  private constructor(socket: WebSocket, agentId: string) {
    this.socket = socket;
    this.agentId = agentId;
    socket.on("message", (data) => {
      this.texts.push(data.toString());
      this.frames.push(JSON.parse(data.toString()) as Fields);
      this.#changes.notify();
    });
    socket.on("pong", () => {
      this.pongs++;
      this.#changes.notify();
    });
    socket.on("error", () => {});
    socket.on("close", (code, reason) => {
      this.closure = { code, reason: reason.toString() };
      this.#changes.notify();
    });
  }

  /** Connects without sending anything. */
  static async dial(simulator: Simulator, now: number, host = 0): Promise<RawAgent> {
    const { agent } = simulator;
    const socket = new WebSocket(simulator.linkUrls[host] ?? "", { headers: signedHeaders(agent, now) });
    const raw = new RawAgent(socket, agent.agentId);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    });
    return raw;
  }

  static async join(simulator: Simulator, now: number, host = 0): Promise<RawAgent> {
    const raw = await RawAgent.dial(simulator, now, host);
    raw.init();
    await simulator.link.ready(raw.agentId, host);
    return raw;
  }

  init(): void {
    this.send({ msgType: "clawd_bot_init", agentId: this.agentId });
  }

  send(frame: Fields | string): void {
    this.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  /** The next frame that no test has read yet. */
  async next(): Promise<Fields> {
    const index = this.#read++;
    await this.until(() => this.frames.length > index);
    return this.frames[index] ?? {};
  }

  until(isSo: () => boolean): Promise<void> {
    return this.#changes.waitUntil(isSo);
  }

  async closed(): Promise<Closure> {
    await this.until(() => this.closure !== undefined);
    return this.closure ?? { code: 0, reason: "" };
  }

  /** Answers a message with a result, in the envelope of the link. */
  respond(request: Fields, result: Fields, extra: Fields = {}): void {
    const { id, params } = request;
    const { id: taskId, sessionId } = fieldsOf(params);
    const detail = { jsonrpc: "2.0", id, result: { taskId, ...result }, ...extra };
    this.send({
      msgType: "agent_response",
      agentId: this.agentId,
      sessionId,
      taskId,
      msgDetail: JSON.stringify(detail),
    });
  }

  /** Like `respond`, with any member overridden. */
  envelope(request: Fields, changes: Fields): void {
    const { id: taskId, sessionId } = fieldsOf(request.params);
    this.send({ msgType: "agent_response", agentId: this.agentId, sessionId, taskId, ...changes });
  }

  control(request: Fields, result: Fields): void {
    const { id, sessionId } = request;
    const detail = { jsonrpc: "2.0", id, result };
    this.send({
      msgType: "agent_response",
      agentId: this.agentId,
      sessionId,
      taskId: id,
      msgDetail: JSON.stringify(detail),
    });
  }
}

export const status = (state: string, more: Fields = {}): Fields => ({
  kind: "status-update",
  final: false,
  status: { state },
  ...more,
});

export const artifact = (artifactId: string, text: string, more: Fields = {}): Fields => ({
  kind: "artifact-update",
  append: false,
  lastChunk: true,
  final: false,
  artifact: { artifactId, parts: [{ kind: "text", text }] },
  ...more,
});

export const messageText = (request: Fields): string => {
  const { parts } = fieldsOf(fieldsOf(request.params).message);
  return (parts as readonly Fields[]).map(({ text }) => text ?? "").join("");
};
