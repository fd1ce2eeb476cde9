/** Following a task that can only be asked for. */
import { isInterrupted, isTerminal } from "../model/state.ts";
import type { Task } from "../model/task.ts";
import { type Caller, pause } from "./caller.ts";
import type { ClientEvent } from "./options.ts";
import type { CallSettings } from "./transport.ts";

export interface PollOptions {
  readonly caller: Caller;
  readonly settings: CallSettings;
  readonly id: string;
  /** Goes on while the task waits for somebody. */
  readonly observes: boolean;
  /** The task as it was handed over last. */
  readonly known?: Task;
}

const SLOWER = 1.5;

/** `{ task }` whenever it has changed, until it has ended. */
export async function* pollTask(options: PollOptions): AsyncGenerator<readonly ClientEvent[], void, undefined> {
  const { caller, id, known, observes, settings } = options;
  const { baseMs, capMs } = caller.setup.polling;
  let wait = baseMs;
  let last = known === undefined ? undefined : JSON.stringify(known);
  for (;;) {
    if (last !== undefined) await pause(wait, settings.signal, caller.interface.url);
    const task = await caller.ask({ kind: "get", id }, settings);
    const json = JSON.stringify(task);
    if (json === last) {
      wait = Math.min(capMs, wait * SLOWER);
    } else {
      last = json;
      wait = baseMs;
      yield [{ event: { task } }];
    }
    const { state } = task.status;
    if (isTerminal(state) || (isInterrupted(state) && !observes)) return;
  }
}
