import { backoffDelay } from "../../model/backoff.ts";
import type { LogEntry } from "../../model/event.ts";
import type { Delivery } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import type { DeliveryClaim, DeliveryProgress, Scope, StoredDelivery } from "../../store/contract.ts";
import type { EngineContext } from "../options.ts";
import type { Runner } from "../runs/runner.ts";

/** A delivery that this node has claimed. */
export interface OpenDelivery extends Delivery {
  readonly record: StoredDelivery;
  readonly lane: string;
  /** Failed attempts for the event after the record's cursor. */
  readonly attempts: number;
  read(after: number): Promise<readonly LogEntry[] | undefined>;
}

/** Which attempt at the event after the cursor this is: what was delivered under this claim has reset the count. */
export function attemptNumber({ record, attempts }: OpenDelivery, cursor: number): number {
  return (cursor > record.cursor ? 0 : attempts) + 1;
}

/** Longer than an attempt of a webhook can take: only a process that has died lets a claim end. */
export function claimTime({ times }: EngineContext): number {
  return times.pushTimeoutMs + times.leaseMs;
}

/** An open delivery as its worker sees it. */
export class ClaimedDelivery implements OpenDelivery {
  readonly record: StoredDelivery;
  readonly scope: Scope;
  readonly lane: string;
  readonly attempts: number;
  readonly signal: AbortSignal;
  readonly #context: EngineContext;
  readonly #runner: Runner;
  readonly #claim: DeliveryClaim;
  readonly #controller = new AbortController();
  /** Number of the newest event that was delivered. */
  cursor: number;
  /** The claim is given back. */
  isSettled = false;
  #heldAt: number;

  constructor(context: EngineContext, runner: Runner, claim: DeliveryClaim) {
    this.#context = context;
    this.#runner = runner;
    this.#claim = claim;
    this.#heldAt = context.clock.now();
    this.record = claim.delivery;
    this.scope = claim.scope;
    this.lane = claim.lane;
    this.attempts = claim.attempts;
    this.cursor = claim.delivery.cursor;
    this.signal = this.#controller.signal;
  }

  /** For logs: where it goes is the owner's business, and addresses may hold secrets. */
  get fields() {
    const { taskId, id, route } = this.record;
    return { task: taskId, config: id, route };
  }

  abort(): void {
    this.#controller.abort();
  }

  /** A write that is under way replaces or deletes the delivery: giving it back before would make it due once more. */
  supersede(): void {
    this.isSettled = true;
    this.abort();
  }

  read(after: number): Promise<readonly LogEntry[] | undefined> {
    return this.#runner.readers.readStore({ id: this.record.taskId, after });
  }

  async task(at?: number): Promise<Task | undefined> {
    const how = { history: this.#context.limits.historyPage, artifacts: true };
    const snapshot = await this.#context.store.snapshot(this.record.taskId, at === undefined ? how : { ...how, at });
    return snapshot?.task;
  }

  hold(cursor: number): Promise<boolean> {
    this.#heldAt = this.#context.clock.now();
    return this.#write(cursor, { kind: "hold", ttlMs: claimTime(this.#context) });
  }

  renew(): void {
    if (this.isSettled || this.#context.clock.now() - this.#heldAt < claimTime(this.#context) / 2) return;
    // If it fails for good, the claim ends and another node takes the delivery up.
    this.hold(this.cursor).catch(() => this.abort());
  }

  release(cursor: number): Promise<boolean> {
    return this.#settle(cursor, { kind: "release" });
  }

  async retry(cursor: number, error: string): Promise<"failed" | "given-up"> {
    const { limits, times, random, log } = this.#context;
    const attempts = attemptNumber(this, cursor);
    if (attempts >= limits.pushAttempts) return (await this.giveUp(cursor, error)) ? "given-up" : "failed";
    const inMs = backoffDelay(attempts, times.pushRetryMs, times.longestPushRetryMs, random());
    log.debug({ ...this.fields, attempts, reason: error }, "An attempt to deliver failed.");
    await this.#settle(cursor, { kind: "retry", inMs, error });
    return "failed";
  }

  async giveUp(cursor: number, error: string): Promise<boolean> {
    const isWritten = await this.#settle(cursor, { kind: "dead", error });
    const fields = { ...this.fields, attempts: attemptNumber(this, cursor), reason: error };
    if (isWritten) this.#context.log.warn(fields, "A delivery was given up.");
    return isWritten;
  }

  done(): Promise<boolean> {
    return this.#settle(this.cursor, { kind: "done" });
  }

  #settle(cursor: number, next: DeliveryProgress["next"]): Promise<boolean> {
    this.isSettled = true;
    return this.#write(cursor, next);
  }

  async #write(cursor: number, next: DeliveryProgress["next"]): Promise<boolean> {
    const { place, claim } = this.#claim;
    const write = { kind: "delivery-progress" as const, id: this.record.taskId, place, claim, cursor, next };
    // Before it is written: a renewal meanwhile must not take it back.
    this.cursor = cursor;
    const { ok } = await this.#runner.committer.write(write);
    if (!ok) this.abort();
    return ok;
  }
}
