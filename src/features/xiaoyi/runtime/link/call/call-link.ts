/**
 * Calls an agent that dialled us, acting as the platform. Pending answers belong to the agent and not to a link: an
 * agent that reconnects in time continues where it was.
 */

import type { CallableDialect, LinkCaller, LinkCalling, LinkTools } from "../../../../../core/dialects/contract.ts";
import { toPublicError } from "../../../../../core/dialects/shared/errors.ts";
import { Abort, type Signal } from "../../../../../core/model/abort.ts";
import { ProtocolError } from "../../../../../core/model/errors.ts";
import { LogEntry } from "../../../../../core/model/event.ts";
import { TaskFold } from "../../../../../core/model/fold.ts";
import { type Loss, toLoss } from "../../../../../core/model/loss.ts";
import type {
  CallContext,
  FrameStream,
  Operation,
  OperationKind,
  OutcomeOf,
  Outcomes,
  SendInput,
} from "../../../../../core/model/operation.ts";
import { statusText } from "../../../../../core/model/status-texts.ts";
import { isInterrupted, isTerminal, type Task } from "../../../../../core/model/task.ts";
import { type Closure, NORMAL_CLOSURE } from "../../../../../core/wire/connection.ts";
import { type Link, LinkError } from "../../../../../core/wire/link.ts";
import {
  type AgentResponse,
  type DropReason,
  decodeAgentFrame,
  toCancelRequest,
  toMessageRequest,
} from "../../../codec/call/agent-frames.ts";
import { decodeAnswerFrame } from "../../../codec/call/decode-frame.ts";
import {
  decodeCanceledTask,
  encodeMessageParams,
  loseRequestMetadata,
  type MessageIds,
  messageIdsOf,
  messageIdsOfTask,
} from "../../../codec/call/encode-message.ts";
import { LINK_DIALECT } from "../../../codec/card.ts";
import { isSuccess } from "../../../codec/errors.ts";
import { can, LINK_LOSSES as LOSSES } from "../../../codec/losses.ts";
import { abandonedError, PendingCall, PendingCalls, PendingCancellations } from "./pending-calls.ts";

const INTRODUCTION_MS = 10_000;
/** Minimum time that a reconnected agent may be silent about a task: agents that work on one send more often. */
const RESUMED_SILENCE_MS = 90_000;
const MAX_CALLS = 10_000;
const POLICY_VIOLATION = 1008;

/** A link whose agent has introduced itself. */
interface IntroducedLink {
  readonly link: Link;
  readonly agentId: string;
}

/** A task cannot be read; but its answer is received by the process that waits for it, be it a later one. */
export const LINK_AGENT_CAN = { ...can, operations: { ...can.operations, subscribe: true } };

export class XiaoyiLinkCaller implements LinkCaller {
  readonly can = LINK_AGENT_CAN;
  readonly #options: LinkTools;
  readonly #calls = new PendingCalls();
  readonly #cancellations = new PendingCancellations();
  readonly #logged = new Set<DropReason>();
  #link: Link | undefined;
  #introduced: IntroducedLink | undefined;

  constructor(options: LinkTools) {
    this.#options = options;
  }

  get connected(): boolean {
    return this.#introduced !== undefined;
  }

