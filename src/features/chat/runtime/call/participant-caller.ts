/** Calls one participant of one room. */

import type { PeerCaller } from "../../../../core/dialects/carrier.ts";
import { deriveId } from "../../../../core/dialects/shared/responses.ts";
import { type Signal, toAbortSignal } from "../../../../core/model/abort.ts";
import type { AgentCard } from "../../../../core/model/card.ts";
import { ProtocolError, taskNotFound } from "../../../../core/model/errors.ts";
import type { Loss } from "../../../../core/model/loss.ts";
import type {
  CallContext,
  FrameStream,
  Operation,
  OutcomeOf,
  Outcomes,
  SendInput,
} from "../../../../core/model/operation.ts";
import { statusText } from "../../../../core/model/status-texts.ts";
import type { Task } from "../../../../core/model/task.ts";
import { ChannelError, type Post } from "../../../../core/wire/channel.ts";
import { type ChatAddress, formatChatAddress } from "../../a2a-lite/address.ts";
import { PARTICIPANT_CAN } from "../../a2a-lite/can.ts";
import { encodeTask } from "../../a2a-lite/encode-task.ts";
import type { LiteMessage, Outgoing, Received } from "../../a2a-lite/message.ts";
import { CalledTask } from "./called-task.ts";
import { Discovery } from "./discovery.ts";
import type { TaskRecords } from "./task-records.ts";
import type { CallTools } from "./tools.ts";

/** Tasks that are under way at one peer. */
const MAX_OPEN = 1_000;
/** Tasks that have ended, or wait for an answer of the caller. */
const MAX_SETTLED = 200;
/** The form of the ids that `ParticipantCaller` creates. */
export const TASK_ID = /^t-[\w-]{16}$/;

interface CallerOptions {
  readonly address: ChatAddress;
  readonly tools: CallTools;
  readonly records: TaskRecords;
}

type Call = Pick<CallContext, "signal" | "hops">;

export class ParticipantCaller implements PeerCaller {
  readonly can = PARTICIPANT_CAN;
  readonly #options: CallerOptions;
  readonly #where: string;
  readonly #open = new Map<string, CalledTask>();
  readonly #settled = new Map<string, CalledTask>();
  readonly #discovery: Discovery;
  #name: string;

