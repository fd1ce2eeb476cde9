import type { AuthenticationInfo, StreamFrame } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import type { DeliveryClaim } from "../../store/contract.ts";

export interface WebhookSecret {
  readonly token?: string | undefined;
  readonly authentication?: AuthenticationInfo | undefined;
}

/** A push notification config as its sender needs it. */
export interface Webhook extends WebhookSecret {
  readonly id: string;
  readonly url: string;
  readonly dialect: string;
}

/** One event on its way to one receiver. */
export interface PushNotification {
  readonly config: Webhook & { readonly taskId: string };
  /** The event and its number. */
  readonly frame: StreamFrame & { readonly number: number };
  /** The task as it stood at the event. */
  readonly task: () => Promise<Task>;
}

/** `final`: no further attempt can succeed. The reason is kept and shown to operators, so it has no secrets. */
export type PushOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly final?: boolean };

/** What came of one attempt, for the audit log. */
export interface PushAttempt extends Pick<DeliveryClaim, "delivery" | "scope" | "lane"> {
  /** Number of the event. */
  readonly event: number;
  /** 1 for the first attempt at this event. */
  readonly attempt: number;
  /** `given-up`: it failed, and no further attempt is made by itself. */
  readonly result: "delivered" | "failed" | "given-up";
  /** Why it failed. */
  readonly reason?: string;
}

/** Encodes events as their receivers expect them and sends them; the engine knows neither encodings nor HTTP. */
export interface PushSender {
  /** Whether a receiver of this dialect is shown the whole task each time, so that chunks on the way to it add nothing. */
  sendsWholeTask(dialect: string): boolean;
  /** A target that is not called, as far as its URL shows. */
  refuses(url: string): boolean;
  /** One attempt, which ends at the latest when the signal is aborted. */
  send(notification: PushNotification, signal: AbortSignal): Promise<PushOutcome>;
}
