import type { ServerResponse } from "node:http";
import type { Log, Meter } from "../model/ports.ts";

export interface StreamPumpOptions {
  /** A reader that takes nothing for this long is sent away; it can resume from its cursor. */
  readonly stalledReaderMs: number;
  readonly log: Log;
  readonly meter: Meter;
}

/** Writes one stream to its response, no faster than the reader takes it. */
export class StreamPump {
  readonly #options: StreamPumpOptions;
  readonly #response: ServerResponse;
  #frames: AsyncIterator<string> | undefined;

  constructor(options: StreamPumpOptions, response: ServerResponse, frames: AsyncIterator<string>) {
    this.#options = options;
    this.#response = response;
    this.#frames = frames;
  }

  begin(): void {
    this.#response.on("close", this.#leave);
    this.#pump();
  }

  /** Called back rather than awaited: what a waiting stream holds is then one promise, not a suspended function. */
  #pump(): void {
    this.#frames?.next().then(this.#onStep, this.#onBroken);
  }

  readonly #onStep = (step: IteratorResult<string>): void => {
    if (step.done === true) this.#end();
    else if (this.#response.destroyed) return;
    else if (this.#response.write(step.value)) this.#pump();
    else void this.#drained().then((taken) => (taken ? this.#pump() : this.#end()));
  };

  readonly #onBroken = (error: unknown): void => {
    this.#options.log.error({ err: error }, "A stream broke.");
    this.#response.destroy();
  };

  readonly #leave = (): void => {
    const frames = this.#frames;
    this.#frames = undefined;
    void frames?.return?.();
  };

  #end(): void {
    this.#response.off("close", this.#leave);
    this.#leave();
    this.#response.end();
  }

  /**
   * False when the reader did not take anything for too long and was cut off. The socket's own timer knows of writes
   * that are making progress, which a timer of ours would not.
   */
  #drained(): Promise<boolean> {
    return new Promise((resolve) => {
      const response = this.#response;
      const { socket } = response;
      const settle = (taken: boolean) => {
        socket?.setTimeout(0);
        socket?.off("timeout", onTimeout);
        response.off("drain", onDrain);
        response.off("close", onClose);
        resolve(taken);
      };
      const onDrain = () => settle(true);
      const onClose = () => settle(false);
      const onTimeout = () => {
        this.#options.meter.count("readers_stalled");
        response.destroy();
        settle(false);
      };
      response.once("drain", onDrain);
      response.once("close", onClose);
      socket?.setTimeout(this.#options.stalledReaderMs);
      socket?.once("timeout", onTimeout);
    });
  }
}
