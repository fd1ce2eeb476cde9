import { randomInt } from "node:crypto";
import type {
  DeliveryDelete,
  DeliveryProgress,
  Discard,
  IdempotencyScope,
  RecordWrite,
  Remember,
  Submit,
  Write,
  WriteResult,
} from "../../../core/store/contract.ts";
import { encodeAll, encodeWrites } from "../../../core/store/encode-writes.ts";
import { acceptWrite, findRefusal, scopeKey } from "../../../core/store/rules.ts";
import { addTasks } from "./add-tasks.ts";
import { changeTasks } from "./change-tasks.ts";
import {
  type ChangeWrite,
  type DecidedChange,
  type DecidedSubmit,
  decideChange,
  decideSubmit,
  toKnownTask,
} from "./changes.ts";
import type { Database, Query } from "./connection.ts";
import { type Deliveries, toEffects } from "./deliveries.ts";
import type { DeliveryOutbox } from "./delivery-claims.ts";
import { isUncertain } from "./errors.ts";
import { type FoundTask, KnownTasks, readGuards } from "./guards.ts";
import type { IdempotencyKeys } from "./idempotency-keys.ts";
import type { Leases } from "./leases.ts";
import {
  type Attempt,
  holderInTheWay,
  keyOfAppend,
  keyOfSubmit,
  nodesOf,
  type Pending,
  settleAll,
  settleInGroups,
  settleResults,
  splitByKey,
} from "./pending-writes.ts";
import type { Records } from "./records.ts";
import type { Scopes } from "./scopes.ts";
import { discardTasks, remember } from "./task-statements.ts";
import { UncertainWrites } from "./uncertain-writes.ts";

interface WriterParts {
  readonly database: Database;
  readonly scopes: Scopes;
  readonly keys: IdempotencyKeys;
  readonly leases: Leases;
  readonly deliveries: Deliveries;
  readonly outbox: DeliveryOutbox;
  readonly records: Records;
}

const MAX_FLUSH = 2 ** 47;

/**
 * All changes that callers ask for. What is to be written is decided here, by the rules that all stores share, from the
 * rows as they were found; one statement for all of a kind writes it where they are still so, and the others are looked
 * at again.
 */
export class Writer {
  readonly #parts: WriterParts;
  readonly #known = new KnownTasks();
  readonly #uncertain = new UncertainWrites();

  constructor(parts: WriterParts) {
    this.#parts = parts;
  }

