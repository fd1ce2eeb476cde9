/** The response to `message/stream`: frames for the device as server-sent events. */

import { ProtocolError } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import type { FrameStream, StreamFrame } from "../../model/operation.ts";
import type { StreamReply } from "../../wire/exchange.ts";
import type { JsonRpcId } from "../../wire/json-rpc.ts";
import { DONE } from "../../wire/pipe-frames.ts";
import { encodeSseLine } from "../../wire/sse.ts";
import type { ServeContext } from "../contract.ts";
import { toPublicError } from "../shared/errors.ts";
import { type EventFraming, eventStreamReply } from "../shared/http/event-stream.ts";
import { mapFrames } from "../shared/http/map-frames.ts";
import { withoutEarlierArtifacts } from "../xiaoyi/agent-tasks.ts";
import { coalesce, type RenderedFrame, toResponse } from "../xiaoyi/frames.ts";
import type { Language } from "../xiaoyi/phone-texts.ts";
import type { Attendance } from "../xiaoyi/ports.ts";
import { toTapAnswerFrames } from "../xiaoyi/render/notification.ts";
import { Renderer, type RenderMode } from "../xiaoyi/render/renderer.ts";
import type { OpenedAnswer } from "./conversation.ts";

interface StreamOptions {
  readonly id: JsonRpcId;
  /** The platform's id of the task. */
  readonly taskId: string;
  readonly render: RenderMode;
  readonly language: Language;
  /** Converts an event into what the platform can show, e.g. by uploading its files. */
  readonly prepare?: ((event: StreamEvent) => Promise<StreamEvent>) | undefined;
  /** Called with the error if the stream fails. */
  readonly onFailure: (error: unknown) => void;
  /** Learns whether the reader stayed to the end. */
  readonly attendance?: Pick<Attendance, "finished" | "left"> | undefined;
}

export function streamReply(
  answering: OpenedAnswer | undefined,
  { attendance, id, language, onFailure, prepare, render, taskId }: StreamOptions,
  { ids, limits, report }: Pick<ServeContext, "ids" | "limits" | "report">,
): StreamReply {
  const scope = { taskId, artifactId: ids.message };
  const renderer = new Renderer({ ...scope, mode: render, language, questionEnds: true, report });
  const answer = answering === undefined ? EMPTY_ANSWER : answering.frames;
  const source = prepare === undefined ? answer : preparedFrames(answer, prepare);
  let seenTask = "";
  let finished = false;
  const map = (frame: StreamFrame, into: StreamFrame[]): boolean => {
    if (seenTask === "") seenTask = taskIdOf(frame.event) ?? "";
    const event = answering?.continues === true ? withoutEarlierArtifacts(frame.event) : frame.event;
    add(renderer.push(event), frame.event, into);
    finished = renderer.ended || renderer.asking;
    return finished;
  };
  const atEnd = () => {
    // A server that shuts down ends its streams early, and the phone would wait forever.
    return renderer.asking ? [] : renderer.fail(STOPPED).map((rendered) => new DeviceFrame(rendered, NO_EVENT));
  };
  const onClose = () => {
    if (finished && seenTask !== "") attendance?.finished(seenTask);
    else attendance?.left();
  };
  return eventStreamReply(mapFrames(source, map, { atEnd, onClose }), {
    keepAliveMs: limits.keepAliveMs,
    framing: new DeviceFraming(id, renderer, onFailure),
  });
}

/** The response to a tapped notification: complete from the start. */
export function tapAnswerReply(
  text: string | undefined,
  { id, language, taskId }: Pick<StreamOptions, "id" | "language" | "taskId">,
  { ids, limits }: Pick<ServeContext, "ids" | "limits">,
): StreamReply {
  const frames = toTapAnswerFrames({ taskId, artifactId: ids.message }, text, language);
  const source: FrameStream = {
    async *[Symbol.asyncIterator]() {
      yield frames.map((rendered) => new DeviceFrame(rendered, NO_EVENT));
    },
  };
  const framing: EventFraming = { encode: (batch) => toEvents(id, batch), encodeFailure: () => "" };
  return eventStreamReply(source, { keepAliveMs: limits.keepAliveMs, framing });
}

