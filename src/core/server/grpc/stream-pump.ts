import type { Log } from "../../model/ports.ts";
import { RPC_CODES, type RpcStatus, RpcStatusError } from "../../wire/rpc.ts";
import { TOO_MUCH_UNSENT, type UnreadLimits } from "../access/byte-budgets.ts";
import type { Call } from "./call.ts";
import { PREFIX_BYTES } from "./message-framing.ts";

/** A batch gets one more timeout per this many bytes: progress within a batch is not observable. */
const BYTES_PER_EXTRA_TIMEOUT = 1024 * 1024;

/** Writes one stream of messages to its call, with backpressure. */
export class StreamPump {
  readonly #options: UnreadLimits;
  readonly #call: Call;
  #messages: AsyncIterator<readonly Uint8Array[]> | undefined;
  /** Bytes written to the call and not flushed. */
  #unsent = 0;
  #patience = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: UnreadLimits, call: Call, messages: AsyncIterator<readonly Uint8Array[]>) {
    this.#options = options;
    this.#call = call;
    this.#messages = messages;
  }

  start(): void {
    this.#call.onCancelled = this.#leave;
    this.#pull();
  }

  /** Callbacks instead of `await`: a waiting stream then holds one promise, not a suspended function. */
  #pull(): void {
    try {
      this.#messages?.next().then(this.#onStep, this.#onBroken);
    } catch (error) {
      this.#onBroken(error);
    }
  }

  readonly #onStep = (step: IteratorResult<readonly Uint8Array[]>): void => {
    if (this.#messages === undefined) return;
    if (step.done === true) {
      this.#messages = undefined;
      this.#stop();
      this.#call.end();
    } else if (step.value.length === 0) this.#pull();
    else this.#send(step.value);
  };

  #send(batch: readonly Uint8Array[]): void {
    const bytes = bytesOf(batch);
    if (!this.#options.unsent.take(bytes, this.#call.caller?.owner)) {
      this.#leave();
      this.#call.fail({ code: RPC_CODES.RESOURCE_EXHAUSTED, message: TOO_MUCH_UNSENT });
      return;
    }
    this.#unsent = bytes;
    this.#patience = Math.floor(bytes / BYTES_PER_EXTRA_TIMEOUT);
    if (this.#timer === undefined) {
      this.#timer = setTimeout(this.#onTime, this.#options.stalledReaderMs);
      this.#timer.unref();
    } else this.#timer.refresh();
    this.#call.write(batch, this.#onTaken);
  }

  readonly #onTaken = (error?: Error | null): void => {
    this.#release();
    if (error === undefined || error === null) this.#pull();
    else this.#leave();
  };

  /** May fire while nothing is being sent: the timer is not stopped between batches, only restarted by the next. */
  readonly #onTime = (): void => {
    if (this.#unsent === 0) return;
    if (this.#patience > 0) {
      this.#patience--;
      this.#timer?.refresh();
      return;
    }
    this.#options.meter.count("readers_stalled");
    this.#leave();
    this.#call.reset();
  };

  readonly #onBroken = (error: unknown): void => {
    if (this.#messages === undefined) return;
    this.#messages = undefined;
    this.#stop();
    this.#call.fail(this.#statusOf(error));
  };

  #statusOf(error: unknown): RpcStatus {
    if (error instanceof RpcStatusError) return error.status;
    this.#options.log.error({ err: error }, "A stream broke.");
    return { code: RPC_CODES.INTERNAL, message: "The stream broke." };
  }

  readonly #leave = (): void => {
    const messages = this.#messages;
    this.#messages = undefined;
    this.#stop();
    if (messages !== undefined) closeSource(messages, this.#options.log);
  };

  #stop(): void {
    this.#call.onCancelled = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#release();
  }

  #release(): void {
    if (this.#unsent === 0) return;
    this.#options.unsent.release(this.#unsent, this.#call.caller?.owner);
    this.#unsent = 0;
  }
}

/** Closes a source that is no longer read. */
export function closeSource(messages: AsyncIterator<unknown>, log: Log): void {
  const failed = (error: unknown) => log.error({ err: error }, "A stream could not be closed.");
  try {
    messages.return?.().then(undefined, failed);
  } catch (error) {
    failed(error);
  }
}

function bytesOf(messages: readonly Uint8Array[]): number {
  let bytes = 0;
  for (const message of messages) bytes += PREFIX_BYTES + message.length;
  return bytes;
}
