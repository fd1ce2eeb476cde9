import type { Wakeups } from "./contract.ts";

type Listener = (ids: readonly string[] | "all") => void;

/** Wake-ups inside one process: listeners are called at once, in the order they subscribed. */
export function createWakeups(): Wakeups {
  const listeners = new Set<Listener>();
  return {
    publish(ids) {
      for (const listener of listeners) listener(ids);
    },
    subscribe(listener) {
      // A wrapper of its own per subscription: the same function may subscribe twice and leave once.
      const own: Listener = (ids) => listener(ids);
      listeners.add(own);
      return () => {
        listeners.delete(own);
      };
    },
  };
}
