import type { Loss } from "../../../../core/model/loss.ts";
import type { CallsTools } from "../options.ts";

/** How long is waited for what, in milliseconds. */
export interface CallTimes {
  /** Until a message is posted, connecting included. */
  readonly postMs: number;
  /** Until the first sign of the peer. */
  readonly answerMs: number;
  /** Between two signs of a peer at work. */
  readonly silenceMs: number;
  /** After a post without a marker, before it counts as the result; and after a terminal status, for the result. */
  readonly quietMs: number;
  readonly cancelMs: number;
  readonly cardMs: number;
}

const DEFAULT_TIMES: CallTimes = {
  postMs: 60_000,
  answerMs: 120_000,
  silenceMs: 600_000,
  quietMs: 5_000,
  cancelMs: 30_000,
  cardMs: 30_000,
};

export interface CallLimits {
  /** How long a peer at work may be silent; default: 10 minutes. */
  readonly timeoutMs?: number | undefined;
  /** How long is waited for anything else; default: 30 s to 2 minutes. */
  readonly answerMs?: number | undefined;
}

export function toCallTimes({ timeoutMs = DEFAULT_TIMES.silenceMs, answerMs = timeoutMs }: CallLimits): CallTimes {
  const { quietMs, ...others } = DEFAULT_TIMES;
  const limited = Object.entries(others).map(([name, milliseconds]) => [name, Math.min(milliseconds, answerMs)]);
  return { ...(Object.fromEntries(limited) as typeof others), quietMs, silenceMs: timeoutMs };
}

/** What the parts of the calling side share. */
export interface CallTools extends Pick<CallsTools, "clock" | "outbox" | "ids" | "self"> {
  readonly times: CallTimes;
  /** Throws LOSS_REFUSED if losses are not allowed. */
  report(losses: readonly Loss[]): void;
  /** Something of a peer that does not count; logged once per reason, counted always. */
  drop(peer: string, why: DropReason): void;
}

export type DropReason =
  /** Another participant named the task. */
  | "not-the-peer"
  /** The state cannot follow the one before. */
  | "wrong-state"
  /** The task has ended. */
  | "ended"
  /** More than a reader can use. */
  | "too-many"
  /** The marker cannot be used. */
  | "invalid"
  | "unknown-task";
