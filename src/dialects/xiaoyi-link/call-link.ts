/**
 * Calling an agent that dialled us: we speak in the platform's place. Answers under way belong to the agent and not to
 * a link: an agent that comes back in time goes on where it was.
 */

import { ProtocolError } from "../../model/errors.ts";
import { LogEntry } from "../../model/event.ts";
import { TaskFold } from "../../model/fold.ts";
import { type Loss, toLoss } from "../../model/loss.ts";
import type { FrameStream, Operation, OutcomeOf, Outcomes, SendInput } from "../../model/operation.ts";
import { statusText } from "../../model/status-texts.ts";
import { isInterrupted, isTerminal, type Task } from "../../model/task.ts";
import { type Link, type LinkClosure, LinkError } from "../../wire/link.ts";
import type { LinkCaller, LinkCalling, LinkTools } from "../contract.ts";
import { toPublicError } from "../shared/errors.ts";
import { isSuccess } from "../xiaoyi/errors.ts";
import { readHeardFrame } from "../xiaoyi/heard-frame.ts";
import { canceledTask } from "../xiaoyi/said-cancel.ts";
import {
  loseRequestMetadata,
  type MessagePlace,
  placeOf,
  placeOfTask,
  toMessageParams,
} from "../xiaoyi/said-message.ts";
import { Controls, givenUp } from "./call-controls.ts";
import {
  type Disregard,
  type HeardResponse,
  readEnvelope,
  toCancelRequest,
  toClearRequest,
  toMessageRequest,
} from "./call-frames.ts";
import { LOSSES } from "./losses.ts";
import { OpenCall } from "./open-call.ts";
import { OpenCalls } from "./open-calls.ts";

/** How long an agent may take to say who it is. */
const INTRODUCTION_MS = 10_000;
/** How long an agent that came back may be silent about a task, at least: those that work on one send more often. */
const RESUMED_SILENCE_MS = 90_000;
const MOST_CALLS = 10_000;
const POLICY_VIOLATION = 1008;

type CancelOperation = Extract<Operation, { readonly kind: "cancel" }>;

interface Line {
  readonly link: Link;
  readonly agentId: string;
}

export class LinkCalls implements LinkCaller {
  readonly #options: LinkTools;
  readonly #calls = new OpenCalls();
  readonly #controls = new Controls();
  readonly #logged = new Set<Disregard>();
  #link: Link | undefined;
  #line: Line | undefined;

  constructor(options: LinkTools) {
    this.#options = options;
  }

  /** Whether the agent is there. */
  get connected(): boolean {
    return this.#line !== undefined;
  }

