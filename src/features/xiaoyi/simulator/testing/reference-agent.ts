import { WebSocket } from "ws";
import { type Fields, fieldsOf } from "../../../../core/model/json.ts";
import type { RegisteredAgent } from "../authentication.ts";
import { parseObject, textOf } from "../json.ts";
import { artifact, messageText, signedHeaders, status } from "./raw-agent.ts";

/** Faults that only show in the course of a conversation. */
export type Flaw =
  | "answers-duplicates"
  | "knows-duplicates-by-message-ids"
  | "takes-replies-for-duplicates"
  | "loses-frames"
  | "repeats-frames"
  | "knows-no-aliases"
  | "cannot-stop"
  | "stops-for-the-next-only"
  | "forgets-nothing"
  | "remembers-by-device"
  | "sends-long-frames"
  | "leaves-answers-open"
  | "hurries"
  | "sends-deltas"
  | "stays-away"
  | "hides-questions"
  | "ignores-envelopes";

/** Where an agent connects, and its credentials; a simulator has this shape. */
interface Place {
  readonly agent: RegisteredAgent;
  readonly linkUrls: readonly string[];
}

interface Turn {
  readonly request: Fields;
  stopped: boolean;
}

const STEP_MS = 2;
/** Maximum characters in a frame. */
const MAX_FRAME_TEXT = 4000;
/** Delay between a long body and the final frame. */
const PAUSE_MS = 300;

/**
 * A small agent without faults, unless configured otherwise: it echoes texts, in several updates if they begin with
 * `slow`, asks a question about those that begin with `ask`, and answers `recall` with the previous message of the
 * conversation.
 */
export class ReferenceAgent {
  readonly #place: Place;
  readonly #flaws: ReadonlySet<Flaw>;
  /** Called when it leaves out something that is waited for. */
  onOmission = (): void => {};
  readonly #inFlight = new Set<string>();
  /** App session → conversation. */
  readonly #aliases = new Map<string, string>();
  /** Conversation → running turn. */
  readonly #turns = new Map<string, Turn>();
  /** Conversation → last message received. */
  readonly #memory = new Map<string, string>();
  /** Conversations in which the agent has asked a question. */
  readonly #asking = new Set<string>();
  readonly #unsent: string[] = [];
  #socket: WebSocket | undefined;
  #stopped = false;
  #artifacts = 0;

  constructor(place: Place, ...flaws: readonly Flaw[]) {
    this.#place = place;
    this.#flaws = new Set(flaws);
    this.#dial();
  }

  stop(): void {
    this.#stopped = true;
    this.#socket?.terminate();
  }

