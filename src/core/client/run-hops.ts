import { AsyncLocalStorage } from "node:async_hooks";
import { EXTENSIONS, type Hops, limitHops, readDeadline, readHops } from "../model/extensions.ts";

/** Environment variable with the hops of the call that a program was started for. */
export const HOPS_VARIABLE = "DRAGOMAN_HOPS";

/** The part of a turn that holds its hops. */
interface HopsSource {
  readonly hops: Hops;
}

let current: AsyncLocalStorage<HopsSource> | undefined;

/**
 * From now on, calls made during a run inherit its hops. Not enabled from the start: on Node 20, tracking the async
 * context costs a tenth of the CPU time of a request and a fifth of that of a stream, so only processes that call
 * agents pay for it.
 */
export function trackHops(): void {
  current ??= new AsyncLocalStorage();
}

/** Hops of the current run, or of the run that this process was started for; undefined outside of a run. */
export function currentHops(): Hops | undefined {
  return current?.getStore()?.hops ?? processHops();
}

function processHops(): Hops | undefined {
  const text = process.env[HOPS_VARIABLE];
  if (text === undefined) return undefined;
  try {
    const metadata = { [EXTENSIONS.hops]: JSON.parse(text) };
    return limitHops(readHops(metadata), readDeadline(metadata, performance.timeOrigin));
  } catch {
    return undefined;
  }
}

/** Executes one step of a run. Calls made in it, including those after an `await`, inherit the hops of the run. */
export function runWithHops<T>(turn: HopsSource, step: () => T): T {
  return current === undefined ? step() : current.run(turn, step);
}

/** Whether steps must be executed with `runWithHops`. */
export function areHopsTracked(): boolean {
  return current !== undefined;
}
