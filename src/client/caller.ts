/** One agent: operations in, outcomes out. Asks again where that is safe, and by another interface where one fails. */
import type { Abilities } from "../dialects/contract.ts";
import type { OutcomeOf } from "../model/operation.ts";
import { connectionError } from "./failures.ts";
import type { FrameReader } from "./frame-reader.ts";
import type { ChosenInterface, Notice, RetryOptions } from "./options.ts";
import { createRetryBackoff, isRepeatable, triesFor, waitFor } from "./retry.ts";
import { type Lines, Route } from "./route.ts";
import { sleep } from "./signals.ts";
import type { Attempt, CallSettings, StreamOperation, WholeOperation } from "./transport.ts";

export interface CallerSetup {
  readonly lines: Lines;
  readonly requestRetry: RetryOptions;
  readonly streamRetry: RetryOptions;
  /** How often a task is asked for that cannot be followed; slower while nothing changes. */
  readonly polling: { readonly baseMs: number; readonly capMs: number };
  readonly notify: (notice: Notice) => void;
}

export interface Caller {
  readonly setup: CallerSetup;
  /** In use now; another one once it fails. */
  readonly interface: ChosenInterface;
  /** What can be said by the interface in use. */
  readonly can: Abilities;
  /** Asks, and asks again where that is safe. `onRepeat` hears of each failure that is not the last word. */
  ask<O extends WholeOperation>(operation: O, settings: CallSettings, onRepeat?: () => void): Promise<OutcomeOf<O>>;
  /** For opening the streams of one iteration. */
  startRoute(): Route;
  /** Opens a stream; one try of each interface that may be tried. */
  open(operation: StreamOperation, settings: CallSettings, route: Route): Promise<Attempt<FrameReader>>;
}

export function createCaller(setup: CallerSetup): Caller {
  const { lines, notify, requestRetry } = setup;
  return {
    setup,
    get interface() {
      return lines.interface;
    },
    get can() {
      return lines.can;
    },
    async ask(operation, settings, onRepeat) {
      const newBackoff = () => {
        return createRetryBackoff(triesFor(operation.kind, requestRetry, settings.idempotencyKey), requestRetry);
      };
      const route = new Route(lines);
      let backoff = newBackoff();
      for (;;) {
        const made = await route.run(operation, settings.signal, (transport) => transport.attempt(operation, settings));
        if (made.ok) return made.value;
        let wait = made.transient ? backoff.next() : undefined;
        if (wait === undefined) {
          if (!isRepeatable(operation.kind, settings.idempotencyKey) || !route.leave(made.error)) throw made.error;
          backoff = newBackoff();
          wait = 0;
        }
        onRepeat?.();
        notify({ kind: "reconnect", message: `${made.error.message} Trying again.` });
        await pause(waitFor(wait, made.error), settings.signal, lines.interface.url);
      }
    },
    startRoute: () => new Route(lines),
    open: (operation, settings, route) =>
      route.open(operation, settings.signal, (transport) => transport.open(operation, settings)),
  };
}

/** Waits; an abort is reported as an abort of the call that would have followed. */
export async function pause(milliseconds: number, signal: AbortSignal, url: string): Promise<void> {
  try {
    await sleep(milliseconds, signal);
  } catch (error) {
    throw connectionError(error, { method: "The wait to reach", url });
  }
}
