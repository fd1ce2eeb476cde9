import type { StreamFrame } from "../model/operation.ts";
import type { Task } from "../model/task.ts";
import type { PushClaim, StoredPushConfig } from "../store/contract.ts";

/** One event on its way to one receiver. */
export interface PushNotification {
  readonly config: StoredPushConfig;
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
export interface PushTry extends Pick<PushClaim, "config" | "scope" | "host"> {
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
  showsWholeTask(dialect: string): boolean;
  /** A target that is not called, as far as can be told without looking for it. */
  refuses(url: string): boolean;
  /** One try, which ends at the latest when the signal says so. */
  send(notification: PushNotification, signal: AbortSignal): Promise<PushOutcome>;
}
