/** The answer to one post: one post of its own, edited until the answer is complete. */
import { isRawPart, isTextPart, type Part, textOf } from "../../src/model/message.ts";
import type { FrameStream } from "../../src/model/operation.ts";
import { isInterrupted, type TaskStatus } from "../../src/model/task.ts";
import type { Channel, PostDraft } from "../../src/wire/channel.ts";

/** At the end of a text: more will come. */
export const UNFINISHED = " …";

export class RoomReply {
  readonly contextId: string;
  taskId: string | undefined;
  /** Resolves when what there is to show has been shown. */
  shown: Promise<void> = Promise.resolve();
  readonly #draft: Omit<PostDraft, "text">;
  readonly #reachable: () => Promise<Channel>;
  readonly #onPosted: (id: string) => void;
  readonly #artifacts = new Map<string, Part[]>();
  #status: TaskStatus | undefined;
  #said = "";
  #postId: string | undefined;
  #complete = false;
  #showing = false;
  #stale = false;
  #abandoned = false;

  constructor(
    draft: Omit<PostDraft, "text">,
    contextId: string,
    reachable: () => Promise<Channel>,
    onPosted: (id: string) => void,
  ) {
    this.#draft = draft;
    this.contextId = contextId;
    this.#reachable = reachable;
    this.#onPosted = onPosted;
  }

  get participant(): string {
    return this.#draft.as ?? "";
  }

  /** The task that asked something and waits for the answer. */
  get waitingTask(): string | undefined {
    return this.#status !== undefined && isInterrupted(this.#status.state) ? this.taskId : undefined;
  }

  abandon(): void {
    this.#abandoned = true;
  }

  async follow(frames: FrameStream): Promise<void> {
    for await (const batch of frames) {
      for (const { event } of batch) {
        if ("message" in event) this.#said = textOf(event.message.parts);
        else if ("task" in event) this.#take(event.task.id, event.task.status);
        else if ("statusUpdate" in event) this.#take(event.statusUpdate.taskId, event.statusUpdate.status);
        else {
          const { append, artifact } = event.artifactUpdate;
          const before = append === true ? (this.#artifacts.get(artifact.artifactId) ?? []) : [];
          this.#artifacts.set(artifact.artifactId, [...before, ...artifact.parts]);
        }
      }
      this.#show();
    }
    this.#complete = true;
    this.#show();
    await this.shown;
  }

  async fail(text: string): Promise<void> {
    this.#said = text;
    this.#complete = true;
    this.#show();
    await this.shown;
  }

  #take(taskId: string, status: TaskStatus): void {
    this.taskId = taskId;
    this.#status = status;
  }

  /** One request at a time; what changes meanwhile is in the next. */
  #show(): void {
    this.#stale = true;
    if (this.#showing) return;
    this.#showing = true;
    this.shown = this.#send();
  }

  async #send(): Promise<void> {
    while (this.#stale && !this.#abandoned) {
      this.#stale = false;
      const channel = await this.#reachable();
      try {
        await this.#update(channel);
      } catch {
        // The connection closed, and nobody knows what arrived: the next one gets it again, under the same key.
        await channel.closed;
        this.#stale = true;
      }
    }
    this.#showing = false;
  }

  async #update(channel: Channel): Promise<void> {
    const draft = this.#render(channel.abilities.maxText);
    if (this.#postId !== undefined) await channel.edit?.(this.#postId, draft);
    else {
      const { id } = await channel.post(draft);
      this.#postId = id;
      this.#onPosted(id);
    }
  }

  #render(maxText: number): PostDraft {
    const parts = [...this.#artifacts.values()].flat();
    const status = this.#status?.message === undefined ? "" : textOf(this.#status.message.parts);
    const made = parts.filter(isTextPart).map((part) => part.text);
    const text = [made.join(""), status, this.#said].filter((one) => one !== "").join("\n");
    const whole = this.#complete ? text || (this.#status?.state ?? "") : text + UNFINISHED;
    const files = parts
      .filter(isRawPart)
      .map(({ filename = "file", mediaType = "application/octet-stream", raw }) =>
        file(filename, mediaType, Buffer.from(raw, "base64")),
      );
    if (whole.length <= maxText) return { ...this.#draft, text: whole, files };
    const attached = file("answer.txt", "text/plain", Buffer.from(text));
    return {
      ...this.#draft,
      text: `${text.slice(0, maxText - UNFINISHED.length)}${UNFINISHED}`,
      files: [...files, attached],
    };
  }
}

function file(name: string, mediaType: string, bytes: Uint8Array) {
  return { name, mediaType, bytes };
}
