import { STATE_CLASS } from "../../model/task.ts";
import type { DeliveryClaim } from "../../store/contract.ts";
import type { EngineContext } from "../options.ts";
import type { Runner } from "../runs/runner.ts";
import { waitUntil } from "../tasks/log-stream.ts";
import { ClaimedDelivery, claimTime, type OpenDelivery } from "./open-delivery.ts";

/** A carrier that takes events of tasks to where they are delivered. */
export interface DeliveryRoute {
  readonly route: string;
  /** Deliveries that are claimed at the same time. Default: 10000. Those that are held from the start are not counted. */
  readonly concurrency?: number;
  /** The same for one lane. Default: no further bound. */
  readonly perLane?: number;
  /**
   * Called when the delivery is due, and with one that is held from the start as soon as its message is stored; one that
   * wants the outcome always has one then. The claim is kept alive until the promise settles. What was not released,
   * retried, given up or done by then is released, or retried if the promise was rejected or nothing was delivered.
   */
  deliver(delivery: OpenDelivery): Promise<void>;
}

const DEFAULT_CONCURRENCY = 10_000;

/** One route on this node: what it has claimed, and when it looks for more. */
export class RouteWorker {
  readonly #context: EngineContext;
  readonly #runner: Runner;
  readonly #route: DeliveryRoute;
  /** By task and id: a delivery that is registered again while it is under way is begun again. */
  readonly #open = new Map<string, ClaimedDelivery>();
  readonly #running = new Set<Promise<void>>();
  readonly #lanes = new Map<string, number>();
  #claimed = 0;
  #claiming = false;
  #looking = Promise.resolve();
  #claimAgain = false;
  #stopped = false;
  #cancelSweep: (() => void) | undefined;
  #cancelRenewal: (() => void) | undefined;

  constructor(context: EngineContext, runner: Runner, route: DeliveryRoute) {
    this.#context = context;
    this.#runner = runner;
    this.#route = route;
  }

  get size(): number {
    return this.#running.size;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelSweep?.();
    this.#cancelRenewal?.();
    for (const open of this.#open.values()) open.abort();
    await this.#looking;
    await Promise.all(this.#running);
  }

  supersede(taskId: string, id: string): void {
    this.#open.get(keyOf({ taskId, id }))?.supersede();
  }

  /** Claims what is due and there is room for; whatever ends or becomes due looks again. */
  look(): void {
    if (this.#stopped) return;
    if (this.#claiming) {
      this.#claimAgain = true;
      return;
    }
    if (this.#claimed >= this.#concurrency) return;
    this.#claiming = true;
    this.#looking = this.#claim()
      .catch((error: unknown) => {
        this.#context.log.warn({ err: error, route: this.#route.route }, "Deliveries could not be claimed.");
        return undefined;
      })
      .then((delay = this.#context.times.pushSweepMs) => {
        this.#claiming = false;
        this.#lookLater(delay);
        if (!this.#claimAgain) return;
        this.#claimAgain = false;
        this.look();
      });
  }

  get #concurrency(): number {
    return this.#route.concurrency ?? DEFAULT_CONCURRENCY;
  }

  async #claim(): Promise<number> {
    const { store, node, times } = this.#context;
    const { route, perLane = this.#concurrency } = this.#route;
    const { claims, nextInMs = times.pushSweepMs } = await store.claimDeliveries({
      node,
      route,
      max: this.#concurrency - this.#claimed,
      ttlMs: claimTime(this.#context),
      perLane,
      busy: this.#lanes,
    });
    for (const claim of claims) this.begin(claim, false);
    return Math.min(nextInMs, times.pushSweepMs);
  }

  #lookLater(delay: number): void {
    if (this.#stopped) return;
    this.#cancelSweep?.();
    this.#cancelSweep = this.#context.clock.after(Math.max(delay, 1), () => this.look());
  }

  begin(claim: DeliveryClaim, held: boolean): void {
    const open = new ClaimedDelivery(this.#context, this.#runner, claim);
    const key = keyOf(claim.delivery);
    this.#open.get(key)?.abort();
    this.#open.set(key, open);
    if (this.#stopped) open.abort();
    if (!held) this.#count(claim.lane, 1);
    this.#renewLater();
    const running = this.#deliver(open, held)
      .catch((error: unknown) => this.#context.log.warn({ err: error, ...open.fields }, "A delivery broke off."))
      .finally(() => {
        this.#running.delete(running);
        if (this.#open.get(key) === open) this.#open.delete(key);
        if (!held) this.#count(claim.lane, -1);
        this.look();
      });
    this.#running.add(running);
  }

  async #deliver(open: ClaimedDelivery, held: boolean): Promise<void> {
    try {
      const isDue = open.record.wants === "events" || (await this.#hasOutcome(open, held));
      if (isDue && !open.signal.aborted) await this.#deliverNow(open);
    } catch (error) {
      this.#context.log.error({ err: error, ...open.fields }, "A delivery failed.");
      if (!open.signal.aborted && !open.isSettled) await open.retry(open.cursor, "the delivery failed");
    }
    if (!open.isSettled) await open.release(open.cursor);
  }

  /** A route that does nothing would be asked again at once, for ever. */
  async #deliverNow(open: ClaimedDelivery): Promise<void> {
    await this.#route.deliver(open);
    const hasDelivered = open.isSettled || open.cursor > open.record.cursor;
    if (!hasDelivered && !open.signal.aborted) await open.retry(open.cursor, "nothing was delivered");
  }

  /** A delivery that is held waits for the outcome; one that was claimed is due again when there is one. */
  async #hasOutcome({ record, signal }: ClaimedDelivery, held: boolean): Promise<boolean> {
    for (;;) {
      const head = await this.#context.store.head(record.taskId);
      if (head !== undefined && STATE_CLASS[head.status.state] !== "active") return true;
      if (head === undefined || !held || signal.aborted) return false;
      const reader = this.#runner.readers.open(record.taskId, head.number);
      const close = () => reader.close();
      signal.addEventListener("abort", close, { once: true });
      await waitUntil(reader, (state) => STATE_CLASS[state] !== "active");
      signal.removeEventListener("abort", close);
    }
  }

  /** Claims of deliveries that take long are kept alive here, so that routes need not think of it. */
  #renewLater(): void {
    if (this.#stopped || this.#cancelRenewal !== undefined) return;
    this.#cancelRenewal = this.#context.clock.after(claimTime(this.#context) / 4, () => {
      this.#cancelRenewal = undefined;
      for (const open of this.#open.values()) open.renew();
      if (this.#open.size > 0) this.#renewLater();
    });
  }

  #count(lane: string, by: number): void {
    this.#claimed += by;
    const count = (this.#lanes.get(lane) ?? 0) + by;
    if (count > 0) this.#lanes.set(lane, count);
    else this.#lanes.delete(lane);
  }
}

/** The length first, so that no two deliveries share a key. */
function keyOf({ taskId, id }: { readonly taskId: string; readonly id: string }): string {
  return `${taskId.length}:${taskId}${id}`;
}
