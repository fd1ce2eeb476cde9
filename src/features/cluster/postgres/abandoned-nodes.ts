import { randomInt } from "node:crypto";
import type { Clock, Log } from "../../../core/model/ports.ts";

const WATCH_MS = 500;

interface Watch {
  /** Nodes that are gone and hold something. */
  find(): Promise<readonly string[]>;
  /** One of them was not known before. */
  onFound(): void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Notices that a node has died sooner than the next heartbeat of this one would. Returns how to end it. */
export function watchAbandonedNodes({ find, onFound, clock, log }: Watch): () => void {
  let known: readonly string[] = [];
  let closed = false;
  let cancel = () => {};

  async function look(): Promise<void> {
    const found = await find();
    const isNew = found.some((node) => !known.includes(node));
    known = found;
    if (isNew && !closed) onFound();
  }

  function lookLater(): void {
    if (closed) return;
    // Not all nodes at the same moment.
    cancel = clock.after(WATCH_MS / 2 + randomInt(WATCH_MS), () => {
      look()
        .catch((error: unknown) => log.debug({ err: error }, "Could not look for nodes that are gone."))
        .finally(lookLater);
    });
  }

  lookLater();
  return () => {
    closed = true;
    cancel();
  };
}
