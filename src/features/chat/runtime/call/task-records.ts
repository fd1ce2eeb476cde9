/** Records of tasks at other participants, which outlive the process. */

import { parseResponse } from "../../../../core/dialects/shared/responses.ts";
import { isObject } from "../../../../core/model/json.ts";
import { DIALECT_NAME } from "../../a2a-lite/index.ts";
import type { LiteMessage } from "../../a2a-lite/message.ts";
import type { CallsTools } from "../options.ts";

/** How long a task can be continued, or its end be read again. */
const TTL_MS = 7 * 24 * 60 * 60_000;
const MAX_RECORDS = 10_000;
/** Of an end or a question; longer ones are lost if the process stops before they are shown. */
const MAX_LENGTH = 128 * 1024;

interface TaskRecord {
  readonly room: string;
  readonly peer: string;
  readonly contextId: string;
  /** Posts that the peer may reply to. */
  readonly posts: readonly string[];
  /** The end, or the question that the task waits for. */
  readonly last?: LiteMessage;
}

export interface TaskRecords {
  read(id: string): Promise<TaskRecord | undefined>;
  /** Id of the task that a post is about. */
  findByPost(room: string, post: string): Promise<string | undefined>;
  write(id: string, record: TaskRecord): Promise<void>;
  /** Resolves when all that was written so far is stored, or failed to be. */
  written(): Promise<void>;
}

export function createTaskRecords({ entry, host, log }: CallsTools): TaskRecords {
  const { records } = host;
  const tasks = `${DIALECT_NAME}-calls:${entry.name}`;
  const posts = `${tasks}:posts`;
  const options = { ttlMs: TTL_MS, keep: MAX_RECORDS };
  const keyOf = (room: string, post: string) => JSON.stringify([room, post]);
  const writing = new Set<Promise<void>>();

  async function write(id: string, record: TaskRecord): Promise<void> {
    const whole = JSON.stringify(record);
    const { last: _long, ...short } = record;
    const value = whole.length <= MAX_LENGTH ? whole : JSON.stringify(short);
    const newest = record.posts.at(-1);
    try {
      await records.put({ space: tasks, key: id, value, ...options });
      if (newest === undefined || record.last !== undefined) return;
      await records.put({ space: posts, key: keyOf(record.room, newest), value: id, ...options });
    } catch (error) {
      log.warn({ channel: entry.name, err: error }, "A task at an agent in a chat channel could not be stored.");
    }
  }

  return {
    async read(id) {
      const text = await records.record(tasks, id);
      const value = text === undefined ? undefined : parseResponse(text);
      return isObject(value) ? (value as TaskRecord & typeof value) : undefined;
    },
    findByPost: (room, post) => records.record(posts, keyOf(room, post)),
    write(id, record) {
      const written: Promise<void> = write(id, record).finally(() => writing.delete(written));
      writing.add(written);
      return written;
    },
    async written() {
      await Promise.all(writing);
    },
  };
}
