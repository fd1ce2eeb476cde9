import type { IdempotencyScope, Submit, Write, WriteResult } from "../../../core/store/contract.ts";
import type { EncodedWrite } from "../../../core/store/encode-writes.ts";
import { StoreError } from "../../../core/store/errors.ts";
import { scopeKey } from "../../../core/store/rules.ts";
import type { ChangeWrite } from "./changes.ts";
import { isUncertain, sqlStateOf } from "./errors.ts";
import type { FoundTask } from "./guards.ts";

/** A write on its way, and where its result goes. */
export interface Pending<Kind extends Write = Write> extends Omit<EncodedWrite, "write"> {
  readonly write: Kind;
  readonly settle: (result: WriteResult) => void;
}

/** Tries to make all of them, and returns those that have to be looked at again. */
export type Attempt<Kind extends Write> = (group: readonly Pending<Kind>[], again: boolean) => Promise<Pending<Kind>[]>;

/** Others may change the same task again and again between the look and the write; not for ever. */
const MAX_ROUNDS = 100;
/** Of one statement. */
const MAX_WRITES = 500;
const MAX_CHARACTERS = 16 * 2 ** 20;
const IS_DEADLOCK = /^40/;
/** Another statement was first with an id or a key. */
const IS_CONFLICT = /^23/;
/** That, a value that PostgreSQL does not take, or a key that is in the group twice. */
const IS_OF_ONE_WRITE = /^(21|22|23)/;

/** A statement of a bounded size for some of them at a time. */
export function settleInGroups<Kind extends Write>(
  pending: readonly Pending<Kind>[],
  attempt: Attempt<Kind>,
): Promise<void> {
  const groups: Pending<Kind>[][] = [];
  let size = 0;
  for (const one of pending) {
    const length = one.segments.reduce((sum, { body }) => sum + body.length, 0);
    size += length;
    const group = groups.at(-1);
    if (group !== undefined && group.length < MAX_WRITES && size <= MAX_CHARACTERS) group.push(one);
    else {
      groups.push([one]);
      size = length;
    }
  }
  return settleAll(groups.map((group) => settleGroup(group, attempt)));
}

/** Until each is accepted or refused. One that fails does not keep the others of its group from being made. */
async function settleGroup<Kind extends Write>(group: readonly Pending<Kind>[], attempt: Attempt<Kind>): Promise<void> {
  let left = group;
  let lost = false;
  for (let round = 0; left.length > 0; round++) {
    if (round === MAX_ROUNDS) throw new StoreError("unavailable", "A task changes too often to be written to.");
    try {
      left = await attempt(left, round > 0);
    } catch (error) {
      const state = sqlStateOf(error) ?? "";
      if (IS_OF_ONE_WRITE.test(state) && left.length > 1) {
        return settleAll(left.map((pending) => settleGroup([pending], attempt)));
      }
      const mayRepeat = IS_DEADLOCK.test(state) || IS_CONFLICT.test(state) || (isUncertain(error) && !lost);
      if (!mayRepeat) throw error;
      lost ||= isUncertain(error);
    }
  }
}

/** Returns those that have no result yet. */
export function settleResults<Kind extends Write>(
  group: readonly Pending<Kind>[],
  results: readonly (WriteResult | undefined)[],
): Pending<Kind>[] {
  return group.filter(({ settle }, at) => {
    const result = results[at];
    if (result !== undefined) settle(result);
    return result === undefined;
  });
}

/** Rejects as the first that does, but not before all have ended. */
export async function settleAll(works: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(works);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
}

/** Of several with the same key the first is made first, and the others find its key. */
export function splitByKey(group: readonly Pending<Submit>[]) {
  const keys = new Set<string>();
  const first: Pending<Submit>[] = [];
  const later: Pending<Submit>[] = [];
  for (const pending of group) {
    const { idempotency } = pending.write;
    const key = idempotency && `${scopeKey(pending.write)} ${idempotency.key}`;
    if (key !== undefined && keys.has(key)) later.push(pending);
    else first.push(pending);
    if (key !== undefined) keys.add(key);
  }
  return { first, later };
}

export function keyOfSubmit({ agent, tenant, owner, idempotency }: Submit): IdempotencyScope | undefined {
  return idempotency && { agent, tenant, owner, key: idempotency.key };
}

/** Within the scope of the task. */
export function keyOfAppend(tasks: ReadonlyMap<string, FoundTask>) {
  return (write: ChangeWrite): IdempotencyScope | undefined => {
    const task = tasks.get(write.id);
    if (task === undefined || write.kind !== "append" || write.idempotency === undefined) return undefined;
    return { ...task.scope, key: write.idempotency.key };
  };
}

/** The node that holds a task which another is to take. */
export function holderInTheWay(write: ChangeWrite, tasks: ReadonlyMap<string, FoundTask>): string[] {
  if (write.kind !== "append" || typeof write.lease !== "object") return [];
  const node = tasks.get(write.id)?.node;
  return node === undefined || node === write.lease.take ? [] : [node];
}

/** Those that take a lease or a delivery. */
export function nodesOf(write: Submit | ChangeWrite): string[] {
  const registered = write.kind === "delivery-put" ? [write.delivery] : "deliveries" in write ? write.deliveries : [];
  const nodes = (registered ?? []).flatMap(({ heldBy }) => heldBy?.node ?? []);
  if (write.kind === "submit" && write.node !== undefined) nodes.push(write.node);
  if (write.kind === "append" && typeof write.lease === "object") nodes.push(write.lease.take);
  if (write.kind === "request-cancel" && write.take !== undefined) nodes.push(write.take);
  return nodes;
}
