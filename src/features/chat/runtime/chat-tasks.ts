/**
 * The tasks that participants of one channel gave the agent: a record for each task, and one index, in which its names
 * and the posts about it lead to the record. Both outlive the process.
 *
 * A post is taken up once. It is known by its room and id: in memory, for a network that delivers it twice, and by its
 * entry in the index, for one that delivers it to a later process as well. The entry is written when the engine has
 * the message. A post without one was not seen, or was cut off by a crash: a task that it began has an id made of the
 * post's, and a message for an earlier task has an entry that is `pending`, so that either is recognised.
 */

import type { Records } from "../../../core/dialects/carrier.ts";
import type { Post } from "../../../core/wire/channel.ts";
import { digest } from "../a2a-lite/digest.ts";

const DAY_MS = 24 * 60 * 60_000;
const KEEP_TASKS = { ttlMs: 90 * DAY_MS, keep: 50_000 };
/** A task has two names at most, and some posts. */
const KEEP_INDEX = { ttlMs: 90 * DAY_MS, keep: 200_000 };
/** Networks repeat recent posts only. */
const ANSWERED_MS = 7 * DAY_MS;
const MAX_CURSORS = 1_000;
/** Posts that are recognised in memory. */
const MAX_SEEN = 10_000;

/** Who writes where: the same task id of another participant, or in another thread, is another task. */
export interface Place {
  readonly room: string;
  readonly thread?: string;
  /** Id of the participant. */
  readonly peer: string;
}

export interface ChatTask {
  /** Id of the task in the engine. */
  readonly task: string;
  readonly contextId: string;
  /** Id of the participant that gave it. */
  readonly peer: string;
  /** Id that the participant gave it; absent for what was asked in plain language. */
  readonly theirs?: string;
  /** Digest of the message that began it. */
  readonly fingerprint?: string;
  /** The participant reads data beside text. */
  readonly data?: boolean;
  /** The newest post that shows its state. */
  readonly status?: { readonly post: string; readonly content: string; readonly state: string };
  /** Page of a long answer that was posted last. */
  readonly page?: number;
}

type Space = "records" | "index" | "cursors";

interface PostEntry {
  /** Id of the task that the post is about; absent for one that was answered without a task. */
  readonly task?: string;
  /** The agent posted it. */
  readonly own?: boolean;
  /** The engine may not have its message yet. */
  readonly pending?: boolean;
}

export function placeOf({ room, sender, thread }: Post): Place {
  return { room, peer: sender.id, thread };
}

export class ChatTasks {
  readonly #records: Records;
  readonly #name: string;
  readonly #seen = new Set<string>();

  constructor(records: Records, name: string) {
    this.#records = records;
    this.#name = name;
  }

  /** Whether this process has got the post before. Edits may have the id of the post that they replace. */
  isRepeated({ at, edits, id, room }: Post): boolean {
    const key = JSON.stringify(edits === undefined ? [room, id] : [room, id, edits, at]);
    if (this.#seen.has(key)) return true;
    this.#seen.add(key);
    const [oldest] = this.#seen;
    if (this.#seen.size > MAX_SEEN && oldest !== undefined) this.#seen.delete(oldest);
    return false;
  }

  async entryOf(room: string, post: string): Promise<PostEntry | undefined> {
    const value = await this.#records.record(this.#space("index"), digest("post", room, post));
    return value === undefined ? undefined : (JSON.parse(value) as PostEntry);
  }

  async putEntry(room: string, post: string, entry: PostEntry): Promise<void> {
    const keep = entry.task === undefined ? { ...KEEP_INDEX, ttlMs: ANSWERED_MS } : KEEP_INDEX;
    await this.#put("index", digest("post", room, post), JSON.stringify(entry), keep);
  }

  async read(task: string | undefined): Promise<ChatTask | undefined> {
    const value = task === undefined ? undefined : await this.#records.record(this.#space("records"), task);
    return value === undefined ? undefined : (JSON.parse(value) as ChatTask);
  }

  /** The task that a participant calls so. */
  async named(place: Place, theirs: string): Promise<ChatTask | undefined> {
    return this.read(await this.#records.record(this.#space("index"), keyOf(place, theirs)));
  }

  /** The newest task of a participant in a place. */
  async newest(place: Place): Promise<ChatTask | undefined> {
    return this.read(await this.#records.record(this.#space("index"), keyOf(place)));
  }

  /** The task that a post of the agent is about, or one of this participant. */
  async ofPost(room: string, post: string | undefined, sender: string): Promise<ChatTask | undefined> {
    const entry = post === undefined ? undefined : await this.entryOf(room, post);
    const task = await this.read(entry?.task);
    return entry?.own === true || task?.peer === sender ? task : undefined;
  }

  /** Before the engine has it: what follows in the room may name it at once. */
  async add(place: Place, task: ChatTask): Promise<void> {
    await Promise.all([
      this.#put("records", task.task, JSON.stringify(task), KEEP_TASKS),
      this.#put("index", keyOf(place), task.task, KEEP_INDEX),
      task.theirs === undefined ? undefined : this.#put("index", keyOf(place, task.theirs), task.task, KEEP_INDEX),
    ]);
  }

  async update(
    task: ChatTask,
    change: { readonly status?: ChatTask["status"] | undefined; readonly page?: number },
  ): Promise<void> {
    const target = { space: this.#space("records"), key: task.task, ...KEEP_TASKS };
    await this.#records.update(target, (before) => {
      return JSON.stringify({ ...(before === undefined ? task : (JSON.parse(before) as ChatTask)), ...change });
    });
  }

  /** Where reading continues, by room. */
  async cursors(): Promise<ReadonlyMap<string, string>> {
    const all = await this.#records.records(this.#space("cursors"), { limit: MAX_CURSORS });
    return new Map(all.map(({ key, value }) => [key, value]));
  }

  async putCursor(room: string, cursor: string): Promise<void> {
    await this.#put("cursors", room, cursor, { keep: MAX_CURSORS });
  }

  async #put(kind: Space, key: string, value: string, keep: { readonly ttlMs?: number; readonly keep: number }) {
    await this.#records.put({ space: this.#space(kind), key, value, ...keep });
  }

  #space(kind: Space): string {
    return `a2a-lite:${this.#name}:${kind}`;
  }
}

function keyOf({ peer, room, thread }: Place, theirs?: string): string {
  return digest("task", room, thread, peer, theirs);
}
