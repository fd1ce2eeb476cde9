/**
 * The answers that an agent on a link owes. Each is stored with its message: if this process ends before the answer is
 * delivered, the next one continues.
 */

import { isObject, type JsonValue } from "../../model/json.ts";
import type { ReplyTo } from "../../model/operation.ts";
import { ANSWER_DELIVERY } from "../xiaoyi/ports.ts";
import type { LinkAgentOptions } from "./options.ts";
import type { MessageHead, Reply } from "./reply.ts";
import type { Session } from "./sessions.ts";

/** What a process needs to answer a message that an earlier one received: the address of its delivery. */
export interface ReplyAddress extends MessageHead {
  readonly sessionId: string;
  readonly server: string;
  /** Keys of the frames with the task's messages: the platform may deliver them again. */
  readonly frames: readonly string[];
  /** The process that received the message. */
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

export class OwedReplies {
  readonly #options: Pick<LinkAgentOptions, "log" | "notifications" | "replies">;
  /** Identifies this process. */
  readonly #receiver: string;
  readonly #open = new Map<string, Reply>();

  constructor(options: Pick<LinkAgentOptions, "context" | "log" | "notifications" | "replies">) {
    this.#options = options;
    this.#receiver = options.context.ids.message();
  }

  add(session: Session, reply: Reply): void {
    this.#open.set(keyOf({ sessionId: session.id, taskId: reply.head.taskId }), reply);
  }

  delete(session: Session, reply: Reply): void {
    const key = keyOf({ sessionId: session.id, taskId: reply.head.taskId });
    if (this.#open.get(key) === reply) this.#open.delete(key);
  }

  find(address: ReplyAddress): Reply | undefined {
    return this.#open.get(keyOf(address));
  }

  /** Whether this process received the message. */
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

  /** The answer is no longer sent over a link. */
  leave(taskId: string, sessionId: string): void {
    const { notifications, replies } = this.#options;
    this.#save(
      notifications === undefined ? replies.delete(taskId) : replies.put(taskId, notifications.replyTo(sessionId)),
    );
  }

  /** The answer has waited too long for a link. It is still sent if there is one before the user is notified. */
  notifyLater(session: Session, reply: Reply): void {
    if (this.#options.notifications !== undefined) this.leave(session.taskOf(reply.head.taskId), session.id);
  }

  delivered(session: Session, reply: Reply): void {
    if (reply.isStored) this.#save(this.#options.replies.delete(session.taskOf(reply.head.taskId)));
  }

  #save(change: Promise<unknown>): void {
    change.catch((error: unknown) => {
      this.#options.log.warn({ err: error }, "The state of an answer to Xiaoyi could not be stored.");
    });
  }
}

function keyOf({ sessionId, taskId }: Pick<ReplyAddress, "sessionId" | "taskId">): string {
  return JSON.stringify([sessionId, taskId]);
}

export function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
