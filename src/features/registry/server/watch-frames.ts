import type { Clock } from "../../../core/model/ports.ts";
import { DONE } from "../../../core/wire/pipe-frames.ts";
import { encodeSseComment } from "../../../core/wire/sse.ts";
import type { Change, Reset } from "../changes.ts";

interface WatchOptions {
  readonly clock: Clock;
  readonly keepAliveMs: number;
  /** The number that the watcher continues after. */
  readonly from: number;
  /** Changes in between are no longer known. */
  readonly reset: { readonly oldest: number } | undefined;
  /** The change as the watcher may see it, if at all. */
  readonly toVisible: (change: Change) => Change | undefined;
  /** When the caller's credentials expire. */
  readonly expires: number | undefined;
  readonly onClose: () => void;
}

const KEEP_ALIVE = encodeSseComment("keep-alive");

/** Changes of a registry as server-sent events. Begins with the number that a watcher can come back with. */
export function watchFrames(
  changes: AsyncIterableIterator<readonly Change[] | Reset, undefined>,
  options: WatchOptions,
): AsyncIterableIterator<string, undefined> {
  const { clock, expires, from, keepAliveMs, reset, toVisible } = options;
  let first: string | undefined =
    `${encodeSseComment("watching")}id: ${from}\n\n${reset ? encodeReset(from, reset) : ""}`;
  let pending: Promise<IteratorResult<readonly Change[] | Reset, undefined>> | undefined;
  let isOpen = true;
  const stopExpiry =
    expires === undefined ? undefined : clock.after(Math.max(0, expires - clock.now()), () => void changes.return?.());
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    stopExpiry?.();
    options.onClose();
  };
  return {
    async next() {
      if (first !== undefined) {
        const value = first;
        first = undefined;
        return { done: false, value };
      }
      for (;;) {
        pending ??= changes.next();
        const step = await orIdle(pending, clock, keepAliveMs);
        if (step === undefined) return { done: false, value: KEEP_ALIVE };
        pending = undefined;
        if (step.done === true) {
          close();
          return DONE;
        }
        const { value: batch } = step;
        if ("reset" in batch) return { done: false, value: encodeReset(batch.last, batch.reset) };
        const value = batch
          .flatMap((change) => toVisible(change) ?? [])
          .map(encodeChange)
          .join("");
        if (value !== "") return { done: false, value };
      }
    },
    async return() {
      close();
      await changes.return?.();
      return DONE;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Undefined if nothing came in time. */
async function orIdle<T>(pending: Promise<T>, clock: Clock, milliseconds: number): Promise<T | undefined> {
  let cancel = () => {};
  const idle = new Promise<undefined>((resolve) => {
    cancel = clock.after(milliseconds, () => resolve(undefined));
  });
  try {
    return await Promise.race([pending, idle]);
  } finally {
    cancel();
  }
}

function encodeChange({ number, kind, id, identifier, displayName, health, at }: Change): string {
  const data = { id, identifier, displayName, health, at: new Date(at).toISOString() };
  return `event: ${kind}\nid: ${number}\ndata: ${JSON.stringify(data)}\n\n`;
}

function encodeReset(from: number, { oldest }: { readonly oldest: number }): string {
  const message = "Changes since then are no longer known. List the agents again.";
  return `event: reset\nid: ${from}\ndata: ${JSON.stringify({ message, oldest })}\n\n`;
}