  async attach(link: Link): Promise<Closure> {
    this.#link?.close(NORMAL_CLOSURE, "Another connection of this agent took the place of this one.");
    this.#detach();
    this.#link = link;
    const refuse = (reason: string) => link.close(POLICY_VIOLATION, reason);
    const stopTimer = this.#options.clock.after(INTRODUCTION_MS, () => refuse("clawd_bot_init did not come."));
    try {
      for await (const text of link.messages) {
        if (this.#link !== link) break;
        if (this.#introduced !== undefined) this.#receive(text, this.#introduced.agentId);
        else if (this.#introduce(link, text)) stopTimer();
        else refuse("clawd_bot_init must come first, with the agent's id.");
      }
    } finally {
      stopTimer();
      if (this.#link === link) this.#detach();
    }
    return link.closed;
  }

  async dispatch<O extends Operation>(operation: O, call: Pick<CallContext, "signal">): Promise<OutcomeOf<O>>;
  async dispatch(
    operation: Operation,
    { signal = new Abort() }: Pick<CallContext, "signal">,
  ): Promise<Outcomes[Operation["kind"]]> {
    switch (operation.kind) {
      case "stream":
        return this.#stream(operation, signal);
      case "send":
        return { task: await this.#send(operation, signal) };
      case "subscribe":
        return this.#follow(operation);
      case "cancel":
        return this.#cancel(operation, signal);
      default:
        throw unsupported(operation.kind);
    }
  }

  /** The signal applies until the stream is open; afterwards the reader ends the stream. */
  async #stream(input: SendInput, signal: Signal): Promise<FrameStream> {
    const call = this.#open(input);
    await untilAborted(signal, call.sent(), () => call.fail(abandonedError()));
    return call.frames;
  }

  async #send(input: SendInput, signal: Signal): Promise<Task> {
    const frames = await this.#stream(input, signal);
    const reader = frames[Symbol.asyncIterator]();
    return untilAborted(signal, foldTask(frames), () => void reader.return?.());
  }

  /** Of a message that an earlier process sent: the agent continues under the same ids as soon as it is connected. */
  #follow({ id, known }: Extract<Operation, { readonly kind: "subscribe" }>): FrameStream {
    if (known === undefined) throw unsupported("subscribe");
    const { sessionId: contextId, taskId } = messageIdsOfTask(id);
    this.#checkRoom(taskId);
    const { clock, patienceMs } = this.#options;
    const call = new PendingCall(
      { taskId, contextId },
      () => ({}),
      clock,
      (it) => this.#close(it),
      known?.artifacts,
    );
    call.markSent();
    call.delivered = true;
    this.#calls.add(call);
    if (this.#introduced === undefined) this.#awaitReturn(call);
    else call.expectWithin(Math.max(RESUMED_SILENCE_MS, patienceMs), statusText("peerSilent"));
    return call.frames;
  }

  #checkRoom(taskId: string): void {
    if (this.#calls.get(taskId) !== undefined) {
      throw new ProtocolError("UNSUPPORTED_OPERATION", "The task is being worked on.", { metadata: { taskId } });
    }
    if (this.#calls.size >= MAX_CALLS) throw new ProtocolError("RESOURCE_EXHAUSTED", statusText("peerBusy"));
  }

  #open(input: SendInput): PendingCall {
    const ids = messageIdsOf(input);
    const { sessionId: contextId, taskId } = ids;
    this.#checkRoom(taskId);
    const { clock } = this.#options;
    const encode = () => this.#encode(input, ids);
    const call = new PendingCall({ taskId, contextId }, encode, clock, (ended) => this.#close(ended));
    if (this.#calls.add(call)) this.#begin(call);
    return call;
  }

  /** Throws LOSS_REFUSED if losses are not allowed. */
  #encode(input: SendInput, ids: MessageIds): object {
    const losses: Loss[] = [];
    const params = encodeMessageParams(input, ids, losses, ({ bytes: raw, mimeType: mediaType, name }, path) => {
      const address = this.#options.files?.offer(ids.taskId, { raw, name, mediaType });
      if (address === undefined) losses.push(toLoss(LOSSES.fileWithoutAddress, `${path}.raw`));
      return address;
    });
    this.#report(losses);
    return params;
  }

  #begin(call: PendingCall): void {
    if (this.#introduced === undefined) this.#awaitConnection(call);
    else this.#transmit(call, this.#introduced);
  }

  #awaitConnection(call: PendingCall): void {
    const { connectMs } = this.#options;
    const message = statusText("peerNotConnected");
    // A call that is already waiting does not wait longer because a link closed before it could be used.
    if (connectMs > 0 && !call.isWaiting) call.expectWithin(connectMs, message);
    if (connectMs === 0 && this.#link === undefined) call.fail(new ProtocolError("UNAVAILABLE", message));
  }

  /** The agent may have received the message: what it sends after reconnecting is the answer. */
  #awaitReturn(call: PendingCall): void {
    const { patienceMs } = this.#options;
    if (patienceMs > 0) call.expectWithin(patienceMs, statusText("peerStayedAway", patienceMs / 1000));
    else call.fail(new ProtocolError("UNAVAILABLE", statusText("peerLost")));
  }

  #transmit(call: PendingCall, { agentId, link }: IntroducedLink): void {
    const params = call.params();
    if (params === undefined) return;
    const problem = trySend(link, toMessageRequest(agentId, call, params));
    // The close of the link is about to be handled; the call then waits for the next link.
    if (problem?.code === "UNAVAILABLE") return;
    if (problem !== undefined) {
      call.fail(problem);
      return;
    }
    call.markSent();
    void link.received().then((received) => {
      if (received) call.delivered = true;
    });
  }

  #close(call: PendingCall): void {
    // Files of a question may still be fetched while its answer is pending.
    if (!call.endsWithQuestion) this.#options.files?.withdraw(call.taskId);
    const next = this.#calls.remove(call);
    if (next !== undefined) this.#begin(next);
  }

