import { setTimeout as after } from "node:timers/promises";

/** Waits, but no longer than the signal allows; true if the time passed, false if it was aborted. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  try {
    await after(milliseconds, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
