import { ProtocolError } from "../model/errors.ts";
import { statusText } from "../model/status-texts.ts";
import { isTerminal, STATE_CLASS } from "../model/task.ts";
import type { EngineContext } from "./options.ts";
import type { Runner } from "./runs/runner.ts";
import type { LiveTask } from "./tasks/live-task.ts";
import { textDraft } from "./tasks/task-events.ts";

/** Messages of callers may come between. */
const MAX_ATTEMPTS = 10;

/** Gives the tasks of a node that is about to end to others that share its store, which take them up at once. */
export class HandOver {
  readonly #context: EngineContext;
  readonly #runner: Runner;

  constructor(context: EngineContext, runner: Runner) {
    this.#context = context;
    this.#runner = runner;
  }

  /** Tasks whose runs wait in line: another node may begin them now. */
  async releaseQueued(): Promise<void> {
    const queued = this.#runner.tasks.all().filter((live) => live.active && !live.isRunning);
    await this.#releaseAll(queued);
  }

  /** Runs that may be repeated continue elsewhere. Others end here, so that their tasks fail, once and for a stated reason. */
  async releaseAll(): Promise<void> {
    const released: LiveTask[] = [];
    const ended: LiveTask[] = [];
    for (const live of this.#runner.tasks.all()) {
      const continues = !live.isRunning || live.served.agent.onCrash === "resume";
      if (!isTerminal(live.state) && continues) {
        released.push(live);
        continue;
      }
      if (!isTerminal(live.state)) this.#end(live);
      ended.push(live);
    }
    await Promise.all([this.#releaseAll(released), ...ended.map((live) => live.whenFlushed().catch(() => {}))]);
  }

  #end(live: LiveTask): void {
    const { crashText = statusText("processStopped") } = live.served.agent;
    if (this.#runner.isCancelling(live)) live.end("TASK_STATE_CANCELED");
    else live.end("TASK_STATE_FAILED", textDraft(crashText));
    this.#runner.stop(live, shuttingDown());
  }

  async #releaseAll(tasks: readonly LiveTask[]): Promise<void> {
    if (tasks.length === 0) return;
    const released = await Promise.all(tasks.map((live) => this.#release(live).catch(() => false)));
    const count = released.filter(Boolean).length;
    this.#context.log.info({ tasks: count }, "Tasks were handed over to other nodes.");
    this.#context.store.wakeups.publish({ work: true });
  }

  /** What is not written by now is written again by the run that continues. False: it is left to the end of this node. */
  async #release(live: LiveTask): Promise<boolean> {
    // A message that was accepted must be in the log, and a write that is under way decides where the log ends.
    if (!live.isLeased || live.isWriting) await live.whenFlushed();
    if (live.closed || isTerminal(live.state)) return false;
    const { id, fence } = live;
    let { number } = live.fold;
    const { state } = live.fold.status;
    live.lose(shuttingDown(), { isHandedOver: true });
    // A task that waits for its caller is claimed only when its node is gone.
    if (STATE_CLASS[state] !== "active") return false;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const write = {
        kind: "append",
        id,
        expect: number,
        fence,
        entries: [],
        lease: "release",
        begins: false,
      } as const;
      const result = await this.#runner.committer.write(write);
      if (result.ok) return true;
      const head = result.refusal === "position" ? await this.#context.store.head(id) : undefined;
      if (head === undefined) return false;
      number = head.number;
    }
    return false;
  }
}

function shuttingDown(): ProtocolError {
  return new ProtocolError("UNAVAILABLE", "The server is shutting down.", { retryAfter: 1 });
}
