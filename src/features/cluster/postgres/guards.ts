import type { TaskState } from "../../../core/model/task.ts";
import type { Scope } from "../../../core/store/contract.ts";
import { stateOf, toText, unescapeText } from "../../../core/store/stored-text.ts";
import type { Query } from "./connection.ts";

interface GuardRow {
  readonly id: string;
  readonly seq: number;
  readonly version: number;
  readonly flush: number;
  readonly scope: number;
  readonly agent: string;
  readonly tenant: string;
  readonly owner: string;
  readonly state: number;
  readonly number: number;
  readonly fence: number;
  readonly node: string | null;
  readonly turn: number;
  readonly attempt: number;
  readonly status_ts: number;
  readonly moved: string;
  readonly message_segment: number | null;
  readonly deliveries: boolean;
}

/** A task as a write finds it: what is decided from it is written only if it is still of this version. */
export interface FoundTask {
  readonly seq: number;
  readonly version: number;
  /** The statement that changed it last. */
  readonly flush: number;
  readonly scope: Scope;
  readonly state: TaskState;
  readonly number: number;
  readonly fence: number;
  readonly node: string | undefined;
  readonly turn: number;
  readonly attempt: number;
  readonly statusTime: number;
  readonly moved: string;
  readonly messageSegment: number | null;
  readonly deliveries: boolean;
}

/** By the ids of the tasks; those that do not exist are missing. */
export async function readGuards(query: Query, ids: readonly string[]): Promise<Map<string, FoundTask>> {
  const rows = await query<GuardRow>(
    `SELECT t.id, t.seq, t.version, t.flush, t.scope, s.agent, s.tenant, s.owner, t.state, t.number, t.fence, t.node,
       t.turn, t.attempt, t.status_ts, t.moved, t.message_segment, t.deliveries
     FROM @task t JOIN @scope s ON s.id = t.scope WHERE t.id = ANY($1::text[])`,
    [ids.map(toText)],
  );
  return new Map(rows.map((row) => [unescapeText(row.id), fromGuardRow(row)]));
}

function fromGuardRow(row: GuardRow): FoundTask {
  return {
    seq: row.seq,
    version: row.version,
    flush: row.flush,
    scope: { agent: unescapeText(row.agent), tenant: unescapeText(row.tenant), owner: unescapeText(row.owner) },
    state: stateOf(row.state),
    number: row.number,
    fence: row.fence,
    node: row.node === null ? undefined : unescapeText(row.node),
    turn: row.turn,
    attempt: row.attempt,
    statusTime: row.status_ts,
    moved: row.moved,
    messageSegment: row.message_segment,
    deliveries: row.deliveries,
  };
}

/** Tasks at the same time that stream here; beyond that those written longest ago are read again. */
const MAX_KNOWN_TASKS = 10_000;

/** Tasks that this node runs, as it left them: the next write to each needs no look before. Others may have changed them. */
export class KnownTasks {
  readonly #tasks = new Map<string, FoundTask>();

  get(id: string): FoundTask | undefined {
    return this.#tasks.get(id);
  }

  set(id: string, task: FoundTask): void {
    this.#tasks.delete(id);
    if (task.node === undefined) return;
    this.#tasks.set(id, task);
    if (this.#tasks.size <= MAX_KNOWN_TASKS) return;
    for (const oldest of this.#tasks.keys()) {
      this.#tasks.delete(oldest);
      break;
    }
  }

  forget(id: string): void {
    this.#tasks.delete(id);
  }
}
