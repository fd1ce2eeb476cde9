import type { LogEntry } from "../model/event.ts";
import type { AuthenticationInfo, StreamFrame } from "../model/operation.ts";
import type { Task } from "../model/task.ts";
import {
  type DeliveryClaim,
  type DeliveryProgress,
  type DeliveryRegistration,
  WEBHOOK_ROUTE,
} from "../store/contract.ts";
import type { EngineContext } from "./options.ts";
import type { Runner } from "./runs/runner.ts";

/**
 * How long to wait after a number of failures: twice as long each time up to a bound, and of that a half to the whole by
 * chance, so that receivers that failed together are not tried together again.
 */
export function backoffDelay(failures: number, first: number, longest: number, chance: number): number {
  const whole = Math.min(first * 2 ** (failures - 1), longest);
  return Math.round(whole * (0.5 + chance / 2));
}

interface WebhookSecret {
  readonly token?: string | undefined;
  readonly authentication?: AuthenticationInfo | undefined;
}

/** A push notification config as its sender needs it. */
export interface Webhook extends WebhookSecret {
  readonly id: string;
  readonly url: string;
  readonly dialect: string;
}

/** What the receiver is to know us by, as a delivery keeps it. */
export function toWebhookSecret(secret: WebhookSecret): { readonly secret?: string } {
  const text = JSON.stringify(secret);
  return text === "{}" ? {} : { secret: text };
}

export function toWebhook({ id, address, secret, dialect }: Omit<DeliveryRegistration, "heldBy">): Webhook {
  return { id, url: address, dialect, ...(secret === undefined ? undefined : (JSON.parse(secret) as WebhookSecret)) };
}

/** One event on its way to one receiver. */
export interface PushNotification {
  readonly config: Webhook & { readonly taskId: string };
  /** The event and its number. */
  readonly frame: StreamFrame & { readonly number: number };
  /** The task as it stood at the event. */
  readonly task: () => Promise<Task>;
}

/** `final`: no further try can come to anything else. The reason is kept and shown to operators, so it has no secrets. */
export type PushOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly final?: boolean };

/** What came of one try, for whoever keeps records. */
export interface PushAttempt extends Pick<DeliveryClaim, "delivery" | "scope" | "lane"> {
  /** Number of the event. */
  readonly event: number;
  /** 1 for the first try of this event. */
  readonly attempt: number;
  /** `given-up`: it failed, and nothing more is tried by itself. */
  readonly result: "delivered" | "failed" | "given-up";
  /** Why it failed. */
  readonly reason?: string;
}

/** Puts events into the words their receivers expect and carries them there; the engine knows neither. */
export interface PushSender {
  /** Whether a receiver of this dialect is shown the whole task each time, so that chunks on the way to it add nothing. */
  sendsWholeTask(dialect: string): boolean;
  /** A target that is not called, as far as can be told without looking for it. */
  refuses(url: string): boolean;
  /** One try, which ends at the latest when the signal says so. */
  send(notification: PushNotification, signal: AbortSignal): Promise<PushOutcome>;
}

/** After this many events a config goes to the end of the line, so that a long log does not keep its place for ever. */
const MAX_EVENTS_PER_CLAIM = 32;

/**
 * Tells the events of tasks to those who registered for them: at least once, in order for each config, with one try
 * under way for each. The log is the outbox, so that nothing is lost however this process ends; what was told but not
 * yet written down is told again. Nobody waits for it: a receiver that is slow keeps only its own events waiting.
 */
export class PushDelivery {
  readonly #context: EngineContext;
  readonly #runner: Runner;
  readonly #sender: PushSender;
  readonly #perHost = new Map<string, number>();
  readonly #telling = new Set<Promise<void>>();
  readonly #underWay = new Set<AbortController>();
  #claiming = false;
  #claimAgain = false;
  #stopped = false;
  #cancelSweep: (() => void) | undefined;
  readonly #unsubscribe: () => void;

