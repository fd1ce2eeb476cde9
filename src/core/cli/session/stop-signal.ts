import { setTimeout as sleep } from "node:timers/promises";
import { CommandError } from "../errors.ts";

/** Ends a command early: the user pressed Ctrl-C, or `--timeout` passed. */
export class StopSignal {
  readonly #controller = new AbortController();
  #reason: "interrupted" | "timeout" | undefined;
  #timer: NodeJS.Timeout | undefined;
  #onSignal: (() => void) | undefined;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get reason(): "interrupted" | "timeout" | undefined {
    return this.#reason;
  }

  startTimer(milliseconds: number | undefined): void {
    if (milliseconds === undefined) return;
    this.#timer = setTimeout(() => this.#end("timeout"), milliseconds);
  }

  /** Handles the first Ctrl-C and removes the listener, so that a second one ends the process immediately. */
  listenForInterrupt(): void {
    this.#onSignal = () => this.#end("interrupted");
    process.once("SIGINT", this.#onSignal);
  }

  dispose(): void {
    clearTimeout(this.#timer);
    if (this.#onSignal !== undefined) process.removeListener("SIGINT", this.#onSignal);
  }

  async sleep(milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { signal: this.signal }).catch(() => {});
    this.throwIfStopped();
  }

  throwIfStopped(): void {
    if (this.#reason !== undefined) throw new CommandError("DRAGOMAN_ERR_INTERRUPTED", "Stopped.");
  }

  #end(reason: "interrupted" | "timeout"): void {
    this.#reason ??= reason;
    this.#controller.abort();
  }
}
