import type { TaskStore, Write, WriteResult } from "../../store/contract.ts";
import { settle } from "./fake-clock.ts";

/** A store with some of its calls replaced. */
export function altered(store: TaskStore, changes: Partial<TaskStore>): TaskStore {
  return { ...store, ...changes };
}

export interface GatedStore {
  readonly store: TaskStore;
  /** From now on writes wait. */
  hold(): void;
  /** Lets the write that waits go through; the next one waits again. */
  step(): Promise<void>;
  /** Lets everything through. */
  open(): void;
  /** The groups of writes that were asked for, in order. */
  readonly groups: (readonly Write[])[];
  /** Resolves when a write waits at the gate. */
  waiting(): Promise<readonly Write[]>;
}

/** A store whose writes take as long as a test wants. */
export function gated(inner: TaskStore): GatedStore {
  let held = false;
  let blocked: { readonly writes: readonly Write[]; readonly pass: () => void } | undefined;
  let arrivals: ((writes: readonly Write[]) => void)[] = [];
  const groups: (readonly Write[])[] = [];

  async function write(writes: readonly Write[]): Promise<readonly WriteResult[]> {
    groups.push(writes);
    if (held) {
      await new Promise<void>((pass) => {
        blocked = { writes, pass };
        for (const arrive of arrivals.splice(0)) arrive(writes);
      });
    }
    return inner.write(writes);
  }

  function pass(): void {
    const waiting = blocked;
    blocked = undefined;
    waiting?.pass();
  }

  return {
    store: altered(inner, { write }),
    groups,
    hold() {
      held = true;
    },
    async step() {
      pass();
      await settle();
    },
    open() {
      held = false;
      pass();
    },
    waiting() {
      if (blocked !== undefined) return Promise.resolve(blocked.writes);
      return new Promise((resolve) => {
        arrivals = [...arrivals, resolve];
      });
    },
  };
}

/** Fails the next writes, before they were made or after. */
export interface FlakyStore {
  readonly store: TaskStore;
  fail(times: number, when?: "before" | "after"): void;
  readonly failures: number;
}

export function flaky(inner: TaskStore): FlakyStore {
  let left = 0;
  let after = false;
  let failures = 0;
  return {
    store: altered(inner, {
      async write(writes) {
        if (left === 0) return inner.write(writes);
        left--;
        failures++;
        if (after) await inner.write(writes);
        throw new Error("The disk is on fire.");
      },
    }),
    fail(times, when = "before") {
      left = times;
      after = when === "after";
    },
    get failures() {
      return failures;
    },
  };
}
