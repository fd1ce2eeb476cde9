import { type StoredTask, TaskChanges } from "../client/call/task-changes.ts";
import type { Agent, AgentEvent, AgentRun, AgentState, MessageDraft, Turn } from "../engine/agent.ts";
import { isRunLost, type Signal } from "../model/abort.ts";
import { ProtocolError } from "../model/errors.ts";
import type { TaskArtifactUpdate, TaskEvent } from "../model/event.ts";
import { withoutHops } from "../model/extensions.ts";
import type { Message } from "../model/message.ts";
import type { FrameStream, SendInput } from "../model/operation.ts";
import { type StatusTextName, statusText } from "../model/status-texts.ts";
import { isInterrupted, isTerminal, type Task, type TaskStatus } from "../model/task.ts";
import {
  type ChildFrames,
  ChildTask,
  canBeQueried,
  cancelAtPeer,
  findChildId,
  type Peer,
  peerContextId,
  type SentMessage,
} from "./child-task.ts";
import { type AgentDefinition, defineAgent } from "./define.ts";

export type { Peer } from "./child-task.ts";

/** Stored with the peer's task if the peer is in this process. */
export const FORWARD_DIALECT = "forward";

interface ForwardingAgentOptions extends Omit<AgentDefinition, "run"> {
  readonly peer: Peer;
  /** Resolves once it is known what the peer supports. Default: it always is. */
  readonly connect?: (turn: Turn) => Peer | Promise<Peer>;
}

/**
 * An agent that forwards every message to a peer, and the peer's answer to the caller.
 *
 * After a crash it queries the peer for the task, and continues where the log ends. If the peer cannot be queried, or
 * never confirmed the message and would not recognise it, `onCrash` decides whether it is sent again.
 */
export function createForwardingAgent({ peer, connect = () => peer, ...definition }: ForwardingAgentOptions): Agent {
  const policy = definition.onCrash ?? "fail";
  return {
    ...defineAgent({ ...definition, run: () => undefined }),
    get onCrash() {
      return canBeQueried(peer) ? "resume" : policy;
    },
    crashText: statusText("processStoppedUnasked"),
    run: (turn) => forward(turn, () => connect(turn), policy),
    async dropped({ caller, memory }) {
      const id = await findChildId(memory);
      if (id !== undefined) await cancelAtPeer(peer, id, caller, FORWARD_DIALECT);
    },
  };
}

/**
 * What the peer supports must be known before anything is sent to it; one that cannot be found fails the task. `policy`:
 * whether the message is sent again after a crash if it is not known whether the peer has received it.
 */
export function forward(turn: Turn, connect: () => Peer | Promise<Peer>, policy: Agent["onCrash"]): AgentRun {
  return new Forwarding(turn, connect, policy).run();
}

type ForwardedEvents = AsyncGenerator<AgentEvent | readonly AgentEvent[], MessageDraft | undefined, undefined>;

/** Forwards one message and its answer. */
class Forwarding {
  readonly #turn: Turn;
  readonly #connect: () => Peer | Promise<Peer>;
  readonly #policy: Agent["onCrash"];
  readonly #signal: Signal;
  /** The peer's task, once the peer is connected. */
  #child: ChildTask | undefined;
  /** The peer's stream was left for another message of the caller. */
  #hasLeft = false;
  #cancelling: Promise<void> | undefined;
  /** Set when the run is cancelled; aborted once the peer's task has ended by itself. */
  #over: AbortController | undefined;
  /** Asked for while the peer's task waits for someone. */
  #followUp: AbortSignal | undefined;
  /** Set if an earlier process has stored a part of the answer: only what is new is added. */
  #changes: TaskChanges | undefined;
  /** Why the peer may still work on a task that is cancelled here. */
  #uncancelled: StatusTextName | undefined;

  constructor(turn: Turn, connect: () => Peer | Promise<Peer>, policy: Agent["onCrash"]) {
    this.#turn = turn;
    this.#connect = connect;
    this.#policy = policy;
    this.#signal = turn.cancellation ?? turn.signal;
  }

