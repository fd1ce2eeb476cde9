import { AsyncLocalStorage } from "node:async_hooks";
import type { Hops } from "../model/hops.ts";

/** Whatever runs an agent knows how the run came about. */
interface HopsSource {
  readonly hops: Hops;
}

let current: AsyncLocalStorage<HopsSource> | undefined;

/**
 * From here on a run is known to the calls it makes. Not from the start: on Node 20, following a run through all that it
 * awaits costs a tenth of the CPU time of a request and a fifth of that of a stream, so only processes that call agents
 * pay for it.
 */
export function trackHops(): void {
  current ??= new AsyncLocalStorage();
}

/** Of the run that this is called in; undefined outside of one. */
export function hopsOfRun(): Hops | undefined {
  return current?.getStore()?.hops;
}

/** Does a step of a run. What it calls, also after it has waited for something, is called by that run. */
export function asRunOf<T>(turn: HopsSource, step: () => T): T {
  return current === undefined ? step() : current.run(turn, step);
}

/** Whether steps have to be done through `asRunOf`. */
export function areHopsTracked(): boolean {
  return current !== undefined;
}
