/** The response to `message/stream`: frames for the device as server-sent events. */

import type { ServeContext } from "../../../../core/dialects/contract.ts";
import { toPublicError } from "../../../../core/dialects/shared/errors.ts";
import { type EventFraming, eventStreamReply } from "../../../../core/dialects/shared/http/event-stream.ts";
import { ProtocolError } from "../../../../core/model/errors.ts";
import type { StreamEvent } from "../../../../core/model/event.ts";
import type { FrameStream, StreamFrame } from "../../../../core/model/operation.ts";
import type { StreamReply } from "../../../../core/wire/exchange.ts";
import type { JsonRpcId } from "../../../../core/wire/json-rpc.ts";
import { DONE, pipeFrames } from "../../../../core/wire/pipe-frames.ts";
import { encodeSseLine } from "../../../../core/wire/sse.ts";
import { enqueueFrames, type RenderedFrame, toResponse } from "../../codec/frames.ts";
import type { Language } from "../../codec/phone-texts.ts";
import { toTapAnswerFrames } from "../../codec/render/notification.ts";
import { Renderer, type RenderMode } from "../../codec/render/renderer.ts";
import { withoutEarlierArtifacts } from "../agent-tasks.ts";
import type { Attendance } from "../ports.ts";
import type { PrepareEvent } from "../upload.ts";
import type { OpenedStream } from "./session-tasks.ts";

interface StreamOptions {
  readonly id: JsonRpcId;
  /** The platform's id of the task. */
  readonly taskId: string;
  readonly render: RenderMode;
  readonly language: Language;
  readonly prepare?: PrepareEvent | undefined;
  readonly onFailure: (error: unknown) => void;
  /** Learns whether the reader stayed to the end. */
  readonly attendance?: Pick<Attendance, "finished" | "left"> | undefined;
}

export function streamReply(
  answering: OpenedStream | undefined,
  { attendance, id, language, onFailure, prepare, render, taskId }: StreamOptions,
  { ids, limits, report }: Pick<ServeContext, "ids" | "limits" | "report">,
): StreamReply {
  const scope = { taskId, artifactId: ids.message };
  const renderer = new Renderer({ ...scope, mode: render, language, questionEnds: true, report });
  const answer = answering?.frames ?? streamOf([{ event: NO_EVENT, json: "" }]);
  const source = prepare === undefined ? answer : preparedFrames(answer, prepare);
  let seenTask = "";
  let finished = false;
  const frames = pipeFrames(source[Symbol.asyncIterator](), {
    map(batch, stop) {
      const rendered: RenderedFrame[] = [];
      for (const { event } of batch) {
        seenTask ||= taskIdOf(event) ?? "";
        enqueueFrames(renderer.push(answering?.continues === true ? withoutEarlierArtifacts(event) : event), rendered);
        finished = renderer.ended || renderer.asking;
        if (finished) {
          stop();
          break;
        }
      }
      return toStreamFrames(id, rendered);
    },
    // A server that shuts down ends its streams early, and the phone would wait forever.
    atEnd: () => toStreamFrames(id, renderer.asking ? [] : renderer.fail(STOPPED)),
    onClose() {
      if (finished && seenTask !== "") attendance?.finished();
      else attendance?.left();
    },
  });
  const framing: EventFraming = {
    encode: encodeBatch,
    encodeFailure(error) {
      onFailure(error);
      return encodeBatch(toStreamFrames(id, renderer.fail(toPublicError(error))));
    },
    // The platform has an idle timeout, and ignores comments of the event stream.
    keepAlive() {
      const rendered = renderer.keepAlive();
      return rendered && encodeBatch(toStreamFrames(id, [rendered]));
    },
  };
  return eventStreamReply(frames, { keepAliveMs: limits.keepAliveMs, framing });
}

/** The response to a tapped notification: complete from the start. */
export function tapAnswerReply(
  text: string | undefined,
  { id, language, taskId }: Pick<StreamOptions, "id" | "language" | "taskId">,
  { ids, limits }: Pick<ServeContext, "ids" | "limits">,
): StreamReply {
  const rendered = toTapAnswerFrames({ taskId, artifactId: ids.message }, text, language);
  const framing: EventFraming = { encode: encodeBatch, encodeFailure: () => "" };
  return eventStreamReply(streamOf(toStreamFrames(id, rendered)), { keepAliveMs: limits.keepAliveMs, framing });
}

async function* streamOf(batch: readonly StreamFrame[]): AsyncGenerator<readonly StreamFrame[]> {
  yield batch;
}

/** `json` is the whole response; the event is no longer needed. */
function toStreamFrames(id: JsonRpcId, rendered: readonly RenderedFrame[]): readonly StreamFrame[] {
  return rendered.map(({ error, result }) => ({ event: NO_EVENT, json: toResponse(id, result, error) }));
}

function encodeBatch(batch: readonly StreamFrame[]): string {
  return batch.map(({ json }) => encodeSseLine(json)).join("");
}

/** Not a generator: `return` must reach the source even while a `next` is pending. */
function preparedFrames(source: FrameStream, prepare: PrepareEvent): FrameStream {
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

/** For messages that are only acknowledged. */
const NO_EVENT: StreamEvent = {
  statusUpdate: { taskId: "", contextId: "", status: { state: "TASK_STATE_COMPLETED" } },
};

function taskIdOf(event: StreamEvent): string | undefined {
  if ("task" in event) return event.task.id;
  if ("statusUpdate" in event) return event.statusUpdate.taskId;
  return "artifactUpdate" in event ? event.artifactUpdate.taskId : undefined;
}

/** Begins the response immediately, with no content but a sign of life. */
export function respondImmediately(answering: Promise<OpenedStream | undefined>): OpenedStream {
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
