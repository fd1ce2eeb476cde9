import type { Append, DeliveryPut, RequestCancel, Submit, Write, WriteResult } from "../../../core/store/contract.ts";
import { leaseAtSubmit } from "../../../core/store/rules.ts";
import { toText } from "../../../core/store/stored-text.ts";
import type { Query } from "./connection.ts";

type TaskWrite = Submit | Append | DeliveryPut | RequestCancel;

interface MadeRow {
  readonly at: number;
  readonly number: number;
  readonly fence: number;
  readonly flush: number;
  /** Of the segment that ends where the write's does. */
  readonly segment_flush: number | null;
}

/**
 * Writes whose answer was lost with the connection: they may have been made all the same. A write that is repeated is the
 * same object.
 */
export class UncertainWrites {
  readonly #flushes = new WeakMap<Write, readonly number[]>();

  add(writes: readonly Write[], flush: number): void {
    for (const write of writes) this.#flushes.set(write, [...(this.#flushes.get(write) ?? []), flush]);
  }

  has(write: Write): boolean {
    return this.#flushes.has(write);
  }

  /** What became of those that turn out to have been made. Which deliveries they made due is not known any more. */
  async findMade(query: Query, writes: readonly TaskWrite[]): Promise<ReadonlyMap<Write, WriteResult>> {
    const asked = writes.filter((write) => this.has(write));
    const made = new Map<Write, WriteResult>();
    if (asked.length === 0) return made;
    const rows = await query<MadeRow>(
      `SELECT i.at, t.number, t.fence, t.flush, g.flush AS segment_flush
       FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS i (id, last, at)
       JOIN @task t ON t.id = i.id LEFT JOIN @segment g ON g.task = t.seq AND g.last = i.last`,
      [asked.map(({ id }) => toText(id)), asked.map(lastNumberOf)],
    );
    for (const { at, number, fence, flush, segment_flush } of rows) {
      const write = asked[at - 1] as TaskWrite;
      const last = lastNumberOf(write);
      const written = last === null ? flush : segment_flush;
      if (written === null || this.#flushes.get(write)?.includes(written) !== true) continue;
      const due = "deliveries" in write ? (write.deliveries ?? []).map(({ route }) => route) : [];
      made.set(write, {
        ok: true,
        number: last ?? number,
        fence: fenceOf(write) ?? fence,
        ...(due.length > 0 && { due }),
      });
    }
    return made;
  }
}

/** Null: the write adds nothing to the log. */
function lastNumberOf(write: TaskWrite): number | null {
  if (write.kind === "submit") return write.entries.length;
  return write.kind === "append" && write.entries.length > 0 ? write.expect + write.entries.length : null;
}

/** Of the task after the write, if that does not depend on what it found. */
function fenceOf(write: TaskWrite): number | undefined {
  if (write.kind === "submit") return leaseAtSubmit(write).fence;
  if (write.kind !== "append" || write.fence === undefined) return undefined;
  return typeof write.lease === "object" ? write.fence + 1 : write.fence;
}
