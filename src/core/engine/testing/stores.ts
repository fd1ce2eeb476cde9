import type { TaskStore, Wakeup, Write, WriteResult } from "../../store/contract.ts";
import { StoreError } from "../../store/errors.ts";
import { settle } from "./fake-clock.ts";

/** A store with some of its calls replaced. */
export function overrideStore(store: TaskStore, changes: Partial<TaskStore>): TaskStore {
  return { ...store, ...changes };
}

interface GatedStore {
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
function createGatedStore(inner: TaskStore): GatedStore {
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
    store: overrideStore(inner, { write }),
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

/** For a harness: `const held = createStoreGate(); Harness.start({ wrap: held.wrap })`. */
export function createStoreGate(): { readonly wrap: (inner: TaskStore) => TaskStore; readonly gate: GatedStore } {
  let gate: GatedStore | undefined;
  return {
    wrap(inner) {
      gate = createGatedStore(inner);
      return gate.store;
    },
    get gate() {
      if (gate === undefined) throw new Error("The store has not been opened yet.");
      return gate;
    },
  };
}

/** For a harness: a store that fails the next writes, before they were made or after. */
export class FlakyStore {
  #left = 0;
  #when: "before" | "after" = "before";
  failures = 0;

  readonly wrap = (inner: TaskStore): TaskStore =>
    overrideStore(inner, {
      write: async (writes) => {
        if (this.#left === 0) return inner.write(writes);
        this.#left--;
        this.failures++;
        if (this.#when === "after") await inner.write(writes);
        throw new Error("The disk is on fire.");
      },
    });

  fail(times: number, when: "before" | "after" = "before"): void {
    this.#left = times;
    this.#when = when;
  }
}

/** A store that other nodes share, and that can be away for a while: calls then fail at once, or when it is back. */
export class SharedStoreAccess {
  #away: "refuses" | "hangs" | undefined;
  #hanging: (() => void)[] = [];

  readonly wrap = (inner: TaskStore): TaskStore => {
    const guarded = Object.entries(inner).map(([name, member]) => {
      if (typeof member !== "function" || name === "close") return [name, member];
      return [name, (...given: unknown[]) => this.#reach(() => member(...given))];
    });
    return { ...(Object.fromEntries(guarded) as TaskStore), shared: true };
  };

  leave(how: "refuses" | "hangs" = "refuses"): void {
    this.#away = how;
  }

  comeBack(): void {
    this.#away = undefined;
    for (const end of this.#hanging.splice(0)) end();
  }

  async #reach<T>(call: () => Promise<T>): Promise<T> {
    if (this.#away === undefined) return call();
    if (this.#away === "hangs") await new Promise<void>((resolve) => this.#hanging.push(resolve));
    throw new StoreError("unreachable", "The store is away.");
  }
}

/** A store whose writes take some turns of the event loop each, as given, over and over. */
export function slowStore(inner: TaskStore, turns: readonly number[]): TaskStore {
  let next = 0;
  return overrideStore(inner, {
    async write(writes) {
      await settle(turns[next++ % Math.max(turns.length, 1)] ?? 0);
      return inner.write(writes);
    },
  });
}

/** What becomes of each wake-up on its way to a listener. */
export type WakeupFate = "arrives" | "lost" | "doubled" | "late" | "vague";

/** A store whose wake-ups come to what is given, over and over; late ones are overtaken by others. */
export function unreliableWakeups(inner: TaskStore, fates: readonly WakeupFate[]): TaskStore {
  let next = 0;
  const deliver = (listener: (wakeup: Wakeup | "all") => void, wakeup: Wakeup | "all") => {
    const fate = fates[next++ % Math.max(fates.length, 1)] ?? "arrives";
    if (fate === "lost") return;
    if (fate === "late") {
      void settle(7).then(() => listener(wakeup));
      return;
    }
    listener(fate === "vague" ? "all" : wakeup);
    if (fate === "doubled") listener(wakeup);
  };
  return overrideStore(inner, {
    wakeups: {
      publish: (wakeup) => inner.wakeups.publish(wakeup),
      subscribe: (listener) => inner.wakeups.subscribe((wakeup) => deliver(listener, wakeup)),
    },
  });
}

/** What the store accepted of each task, and what must not be asked of it. */
export class WriteRecord {
  readonly violations: string[] = [];
  readonly #fences = new Map<string, number>();

  readonly wrap = (inner: TaskStore): TaskStore =>
    overrideStore(inner, {
      write: async (writes) => {
        const ids = writes.flatMap((write) => ("id" in write && write.kind !== "delivery-progress" ? [write.id] : []));
        if (new Set(ids).size < ids.length) this.violations.push("two writes to one task in one call");
        const results = await inner.write(writes);
        for (const [index, result] of results.entries()) this.#note(writes[index] as Write, result);
        return results;
      },
    });

  /** Events of a run come in the order of fences: one that was fenced adds none. */
  #note(write: Write, result: WriteResult): void {
    if (!result.ok || write.kind !== "append" || write.fence === undefined || write.entries.length === 0) return;
    const before = this.#fences.get(write.id) ?? 0;
    if (write.fence < before) this.violations.push(`${write.id}: an event of fence ${write.fence} after ${before}`);
    this.#fences.set(write.id, Math.max(before, result.fence));
  }
}