  constructor(options: CallerOptions) {
    const { network, participant, room } = options.address;
    this.#options = options;
    this.#where = `${participant} in ${room} on ${network}`;
    this.#name = participant;
    this.#discovery = new Discovery({
      tools: options.tools,
      where: this.#where,
      address: formatChatAddress(options.address),
      post: (message) => this.#post({ content: message }),
    });
  }

  get address(): ChatAddress {
    return this.#options.address;
  }

  get card(): AgentCard | undefined {
    return this.#discovery.card;
  }

  async dispatch<O extends Operation>(operation: O, call: Call): Promise<OutcomeOf<O>>;
  async dispatch(operation: Operation, call: Call): Promise<Outcomes[Operation["kind"]]> {
    const { signal } = call;
    switch (operation.kind) {
      case "stream":
        return (await this.#send(operation, call)).follow();
      case "send": {
        const task = await this.#send(operation, call);
        if (operation.configuration?.returnImmediately !== true) await untilSettled(task.follow(), signal);
        return { task: task.toTask() };
      }
      case "subscribe":
        return (await this.find(operation.id)).follow();
      case "get":
        return (await this.find(operation.id)).toTask();
      case "cancel":
        return this.#cancel(operation.id, signal);
      case "extended-card":
        return untilAborted(this.#discovery.discover(), signal);
      default:
        throw new ProtocolError("UNSUPPORTED_OPERATION", `A2A-Lite does not support the operation ${operation.kind}.`);
    }
  }

  /** Whether the message is about a call. It is of this peer. */
  take(received: Received): boolean {
    const { parsed, post } = received;
    this.#name = post.sender.name;
    if (parsed.kind === "chat") return this.#takeProse(received);
    if (parsed.kind === "message" && parsed.message.type === "card") {
      this.#discovery.receive(received);
      return true;
    }
    const id = answeredTask(parsed);
    const task = id === undefined ? undefined : this.findTask(id);
    task?.receive(received);
    return task !== undefined;
  }

  /** Undefined if it is not in memory. */
  findTask(id: string): CalledTask | undefined {
    return this.#open.get(id) ?? this.#settled.get(id);
  }

  close(): void {
    for (const task of [...this.#open.values(), ...this.#settled.values()]) task.close();
  }

  async #send(input: SendInput, { hops, signal }: Call): Promise<CalledTask> {
    const { taskId } = input.message;
    if (taskId === undefined && this.#open.size >= MAX_OPEN) {
      throw new ProtocolError("RESOURCE_EXHAUSTED", statusText("peerBusy"));
    }
    const task = taskId === undefined ? this.#create(input) : await this.find(taskId, { orBuild: true });
    if (task.isEnded) {
      throw new ProtocolError("UNSUPPORTED_OPERATION", "The task has ended.", { metadata: { taskId: task.id } });
    }
    this.#settled.delete(task.id);
    this.#open.set(task.id, task);
    // As other dialects count them: the agents that the work has passed through, this one included.
    const passed = hops === undefined ? undefined : Math.max(hops.hops, hops.ancestors.length - 1) + 1;
    try {
      const losses: Loss[] = [];
      const { files, message } = encodeTask(task.id, input, passed, losses);
      if (losses.length > 0) this.#options.tools.report(losses);
      const key = `${task.id}/${input.message.messageId}`;
      const before = task.status;
      task.markPosted((await this.#post({ content: message, files, key }, signal)).id, before);
    } catch (error) {
      if (taskId === undefined) task.fail(error as ProtocolError);
      else this.#settle(task);
      throw error;
    }
    await this.#remember(task, task.last);
    return task;
  }

  async #cancel(id: string, signal: Signal | undefined): Promise<Task> {
    const task = await this.find(id, { orBuild: true });
    const metadata = { taskId: id };
    if (task.isEnded) throw new ProtocolError("TASK_NOT_CANCELABLE", "The task has ended.", { metadata });
    const { clock, times } = this.#options.tools;
    const message: LiteMessage = { type: "cancel", task: id, body: "", attachments: [], others: {} };
    task.posts.add((await this.#post({ content: message, key: `${id}/cancel` }, signal)).id);
    const late = new Promise<never>((_resolve, reject) => {
      const text = `${this.#where} did not confirm the cancellation within ${times.cancelMs / 1_000} s.`;
      const stop = clock.after(times.cancelMs, () => reject(new ProtocolError("UNAVAILABLE", text, { metadata })));
      void task.ended.then(stop);
    });
    await untilAborted(Promise.race([task.ended, late]), signal);
    if (task.state === "TASK_STATE_CANCELED") return task.toTask();
    throw new ProtocolError("TASK_NOT_CANCELABLE", "The task ended before it was cancelled.", { metadata });
  }

  #create({ message }: SendInput): CalledTask {
    const { ids } = this.#options.tools;
    // Short, because it is in every marker, and as hard to guess as the id that it is derived from.
    return this.#build(deriveId("t", ids.task()), message.contextId ?? ids.context());
  }

  /**
   * Also one of an earlier process. `orBuild`: of one that this process knows nothing of, the peer may know more: whether
   * it is this participant's.
   */
  async find(id: string, { orBuild = false } = {}): Promise<CalledTask> {
    const known = this.findTask(id);
    if (known !== undefined) return known;
    const { address, records } = this.#options;
    const record = await records.read(id);
    const present = this.findTask(id);
    if (present !== undefined) return present;
    const isUnknown = record === undefined && orBuild && TASK_ID.test(id) && this.#open.size < MAX_OPEN;
    if (!isUnknown && (record?.peer !== address.participant || record.room !== address.room)) throw taskNotFound(id);
    const task = this.#build(id, record?.contextId ?? this.#options.tools.ids.context());
    this.#open.set(id, task);
    if (record !== undefined) task.resume(record.posts, record.last);
    return task;
  }

  #build(id: string, contextId: string): CalledTask {
    const { address, tools } = this.#options;
    const task: CalledTask = new CalledTask({
      id,
      contextId,
      where: this.#where,
      tools,
      drop: (why) => tools.drop(address.participant, why),
      remember: (last) => void this.#remember(task, last),
      onSettled: () => this.#settle(task),
    });
    return task;
  }

  #settle(task: CalledTask): void {
    this.#open.delete(task.id);
    this.#settled.set(task.id, task);
    const [oldest] = this.#settled.values();
    if (this.#settled.size <= MAX_SETTLED || oldest === undefined) return;
    oldest.close();
    this.#settled.delete(oldest.id);
  }

  #remember(task: CalledTask, last: LiteMessage | undefined): Promise<void> {
    const { participant: peer, room } = this.#options.address;
    const { contextId } = task.toTask();
    return this.#options.records.write(task.id, {
      room,
      peer,
      contextId,
      posts: [...task.posts],
      last,
    });
  }

  #takeProse(received: Received): boolean {
    const { post } = received;
    const tasks = [...this.#open.values()];
    if (this.#discovery.receiveProse(post, tasks.length === 0 && this.#isForUs(post))) return true;
    const named = tasks.find((task) => isAbout(task, post));
    if (named !== undefined) {
      // A peer that sends markers comments on its work.
      if (named.takesProse) named.receiveProse(received);
      return true;
    }
    const task = tasks.find(
      (one) => one.takesProse && (post.replyTo === undefined ? this.#isForUs(post) : one.isPosting),
    );
    task?.receiveProse(received);
    return task !== undefined;
  }

  /** Where posts cannot reply, what follows the task in the room is taken for the answer. */
  #isForUs(post: Post): boolean {
    const { outbox, self } = this.#options.tools;
    const own = self()?.id;
    return post.direct || (own !== undefined && post.mentions.includes(own)) || outbox.abilities?.replies === false;
  }

  async #post(
    { content, ...outgoing }: Omit<Outgoing, "to" | "content"> & { readonly content: LiteMessage },
    signal?: Signal,
  ): Promise<{ readonly id: string }> {
    const { address, tools } = this.#options;
    const { clock, outbox, times } = tools;
    const late = new AbortController();
    const stop = clock.after(times.postMs, () => late.abort());
    try {
      const stopped = signal === undefined ? late.signal : AbortSignal.any([toAbortSignal(signal), late.signal]);
      const to = { room: address.room, peer: { id: address.participant, name: this.#name } };
      // Others in the room must not take it for theirs.
      const sending = outbox.send({ ...outgoing, content: { ...content, to: address.participant }, to }, stopped);
      return await untilAborted(sending, stopped);
    } catch (error) {
      if (signal?.aborted === true) throw abandonedError();
      if (late.signal.aborted) {
        const text = `The message for ${this.#where} could not be posted within ${times.postMs / 1_000} s.`;
        throw new ProtocolError("UNAVAILABLE", text);
      }
      const isRefused = error instanceof ChannelError;
      const what = isRefused ? `was not posted: ${error.message}` : "may not have arrived.";
      const code = isRefused && error.code === "rate-limited" ? "RESOURCE_EXHAUSTED" : "UNAVAILABLE";
      throw new ProtocolError(code, `The message for ${this.#where} ${what}`, { cause: error });
    } finally {
      stop();
    }
  }
}

function isAbout(task: CalledTask, { edits, replyTo }: Post): boolean {
  return (replyTo !== undefined && task.posts.has(replyTo)) || (edits !== undefined && task.hasProse(edits));
}

/** The task that an answer names; undefined for what is not an answer. */
export function answeredTask(parsed: Received["parsed"]): string | undefined {
  const answer = parsed.kind === "message" ? parsed.message : parsed.kind === "invalid" ? parsed : undefined;
  switch (answer?.type) {
    case "ack":
    case "status":
    case "result":
      return answer.task;
    default:
      return undefined;
  }
}

/** Reads the frames to their end. */
async function untilSettled(frames: FrameStream, signal: Signal | undefined): Promise<void> {
  const reader = frames[Symbol.asyncIterator]();
  const read = async (): Promise<void> => {
    for (let step = await reader.next(); step.done !== true; step = await reader.next());
  };
  await untilAborted(read(), signal).finally(() => reader.return?.());
}

function untilAborted<T>(work: Promise<T>, signal: Signal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise<T>((resolve, reject) => {
    const giveUp = () => reject(abandonedError());
    if (signal.aborted) giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
  });
}

function abandonedError(): ProtocolError {
  return new ProtocolError("UNAVAILABLE", "The caller did not wait for the answer.");
}
