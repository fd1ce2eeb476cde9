/**
 * The answers that an agent on a link owes. Each is stored with its message: if this process ends before the answer is
 * delivered, the next one continues.
 */

import { isObject, type JsonValue } from "../../../../core/model/json.ts";
import type { Delivery, ReplyTo } from "../../../../core/model/operation.ts";
import { createDeferred, type Deferred } from "../../../../core/wire/link.ts";
import { ANSWER_DELIVERY, whenAborted } from "../ports.ts";
import type { LinkAgentOptions } from "./options.ts";
import type { MessageHead, Reply } from "./reply.ts";
import type { Session } from "./sessions.ts";

/** What a process needs to answer a message that an earlier one received: the address of its delivery. */
export interface ReplyAddress extends MessageHead {
  readonly sessionId: string;
  readonly server: string;
  /** Keys of the frames with the task's messages: the platform may deliver them again. */
  readonly frames: readonly string[];
  readonly receiver: string;
}

/** Undefined for an address of another format. */
export function decodeReplyAddress(text: string): ReplyAddress | undefined {
  try {
    return toReplyAddress(JSON.parse(text));
  } catch {
    return undefined;
  }
}

export function toReplyAddress(value: JsonValue | undefined): ReplyAddress | undefined {
  if (!isObject(value)) return undefined;
  const { at, desktop, frames, receiver, requestId, server, sessionId, taskId } = value;
  if (typeof sessionId !== "string" || typeof taskId !== "string") return undefined;
  return {
    sessionId,
    taskId,
    requestId: typeof requestId === "string" || typeof requestId === "number" ? requestId : null,
    server: typeof server === "string" ? server : "",
    desktop: desktop === true,
    at: typeof at === "number" ? at : 0,
    frames: Array.isArray(frames) ? frames.filter((key) => typeof key === "string") : [],
    receiver: typeof receiver === "string" ? receiver : "",
  };
}

/** The platform repeats recent frames only. */
const MAX_FRAME_KEYS = 100;

interface HeldDelivery {
  readonly delivery: Delivery;
  readonly over: Deferred;
}

export class OwedReplies {
  readonly #options: Pick<LinkAgentOptions, "log" | "notifications" | "replies">;
  readonly #receiver: string;
  readonly #open = new Map<string, Reply>();
  /** The claim says that this process answers; it also protects a later registration for the same task. */
  readonly #held = new Map<Reply, HeldDelivery>();

  constructor(options: Pick<LinkAgentOptions, "context" | "log" | "notifications" | "replies">) {
    this.#options = options;
    this.#receiver = options.context.ids.message();
  }

  add(session: Session, reply: Reply): void {
    this.#open.set(keyOf({ sessionId: session.id, taskId: reply.head.taskId }), reply);
  }

  /** The reply sends nothing more. What was not delivered is left to a notification. */
  delete(session: Session, reply: Reply, isDelivered: boolean): void {
    const key = keyOf({ sessionId: session.id, taskId: reply.head.taskId });
    if (this.#open.get(key) === reply) this.#open.delete(key);
    if (isDelivered) this.delivered(reply);
    else this.#leave(reply, session.id);
  }

  find(address: ReplyAddress): Reply | undefined {
    return this.#open.get(keyOf(address));
  }

  isReceivedHere({ receiver }: ReplyAddress): boolean {
    return receiver === this.#receiver;
  }

  /** To be registered with the message. */
  replyTo(session: Session, reply: Reply): ReplyTo {
    const address: ReplyAddress = {
      ...reply.head,
      sessionId: session.id,
      requestId: reply.requestId,
      server: session.server,
      frames: reply.frames.slice(-MAX_FRAME_KEYS).map(({ key }) => key),
      receiver: this.#receiver,
    };
    const { route } = this.#options.replies;
    return { id: ANSWER_DELIVERY, route, address: JSON.stringify(address), wants: "events" };
  }

  /** Resolves when the answer is delivered or left, or the delivery is another's. */
  async hold(reply: Reply, delivery: Delivery): Promise<void> {
    if (reply.isSettled) return void (await delivery.done());
    const held = { delivery, over: createDeferred() };
    this.#held.set(reply, held);
    await Promise.race([held.over.promise, whenAborted(delivery.signal)]);
    if (this.#held.get(reply) === held) this.#held.delete(reply);
  }

  delivered(reply: Reply): void {
    this.#end(reply, (delivery) => delivery.done());
  }

  /** The answer has waited too long for a link. It stays owed if the user cannot be notified. */
  async notifyLater(session: Session, reply: Reply): Promise<void> {
    const isReachable = await this.#options.notifications?.isReachable(session.id);
    if (isReachable === true && reply.isUndelivered) this.#leave(reply, session.id);
  }

  #leave(reply: Reply, sessionId: string): void {
    this.#end(reply, (delivery) => this.leave(delivery, sessionId));
  }

  /** The answer is no longer sent over a link. */
  async leave(delivery: Delivery, sessionId: string): Promise<void> {
    const { notifications, replies } = this.#options;
    const isLeft = notifications !== undefined && (await replies.put(delivery, notifications.replyTo(sessionId)));
    if (!isLeft) await delivery.done();
  }

  #end(reply: Reply, change: (delivery: Delivery) => Promise<unknown>): void {
    const held = this.#held.get(reply);
    if (held === undefined) return;
    this.#held.delete(reply);
    change(held.delivery).catch((error: unknown) => {
      this.#options.log.warn({ err: error }, "The state of an answer to Xiaoyi could not be stored.");
    });
    held.over.resolve();
  }
}

function keyOf({ sessionId, taskId }: Pick<ReplyAddress, "sessionId" | "taskId">): string {
  return JSON.stringify([sessionId, taskId]);
}
