import type { Fields } from "../../../../core/model/json.ts";
import type { PlatformTraits } from "../options.ts";
import type { Channel, ControlResult, OutgoingControl, OutgoingMessage } from "../phone.ts";
import { type SimulatedTask, textLength } from "../task/simulated-task.ts";
import type { Rule } from "../violations.ts";
import { ChangeNotifier } from "../waiting.ts";
import { AgentConnection, type AgentSocket, type ConnectionRules } from "./connection.ts";
import { createPendingControls } from "./pending-controls.ts";
import {
  DEFAULT_STYLE,
  decodeEnvelope,
  type Envelope,
  encodeControl,
  encodeMessage,
  type WireStyle,
} from "./wire-format.ts";

/**
 * Long bodies take a slower path through the platform, so that a short final frame sent right after one arrives first.
 */
export interface Reordering {
  readonly aboveBytes: number;
  readonly delayMs: number;
}

type LinkTraits = Pick<PlatformTraits, "secondConnection" | "spread" | "cutAbove" | "controlPatienceMs">;

interface LinkPolicy extends ConnectionRules, LinkTraits {
  readonly onConnection: (event: ConnectionEvent) => void;
}

export interface ConnectionEvent {
  readonly kind: "connected" | "ready" | "closed";
  readonly agentId: string;
  readonly hostIndex: number;
  readonly code?: number;
}

interface Route {
  readonly task: SimulatedTask;
  /** Session ids that agents may put into the envelope. */
  readonly sessionIds: Set<string>;
  readonly hosts: Set<number>;
  /** How the end of the task arrived. */
  end?: Arrival;
}

/** A frame's arrival: its connection, and how many of the agent's pings had been answered there by then. */
interface Arrival {
  readonly connection: AgentConnection;
  readonly pings: number;
}

/** Tasks remembered in order to tell their late frames from invalid ones. */
const MAX_ROUTES = 100_000;

/** The platform between phones and the agents connected to it. */
export class LinkPlatform implements Channel {
  style: WireStyle = DEFAULT_STYLE;
  reordering: Reordering | undefined;
  /** Additional copies of every frame to the agent. */
  copies = 0;
  /** Status with which new connections are refused; undefined to accept them. */
  refusal: number | undefined;
  readonly #policy: LinkPolicy;
  readonly #controls: ReturnType<typeof createPendingControls>;
  /** By server, then by agent. */
  readonly #connections: readonly Map<string, AgentConnection>[];
  readonly #routes = new Map<string, Route>();
  readonly #homes = new Map<string, number>();
  readonly #changes = new ChangeNotifier();
  #lastFrame: { readonly agentId: string; readonly conversationId: string; readonly text: string } | undefined;
  #nextHome = 0;

  constructor(hosts: number, policy: LinkPolicy) {
    this.#policy = policy;
    this.#connections = Array.from({ length: hosts }, () => new Map());
    this.#controls = createPendingControls(policy);
  }

  /** Resolves when the agent has sent its init frame, on every server or on the given one. */
  ready(agentId: string, hostIndex?: number): Promise<void> {
    return this.#changes.waitUntil(() => this.isReady(agentId, hostIndex));
  }

  isReady(agentId: string, hostIndex?: number): boolean {
    const wanted = hostIndex === undefined ? this.#connections : this.#connections.slice(hostIndex, hostIndex + 1);
    return wanted.every((host) => host.get(agentId)?.isUsable === true);
  }

  connections(agentId: string): readonly AgentConnection[] {
    return this.#connections.flatMap((host) => host.get(agentId) ?? []);
  }

  sendMessage(message: OutgoingMessage, task: SimulatedTask): boolean {
    const { sender, taskId } = message;
    const hosts = this.#send(sender.agentId, sender.conversationId, encodeMessage(message, this.style));
    const route = this.#routes.get(taskId) ?? { task, sessionIds: new Set(), hosts: new Set() };
    route.sessionIds.add(sender.conversationId).add(sender.appSessionId);
    for (const host of hosts) route.hosts.add(host);
    this.#keep(taskId, route);
    return hosts.length > 0;
  }

  sendControl(control: OutgoingControl): Promise<ControlResult> {
    const { agentId, conversationId } = control.sender;
    const answer = this.#controls.add(control);
    this.#send(agentId, conversationId, encodeControl(control, this.style, this.#policy.clock.now()));
    return answer;
  }

  /** Sends the last frame again, byte for byte. */
  repeatLast(): void {
    const last = this.#lastFrame;
    if (last !== undefined) this.#send(last.agentId, last.conversationId, last.text);
  }

  /** Shuts down gracefully; new connections are refused meanwhile. */
  async close(): Promise<void> {
    this.refusal = 503;
    const all = this.#connections.flatMap((host) => [...host.values()]);
    await Promise.all(all.map((connection) => connection.closeGracefully()));
  }

