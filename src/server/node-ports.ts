import { v7 } from "uuid";
import type { Clock, Ids } from "../model/ports.ts";

/** The real clock. Its timers never keep the process alive. */
export const systemClock: Clock = {
  now: Date.now,
  after(milliseconds, run) {
    const timer = setTimeout(run, milliseconds);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Version 7: ids made one after the other sort that way, which keeps the store's indexes compact. */
export const uuidIds: Ids = {
  task: () => v7(),
  context: () => v7(),
  message: () => v7(),
  artifact: () => v7(),
  incarnation: () => v7(),
};