  /** At most one write per task. */
  async write(writes: readonly Write[]): Promise<WriteResult[]> {
    const results: WriteResult[] = [];
    const groups = new Map<Write["kind"], Pending[]>();
    for (const [at, encoded] of encodeAll(encodeWrites(writes)).entries()) {
      const settle = (result: WriteResult) => {
        results[at] = result;
      };
      const { kind } = encoded.write;
      const group = groups.get(kind);
      if (group === undefined) groups.set(kind, [{ ...encoded, settle }]);
      else group.push({ ...encoded, settle });
    }
    const of = <Kind extends Write>(...kinds: Kind["kind"][]) =>
      kinds.flatMap((kind) => groups.get(kind) ?? []) as Pending<Kind>[];
    await settleAll([
      settleInGroups(of<Submit>("submit"), this.#submit),
      settleInGroups(of<ChangeWrite>("append", "delivery-put", "request-cancel"), this.#change),
      settleInGroups(of<Discard>("discard"), this.#changeWith(discardTasks)),
      settleInGroups(of<Remember>("remember"), this.#changeWith(remember)),
      settleInGroups(of<DeliveryDelete>("delivery-delete"), this.#deleteDeliveries),
      settleInGroups(of<RecordWrite>("record-put", "record-delete"), this.#writeRecords),
    ]);
    await settleInGroups(of<DeliveryProgress>("delivery-progress"), this.#progress);
    return results;
  }

  /** The statement has a number, by which it is recognised if its answer is lost. */
  async #send<Row>(group: readonly Pending[], statement: (flush: number) => Promise<Row>): Promise<Row> {
    const flush = randomInt(MAX_FLUSH);
    try {
      return await statement(flush);
    } catch (error) {
      const writes = group.map(({ write }) => write);
      for (const write of writes) if ("id" in write) this.#known.forget(write.id);
      if (isUncertain(error)) this.#uncertain.add(writes, flush);
      throw error;
    }
  }

  /** Settles those that were made by a statement whose answer was lost, and returns the others. */
  async #settleMade<Kind extends Submit | ChangeWrite>(group: readonly Pending<Kind>[]): Promise<Pending<Kind>[]> {
    const writes = group.map(({ write }) => write);
    const made = await this.#uncertain.findMade(this.#parts.database.query, writes);
    return group.filter(({ write, settle }) => {
      const result = made.get(write);
      if (result !== undefined) settle(result);
      return result === undefined;
    });
  }

  /** Settles those whose key is known, and returns the others. */
  async #settleDuplicates<Kind extends Write>(
    group: readonly Pending<Kind>[],
    keyOf: (write: Kind) => IdempotencyScope | undefined,
  ): Promise<Pending<Kind>[]> {
    const keyed = group.flatMap((pending) => {
      const key = keyOf(pending.write);
      return key === undefined ? [] : [{ pending, key }];
    });
    const records = await this.#parts.keys.findAll(keyed.map(({ key }) => key));
    const settled = new Set<Pending<Kind>>();
    for (const [at, { pending }] of keyed.entries()) {
      const record = records[at];
      if (record === undefined) continue;
      pending.settle({ ok: false, refusal: "duplicate", record });
      settled.add(pending);
    }
    return group.filter((pending) => !settled.has(pending));
  }

  readonly #submit: Attempt<Submit> = async (given, again) => {
    const { database, scopes, leases } = this.#parts;
    const { query } = database;
    let group = await this.#settleMade(given);
    if (again) {
      group = await this.#settleDuplicates(group, keyOfSubmit);
      const taken = await readGuards(
        query,
        group.map(({ write }) => write.id),
      );
      for (const { write, settle } of group) if (taken.has(write.id)) settle({ ok: false, refusal: "exists" });
      group = group.filter(({ write }) => !taken.has(write.id));
    }
    const { first, later } = splitByKey(group);
    if (first.length === 0) return later;
    first.sort((one, other) => (one.write.id < other.write.id ? -1 : 1));
    const numbers = await scopes.intern(first.map(({ write }) => write));
    await leases.record(first.flatMap(({ write }) => nodesOf(write)));
    const rows = await this.#send(first, async (flush) => {
      const decided = first.map((pending, at) => decideSubmit(pending.write, pending, numbers[at] as number, flush));
      const additions = {
        segments: decided.flatMap(({ segments }, at) => segments(at + 1)),
        puts: decided.flatMap(({ puts }, at) => puts(at + 1)),
      };
      const written = await addTasks(
        query,
        flush,
        decided.map(({ row }) => row),
        additions,
      );
      return written.map((row) => ({ ...(decided[row.at - 1] as DecidedSubmit), row }));
    });
    for (const { row, after, registrations } of rows) {
      const { write, settle } = first[row.at - 1] as Pending<Submit>;
      this.#known.set(write.id, toKnownTask(after, row));
      settle(acceptWrite(after.number, after.fence, toEffects(row, registrations, { ...after, id: write.id })));
    }
    const accepted = new Set(rows.map(({ row }) => row.at));
    return [...first.filter((_, at) => !accepted.has(at + 1)), ...later];
  };

  readonly #change: Attempt<ChangeWrite> = async (given, again) => {
    const { database, leases } = this.#parts;
    let group = await this.#settleMade(given);
    const guards = await this.#findTasks(group);
    if (again) group = await this.#settleDuplicates(group, keyOfAppend(guards.tasks));
    const expired = await leases.findExpired(group.flatMap(({ write }) => holderInTheWay(write, guards.tasks)));
    const left: Pending<ChangeWrite>[] = [];
    const decided: (DecidedChange & { readonly pending: Pending<ChangeWrite> })[] = [];
    for (const pending of group) {
      const { write, segments, settle } = pending;
      const decision = decideChange(write, segments, guards.tasks.get(write.id), expired);
      if (typeof decision !== "string") decided.push({ pending, ...decision });
      // What is known of a task here may be out of date, and a message that is repeated is recognised first.
      else if (guards.known.has(write.id) || (!again && "idempotency" in write)) {
        this.#known.forget(write.id);
        left.push(pending);
      } else settle({ ok: false, refusal: decision });
    }
    if (decided.length === 0) return left;
    decided.sort((one, other) => one.row.seq - other.row.seq);
    await leases.record(decided.flatMap(({ pending }) => nodesOf(pending.write)));
    const rows = await this.#send(
      decided.map(({ pending }) => pending),
      (flush) =>
        changeTasks(
          database.query,
          flush,
          decided.map(({ row }) => row),
          {
            segments: decided.flatMap(({ segments }, at) => segments(at + 1)),
            puts: decided.flatMap(({ puts }, at) => puts(at + 1)),
          },
        ),
    );
    const accepted = new Set<number>();
    for (const row of rows) {
      const { pending, after, registrations } = decided[row.at - 1] as (typeof decided)[number];
      const { id } = pending.write;
      accepted.add(row.at);
      this.#known.set(id, toKnownTask(after, row));
      pending.settle(acceptWrite(after.number, after.fence, toEffects(row, registrations, { ...after, id })));
    }
    for (const [at, { pending }] of decided.entries()) {
      if (accepted.has(at + 1)) continue;
      this.#known.forget(pending.write.id);
      left.push(pending);
    }
    return left;
  };

  /** Tasks that this node runs as it knows them, the others as they are now. */
  async #findTasks(group: readonly Pending<ChangeWrite>[]) {
    const tasks = new Map<string, FoundTask>();
    const missing: string[] = [];
    for (const { write } of group) {
      const known = write.kind === "append" ? this.#known.get(write.id) : undefined;
      if (known === undefined) missing.push(write.id);
      else tasks.set(write.id, known);
    }
    const known = new Set(tasks.keys());
    if (missing.length > 0) {
      for (const [id, task] of await readGuards(this.#parts.database.query, missing)) tasks.set(id, task);
    }
    return { tasks, known };
  }

  #changeWith<Kind extends Discard | Remember>(
    statement: (query: Query, writes: readonly { write: Kind; task: FoundTask }[]) => Promise<ReadonlySet<number>>,
  ): Attempt<Kind> {
    return async (group) => {
      const { query } = this.#parts.database;
      const tasks = await readGuards(
        query,
        group.map(({ write }) => write.id),
      );
      const found: { pending: Pending<Kind>; write: Kind; task: FoundTask }[] = [];
      for (const pending of group) {
        const { write, settle } = pending;
        const task = tasks.get(write.id);
        const refusal = findRefusal(task, write, NO_ONE_EXPIRED);
        if (task !== undefined && refusal === undefined) found.push({ pending, write, task });
        else if (write.kind === "discard" && task === undefined && this.#uncertain.has(write)) {
          settle({ ok: true, number: write.expect ?? 0, fence: write.fence });
        } else settle({ ok: false, refusal: refusal ?? "missing" });
      }
      if (found.length === 0) return [];
      found.sort((one, other) => one.task.seq - other.task.seq);
      const made = await this.#send(
        found.map(({ pending }) => pending),
        () => statement(query, found),
      );
      return found.flatMap(({ pending, write, task }, at) => {
        if (!made.has(at)) return [pending];
        if (write.kind === "discard") this.#known.forget(write.id);
        pending.settle({ ok: true, number: task.number, fence: task.fence });
        return [];
      });
    };
  }

  readonly #deleteDeliveries: Attempt<DeliveryDelete> = async (group) => {
    const { database, deliveries } = this.#parts;
    const tasks = await readGuards(
      database.query,
      group.map(({ write }) => write.id),
    );
    const found = group.flatMap(({ write, settle }) => {
      const task = tasks.get(write.id);
      if (task !== undefined && scopeKey(task.scope) === scopeKey(write)) return [{ write, settle, task }];
      settle({ ok: false, refusal: "missing" });
      return [];
    });
    if (found.length > 0) await deliveries.deleteAll(found.map(({ write, task }) => ({ write, seq: task.seq })));
    for (const { settle, task } of found) settle({ ok: true, number: task.number, fence: task.fence });
    return [];
  };

  readonly #progress: Attempt<DeliveryProgress> = async (group) => {
    const results = await this.#send(group, () =>
      this.#parts.outbox.progress(
        group.map(({ write }) => write),
        { isRepeated: (write) => this.#uncertain.has(write), onChanged: (id) => this.#known.forget(id) },
      ),
    );
    return settleResults(group, results);
  };

  readonly #writeRecords: Attempt<RecordWrite> = async (group) => {
    const results = await this.#send(group, () =>
      this.#parts.records.write(
        group.map(({ write }) => write),
        (write) => this.#uncertain.has(write),
      ),
    );
    return settleResults(group, results);
  };
}

const NO_ONE_EXPIRED = { isExpired: () => false };