  accept(agentId: string, hostIndex: number, socket: AgentSocket): void {
    const host = this.#connections[hostIndex] ?? new Map<string, AgentConnection>();
    const connection = new AgentConnection({ agentId, hostIndex }, socket, this.#policy, {
      onReady: () => {
        this.#policy.onConnection({ kind: "ready", agentId, hostIndex });
        this.#changes.notify();
      },
      onResponse: (from, envelope) => this.#respond(from, envelope),
      onClosed: (from, code) => {
        if (host.get(agentId) === from) host.delete(agentId);
        this.#policy.onConnection({ kind: "closed", agentId, hostIndex, code });
        this.#changes.notify();
      },
    });
    const older = host.get(agentId);
    this.#policy.onConnection({ kind: "connected", agentId, hostIndex });
    if (older !== undefined && this.#policy.secondConnection === "refuse") connection.kick(1000, "");
    else {
      older?.kick(1000, "");
      host.set(agentId, connection);
    }
  }

  #respond(connection: AgentConnection, frame: Fields): void {
    const envelope = decodeEnvelope(frame, this.#policy.report);
    if (envelope === undefined) return;
    const { response, size } = envelope;
    const slow = this.reordering;
    if (response.kind === "update" && textLength(response.update) > this.#policy.cutAbove) connection.cut();
    else if (slow !== undefined && size > slow.aboveBytes && !isEnd(envelope)) {
      this.#policy.clock.after(slow.delayMs, () => this.#route(connection, envelope));
    } else this.#route(connection, envelope);
  }

  #route(connection: AgentConnection, envelope: Envelope): void {
    const { response, taskId } = envelope;
    if (response.kind !== "update" && this.#controls.answer(envelope)) return;
    const route = this.#routes.get(taskId);
    const fault = routingFault(route, envelope, connection.hostIndex);
    if (fault !== undefined) this.#policy.report(...fault, taskId);
    else if (response.kind === "error") route?.task.fail(response.error);
    else if (response.kind === "update" && route !== undefined) {
      if (isUnconfirmed(route.end, connection)) route.task.countRepeated();
      else route.task.receive(response.update, response.error);
      if (response.update.final) route.end = { connection, pings: connection.answeredPings };
    }
  }

  /** Returns the servers that the frame was sent on. */
  #send(agentId: string, conversationId: string, text: string): readonly number[] {
    const usable = this.connections(agentId).filter(({ isUsable }) => isUsable);
    const chosen = this.#policy.spread === "duplicate" ? usable : this.#home(conversationId, usable);
    for (const connection of chosen) {
      for (let copy = 0; copy <= this.copies; copy++) connection.send(text);
    }
    if (chosen.length > 0) this.#lastFrame = { agentId, conversationId, text };
    return chosen.map(({ hostIndex }) => hostIndex);
  }

  /** A conversation stays on its server as long as the agent is connected there. */
  #home(conversationId: string, usable: readonly AgentConnection[]): readonly AgentConnection[] {
    const before = usable.find(({ hostIndex }) => hostIndex === this.#homes.get(conversationId));
    const home = before ?? usable[this.#nextHome++ % Math.max(1, usable.length)];
    if (home === undefined) return [];
    this.#homes.set(conversationId, home.hostIndex);
    return [home];
  }

  #keep(taskId: string, route: Route): void {
    this.#routes.set(taskId, route);
    if (this.#routes.size <= MAX_ROUTES) return;
    const [oldest] = this.#routes.keys();
    if (oldest !== undefined) this.#routes.delete(oldest);
  }
}

/**
 * The connection that delivered a frame ended before the agent could know that the frame had arrived. An agent that
 * must not lose anything sends it again over the next connection.
 */
function isUnconfirmed(arrival: Arrival | undefined, next: AgentConnection): boolean {
  if (arrival === undefined || arrival.connection === next) return false;
  return arrival.connection.isOver && arrival.connection.answeredPings === arrival.pings;
}

/** Why a well-formed answer cannot be routed to a task. */
function routingFault(route: Route | undefined, envelope: Envelope, hostIndex: number): [Rule, string] | undefined {
  const { response, sessionId, taskId } = envelope;
  if (response.kind === "answer") return ["answer-to-nothing", ""];
  if (route === undefined) return ["unknown-task", ""];
  if (!route.sessionIds.has(sessionId)) return ["unknown-session", `It was ${JSON.stringify(sessionId)}.`];
  if (!route.hosts.has(hostIndex)) return ["wrong-host", ""];
  const named = response.kind === "update" ? response.update.taskId : undefined;
  return named === undefined || named === taskId ? undefined : ["task-id-mismatch", `It was ${JSON.stringify(named)}.`];
}

function isEnd({ response }: Envelope): boolean {
  if (response.kind !== "update") return true;
  const { update } = response;
  return update.final || (update.kind === "status-update" && update.state === "completed");
}
