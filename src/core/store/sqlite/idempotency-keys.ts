import type { Message } from "../../model/message.ts";
import type { Clock } from "../../model/ports.ts";
import type { IdempotencyClaim, IdempotencyRecord } from "../contract.ts";
import { toText } from "../stored-text.ts";
import type { Connection } from "./connection.ts";
import { columns, decodeJson, fromText, type StoredText } from "./rows.ts";

interface KeyRow {
  readonly fingerprint: StoredText;
  readonly task_id: StoredText;
  readonly reply: StoredText | null;
}

export type IdempotencyKeys = ReturnType<typeof createIdempotencyKeys>;

/** The idempotency keys and what they stand for. */
export function createIdempotencyKeys({ driver }: Connection, clock: Clock) {
  const find = driver.prepare<KeyRow>(
    `SELECT ${columns("", "fingerprint, task_id, reply")} FROM idempotency
     WHERE scope = ? AND key = ? AND expires_at > ?`,
  );
  const add = driver.prepare(
    "INSERT OR REPLACE INTO idempotency (scope, key, fingerprint, task_id, expires_at) VALUES (?, ?, ?, ?, ?)",
  );
  const setReply = driver.prepare("UPDATE idempotency SET reply = ? WHERE scope = ? AND key = ? AND task_id = ?");
  const deleteExpired = driver.prepare("DELETE FROM idempotency WHERE expires_at <= ?");
  return {
    find(scope: number, key: string): IdempotencyRecord | undefined {
      const row = find.get(scope, toText(key), clock.now());
      if (row === undefined) return undefined;
      return {
        fingerprint: fromText(row.fingerprint),
        taskId: fromText(row.task_id),
        reply: row.reply === null ? undefined : (decodeJson(row.reply) as Message),
      };
    },
    add(scope: number, taskId: string, { key, fingerprint, ttlMs }: IdempotencyClaim): void {
      add.run(scope, toText(key), toText(fingerprint), toText(taskId), clock.now() + ttlMs);
    },
    setReply(scope: number, key: string, taskId: string, reply: Message): void {
      setReply.run(JSON.stringify(reply), scope, toText(key), toText(taskId));
    },
    deleteExpired(): void {
      deleteExpired.run(clock.now());
    },
  };
}
