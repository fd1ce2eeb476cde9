/**
 * The number of an event inside the event: gRPC has no place for it beside the message. It rides in the metadata under
 * the URI of the replay extension, for callers who asked for that extension.
 */
import type { StreamEvent } from "../../model/event.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { JsonObject } from "../../model/json.ts";
import type { StreamFrame } from "../../model/operation.ts";
import { numberedFrame, receivedFrame } from "./answers.ts";

const KEY = EXTENSIONS.replay;

export function withNumber({ event, number }: StreamFrame): StreamEvent {
  if (number === undefined || "message" in event) return event;
  if ("task" in event) return { task: { ...event.task, metadata: marked(event.task.metadata, number) } };
  if ("statusUpdate" in event) {
    return { statusUpdate: { ...event.statusUpdate, metadata: marked(event.statusUpdate.metadata, number) } };
  }
  return { artifactUpdate: { ...event.artifactUpdate, metadata: marked(event.artifactUpdate.metadata, number) } };
}

function marked(metadata: JsonObject | undefined, number: number): JsonObject {
  // Metadata that is there but empty must be told from none at all when the mark is taken off again.
  const mark = metadata !== undefined && Object.keys(metadata).length === 0 ? { number, empty: true } : { number };
  return { ...metadata, [KEY]: mark };
}

/** The event as it was before it was numbered, with its number if it has one. */
export function withoutNumber(event: StreamEvent): StreamFrame {
  if ("message" in event) return receivedFrame(event, undefined);
  const bearer = "task" in event ? event.task : "statusUpdate" in event ? event.statusUpdate : event.artifactUpdate;
  const mark = bearer.metadata?.[KEY];
  if (typeof mark !== "object" || mark === null || !("number" in mark)) return receivedFrame(event, undefined);
  const { number } = mark;
  if (typeof number !== "number" || !Number.isSafeInteger(number) || number < 0) return receivedFrame(event, undefined);
  return numberedFrame(unmarked(event), number);
}

function unmarked(event: Exclude<StreamEvent, { readonly message: unknown }>): StreamEvent {
  if ("task" in event) return { task: withoutMark(event.task) };
  if ("statusUpdate" in event) return { statusUpdate: withoutMark(event.statusUpdate) };
  return { artifactUpdate: withoutMark(event.artifactUpdate) };
}

function withoutMark<T extends { readonly metadata?: JsonObject }>(bearer: T): T {
  const { metadata, ...rest } = bearer;
  const { [KEY]: mark, ...others } = metadata ?? {};
  const none = Object.keys(others).length === 0 && !(typeof mark === "object" && mark !== null && "empty" in mark);
  return (none ? rest : { ...rest, metadata: others }) as T;
}
