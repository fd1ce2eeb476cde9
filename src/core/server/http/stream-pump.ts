import type { ServerResponse } from "node:http";
import type { UnreadLimits } from "../access/byte-budgets.ts";

/** Writes one stream to its response, with backpressure. */
export class StreamPump {
  readonly #options: UnreadLimits;
  readonly #response: ServerResponse;
  readonly #owner: string | undefined;
  #frames: AsyncIterator<string> | undefined;

  constructor(
    options: UnreadLimits,
    response: ServerResponse,
    frames: AsyncIterator<string>,
    owner: string | undefined,
  ) {
    this.#options = options;
    this.#response = response;
    this.#frames = frames;
    this.#owner = owner;
  }

  start(): void {
    this.#response.on("close", this.#leave);
    this.#pump();
  }

  /** Callbacks instead of `await`: a waiting stream then holds one promise, not a suspended function. */
  #pump(): void {
    this.#frames?.next().then(this.#onStep, this.#onBroken);
  }

  readonly #onStep = (step: IteratorResult<string>): void => {
    if (step.done === true) this.#end();
    else if (this.#response.destroyed) return;
    else if (this.#response.write(step.value)) this.#pump();
    else waitUntilRead(this.#options, this.#response, "drain", this.#owner, this.#onTaken);
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

  readonly #onTaken = (isTaken: boolean): void => (isTaken ? this.#pump() : this.#end());

  #end(): void {
    this.#response.off("close", this.#leave);
    this.#leave();
    endResponse(this.#options, this.#response, undefined, this.#owner);
  }
}

/** Ends a response with the last of its body. What is not flushed at once is subject to the reader timeout. */
export function endResponse(
  options: UnreadLimits,
  response: ServerResponse,
  body: string | Buffer | undefined,
  owner: string | undefined,
): void {
  response.end(body);
  if (!response.destroyed && response.writableLength > 0) waitUntilRead(options, response, "finish", owner);
}

/**
 * Counts the buffered bytes of a response against the budget of its owner until they are read. Disconnects a reader
 * that takes nothing for too long, or that exceeds the budget. Uses the socket's timer, which is reset by partial
 * writes.
 */
function waitUntilRead(
  { stalledReaderMs, unsent, meter }: UnreadLimits,
  response: ServerResponse,
  event: "drain" | "finish",
  owner: string | undefined,
  settled?: (isTaken: boolean) => void,
): void {
  // A pipelined response has no socket until earlier responses are sent.
  const socket = response.socket ?? response.req.socket;
  const bytes = response.writableLength;
  const cut = () => {
    meter.count("readers_stalled");
    socket.destroy();
  };
  if (!unsent.take(bytes, owner)) {
    cut();
    settled?.(false);
    return;
  }
  const time = () => socket.setTimeout(stalledReaderMs).once("timeout", cut);
  const settle = (isTaken: boolean) => {
    unsent.release(bytes, owner);
    socket.setTimeout(0).off("timeout", cut).off("close", onClose);
    response.off(event, onTaken).off("socket", time);
    settled?.(isTaken);
  };
  const onTaken = () => settle(true);
  const onClose = () => settle(false);
  // Before Node's own listener, which sets the idle timeout of the connection.
  response.prependOnceListener(event, onTaken);
  // Many responses may wait for one socket.
  socket.setMaxListeners(0).once("close", onClose);
  if (response.socket === null) response.once("socket", time);
  else time();
}
