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
}

/**
 * An agent that forwards every message to a peer, and the peer's answer to the caller.
 *
 * After a crash it queries the peer for the task, and continues where the log ends. If the peer cannot be queried, or
 * never confirmed the message and would not recognise it, `onCrash` decides whether it is sent again.
 */
export function createForwardingAgent({ peer, ...definition }: ForwardingAgentOptions): Agent {
  const policy = definition.onCrash ?? "fail";
  return {
    ...defineAgent({ ...definition, run: () => undefined }),
    get onCrash() {
      return canBeQueried(peer) ? "resume" : policy;
    },
    crashText: statusText("processStoppedUnasked"),
    run: (turn) => forward(turn, peer, policy),
    async dropped({ caller, memory }) {
      const id = await findChildId(memory);
      if (id !== undefined) await cancelAtPeer(peer, id, caller, FORWARD_DIALECT);
    },
  };
}

/** `policy`: whether the message is sent again after a crash if it is not known whether the peer has received it. */
export function forward(turn: Turn, peer: Peer, policy: Agent["onCrash"]): AgentRun {
  return new Forwarding(turn, peer, policy).run();
}

type ForwardedEvents = AsyncGenerator<AgentEvent | readonly AgentEvent[], MessageDraft | undefined, undefined>;

/** Forwards one message and its answer. */
class Forwarding {
  readonly #turn: Turn;
  readonly #peer: Peer;
  readonly #policy: Agent["onCrash"];
  readonly #child: ChildTask;
  readonly #signal: Signal;
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

  constructor(turn: Turn, peer: Peer, policy: Agent["onCrash"]) {
    this.#turn = turn;
    this.#peer = peer;
    this.#policy = policy;
    this.#signal = turn.cancellation ?? turn.signal;
    this.#child = new ChildTask(peer, { turn, dialect: FORWARD_DIALECT, endsTurn: true });
  }

  async *run(): ForwardedEvents {
    const reply = yield* this.#run();
    if (this.#uncancelled === undefined || isRunLost(this.#signal)) return reply;
    yield { status: "TASK_STATE_CANCELED", message: { parts: [{ text: statusText(this.#uncancelled) }] } };
    return undefined;
  }

  async *#run(): ForwardedEvents {
    const signal = this.#signal;
    const stop = () => {
      this.#over = new AbortController();
      this.#cancelling = this.#cancel(this.#over.signal);
    };
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
    let reading: ChildFrames<AgentEvent> | undefined;
    try {
      const frames = await this.#open();
      if (frames === undefined) {
        yield failed(statusText("deliveryUnknown"));
        return undefined;
      }
      reading = this.#read(frames);
      for (;;) {
        const step = await reading.next();
        if (step.done === true) {
          if (step.value !== undefined) return toDraft(step.value);
          if (this.#child.isSettled || signal.aborted) return undefined;
          break;
        }
        const events = step.value.length === 1 ? step.value[0]?.items : step.value.flatMap(({ items }) => items);
        if (events !== undefined && events.length > 0) yield events;
        if (this.#isAnswered()) return undefined;
      }
      yield failed(statusText("answerBrokeOff"));
    } catch (error) {
      if (signal.aborted && ProtocolError.is(error) && this.#child.id === undefined) this.#noteUncancelled(error);
      if (signal.aborted || this.#hasLeft) return undefined;
      if (!ProtocolError.is(error)) throw error;
      const isLost = error.code === "TASK_NOT_FOUND" && this.#child.id !== undefined;
      yield failed(isLost ? statusText("taskLost") : error.message);
    } finally {
      signal.removeEventListener("abort", stop);
      this.#followUp?.removeEventListener("abort", this.#leaveForReply);
      await reading?.return(undefined);
      if (this.#over !== undefined) {
        if (this.#child.isSettled) this.#over.abort();
        await this.#cancelling;
        // The id may have arrived after the abort.
        await this.#cancel(this.#over.signal);
      }
    }
    return undefined;
  }

  #read(frames: FrameStream): ChildFrames<AgentEvent> {
    return this.#child.read(frames, (event, isStale, number) => {
      if (isStale) return [];
      if (this.#changes === undefined) return this.#translate(event, number);
      const frame = { event, json: "", number };
      return this.#changes
        .apply([frame])
        .flatMap((change) => ("message" in change.event ? [] : this.#translate(change.event, change.number)));
    });
  }

  /** Undefined if an earlier process may have sent the message and the peer cannot be queried. */
  async #open(): Promise<FrameStream | undefined> {
    const { attempt, message, task } = this.#turn;
    const peer = this.#peer;
    const earlier = attempt > 1 ? await this.#child.sent() : undefined;
    if (earlier?.message === message.messageId) {
      const attached = canBeQueried(peer) ? await this.#attach(earlier) : undefined;
      if (attached !== undefined) return attached;
      if (peer.recognizesRepeats !== true && this.#policy === "fail") return undefined;
    }
    return this.#child.send(await this.#input(), this.#signal, `${task.id}/${message.messageId}`);
  }

  /** Follows the peer's task. Undefined if it is not known whether there is one. */
  async #attach({ number, task }: SentMessage): Promise<FrameStream | undefined> {
    const { checkpoint } = this.#turn;
    const chosen = this.#peer.can?.chosenIds === true ? this.#chosenId() : undefined;
    const id = task ?? chosen;
    if (id === undefined) return undefined;
    const stored = this.#turn.stored?.();
    this.#changes = new TaskChanges(withLastMessage(stored));
    const after = typeof checkpoint === "number" ? checkpoint : number;
    try {
      return await this.#child.attach(id, after, this.#signal, stored);
    } catch (error) {
      if (task !== undefined || !ProtocolError.is(error) || error.code !== "TASK_NOT_FOUND") throw error;
      return undefined;
    }
  }

  /** An authorisation may be given elsewhere, so its task is followed until the caller answers here. */
  #isAnswered(): boolean {
    const { state } = this.#child;
    if (state === undefined || !isInterrupted(state)) return false;
    if (this.#followUp === undefined) {
      this.#followUp = this.#turn.followUp;
      this.#followUp?.addEventListener("abort", this.#leaveForReply);
    }
    return this.#followUp?.aborted === true;
  }

  readonly #leaveForReply = (): void => {
    if (!this.#child.isSettled) return;
    this.#hasLeft = true;
    void this.#child.leave();
  };

  /** The task ends here whether or not the peer cancels it, unless its own end comes first. */
  async #cancel(over: AbortSignal): Promise<void> {
    if (isRunLost(this.#signal)) return this.#child.leave();
    try {
      await this.#child.cancel(over);
    } catch (error) {
      if (over.aborted) return;
      const task = canBeQueried(this.#peer) ? await this.#child.get().catch(() => undefined) : undefined;
      // Its end is on the way.
      if (task !== undefined && isTerminal(task.status.state)) return;
      this.#noteUncancelled(error);
    }
    await this.#child.leave();
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

  async #input(): Promise<SendInput> {
    const { acceptedOutputModes, caller, history, message, task } = this.#turn;
    // The peer gets the hops incremented.
    const metadata = withoutHops(this.#turn.metadata);
    const waiting = history.length === 0 ? undefined : await this.#child.waiting();
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
export function failed(text: string): AgentEvent {
  return { status: "TASK_STATE_FAILED", message: { parts: [{ text }] } };
}

/** Without ids and references, which belong to the peer. */
function toDraft({ extensions, metadata, parts }: Message): MessageDraft {
  return { parts, metadata, extensions };
}
