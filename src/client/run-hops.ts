import { AsyncLocalStorage } from "node:async_hooks";
import { EXTENSIONS, type Hops, readHops } from "../model/extensions.ts";

/** Where a program that runs as an agent finds how it came to be called. */
export const HOPS_VARIABLE = "DRAGOMAN_HOPS";

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

/** Of the run that this is called in, or that this process was started for; undefined outside of one. */
export function currentHops(): Hops | undefined {
  return current?.getStore()?.hops ?? processHops();
}

function processHops(): Hops | undefined {
  const text = process.env[HOPS_VARIABLE];
  if (text === undefined) return undefined;
  try {
    return readHops({ [EXTENSIONS.hops]: JSON.parse(text) });
  } catch {
    return undefined;
  }
}

/** Does a step of a run. What it calls, also after it has waited for something, is called by that run. */
export function runWithHops<T>(turn: HopsSource, step: () => T): T {
  return current === undefined ? step() : current.run(turn, step);
}

/** Whether steps have to be done through `asRunOf`. */
export function areHopsTracked(): boolean {
  return current !== undefined;
}
