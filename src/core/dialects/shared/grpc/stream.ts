/** A stream of frames as messages of a gRPC call. */

import type { StreamEvent } from "../../../model/event.ts";
import { EXTENSIONS } from "../../../model/extensions.ts";
import type { JsonObject } from "../../../model/json.ts";
import type { FrameStream, StreamFrame } from "../../../model/operation.ts";
import { pipeFrames } from "../../../wire/pipe-frames.ts";
import { type RpcMetadata, type RpcStatus, RpcStatusError, type RpcStreamReply } from "../../../wire/rpc.ts";
import { createFrame, createNumberedFrame } from "../responses.ts";

/**
 * The number of an event is carried inside the event, since gRPC has no field for it outside the message: in the
 * event's metadata under the URI of the replay extension, for callers that requested the extension.
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
  // Distinguishes empty from absent metadata when the number is removed again.
  const mark = metadata !== undefined && Object.keys(metadata).length === 0 ? { number, empty: true } : { number };
  return { ...metadata, [KEY]: mark };
}

/** Reverses the numbering: the original event, and its number if it has one. */
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
  /** Encodes a failure of the source after the stream has started. */
  statusOf(error: unknown): RpcStatus;
}

export function rpcStreamReply(
  source: FrameStream,
  framing: RpcFraming,
  metadata: RpcMetadata | undefined,
): RpcStreamReply {
  const messages = pipeFrames(source[Symbol.asyncIterator](), {
    map: (batch: readonly StreamFrame[]) => batch.map((frame) => framing.encode(frame)),
    toError: (error) => new RpcStatusError(framing.statusOf(error)),
  });
  return { kind: "stream", metadata, messages };
}
