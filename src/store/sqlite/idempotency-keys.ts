import type { Message } from "../../model/message.ts";
import type { Clock } from "../../model/ports.ts";
import type { IdempotencyClaim, IdempotencyRecord } from "../contract.ts";
import type { Connection } from "./connection.ts";
import type { SqliteStatement } from "./driver.ts";
import { columns, decodeJson, fromText, type StoredText, toText } from "./rows.ts";

interface KeyRow {
  readonly fingerprint: StoredText;
  readonly task_id: StoredText;
  readonly reply: StoredText | null;
}

/** The idempotency keys and what they stand for. */
export class IdempotencyKeys {
  readonly #clock: Clock;
  readonly #find: SqliteStatement<KeyRow>;
  readonly #retain: SqliteStatement<object>;
  readonly #answer: SqliteStatement<object>;
  readonly #forget: SqliteStatement<object>;

  constructor({ driver }: Connection, clock: Clock) {
    this.#clock = clock;
    this.#find = driver.prepare(
      `SELECT ${columns("", "fingerprint, task_id, reply")} FROM idempotency
       WHERE scope = ? AND key = ? AND expires_at > ?`,
    );
    this.#retain = driver.prepare(
      "INSERT OR REPLACE INTO idempotency (scope, key, fingerprint, task_id, expires_at) VALUES (?, ?, ?, ?, ?)",
    );
    this.#answer = driver.prepare("UPDATE idempotency SET reply = ? WHERE scope = ? AND key = ? AND task_id = ?");
    this.#forget = driver.prepare("DELETE FROM idempotency WHERE expires_at <= ?");
  }

  find(scope: number, key: string): IdempotencyRecord | undefined {
    const row = this.#find.get(scope, toText(key), this.#clock.now());
    if (row === undefined) return undefined;
    return {
      fingerprint: fromText(row.fingerprint),
      taskId: fromText(row.task_id),
      reply: row.reply === null ? undefined : (decodeJson(row.reply) as Message),
    };
  }

  add(scope: number, taskId: string, { key, fingerprint, ttlMs }: IdempotencyClaim): void {
    this.#retain.run(scope, toText(key), toText(fingerprint), toText(taskId), this.#clock.now() + ttlMs);
  }

  setReply(scope: number, key: string, taskId: string, reply: Message): void {
    this.#answer.run(JSON.stringify(reply), scope, toText(key), toText(taskId));
  }

  deleteExpired(): void {
    this.#forget.run(this.#clock.now());
  }
}