  async attach(link: Link): Promise<LinkClosure> {
    this.#link?.close();
    this.#detach();
    this.#link = link;
    const stopTimer = this.#options.clock.after(INTRODUCTION_MS, () => refuse(link, "clawd_bot_init did not come."));
    try {
      for await (const text of link.messages) {
        if (this.#link !== link) break;
        if (this.#line !== undefined) this.#hear(text, this.#line.agentId);
        else if (this.#introduce(link, text)) stopTimer();
        else refuse(link, "clawd_bot_init must come first, with the agent's id.");
      }
    } finally {
      stopTimer();
      if (this.#link === link) this.#detach();
    }
    return link.closed;
  }

  close(code: number, reason: string): void {
    this.#link?.close(code, reason);
  }

  async dispatch<O extends Operation>(operation: O, signal: AbortSignal): Promise<OutcomeOf<O>>;
  async dispatch(operation: Operation, signal: AbortSignal): Promise<Outcomes[Operation["kind"]]> {
    switch (operation.kind) {
      case "stream":
        return this.#stream(operation, signal);
      case "send":
        return { task: await this.#send(operation, signal) };
      case "cancel":
        return this.#cancel(operation, signal);
      default:
        throw new ProtocolError("UNSUPPORTED_OPERATION", `Xiaoyi has no word for the operation ${operation.kind}.`);
    }
  }

  /** Tells the agent to forget a conversation. */
  async clear(contextId: string, signal: AbortSignal): Promise<void> {
    const id = this.#options.ids.message();
    const state = await this.#ask((agentId) => toClearRequest(agentId, id, contextId), [id, contextId], signal);
    if (state !== "cleared") throw new ProtocolError("INTERNAL_ERROR", "The agent did not forget the conversation.");
  }

  /** Aborting counts until the stream is open; then whoever reads it leaves it. */
  async #stream(input: SendInput, signal: AbortSignal): Promise<FrameStream> {
    const call = this.#open(input);
    const giveUp = () => call.fail(givenUp());
    signal.addEventListener("abort", giveUp);
    if (signal.aborted) giveUp();
    try {
      await call.sent();
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
    return call.frames;
  }

  async #send(input: SendInput, signal: AbortSignal): Promise<Task> {
    const frames = await this.#stream(input, signal);
    const reader = frames[Symbol.asyncIterator]();
    const giveUp = () => void reader.return?.();
    signal.addEventListener("abort", giveUp);
    if (signal.aborted) giveUp();
    try {
      return await foldAll(frames);
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  #open(input: SendInput): OpenCall {
    const place = placeOf(input);
    const { sessionId: contextId, taskId } = place;
    if (this.#calls.get(taskId) !== undefined) {
      throw new ProtocolError("UNSUPPORTED_OPERATION", "The task is being worked on.", { metadata: { taskId } });
    }
    if (this.#calls.size >= MOST_CALLS) throw new ProtocolError("RESOURCE_EXHAUSTED", statusText("peerBusy"));
    const { clock } = this.#options;
    const encode = () => this.#encode(input, place);
    const call = new OpenCall({ taskId, contextId }, encode, clock, (ended) => this.#close(ended));
    if (this.#calls.add(call)) this.#begin(call);
    return call;
  }

  /** Throws LOSS_REFUSED where nothing may be lost. */
  #encode(input: SendInput, place: MessagePlace): object {
    const losses: Loss[] = [];
    const params = toMessageParams(input, place, losses, ({ bytes: raw, mimeType: mediaType, name }, path) => {
      const address = this.#options.files?.offer(place.taskId, { raw, name, mediaType });
      if (address === undefined) losses.push(toLoss(LOSSES.fileWithoutAddress, `${path}.raw`));
      return address;
    });
    this.#report(losses);
    return params;
  }

  #begin(call: OpenCall): void {
    if (this.#line === undefined) this.#awaitConnection(call);
    else this.#say(call, this.#line);
  }

  #awaitConnection(call: OpenCall): void {
    const { connectMs } = this.#options;
    const message = statusText("peerNotConnected");
    // A call that waits already does not wait longer for a link that closed before it could be used.
    if (connectMs > 0 && !call.isWaiting) call.expectWithin(connectMs, message);
    if (connectMs === 0 && this.#link === undefined) call.fail(new ProtocolError("UNAVAILABLE", message));
  }

  /** The agent may have the message: what it answers when it is back is the answer. */
  #awaitReturn(call: OpenCall): void {
    const { patienceMs } = this.#options;
    if (patienceMs > 0) call.expectWithin(patienceMs, statusText("peerStayedAway", patienceMs / 1000));
    else call.fail(new ProtocolError("UNAVAILABLE", statusText("peerLost")));
  }

  #say(call: OpenCall, { agentId, link }: Line): void {
    const params = call.params();
    if (params === undefined) return;
    const problem = transmit(link, toMessageRequest(agentId, call, params));
    // A link that has closed is about to be noticed, and the call then waits for the next.
    if (problem?.code === "UNAVAILABLE") return;
    if (problem !== undefined) {
      call.fail(problem);
      return;
    }
    call.noteSent();
    void link.received().then((received) => {
      if (received) call.delivered = true;
    });
  }

  #close(call: OpenCall): void {
    // What a question is about may still be fetched while its answer is awaited.
    if (!call.asks) this.#options.files?.withdraw(call.taskId);
    const next = this.#calls.remove(call);
    if (next !== undefined) this.#begin(next);
  }

  #introduce(link: Link, text: string): boolean {
    const envelope = readEnvelope(text, this.#options.peerId);
    if (envelope.kind !== "introduction") return false;
    const line = { link, agentId: envelope.agentId };
    this.#line = line;
    const silenceMs = Math.max(RESUMED_SILENCE_MS, this.#options.patienceMs);
    for (const call of this.#calls.begun()) {
      if (call.delivered) call.expectWithin(silenceMs, statusText("peerSilent"));
      else this.#say(call, line);
    }
    return true;
  }

  #detach(): void {
    this.#link = undefined;
    this.#line = undefined;
    this.#controls.fail(new ProtocolError("UNAVAILABLE", statusText("peerLost")));
    for (const call of this.#calls.begun()) {
      if (call.wasSent) this.#awaitReturn(call);
      else this.#awaitConnection(call);
    }
  }

  #hear(text: string, agentId: string): void {
    const envelope = readEnvelope(text, agentId);
    if (envelope.kind === "disregarded") this.#disregard(envelope.why);
    else if (envelope.kind === "response") this.#respond(envelope, text.length);
  }

  #respond(response: HeardResponse, size: number): void {
    const { error, ids, result } = response;
    if (this.#controls.answer(response)) return;
    const call = ids.map((id) => this.#calls.get(id)).find((known) => known !== undefined);
    if (call === undefined) {
      this.#disregard("nobody-asked");
      return;
    }
    // That all is well is no news.
    if (result === undefined && (error === undefined || isSuccess(error))) return;
    try {
      const { losses, value } = readHeardFrame(response);
      this.#report(losses);
      call.hear(value, size);
    } catch (problem) {
      call.fail(ProtocolError.is(problem) ? problem : toPublicError(problem));
    }
  }

  async #cancel({ id: taskId, metadata }: CancelOperation, signal: AbortSignal): Promise<Task> {
    const losses: Loss[] = [];
    loseRequestMetadata(metadata, losses);
    this.#report(losses);
    const place = this.#calls.get(taskId) ?? placeOfTask(taskId);
    const state = await this.#ask((agentId) => toCancelRequest(agentId, place), [taskId], signal);
    const task = canceledTask(place, state);
    this.#options.files?.withdraw(taskId);
    return task;
  }

  async #ask(toText: (agentId: string) => string, ids: readonly string[], signal: AbortSignal): Promise<string> {
    if (signal.aborted) throw givenUp();
    if (this.#line === undefined) throw new ProtocolError("UNAVAILABLE", statusText("peerNotConnected"));
    const problem = transmit(this.#line.link, toText(this.#line.agentId));
    if (problem !== undefined) throw problem;
    return this.#controls.open(ids, signal);
  }

  #report(losses: readonly Loss[]): void {
    if (losses.length > 0) this.#options.report(losses);
  }

  /** Said once for each reason: whoever sends one odd frame sends many. */
  #disregard(why: Disregard): void {
    const { log, meter, peerId: agentId } = this.#options;
    meter.count("link_frames_dropped");
    if (this.#logged.has(why)) return;
    this.#logged.add(why);
    log.warn(
      { agentId, why },
      "A frame of an agent was not understood or not asked for; others like it are not logged.",
    );
  }
}

/** Why a frame could not be sent, if it could not. */
function transmit(link: Link, text: string): ProtocolError | undefined {
  try {
    void link.send(text);
    return undefined;
  } catch (error) {
    if (!(error instanceof LinkError)) throw error;
    return new ProtocolError(error.code === "closed" ? "UNAVAILABLE" : "RESOURCE_EXHAUSTED", error.message);
  }
}

function refuse(link: Link, reason: string): void {
  link.close(POLICY_VIOLATION, reason);
}

/** The task as it stands when it has ended or waits for somebody. */
async function foldAll(frames: FrameStream): Promise<Task> {
  const fold = new TaskFold();
  for await (const batch of frames) {
    for (const { event } of batch) {
      if ("message" in event) continue;
      fold.apply(LogEntry.of(fold.number + 1, event));
      const { state } = fold.status;
      if (isTerminal(state) || isInterrupted(state)) return fold.toTask();
    }
  }
  throw givenUp();
}

export const linkCalling: LinkCalling = {
  carrier: "link",
  open: (tools) => new LinkCalls(tools),
};
