/** What is known of the conversations on one channel. It outlives the process. */

import type { Records } from "../../../core/dialects/carrier.ts";
import type { Post } from "../../../core/wire/channel.ts";
import { digest } from "../a2a-lite/digest.ts";

const DAY_MS = 24 * 60 * 60_000;
const KEEP = { ttlMs: 90 * DAY_MS, keep: 50_000 };
/** Networks repeat recent posts only. */
const KEEP_SEEN = { ttlMs: 7 * DAY_MS, keep: 10_000 };
const MAX_CURSORS = 1_000;

/** Who talks where: the same task id of another peer, or in another thread, is another task. */
export interface Place {
  readonly room: string;
  readonly thread?: string;
  /** Id of the peer. */
  readonly peer: string;
}

export interface KnownTask {
  /** Id of the task here. */
  readonly task: string;
  readonly contextId: string;
  readonly peer: string;
  /** Id that the peer gave it; absent for what was asked in plain language. */
  readonly theirs?: string;
  /** Of the message that began it. */
  readonly fingerprint?: string;
  /** The peer reads data beside text. */
  readonly data?: boolean;
}

/** What was posted for a task. */
export interface Posted {
  readonly acknowledged?: boolean;
  /** The newest post that shows its state. */
  readonly status?: { readonly post: string; readonly content: string; readonly state: string };
  /** Page of a long answer that was posted last. */
  readonly page?: number;
}

export function placeOf({ room, sender, thread }: Post): Place {
  return { room, peer: sender.id, ...(thread !== undefined && { thread }) };
}

export class Conversations {
  readonly #records: Records;
  readonly #name: string;

  constructor(records: Records, name: string) {
    this.#records = records;
    this.#name = name;
  }

  /** The task that a peer calls so. */
  taskOf(place: Place, theirs: string): Promise<KnownTask | undefined> {
    return this.#read("tasks", keyOf(place, theirs));
  }

  /** The newest task in a conversation. */
  newestTask(place: Place): Promise<KnownTask | undefined> {
    return this.#read("talks", keyOf(place));
  }

  /** The task that a post of the agent is about. */
  async taskOfPost(room: string, post: string | undefined): Promise<KnownTask | undefined> {
    return post === undefined ? undefined : this.#read("posts", digest(room, post));
  }

  /** The task that a post of a peer began or continued. */
  async taskOfRequest(room: string, post: string | undefined): Promise<KnownTask | undefined> {
    return post === undefined ? undefined : this.#read("requests", digest(room, post));
  }

  /** `request`: the post that began it. */
  async putTask(place: Place, known: KnownTask, request: string): Promise<void> {
    await Promise.all([
      this.putRequest(place.room, request, known),
      this.#put("talks", keyOf(place), known),
      known.theirs === undefined ? undefined : this.#put("tasks", keyOf(place, known.theirs), known),
    ]);
  }

  async putRequest(room: string, post: string, known: KnownTask): Promise<void> {
    await this.#put("requests", digest(room, post), known);
  }

  async putPost(room: string, post: string, known: KnownTask): Promise<void> {
    await this.#put("posts", digest(room, post), known);
  }

  async posted(task: string): Promise<Posted> {
    return (await this.#read<Posted>("posted", task)) ?? {};
  }

  async putPosted(task: string, posted: Posted): Promise<void> {
    await this.#put("posted", task, posted);
  }

  async wasServed(post: Post): Promise<boolean> {
    return (await this.#records.record(this.#space("served"), digest(post.room, post.id))) !== undefined;
  }

  async putServed(post: Post): Promise<void> {
    await this.#records.put({
      space: this.#space("served"),
      key: digest(post.room, post.id),
      value: "1",
      ...KEEP_SEEN,
    });
  }

  /** Where reading continues, by room. */
  async cursors(): Promise<ReadonlyMap<string, string>> {
    const all = await this.#records.records(this.#space("cursors"), { limit: MAX_CURSORS });
    return new Map(all.map(({ key, value }) => [key, value]));
  }

  async putCursor(room: string, cursor: string): Promise<void> {
    await this.#records.put({ space: this.#space("cursors"), key: room, value: cursor, keep: MAX_CURSORS });
  }

  async #read<T = KnownTask>(kind: string, key: string): Promise<T | undefined> {
    const value = await this.#records.record(this.#space(kind), key);
    return value === undefined ? undefined : (JSON.parse(value) as T);
  }

  async #put(kind: string, key: string, value: KnownTask | Posted): Promise<void> {
    await this.#records.put({ space: this.#space(kind), key, value: JSON.stringify(value), ...KEEP });
  }

  #space(kind: string): string {
    return `a2a-lite:${this.#name}:${kind}`;
  }
}

function keyOf({ peer, room, thread }: Place, theirs?: string): string {
  return digest(room, thread, peer, theirs);
}