  async *run(): ForwardedEvents {
    const signal = this.#signal;
    signal.addEventListener("abort", this.#stop);
    if (signal.aborted) this.#stop();
    let reading: ChildFrames<AgentEvent> | undefined;
    let reply: Message | undefined;
    try {
      reading = await this.#open();
      if (reading === undefined) yield failed(statusText("deliveryUnknown"));
      for (let step = await reading?.next(); step !== undefined; step = await reading?.next()) {
        if (step.done === true) {
          reply = step.value;
          const isBroken = reply === undefined && this.#child?.isSettled !== true && !signal.aborted;
          if (isBroken) yield failed(statusText("answerBrokeOff"));
          break;
        }
        const events = step.value.length === 1 ? step.value[0]?.items : step.value.flatMap(({ items }) => items);
        if (events !== undefined && events.length > 0) yield events;
        if (this.#isAnswered()) break;
      }
    } catch (error) {
      const failure = this.#explain(error);
      if (failure !== undefined) yield failed(failure);
    } finally {
      await this.#end(reading);
    }
    if (this.#uncancelled === undefined || isRunLost(signal)) return reply && toDraft(reply);
    yield { status: "TASK_STATE_CANCELED", message: { parts: [{ text: statusText(this.#uncancelled) }] } };
    return undefined;
  }

  readonly #stop = (): void => {
    this.#over = new AbortController();
    this.#cancelling = this.#cancel(this.#over.signal);
  };

  async #end(reading: ChildFrames<AgentEvent> | undefined): Promise<void> {
    this.#signal.removeEventListener("abort", this.#stop);
    this.#followUp?.removeEventListener("abort", this.#leaveForReply);
    await reading?.return(undefined);
    if (this.#over === undefined) return;
    if (this.#child?.isSettled === true) this.#over.abort();
    await this.#cancelling;
    // The id may have arrived after the abort.
    await this.#cancel(this.#over.signal);
  }

  /** Why the task fails; undefined if it does not. */
  #explain(error: unknown): string | undefined {
    const child = this.#child;
    if (this.#signal.aborted) {
      if (child !== undefined && child.id === undefined && ProtocolError.is(error)) this.#noteUncancelled(error);
      return undefined;
    }
    if (this.#hasLeft) return undefined;
    if (!ProtocolError.is(error)) throw error;
    const isLost = error.code === "TASK_NOT_FOUND" && child?.id !== undefined;
    return isLost ? statusText("taskLost") : error.message;
  }

  #read(child: ChildTask, frames: FrameStream): ChildFrames<AgentEvent> {
    return child.read(frames, (event, isStale, number) => {
      if (isStale) return [];
      if (this.#changes === undefined) return this.#translate(event, number);
      const frame = { event, json: "", number };
      return this.#changes
        .apply([frame])
        .flatMap((change) => ("message" in change.event ? [] : this.#translate(change.event, change.number)));
    });
  }

  /** Undefined if an earlier process may have sent the message and the peer cannot be queried. */
  async #open(): Promise<ChildFrames<AgentEvent> | undefined> {
    const { attempt, message, task } = this.#turn;
    const peer = await this.#connect();
    const child = new ChildTask(peer, { turn: this.#turn, dialect: FORWARD_DIALECT, endsTurn: true });
    this.#child = child;
    // Cancelled before there was a child: it is cancelled as soon as its id is known.
    if (this.#over !== undefined) await child.leave();
    const earlier = attempt > 1 ? await child.sent() : undefined;
    if (earlier?.message === message.messageId) {
      const attached = canBeQueried(peer) ? await this.#attach(peer, child, earlier) : undefined;
      if (attached !== undefined) return this.#read(child, attached);
      if (peer.recognizesRepeats !== true && this.#policy === "fail") return undefined;
    }
    const key = `${task.id}/${message.messageId}`;
    return this.#read(child, await child.send(await this.#input(child), this.#signal, key));
  }

  /** Follows the peer's task. Undefined if it is not known whether there is one. */
  async #attach(peer: Peer, child: ChildTask, { number, task }: SentMessage): Promise<FrameStream | undefined> {
    const { checkpoint } = this.#turn;
    const chosen = peer.can?.chosenIds === true ? this.#chosenId() : undefined;
    const id = task ?? chosen;
    if (id === undefined) return undefined;
    const stored = this.#turn.stored?.();
    this.#changes = new TaskChanges(withLastMessage(stored));
    const after = typeof checkpoint === "number" ? checkpoint : number;
    try {
      return await child.attach(id, after, this.#signal, stored);
    } catch (error) {
      if (task !== undefined || !ProtocolError.is(error) || error.code !== "TASK_NOT_FOUND") throw error;
      return undefined;
    }
  }

  /** An authorisation may be given elsewhere, so its task is followed until the caller answers here. */
  #isAnswered(): boolean {
    const state = this.#child?.state;
    if (state === undefined || !isInterrupted(state)) return false;
    if (this.#followUp === undefined) {
      this.#followUp = this.#turn.followUp;
      this.#followUp?.addEventListener("abort", this.#leaveForReply);
    }
    return this.#followUp?.aborted === true;
  }

  readonly #leaveForReply = (): void => {
    if (this.#child?.isSettled !== true) return;
    this.#hasLeft = true;
    void this.#child.leave();
  };

  /** The task ends here whether or not the peer cancels it, unless its own end comes first. */
  async #cancel(over: AbortSignal): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    if (isRunLost(this.#signal)) return child.leave();
    try {
      await child.cancel(over);
    } catch (error) {
      if (over.aborted) return;
      const task = await child.get().catch(() => undefined);
      // Its end is on the way.
      if (task !== undefined && isTerminal(task.status.state)) return;
      this.#noteUncancelled(error);
    }
    await child.leave();
  }

  #noteUncancelled(error: unknown): void {
    const isRefused = ProtocolError.is(error) && error.code !== "UNAVAILABLE";
    this.#uncancelled = isRefused ? "cancelRefused" : "cancelUnconfirmed";
  }

  /** Differs from one message to the next, unless they belong to the same task of the peer. */
  #chosenId(): string {
    const { history, message, task } = this.#turn;
    return history.length === 0 ? task.id : `${task.id}&${message.messageId}`;
  }

  /** The number is stored together with the last event, so that a resumed run continues with the next frame. */
  #translate(event: TaskEvent, number: number | undefined): readonly AgentEvent[] {
    const events: AgentEvent[] = [];
    if ("artifactUpdate" in event) addArtifact(events, event.artifactUpdate, number);
    else if ("statusUpdate" in event) this.#addStatus(events, event.statusUpdate.status, number);
    else {
      const { artifacts = [], status } = event.task;
      const last = this.#isShown(status) ? undefined : artifacts.findLast(({ parts }) => parts.length > 0);
      for (const artifact of artifacts) addArtifact(events, { artifact }, artifact === last ? number : undefined);
      this.#addStatus(events, status, number);
    }
    return events;
  }

  #addStatus(events: AgentEvent[], status: TaskStatus, checkpoint: number | undefined): void {
    if (!this.#isShown(status)) return;
    const hasMessage = status.message !== undefined && status.message.parts.length > 0;
    const message = hasMessage ? toDraft(status.message) : undefined;
    events.push({ status: status.state, message, metadata: undefined, checkpoint });
  }

  #isShown<Status extends TaskStatus>(status: Status): status is Status & { readonly state: AgentState } {
    if (status.state === "TASK_STATE_SUBMITTED" || status.state === "TASK_STATE_UNSPECIFIED") return false;
    return status.state !== "TASK_STATE_CANCELED" || !this.#signal.aborted;
  }

  async #input(child: ChildTask): Promise<SendInput> {
    const { acceptedOutputModes, caller, history, message, task } = this.#turn;
    // The peer gets the hops incremented.
    const metadata = withoutHops(this.#turn.metadata);
    const waiting = history.length === 0 ? undefined : await child.waiting();
    const { contextId: _own, referenceTaskIds: _unknown, taskId: _here, ...fields } = message;
    const outgoing = { ...fields, contextId: peerContextId(caller.owner, task.contextId) };
    return {
      ...(waiting === undefined
        ? { message: outgoing, chosenId: this.#chosenId() }
        : { message: { ...outgoing, taskId: waiting } }),
      configuration: acceptedOutputModes.length === 0 ? undefined : { acceptedOutputModes },
      metadata,
    };
  }
}

/** A run that is resumed has changed the status, so that the last message is in the history. */
function withLastMessage(task: Task | undefined): StoredTask | undefined {
  if (task === undefined || task.status.message !== undefined) return task;
  const last = task.history?.at(-1);
  return last?.role === "ROLE_AGENT" ? { ...task, status: { ...task.status, message: last } } : task;
}

/** All events have the same members, because the engine reads each of them many times. */
function addArtifact(
  events: AgentEvent[],
  { append, artifact, lastChunk, metadata }: Omit<TaskArtifactUpdate, "taskId" | "contextId">,
  checkpoint: number | undefined,
): void {
  if (artifact.parts.length > 0) events.push({ artifact, append, lastChunk, metadata, checkpoint });
}

/** Ends the task as failed, for the reason given. */
function failed(text: string): AgentEvent {
  return { status: "TASK_STATE_FAILED", message: { parts: [{ text }] } };
}

/** Without ids and references, which belong to the peer. */
function toDraft({ extensions, metadata, parts }: Message): MessageDraft {
  return { parts, metadata, extensions };
}