/** Not a generator: `return` must reach the source even while a `next` is pending. */
function preparedFrames(source: FrameStream, prepare: NonNullable<StreamOptions["prepare"]>): FrameStream {
  return {
    [Symbol.asyncIterator]() {
      const frames = source[Symbol.asyncIterator]();
      return {
        async next() {
          const result = await frames.next();
          if (result.done === true) return result;
          const value: StreamFrame[] = [];
          for (const { event } of result.value) value.push({ event: await prepare(event), json: "" });
          return { done: false, value };
        },
        async return() {
          await frames.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

const STOPPED = new ProtocolError("UNAVAILABLE", "The agent was interrupted; please ask again.");

/** Used for streams without events, for messages that are only acknowledged. */
const NO_EVENT: StreamEvent = {
  statusUpdate: { taskId: "", contextId: "", status: { state: "TASK_STATE_COMPLETED" } },
};
const EMPTY_ANSWER: FrameStream = {
  async *[Symbol.asyncIterator]() {
    yield [{ event: NO_EVENT, json: "" }];
  },
};

/** Later frames of the same batch may supersede earlier ones. */
function add(frames: readonly RenderedFrame[], event: StreamEvent, into: StreamFrame[]): void {
  for (const rendered of frames) {
    const last = into.at(-1);
    const both = last instanceof DeviceFrame ? coalesce(last.rendered, rendered) : undefined;
    if (both === undefined) into.push(new DeviceFrame(rendered, event));
    else into[into.length - 1] = new DeviceFrame(both, event);
  }
}

class DeviceFrame implements StreamFrame {
  readonly rendered: RenderedFrame;
  readonly event: StreamEvent;
  #json: string | undefined;

  constructor(rendered: RenderedFrame, event: StreamEvent) {
    this.rendered = rendered;
    this.event = event;
  }

  /** The result only; the stream adds the envelope. */
  get json(): string {
    this.#json ??= JSON.stringify(this.rendered.result);
    return this.#json;
  }
}

class DeviceFraming implements EventFraming {
  readonly #id: JsonRpcId;
  readonly #renderer: Renderer;
  readonly #onFailure: StreamOptions["onFailure"];

  constructor(id: JsonRpcId, renderer: Renderer, onFailure: StreamOptions["onFailure"]) {
    this.#id = id;
    this.#renderer = renderer;
    this.#onFailure = onFailure;
  }

  encode(batch: readonly StreamFrame[]): string {
    return toEvents(this.#id, batch);
  }

  encodeFailure(error: unknown): string {
    this.#onFailure(error);
    return this.#renderer
      .fail(toPublicError(error))
      .map((rendered) => toEvent(this.#id, rendered))
      .join("");
  }

  /** The platform has an idle timeout, and ignores comments of the event stream. */
  keepAlive(): string | undefined {
    const rendered = this.#renderer.keepAlive();
    return rendered && toEvent(this.#id, rendered);
  }
}

function toEvents(id: JsonRpcId, batch: readonly StreamFrame[]): string {
  return batch.map((frame) => (frame instanceof DeviceFrame ? toEvent(id, frame.rendered) : "")).join("");
}

function toEvent(id: JsonRpcId, { error, result }: RenderedFrame): string {
  return encodeSseLine(toResponse(id, result, error));
}

function taskIdOf(event: StreamEvent): string | undefined {
  if ("task" in event) return event.task.id;
  if ("statusUpdate" in event) return event.statusUpdate.taskId;
  return "artifactUpdate" in event ? event.artifactUpdate.taskId : undefined;
}

/** Begins the response immediately, with no content but a sign of life. */
export function respondImmediately(answering: Promise<OpenedAnswer | undefined>): OpenedAnswer {
  let continues = false;
  const source = answering.then((answer) => {
    continues = answer?.continues === true;
    return answer?.frames[Symbol.asyncIterator]();
  });
  // The reader receives the error; there may be no reader.
  source.catch(() => {});
  let begun = false;
  return {
    get continues() {
      return continues;
    },
    frames: {
      [Symbol.asyncIterator]: () => ({
        async next() {
          if (begun) return (await source)?.next() ?? DONE;
          begun = true;
          return { done: false, value: [WORKING_FRAME] };
        },
        async return() {
          const frames = await source.catch(() => undefined);
          await frames?.return?.();
          return DONE;
        },
      }),
    },
  };
}

const WORKING_FRAME: StreamFrame = {
  event: { statusUpdate: { taskId: "", contextId: "", status: { state: "TASK_STATE_WORKING" } } },
  json: "",
};
