/** A stream of frames as messages of a gRPC call. */
import type { FrameStream, StreamFrame } from "../../model/operation.ts";
import { type RpcMetadata, type RpcStatus, RpcStatusError, type RpcStreamReply } from "../../wire/rpc.ts";

export interface RpcFraming {
  encode(frame: StreamFrame): Uint8Array;
  /** What is said when the source fails after the stream has begun. */
  statusOf(error: unknown): RpcStatus;
}

export function rpcStreamReply(
  source: FrameStream,
  framing: RpcFraming,
  metadata: RpcMetadata | undefined,
): RpcStreamReply {
  return { kind: "stream", metadata, messages: new MessageStream(source, framing) };
}

type Result = IteratorResult<readonly Uint8Array[], undefined>;

const DONE: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/** Not an async generator: the `return` of one waits for a pending `next`, which may never come. */
class MessageStream implements AsyncIterableIterator<readonly Uint8Array[], undefined> {
  readonly #source: AsyncIterator<readonly StreamFrame[]>;
  readonly #framing: RpcFraming;

  constructor(source: FrameStream, framing: RpcFraming) {
    this.#source = source[Symbol.asyncIterator]();
    this.#framing = framing;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result> {
    return this.#source.next().then(this.#encoded, this.#failed);
  }

  return(): Promise<Result> {
    // Not awaited: the reader has left, and what the source does on its way out is its own business.
    this.#source.return?.().catch(() => {});
    return Promise.resolve(DONE);
  }

  readonly #encoded = (result: IteratorResult<readonly StreamFrame[]>): Result => {
    if (result.done === true) return DONE;
    try {
      return { done: false, value: result.value.map((frame) => this.#framing.encode(frame)) };
    } catch (error) {
      this.return();
      return this.#failed(error);
    }
  };

  readonly #failed = (error: unknown): never => {
    throw new RpcStatusError(this.#framing.statusOf(error));
  };
}
