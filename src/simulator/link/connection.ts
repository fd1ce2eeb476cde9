import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { Clock } from "../../model/ports.ts";
import { type Fields, parseObject } from "../json.ts";
import type { Report } from "../violations.ts";

export interface AgentSocket {
  readonly webSocket: WebSocket;
  /** What the WebSocket runs on. */
  readonly carrier: Duplex;
}

export interface ConnectionRules {
  readonly clock: Clock;
  readonly report: Report;
  /** What becomes of an agent that speaks before it has introduced itself. */
  readonly beforeInit: "ignore" | "close";
  /** How long an agent may take to introduce itself. */
  readonly initMs: number;
  /** The platform does not promise to; agents must not wait for it. */
  readonly echoHeartbeat: boolean;
  /** Close connections on which nothing came for so long. */
  readonly idleMs: number;
}

interface ConnectionEvents {
  readonly onReady: (connection: AgentConnection) => void;
  readonly onResponse: (connection: AgentConnection, envelope: Fields) => void;
  readonly onClosed: (connection: AgentConnection, code: number, reason: string) => void;
}

const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;

/** One WebSocket of an agent, from the upgrade to its end. */
export class AgentConnection {
  readonly agentId: string;
  readonly hostIndex: number;
  /** Has introduced itself. */
  ready = false;
  /** Neither answers pings nor reads: what a network that swallows everything looks like. */
  frozen = false;
  /** By which the agent can know what has arrived. */
  answeredPings = 0;
  readonly #socket: WebSocket;
  readonly #carrier: Duplex;
  readonly #rules: ConnectionRules;
  readonly #events: ConnectionEvents;
  #leaving = false;
  #heardAt: number;
  #stopWatching = (): void => {};
  #stopExpecting = (): void => {};

  constructor(
    identity: { readonly agentId: string; readonly hostIndex: number },
    socket: AgentSocket,
    rules: ConnectionRules,
    events: ConnectionEvents,
  ) {
    this.agentId = identity.agentId;
    this.hostIndex = identity.hostIndex;
    this.#socket = socket.webSocket;
    this.#carrier = socket.carrier;
    this.#rules = rules;
    this.#events = events;
    this.#heardAt = rules.clock.now();
    this.#watch(rules.idleMs);
    this.#stopExpecting = this.#expectIntroduction();
    this.#socket.on("message", (data, isBinary) => this.#take(data.toString(), isBinary));
    this.#socket.on("ping", (data) => {
      this.#heardAt = this.#rules.clock.now();
      if (this.frozen || this.#leaving) return;
      this.answeredPings++;
      this.#socket.pong(data);
    });
    this.#socket.on("pong", () => {
      this.#heardAt = this.#rules.clock.now();
    });
    this.#socket.on("error", ({ code, message }: NodeJS.ErrnoException) => {
      // What the network does is nobody's fault.
      if (code?.startsWith("WS_ERR") === true) this.#rules.report("not-a-frame", `${message}.`);
    });
    this.#socket.on("close", (code, reason) => {
      this.#stopWatching();
      this.#stopExpecting();
      events.onClosed(this, code, reason.toString());
    });
  }

  get isUsable(): boolean {
    return this.ready && !this.isOver;
  }

  /** Nothing is said on it any more. */
  get isOver(): boolean {
    return this.#leaving || this.#socket.readyState !== this.#socket.OPEN;
  }

  send(text: string): void {
    if (!this.isOver) this.#socket.send(text);
  }

  /** Ends with a close frame. What the agent sent until it saw that is still read. */
  kick(code: number, reason: string): void {
    if (this.#leaving) return;
    this.#leaving = true;
    this.#socket.close(code, reason);
  }

  /**
   * Ends with the platform: what the agent has said is read and what it has asked is answered before it is told. Nothing
   * is left of which it could not know that it had come. Resolves when the connection is gone.
   */
  async closeGracefully(): Promise<void> {
    const gone = new Promise<void>((resolve) => this.#socket.once("close", () => resolve()));
    if (this.#socket.readyState === this.#socket.CLOSED) return;
    if (this.frozen) this.cut();
    else if (!this.isOver) {
      // Everything that was sent before the answer to a ping comes before it.
      const answered = new Promise<void>((resolve) => this.#socket.once("pong", () => resolve()));
      this.#socket.ping();
      await Promise.race([answered, gone]);
      this.kick(GOING_AWAY, "");
    }
    await gone;
  }

  /** Ends without a close frame: the agent sees 1006. What it sent until then is still read. */
  drop(): void {
    if (this.#leaving) return;
    this.#leaving = true;
    this.#carrier.end();
  }

  /** Tears the connection; what was on its way in either direction is lost. */
  cut(): void {
    this.#leaving = true;
    this.#socket.terminate();
  }

  #take(text: string, isBinary: boolean): void {
    if (this.frozen) return;
    this.#heardAt = this.#rules.clock.now();
    const frame = isBinary ? undefined : parseObject(text);
    if (frame === undefined) this.#rules.report("not-a-frame", isBinary ? "It was binary." : "");
    else if (!this.ready && frame.msgType !== "clawd_bot_init") this.#speaksTooEarly(frame);
    else if (frame.msgType === undefined && frame.jsonrpc !== undefined) this.#rules.report("bare-json-rpc", "");
    else if (this.#isFromOwnAgent(frame)) this.#obey(frame);
  }

  #obey(frame: Fields): void {
    switch (frame.msgType) {
      case "clawd_bot_init":
        this.#introduce(frame);
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

  /** There is no answer to this. */
  #introduce({ msgDetail }: Fields): void {
    if (msgDetail !== undefined && typeof msgDetail !== "string") {
      this.#rules.report("detail-not-a-string", "In clawd_bot_init.");
    } else if (!this.ready) {
      this.ready = true;
      this.#stopExpecting();
      this.#events.onReady(this);
    }
  }

  #speaksTooEarly({ msgType }: Fields): void {
    this.#rules.report("init-first", `${JSON.stringify(msgType) ?? "A frame without msgType"} came before it.`);
    this.#closeEarly();
  }

  #expectIntroduction(): () => void {
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

  #watch(milliseconds: number): void {
    const { clock, idleMs } = this.#rules;
    if (idleMs === Number.POSITIVE_INFINITY) return;
    this.#stopWatching = clock.after(milliseconds, () => {
      const rest = this.#heardAt + idleMs - clock.now();
      if (rest > 0) this.#watch(rest);
      else this.kick(1000, "idle");
    });
  }
}