  constructor(context: EngineContext, runner: Runner, sender: PushSender) {
    this.#context = context;
    this.#runner = runner;
    this.#sender = sender;
    this.#unsubscribe = context.store.wakeups.subscribe((wakeup) => {
      if (wakeup === "all" || wakeup.deliveries === true) this.#look();
    });
  }

  start(): void {
    this.#look();
  }

  /** Breaks off what is under way. Resolves when all of it is noted down and left to others. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe();
    this.#cancelSweep?.();
    for (const controller of this.#underWay) controller.abort();
    await Promise.all(this.#telling);
  }

  /** Configs that are being told something now. */
  get size(): number {
    return this.#telling.size;
  }

  /** Takes what is due and there is room for; whatever ends or becomes due looks again. */
  #look(): void {
    if (this.#stopped) return;
    if (this.#claiming) {
      this.#claimAgain = true;
      return;
    }
    if (this.size >= this.#context.limits.pushConcurrency) return;
    this.#claiming = true;
    void this.#claim()
      .catch((error: unknown) => {
        this.#context.log.warn({ err: error }, "Push notifications could not be taken from the store.");
        return undefined;
      })
      .then((delay) => {
        this.#claiming = false;
        this.#lookLater(delay);
        if (!this.#claimAgain) return;
        this.#claimAgain = false;
        this.#look();
      });
  }

  async #claim(): Promise<number | undefined> {
    const { store, node, limits, times } = this.#context;
    const { claims, nextInMs = Number.POSITIVE_INFINITY } = await store.claimDeliveries({
      node,
      route: WEBHOOK_ROUTE,
      max: limits.pushConcurrency - this.size,
      ttlMs: this.#claimMs,
      perLane: limits.pushPerHost,
      busy: this.#perHost,
    });
    for (const claim of claims) {
      this.#enter(claim.lane);
      const telling = this.#tell(claim)
        .catch((error: unknown) =>
          this.#context.log.warn({ err: error, ...toLogFields(claim) }, "Push delivery broke off."),
        )
        .finally(() => {
          this.#telling.delete(telling);
          this.#leave(claim.lane);
          this.#look();
        });
      this.#telling.add(telling);
    }
    return Math.min(nextInMs, times.pushSweepMs);
  }

  /** Longer than a try can take: only a process that has died lets a claim end. */
  get #claimMs(): number {
    return this.#context.times.pushTimeoutMs + this.#context.times.leaseMs;
  }

  #lookLater(delay: number = this.#context.times.pushSweepMs): void {
    if (this.#stopped) return;
    this.#cancelSweep?.();
    this.#cancelSweep = this.#context.clock.after(Math.max(delay, 1), () => this.#look());
  }

  async #tell(claim: DeliveryClaim): Promise<void> {
    const { delivery: config } = claim;
    let { cursor } = config;
    for (let told = 0; ; ) {
      const read = await this.#runner.readers.readStore({ id: config.taskId, after: cursor });
      // The task is gone, and its configs with it.
      if (read === undefined) return;
      const entries = this.#sender.sendsWholeTask(config.dialect) ? dropSupersededChunks(read) : read;
      if (entries.length === 0) return this.#release(claim, cursor);
      for (const [index, entry] of entries.entries()) {
        const outcome = await this.#try(claim, entry);
        if (!outcome.ok)
          return this.#stopped ? this.#release(claim, cursor) : this.#failed(claim, cursor, entry.number, outcome);
        this.#tried(claim, cursor, { event: entry.number, result: "delivered" });
        cursor = entry.number;
        told++;
        this.#context.meter.count("push_delivered");
        const isLast =
          told >= MAX_EVENTS_PER_CLAIM || (index === entries.length - 1 && (await this.#isEnd(claim, cursor)));
        if (isLast || this.#stopped) return this.#release(claim, cursor);
        if (!(await this.#note(claim, cursor, { kind: "hold", ttlMs: this.#claimMs }))) return;
      }
    }
  }

  /** Asked so that a log which goes on is told under one claim, and one that rests costs no second write. */
  async #isEnd({ delivery }: DeliveryClaim, cursor: number): Promise<boolean> {
    const [number = 0] = await this.#context.store.numbers([delivery.taskId]);
    return cursor >= number;
  }

  /** What came meanwhile makes the config due again. */
  async #release(claim: DeliveryClaim, cursor: number): Promise<void> {
    await this.#note(claim, cursor, { kind: "release" });
  }

  async #try(claim: DeliveryClaim, entry: LogEntry): Promise<PushOutcome> {
    const { clock, times, store, limits } = this.#context;
    const config = { ...toWebhook(claim.delivery), taskId: claim.delivery.taskId };
    const controller = new AbortController();
    this.#underWay.add(controller);
    let cancelTimer = () => {};
    const late = new Promise<PushOutcome>((resolve) => {
      controller.signal.addEventListener("abort", () => resolve(TIMED_OUT), { once: true });
      cancelTimer = clock.after(times.pushTimeoutMs, () => controller.abort());
    });
    const task = async () => {
      const how = { at: entry.number, history: limits.historyPage, artifacts: true };
      const snapshot = await store.snapshot(config.taskId, how);
      if (snapshot === undefined) throw new Error("The task is gone.");
      return snapshot.task;
    };
    try {
      return await Promise.race([this.#sender.send({ config, frame: entry, task }, controller.signal), late]);
    } catch (error) {
      this.#context.log.error({ err: error, ...toLogFields(claim) }, "A push notification could not be made.");
      return { ok: false, reason: "the notification could not be made" };
    } finally {
      cancelTimer();
      this.#underWay.delete(controller);
    }
  }

  async #failed(
    claim: DeliveryClaim,
    cursor: number,
    event: number,
    { reason, final = false }: Extract<PushOutcome, { ok: false }>,
  ): Promise<void> {
    const { limits, times, log, meter, random } = this.#context;
    const attempts = attemptNumber(claim, cursor);
    const isLast = final || attempts >= limits.pushAttempts;
    meter.count("push_failed");
    this.#tried(claim, cursor, { event, result: isLast ? "given-up" : "failed", reason });
    if (!isLast) {
      const inMs = backoffDelay(attempts, times.pushRetryMs, times.longestPushRetryMs, random());
      log.debug({ ...toLogFields(claim), attempts, reason }, "A push notification failed.");
      await this.#note(claim, cursor, { kind: "retry", inMs, error: reason });
      return;
    }
    if (!(await this.#note(claim, cursor, { kind: "dead", error: reason }))) return;
    meter.count("push_dead");
    log.warn({ ...toLogFields(claim), attempts, reason }, "A push config was given up.");
  }

  #tried(claim: DeliveryClaim, cursor: number, tried: Pick<PushAttempt, "event" | "result" | "reason">): void {
    const { delivery, scope, lane } = claim;
    this.#context.onPushAttempt({ delivery, scope, lane, attempt: attemptNumber(claim, cursor), ...tried });
  }

  /** False if the config has been deleted, replaced or taken over: then it is no longer ours to tell. */
  async #note(claim: DeliveryClaim, cursor: number, next: DeliveryProgress["next"]): Promise<boolean> {
    const { place, delivery } = claim;
    const write = { kind: "delivery-progress" as const, id: delivery.taskId, place, claim: claim.claim, cursor, next };
    return (await this.#runner.committer.write(write)).ok;
  }

  #enter(host: string): void {
    this.#perHost.set(host, (this.#perHost.get(host) ?? 0) + 1);
  }

  #leave(host: string): void {
    const left = (this.#perHost.get(host) ?? 1) - 1;
    if (left > 0) this.#perHost.set(host, left);
    else this.#perHost.delete(host);
  }
}

const TIMED_OUT: PushOutcome = { ok: false, reason: "no answer in time" };

/** Which try of the event after the cursor this is: what was told in this turn has shown that the receiver can be reached. */
function attemptNumber({ delivery, attempts }: DeliveryClaim, cursor: number): number {
  return (cursor > delivery.cursor ? 0 : attempts) + 1;
}

/** For logs: where it goes is the owner's business, and addresses may hold secrets. */
function toLogFields({ delivery }: DeliveryClaim) {
  return { task: delivery.taskId, config: delivery.id };
}

/** Without chunks that a later event, which shows them too, has already passed. */
function dropSupersededChunks(entries: readonly LogEntry[]): readonly LogEntry[] {
  return entries.filter((entry, index) => index === entries.length - 1 || entry.state !== undefined);
}
