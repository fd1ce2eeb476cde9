import type { StreamFrame } from "../model/operation.ts";
import type { Task } from "../model/task.ts";
import type { StoredPushConfig } from "../store/contract.ts";

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

/** Puts events into the words their receivers expect and carries them there; the engine knows neither. */
export interface PushSender {
  /** Whether a receiver of this dialect is shown the whole task each time, so that chunks on the way to it add nothing. */
  showsWholeTask(dialect: string): boolean;
  /** A target that is not called, as far as can be told without looking for it. */
  refuses(url: string): boolean;
  /** One try, which ends at the latest when the signal says so. */
  send(notification: PushNotification, signal: AbortSignal): Promise<PushOutcome>;
}
