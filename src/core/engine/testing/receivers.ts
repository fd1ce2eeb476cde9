import type { PushNotification, PushOutcome, PushSender } from "../deliveries/push-sender.ts";

interface ReceivedPush {
  readonly url: string;
  readonly number: number;
  readonly kind: string;
  readonly task: string;
  readonly at: number;
}

type Answer = PushOutcome | Promise<PushOutcome>;

/** Takes the place of all receivers: notes what it is told and answers as the test wants. */
export class Receivers implements PushSender {
  readonly received: ReceivedPush[] = [];
  readonly #now: () => number;
  /** Answers to come, for each address; then all is well. */
  answer: (notification: PushNotification, signal: AbortSignal) => Answer = () => ({ ok: true });
  whole = false;
  concurrent = 0;
  maxConcurrent = 0;

  constructor(now: () => number = () => 0) {
    this.#now = now;
  }

  refuses(url: string): boolean {
    return url.includes("forbidden");
  }

  sendsWholeTask(): boolean {
    return this.whole;
  }

  async send(notification: PushNotification, signal: AbortSignal): Promise<PushOutcome> {
    const { config, frame } = notification;
    const [kind = ""] = Object.keys(frame.event);
    this.received.push({ url: config.url, number: frame.number, kind, task: config.taskId, at: this.#now() });
    this.maxConcurrent = Math.max(this.maxConcurrent, ++this.concurrent);
    try {
      return await this.answer(notification, signal);
    } finally {
      this.concurrent--;
    }
  }

  numbers(url?: string): number[] {
    return this.received.filter((told) => url === undefined || told.url === url).map(({ number }) => number);
  }
}

export const FAILED: PushOutcome = { ok: false, reason: "HTTP 503" };
