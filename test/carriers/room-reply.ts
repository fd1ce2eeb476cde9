/** The answer to one post: one post of its own, edited until the answer is complete. */
import { isRawPart, isTextPart, textOf } from "../../src/model/message.ts";
import { isInterrupted, isTerminal, type Task } from "../../src/model/task.ts";
import type { Channel, PostDraft } from "./channel.ts";

/** At the end of a text: more will come. */
export const UNFINISHED = " …";

/** Where an answer goes; kept with its task, so that the next process can deliver it. */
export interface ReplyAddress {
  readonly room: string;
  /** Id of the post that is answered. */
  readonly replyTo: string;
  /** Participant that answers. */
  readonly as: string;
  readonly contextId: string;
}

export class RoomReply {
  readonly address: ReplyAddress;
  task: Task | undefined;
  #postId: string | undefined;
  /** It is not known whether a post exists, or what it says. */
  #uncertain: boolean;

  constructor(address: ReplyAddress, uncertain: boolean) {
    this.address = address;
    this.#uncertain = uncertain;
  }

  /** The task that asked something and waits for the answer. */
  get waitingTask(): string | undefined {
    return this.task !== undefined && isInterrupted(this.task.status.state) ? this.task.id : undefined;
  }

  /** Resolves with the id of the post that shows it. Rejects when the channel has closed. */
  async show(channel: Channel, content: Task | string): Promise<string> {
    const draft = toDraft(this.address, content, channel.abilities.maxText);
    if (this.#postId === undefined) {
      const isRepeat = this.#uncertain;
      this.#uncertain = true;
      this.#postId = (await channel.post(draft)).id;
      if (!isRepeat) return this.#postId;
    }
    await channel.edit?.(this.#postId, draft);
    return this.#postId;
  }
}

function toDraft({ as, replyTo, room }: ReplyAddress, content: Task | string, maxText: number): PostDraft {
  const draft = { room, as, replyTo, key: `${replyTo}/${as}` };
  if (typeof content === "string") return { ...draft, text: content };
  const { artifacts = [], status } = content;
  const parts = artifacts.flatMap((artifact) => artifact.parts);
  const made = parts.filter(isTextPart).map((part) => part.text);
  const said = status.message === undefined ? "" : textOf(status.message.parts);
  const text = [made.join(""), said].filter((one) => one !== "").join("\n");
  const isComplete = isTerminal(status.state) || isInterrupted(status.state);
  const whole = isComplete ? text || status.state : text + UNFINISHED;
  const files = parts.filter(isRawPart).map(({ filename = "file", mediaType = "application/octet-stream", raw }) => ({
    name: filename,
    mediaType,
    bytes: Buffer.from(raw, "base64"),
  }));
  if (whole.length <= maxText) return { ...draft, text: whole, files };
  const attached = { name: "answer.txt", mediaType: "text/plain", bytes: Buffer.from(text) };
  const begin = text.slice(0, maxText - UNFINISHED.length);
  return { ...draft, text: `${begin}${UNFINISHED}`, files: [...files, attached] };
}
