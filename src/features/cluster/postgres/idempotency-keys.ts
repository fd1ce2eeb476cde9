import type { Message } from "../../../core/model/message.ts";
import type { IdempotencyRecord, IdempotencyScope } from "../../../core/store/contract.ts";
import { parseJson, toText, unescapeText } from "../../../core/store/stored-text.ts";
import type { Database } from "./connection.ts";

interface KeyRow {
  readonly at: number;
  readonly fingerprint: string;
  readonly task_id: string;
  readonly reply: string | null;
}

export type IdempotencyKeys = ReturnType<typeof createIdempotencyKeys>;

/** The idempotency keys and what they stand for. They are claimed by the statements that write to tasks. */
export function createIdempotencyKeys({ query }: Database) {
  /** One answer per key, in order. */
  async function findAll(keys: readonly IdempotencyScope[]): Promise<(IdempotencyRecord | undefined)[]> {
    if (keys.length === 0) return [];
    const rows = await query<KeyRow>(
      `SELECT i.at, k.fingerprint, k.task_id, k.reply
       FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS i (owner, tenant, agent, key, at)
       JOIN @scope s ON s.owner = i.owner AND s.tenant = i.tenant AND s.agent = i.agent
       JOIN @idempotency k ON k.scope = s.id AND k.key = i.key AND k.expires_at > @now`,
      [
        keys.map(({ owner }) => toText(owner)),
        keys.map(({ tenant }) => toText(tenant)),
        keys.map(({ agent }) => toText(agent)),
        keys.map(({ key }) => toText(key)),
      ],
    );
    const records: (IdempotencyRecord | undefined)[] = keys.map(() => undefined);
    for (const { at, fingerprint, task_id, reply } of rows) {
      records[at - 1] = {
        fingerprint: unescapeText(fingerprint),
        taskId: unescapeText(task_id),
        reply: reply === null ? undefined : (parseJson(reply) as Message),
      };
    }
    return records;
  }

  return {
    findAll,
    async find(key: IdempotencyScope): Promise<IdempotencyRecord | undefined> {
      return (await findAll([key]))[0];
    },
    async deleteExpired(): Promise<void> {
      await query("DELETE FROM @idempotency WHERE expires_at <= @now");
    },
  };
}
