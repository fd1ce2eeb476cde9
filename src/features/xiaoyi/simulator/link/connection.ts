import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { Fields } from "../../../../core/model/json.ts";
import type { Clock } from "../../../../core/model/ports.ts";
import { parseObject } from "../json.ts";
import type { PlatformTraits } from "../options.ts";
import type { Report } from "../violations.ts";
import { watchSilence } from "../waiting.ts";

export interface AgentSocket {
  readonly webSocket: WebSocket;
  /** The stream underneath the WebSocket. */
  readonly stream: Duplex;
}

export interface ConnectionRules extends Pick<PlatformTraits, "beforeInit" | "initMs" | "echoHeartbeat" | "idleMs"> {
  readonly clock: Clock;
  readonly report: Report;
}

interface ConnectionEvents {
  readonly onReady: () => void;
  readonly onResponse: (connection: AgentConnection, envelope: Fields) => void;
  readonly onClosed: (connection: AgentConnection, code: number) => void;
}

const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;

/** One WebSocket of an agent, from upgrade to close. */
export class AgentConnection {
  readonly agentId: string;
  readonly hostIndex: number;
  /** The init frame was received. */
  ready = false;
  /** Pings answered so far: they confirm to the agent that earlier frames arrived. */
  answeredPings = 0;
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  readonly #rules: ConnectionRules;
  readonly #events: ConnectionEvents;
  #closing = false;
  #frozen = false;
  #lastReceivedAt: number;
  readonly #stopWatching: () => void;
  readonly #stopExpecting: () => void;

  constructor(
    identity: { readonly agentId: string; readonly hostIndex: number },
    socket: AgentSocket,
    rules: ConnectionRules,
    events: ConnectionEvents,
  ) {
    this.agentId = identity.agentId;
    this.hostIndex = identity.hostIndex;
    this.#socket = socket.webSocket;
    this.#stream = socket.stream;
    this.#rules = rules;
    this.#events = events;
    this.#lastReceivedAt = rules.clock.now();
    this.#stopWatching = watchSilence(
      rules.clock,
      rules.idleMs,
      () => this.#lastReceivedAt,
      () => this.kick(1000, "idle"),
    );
    this.#stopExpecting = this.#expectInit();
    this.#socket.on("message", (data, isBinary) => this.#receive(data.toString(), isBinary));
    this.#socket.on("ping", (data) => {
      this.#lastReceivedAt = this.#rules.clock.now();
      if (this.#frozen || this.#closing) return;
      this.answeredPings++;
      this.#socket.pong(data);
    });
    this.#socket.on("pong", () => {
      this.#lastReceivedAt = this.#rules.clock.now();
    });
    this.#socket.on("error", ({ code, message }: NodeJS.ErrnoException) => {
      // Network errors do not violate any rule.
      if (code?.startsWith("WS_ERR") === true) this.#rules.report("not-a-frame", `${message}.`);
    });
    this.#socket.on("close", (code) => {
      this.#stopWatching();
      this.#stopExpecting();
      events.onClosed(this, code);
    });
  }

  get isUsable(): boolean {
    return this.ready && !this.isOver;
  }

  /** Nothing is sent on it any more. */
  get isOver(): boolean {
    return this.#closing || this.#socket.readyState !== this.#socket.OPEN;
  }

  send(text: string): void {
    if (!this.isOver) this.#socket.send(text);
  }

  /** Closes with a close frame. Frames that the agent sent before it saw that are still read. */
  kick(code: number, reason: string): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#socket.close(code, reason);
  }

  /**
   * Graceful shutdown: frames already sent by the agent are read and its requests answered before the close frame is
   * sent, so that the arrival of every frame is confirmed. Resolves when the connection is closed.
   */
  async closeGracefully(): Promise<void> {
    const gone = new Promise<void>((resolve) => this.#socket.once("close", () => resolve()));
    if (this.#socket.readyState === this.#socket.CLOSED) return;
    if (this.#frozen) this.cut();
    else if (!this.isOver) {
      // Frames sent before the pong arrive before it.
      const answered = new Promise<void>((resolve) => this.#socket.once("pong", () => resolve()));
      this.#socket.ping();
      await Promise.race([answered, gone]);
      this.kick(GOING_AWAY, "");
    }
    await gone;
  }

  /** Closes without a close frame: the agent sees 1006. Frames sent until then are still read. */
  drop(): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#stream.end();
  }

  /** Aborts the connection; frames in flight in either direction are lost. */
  cut(): void {
    this.#closing = true;
    this.#socket.terminate();
  }

  /** From now on neither answers pings nor reads, like a network that drops everything. */
  freeze(): void {
    this.#frozen = true;
  }

  #receive(text: string, isBinary: boolean): void {
    if (this.#frozen) return;
    this.#lastReceivedAt = this.#rules.clock.now();
    const frame = isBinary ? undefined : parseObject(text);
    if (frame === undefined) this.#rules.report("not-a-frame", isBinary ? "It was binary." : "");
    else if (!this.ready && frame.msgType !== "clawd_bot_init") this.#rejectEarlyFrame(frame);
    else if (frame.msgType === undefined && frame.jsonrpc !== undefined) this.#rules.report("bare-json-rpc", "");
    else if (this.#isFromOwnAgent(frame)) this.#handleFrame(frame);
  }

  #handleFrame(frame: Fields): void {
    switch (frame.msgType) {
      case "clawd_bot_init":
        this.#handleInit(frame);
        break;
      case "heartbeat":
        if (this.#rules.echoHeartbeat) this.send(JSON.stringify({ msgType: "heartbeat", agentId: this.agentId }));
        break;
      case "agent_response":
        this.#events.onResponse(this, frame);
        break;
      default:
        this.#rules.report("unknown-msg-type", `It was ${JSON.stringify(frame.msgType)}.`);
    }
  }

  /** The init frame is not answered. */
  #handleInit({ msgDetail }: Fields): void {
    if (msgDetail !== undefined && typeof msgDetail !== "string") {
      this.#rules.report("detail-not-a-string", "In clawd_bot_init.");
    } else if (!this.ready) {
      this.ready = true;
      this.#stopExpecting();
      this.#events.onReady();
    }
  }

  #rejectEarlyFrame({ msgType }: Fields): void {
    this.#rules.report("init-first", `${JSON.stringify(msgType) ?? "A frame without msgType"} came before it.`);
    this.#closeEarly();
  }

  #expectInit(): () => void {
    const { clock, initMs, report } = this.#rules;
    if (initMs === Number.POSITIVE_INFINITY) return () => {};
    return clock.after(initMs, () => {
      report("init-first", `Nothing came for ${initMs} ms.`);
      this.#closeEarly();
    });
  }

  #closeEarly(): void {
    if (this.#rules.beforeInit === "close") this.kick(POLICY_VIOLATION, "init first");
  }

  #isFromOwnAgent({ agentId }: Fields): boolean {
    if (agentId === this.agentId) return true;
    this.#rules.report("wrong-agent-id", `It was ${JSON.stringify(agentId)}.`);
    return false;
  }
}
