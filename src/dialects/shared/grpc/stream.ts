/** A stream of frames as messages of a gRPC call. */

import type { StreamEvent } from "../../../model/event.ts";
import { EXTENSIONS } from "../../../model/extensions.ts";
import type { JsonObject } from "../../../model/json.ts";
import type { FrameStream, StreamFrame } from "../../../model/operation.ts";
import { type RpcMetadata, type RpcStatus, RpcStatusError, type RpcStreamReply } from "../../../wire/rpc.ts";
import { createFrame, createNumberedFrame } from "../responses.ts";

/**
 * The number of an event inside the event: gRPC has no place for it beside the message. It rides in the metadata under
 * the URI of the replay extension, for callers who asked for that extension.
 */

const KEY = EXTENSIONS.replay;

export function embedNumber({ event, number }: StreamFrame): StreamEvent {
  if (number === undefined || "message" in event) return event;
  if ("task" in event) return { task: { ...event.task, metadata: addMark(event.task.metadata, number) } };
  if ("statusUpdate" in event) {
    return { statusUpdate: { ...event.statusUpdate, metadata: addMark(event.statusUpdate.metadata, number) } };
  }
  return { artifactUpdate: { ...event.artifactUpdate, metadata: addMark(event.artifactUpdate.metadata, number) } };
}

function addMark(metadata: JsonObject | undefined, number: number): JsonObject {
  // Metadata that is there but empty must be told from none at all when the mark is taken off again.
  const mark = metadata !== undefined && Object.keys(metadata).length === 0 ? { number, empty: true } : { number };
  return { ...metadata, [KEY]: mark };
}

/** The event as it was before it was numbered, with its number if it has one. */
export function extractNumber(event: StreamEvent): StreamFrame {
  if ("message" in event) return createFrame(event, undefined);
  const bearer = "task" in event ? event.task : "statusUpdate" in event ? event.statusUpdate : event.artifactUpdate;
  const mark = bearer.metadata?.[KEY];
  if (typeof mark !== "object" || mark === null || !("number" in mark)) return createFrame(event, undefined);
  const { number } = mark;
  if (typeof number !== "number" || !Number.isSafeInteger(number) || number < 0) return createFrame(event, undefined);
  return createNumberedFrame(removeMark(event), number);
}

function removeMark(event: Exclude<StreamEvent, { readonly message: unknown }>): StreamEvent {
  if ("task" in event) return { task: omitMark(event.task) };
  if ("statusUpdate" in event) return { statusUpdate: omitMark(event.statusUpdate) };
  return { artifactUpdate: omitMark(event.artifactUpdate) };
}

function omitMark<T extends { readonly metadata?: JsonObject }>(bearer: T): T {
  const { metadata, ...rest } = bearer;
  const { [KEY]: mark, ...others } = metadata ?? {};
  const none = Object.keys(others).length === 0 && !(typeof mark === "object" && mark !== null && "empty" in mark);
  return (none ? rest : { ...rest, metadata: others }) as T;
}

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