  #dial(): void {
    const [url = ""] = this.#place.linkUrls;
    const socket = new WebSocket(url, { headers: signedHeaders(this.#place.agent, Date.now()) });
    this.#socket = socket;
    socket.on("open", () => {
      socket.send(JSON.stringify({ msgType: "clawd_bot_init", agentId: this.#place.agent.agentId }));
      for (const text of this.#unsent.splice(0)) socket.send(text);
    });
    socket.on("message", (data) => this.#receive(parseObject(data.toString()) ?? {}));
    socket.on("error", () => {});
    socket.on("close", () => {
      if (this.#flaws.has("stays-away")) this.onOmission();
      else if (!this.#stopped) this.#dial();
    });
  }

  #receive(frame: Fields): void {
    if (frame.msgDetail !== undefined && this.#flaws.has("ignores-envelopes")) {
      this.onOmission();
      return;
    }
    const request = typeof frame.msgDetail === "string" ? (parseObject(frame.msgDetail) ?? {}) : frame;
    const params = fieldsOf(request.params);
    const method = String(request.method ?? request.action);
    if (method === "message/stream") this.#message(request);
    else {
      const session = String(request.sessionId ?? params.sessionId);
      const known = this.#flaws.has("knows-no-aliases") ? session : (this.#aliases.get(session) ?? session);
      if (/cancel/.test(method)) this.#cancel(request, known);
      else {
        if (!this.#flaws.has("forgets-nothing")) this.#memory.delete(known);
        this.#control(request, known, { status: { state: "cleared" } });
      }
    }
  }

  #message(request: Fields): void {
    const { id: taskId, message, sessionId } = fieldsOf(request.params);
    const conversation = String(sessionId);
    this.#aliases.set(String(request.sessionId), conversation);
    const content = this.#flaws.has("takes-replies-for-duplicates") ? "" : JSON.stringify(fieldsOf(message).parts);
    const key = this.#flaws.has("knows-duplicates-by-message-ids")
      ? (textOf(fieldsOf(message).messageId) ?? `unknown ${++this.#artifacts}`)
      : `${conversation} ${String(taskId)} ${content}`;
    const isDuplicate = this.#inFlight.has(key);
    if (isDuplicate && this.#flaws.has("takes-replies-for-duplicates")) this.onOmission();
    if (isDuplicate && !this.#flaws.has("answers-duplicates")) return;
    this.#inFlight.add(key);
    const older = this.#turns.get(conversation);
    if (older !== undefined && fieldsOf(older.request.params).id !== taskId) older.stopped = true;
    const turn = { request, stopped: false };
    this.#turns.set(conversation, turn);
    const isReply = this.#asking.delete(conversation);
    void this.#answer(turn, conversation, isReply).finally(() => {
      if (!this.#flaws.has("takes-replies-for-duplicates")) this.#inFlight.delete(key);
    });
  }

  async #answer(turn: Turn, conversation: string, isReply: boolean): Promise<void> {
    const received = messageText(turn.request);
    const text = this.#recall(turn.request, conversation, received);
    this.#respond(turn, status("working"));
    await pause(STEP_MS);
    if (text.startsWith("ask") && !isReply) {
      this.#asking.add(conversation);
      if (!this.#flaws.has("hides-questions")) this.#respond(turn, artifact(this.#artifactId(), "Really?"));
      this.#respond(turn, status("input-required"));
      return;
    }
    const chunks = text.startsWith("slow") ? text.split(/(?<= )/) : [text];
    const fixed = this.#artifactId();
    for (const [index, chunk] of chunks.entries()) {
      if (this.#flaws.has("sends-deltas")) this.#respond(turn, artifact(fixed, chunk, { append: index > 0 }));
      else this.#sendText(turn, chunks.slice(0, index + 1).join(""));
      await pause(STEP_MS);
    }
    if (text.length > 200 && !this.#flaws.has("hurries")) await pause(PAUSE_MS);
    this.#respond(turn, status("completed", { final: !this.#flaws.has("leaves-answers-open") }));
    if (this.#flaws.has("leaves-answers-open")) this.onOmission();
  }

  /** The text to answer with: the received one, or for `recall` the one before it. */
  #recall({ deviceId }: Fields, conversation: string, received: string): string {
    const place = this.#flaws.has("remembers-by-device") ? String(deviceId) : conversation;
    if (received === "recall") return this.#memory.get(place) ?? "nothing";
    this.#memory.set(place, received);
    return received;
  }

  /** Sends all of the text, in as many frames as necessary. */
  #sendText(turn: Turn, text: string): void {
    const limit = this.#flaws.has("sends-long-frames") ? text.length : MAX_FRAME_TEXT;
    for (let at = 0; at < text.length; at += limit) {
      this.#respond(turn, artifact(this.#artifactId(), text.slice(at, at + limit), { append: at > 0 }));
    }
  }

  #cancel(request: Fields, conversation: string): void {
    const turn = this.#turns.get(conversation);
    const state = turn === undefined ? "unknown" : "canceled";
    const keepsRunning = this.#flaws.has("cannot-stop") || this.#flaws.has("stops-for-the-next-only");
    if (turn !== undefined && !keepsRunning) turn.stopped = true;
    this.#control(request, conversation, { id: request.id, status: { state } });
  }

  #control(request: Fields, sessionId: string, result: Fields): void {
    this.#send(sessionId, textOf(request.id) ?? "", { jsonrpc: "2.0", id: request.id, result });
  }

  #respond(turn: Turn, result: Fields): void {
    if (turn.stopped && !this.#flaws.has("cannot-stop")) return;
    const { id: taskId, sessionId } = fieldsOf(turn.request.params);
    const detail = {
      jsonrpc: "2.0",
      id: turn.request.id,
      result: { taskId, ...result },
      error: { code: 0, message: "" },
    };
    this.#send(String(sessionId), String(taskId), detail);
  }

  #send(sessionId: string, taskId: string, detail: Fields): void {
    const { agentId } = this.#place.agent;
    const text = JSON.stringify({
      msgType: "agent_response",
      agentId,
      sessionId,
      taskId,
      msgDetail: JSON.stringify(detail),
    });
    const isOpen = this.#socket?.readyState === WebSocket.OPEN;
    if (isOpen) this.#socket?.send(text);
    const repeats = this.#flaws.has("repeats-frames");
    // A pong confirms that the frames arrived.
    if (isOpen && repeats) this.#socket?.ping();
    if ((!isOpen && !this.#flaws.has("loses-frames")) || repeats) this.#unsent.push(text);
  }

  #artifactId(): string {
    return `artifact-${++this.#artifacts}`;
  }
}

const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));