  #introduce(link: Link, text: string): boolean {
    const envelope = decodeAgentFrame(text, this.#options.peerId);
    if (envelope.kind !== "introduction") return false;
    this.#introduced = { link, agentId: envelope.agentId };
    const silenceMs = Math.max(RESUMED_SILENCE_MS, this.#options.patienceMs);
    for (const call of this.#calls.begun()) {
      if (call.delivered) call.expectWithin(silenceMs, statusText("peerSilent"));
      else this.#transmit(call, this.#introduced);
    }
    return true;
  }

  #detach(): void {
    this.#link = undefined;
    this.#introduced = undefined;
    this.#cancellations.fail(new ProtocolError("UNAVAILABLE", statusText("peerLost")));
    for (const call of this.#calls.begun()) {
      if (call.wasSent) this.#awaitReturn(call);
      else this.#awaitConnection(call);
    }
  }

  #receive(text: string, agentId: string): void {
    const envelope = decodeAgentFrame(text, agentId);
    if (envelope.kind === "disregarded") this.#drop(envelope.why);
    else if (envelope.kind === "response") this.#respond(envelope, text.length);
  }

  #respond(response: AgentResponse, size: number): void {
    const { error, ids, result } = response;
    if (this.#cancellations.answer(response)) return;
    const call = ids.map((id) => this.#calls.get(id)).find((known) => known !== undefined);
    if (call === undefined) {
      this.#drop("not-asked");
      return;
    }
    // A bare success needs no handling.
    if (result === undefined && (error === undefined || isSuccess(error))) return;
    try {
      const { losses, value } = decodeAnswerFrame(response);
      this.#report(losses);
      call.receive(value, size);
    } catch (problem) {
      call.fail(ProtocolError.is(problem) ? problem : toPublicError(problem));
    }
  }

  async #cancel(operation: Extract<Operation, { readonly kind: "cancel" }>, signal: Signal): Promise<Task> {
    const { id: taskId, metadata } = operation;
    const losses: Loss[] = [];
    loseRequestMetadata(metadata, losses);
    this.#report(losses);
    const ids = this.#calls.get(taskId) ?? messageIdsOfTask(taskId);
    if (signal.aborted) throw abandonedError();
    if (this.#introduced === undefined) throw new ProtocolError("UNAVAILABLE", statusText("peerNotConnected"));
    const problem = trySend(this.#introduced.link, toCancelRequest(this.#introduced.agentId, ids));
    if (problem !== undefined) throw problem;
    const task = decodeCanceledTask(ids, await this.#cancellations.open(taskId, signal));
    this.#options.files?.withdraw(taskId);
    return task;
  }

  #report(losses: readonly Loss[]): void {
    if (losses.length > 0) this.#options.report(losses);
  }

  /** Logged once per reason: an agent that sends one malformed frame sends many. */
  #drop(why: DropReason): void {
    const { log, meter, peerId: agentId } = this.#options;
    meter.count("link_frames_dropped");
    if (this.#logged.has(why)) return;
    this.#logged.add(why);
    const message = "A frame of an agent was not understood or not asked for; others like it are not logged.";
    log.warn({ agentId, why }, message);
  }
}

function unsupported(kind: OperationKind): ProtocolError {
  return new ProtocolError("UNSUPPORTED_OPERATION", `Xiaoyi does not support the operation ${kind}.`);
}

/** The result of `work`, which `giveUp` ends if the signal is aborted first. */
async function untilAborted<T>(signal: Signal, work: Promise<T>, giveUp: () => void): Promise<T> {
  signal.addEventListener("abort", giveUp);
  if (signal.aborted) giveUp();
  try {
    return await work;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

function trySend(link: Link, text: string): ProtocolError | undefined {
  try {
    void link.send(text);
    return undefined;
  } catch (error) {
    if (!(error instanceof LinkError)) throw error;
    return new ProtocolError(error.code === "closed" ? "UNAVAILABLE" : "RESOURCE_EXHAUSTED", error.message);
  }
}

/** The task once it has ended or waits for input. */
async function foldTask(frames: FrameStream): Promise<Task> {
  const fold = new TaskFold();
  for await (const batch of frames) {
    for (const { event } of batch) {
      if ("message" in event) continue;
      fold.apply(LogEntry.of(fold.number + 1, event));
      const { state } = fold.status;
      if (isTerminal(state) || isInterrupted(state)) return fold.toTask();
    }
  }
  throw abandonedError();
}

export const linkCalling: LinkCalling = {
  carrier: "link",
  open: (tools) => new XiaoyiLinkCaller(tools),
};

/** The dialect without its carriers. No card is published for it: the platform's console issues the ids. */
export const xiaoyiLink: CallableDialect = {
  name: LINK_DIALECT,
  can,
  losses: Object.values(LOSSES),
  calling: [linkCalling],
};
