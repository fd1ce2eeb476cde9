import type { PushProgress } from "./contract.ts";

/** What is kept of a config's deliveries beside its cursor, in every store the same. */
export interface PushState {
  readonly cursor: number;
  readonly attempts: number;
  /** When it may next be claimed; undefined: there is nothing to tell, or it was given up. */
  readonly dueAt: number | undefined;
  readonly holder: string | undefined;
  readonly lastError: string | undefined;
  readonly deadAt: number | undefined;
}

/** By which configs share the bound of one host. Addresses were judged long before; what is none shares with its like. */
export function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "";
}

/** `number` is where the task's log stands. */
export function afterProgress(
  before: PushState,
  { cursor, next }: PushProgress,
  number: number,
  now: number,
): PushState {
  const told = cursor > before.cursor;
  const kept = {
    cursor,
    attempts: told ? 0 : before.attempts,
    lastError: told ? undefined : before.lastError,
    holder: undefined,
    deadAt: undefined,
  };
  switch (next.kind) {
    case "hold":
      return { ...kept, holder: before.holder, dueAt: next.until };
    case "release":
      return { ...kept, dueAt: cursor < number ? now : undefined };
    case "retry":
      return { ...kept, attempts: kept.attempts + 1, lastError: next.error, dueAt: next.at };
    case "dead":
      return { ...kept, attempts: kept.attempts + 1, lastError: next.error, dueAt: undefined, deadAt: now };
  }
}
