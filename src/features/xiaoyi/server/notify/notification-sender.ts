/**
 * Sends notifications to the platform: one at a time, with a minimum interval, retrying each until it is accepted or
 * refused.
 */

import { type Backoff, type BackoffPolicy, createBackoff } from "../../../../core/model/backoff.ts";
import type { Clock, CounterName, Log, Meter } from "../../../../core/model/ports.ts";
import { CarrierError, type Exchanger } from "../../../../core/wire/exchange.ts";
import type { Language } from "../../codec/phone-texts.ts";
import {
  decodePushResponse,
  encodeNotification,
  type PhoneAddress,
  type PhoneNotification,
  type PushResult,
} from "../../codec/render/notification.ts";
import { type KeyPair, signedHeaders } from "../../codec/signature.ts";
import type { DeviceSpacing } from "./devices.ts";

export interface NotificationSenderOptions {
  readonly url: string;
  readonly apiId: string;
  readonly keys: KeyPair;
  readonly language: Language;
  /** Minimum interval between two notifications, to any device. */
  readonly spacingMs: number;
  /** Shared by all senders that may notify the same devices. */
  readonly devices: DeviceSpacing;
  readonly exchanger: Exchanger;
  readonly clock: Clock;
  readonly random: () => number;
  readonly uniqueId: () => string;
  readonly log: Log;
  readonly meter: Meter;
}

export type PushOutcome = "sent" | "refused" | "given-up" | "stopped";

/** Stopped notifications are left to the next process and counted there. */
const COUNTER_OF = {
  sent: "phone_notices_sent",
  refused: "phone_notices_failed",
  "given-up": "phone_notices_failed",
  stopped: undefined,
} as const satisfies Record<PushOutcome, CounterName | undefined>;

interface Job {
  readonly notification: PhoneNotification;
  readonly pushId: string;
  readonly body: string;
  readonly backoff: Backoff;
  dueAt: number;
  readonly settle: (outcome: PushOutcome) => void;
}

const TIMEOUT_MS = 10_000;
const RETRY: BackoffPolicy = { baseMs: 5_000, capMs: 300_000, maxTries: 6, resetAfterMs: Number.POSITIVE_INFINITY };

export class NotificationSender {
  readonly #options: NotificationSenderOptions;
  #waiting: Job[] = [];
  #lastAt = Number.NEGATIVE_INFINITY;
  #sending: Job | undefined;
  #cancelTimer = (): void => {};
  #stopped = false;

  constructor(options: NotificationSenderOptions) {
    this.#options = options;
  }

  /** Notifies all of the devices; resolves with the outcomes, in their order. */
  push(notification: PhoneNotification, addresses: readonly PhoneAddress[]): Promise<PushOutcome[]> {
    const outcomes = addresses.map((address) => this.#enqueue(notification, address));
    this.#pump();
    return Promise.all(outcomes);
  }

  /** Queued notifications are no longer sent. */
  stop(): void {
    this.#stopped = true;
    this.#cancelTimer();
    for (const job of this.#waiting.splice(0)) job.settle("stopped");
    this.#sending?.settle("stopped");
  }

  #enqueue(notification: PhoneNotification, address: PhoneAddress): Promise<PushOutcome> {
    if (this.#stopped) return Promise.resolve("stopped");
    const { apiId, clock, language, meter, random, uniqueId } = this.#options;
    const route = { apiId, address, requestId: uniqueId(), resultId: uniqueId() };
    return new Promise((resolve) => {
      this.#waiting.push({
        notification,
        pushId: address.pushId,
        body: encodeNotification(notification, route, language),
        backoff: createBackoff(RETRY, { random, now: clock.now }),
        dueAt: clock.now(),
        settle: (outcome) => {
          const counted = COUNTER_OF[outcome];
          if (counted !== undefined) meter.count(counted);
          resolve(outcome);
        },
      });
    });
  }

  #pump(): void {
    this.#cancelTimer();
    if (this.#sending !== undefined || this.#waiting.length === 0) return;
    const { clock } = this.#options;
    const now = clock.now();
    const ready = this.#waiting.findIndex((job) => this.#readyAt(job) <= now);
    const [job] = ready < 0 ? [] : this.#waiting.splice(ready, 1);
    if (job !== undefined) {
      void this.#sendJob(job);
      return;
    }
    const soonest = Math.min(...this.#waiting.map((waiting) => this.#readyAt(waiting)));
    this.#cancelTimer = clock.after(soonest - now, () => this.#pump());
  }

  #readyAt({ dueAt, pushId }: Job): number {
    const { devices, spacingMs } = this.#options;
    return Math.max(dueAt, this.#lastAt + spacingMs, devices.readyAt(pushId));
  }

  async #sendJob(job: Job): Promise<void> {
    this.#sending = job;
    const verdict = await this.#post(job.body);
    this.#sending = undefined;
    // The platform received it before it responded, so measuring from here is safe.
    this.#lastAt = this.#options.clock.now();
    this.#options.devices.note(job.pushId, this.#lastAt);
    if (this.#stopped) return;
    this.#settle(job, verdict);
    this.#pump();
  }

  async #post(body: string): Promise<PushResult> {
    const { clock, exchanger, keys, uniqueId, url } = this.#options;
    const headers = {
      "content-type": "application/json",
      accept: "application/json",
      "x-hag-trace-id": uniqueId(),
      ...signedHeaders(keys, clock.now()),
    };
    try {
      const answer = await exchanger({ method: "POST", url, headers, body, timeoutMs: TIMEOUT_MS });
      return decodePushResponse(answer.status, await answer.text());
    } catch (error) {
      return { kind: "busy", why: error instanceof CarrierError ? error.code : "unreachable" };
    }
  }

  #settle(job: Job, verdict: PushResult): void {
    const { clock, log } = this.#options;
    const task = job.notification.taskId;
    if (verdict.kind === "sent") {
      log.debug({ task }, "Xiaoyi was given a notification.");
      job.settle("sent");
      return;
    }
    const wait = verdict.kind === "busy" ? job.backoff.next() : undefined;
    if (wait !== undefined) {
      log.debug({ task, why: verdict.why }, "Xiaoyi did not take a notification; it is tried again.");
      job.dueAt = clock.now() + wait;
      this.#waiting.push(job);
      return;
    }
    log.warn({ task, why: verdict.why }, "Xiaoyi did not take a notification.");
    job.settle(verdict.kind === "refused" ? "refused" : "given-up");
  }
}
