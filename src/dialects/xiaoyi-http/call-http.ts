/** Calling agents as the platform does, with credentials in every request. */
import { ProtocolError } from "../../model/errors.ts";
import { LogEntry, type TaskEvent } from "../../model/event.ts";
import { TaskFold } from "../../model/fold.ts";
import { type Loss, type Lossy, lossBy, NO_LOSSES } from "../../model/loss.ts";
import type { Operation, OperationKind, Outcomes, StreamFrame } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import { createSseParser } from "../../wire/sse.ts";
import type { CallTarget, ExchangeCalling, WholeAnswer } from "../contract.ts";
import { parseAnswer, receivedFrame, unreadable } from "../shared/answers.ts";
import { bareStatus } from "../shared/http-statuses.ts";
import { isRecord } from "../shared/proto-json-reading.ts";
import { isSuccess, readError } from "../xiaoyi/errors.ts";
import { HeardAnswer } from "../xiaoyi/heard-answer.ts";
import { readHeardFrame } from "../xiaoyi/heard-frame.ts";
import { canceledTask, toCancelWords } from "../xiaoyi/said-cancel.ts";
import { loseRequestMetadata, placeOf, placeOfTask, toMessageParams } from "../xiaoyi/said-message.ts";
import { signTimestamp } from "../xiaoyi/signature.ts";
import { LOSSES } from "./losses.ts";
import { BINDING, MESSAGE_PATH, VERSION } from "./version.ts";

function requestOf(operation: Operation, losses: Loss[]): object {
  switch (operation.kind) {
    case "send":
    case "stream":
      return {
        id: operation.message.messageId,
        method: "message/stream",
        params: toMessageParams(operation, placeOf(operation), losses),
      };
    case "cancel": {
      const { id, metadata } = operation;
      loseRequestMetadata(metadata, losses);
      return toCancelWords(placeOfTask(id));
    }
    default:
      throw new ProtocolError("UNSUPPORTED_OPERATION", `This agent's dialect has no word for ${operation.kind}.`);
  }
}

/** A bare host, or an agent of a server like ours. */
const BASE = /^https?:\/\/[^/]+(?:\/agents\/[^/]+)?$/i;

/** The address is that of the endpoint, whatever it is called; below a base it is where ours is. */
function endpointOf(url: string): string {
  const [place = "", ...query] = url.split("?");
  const path = place.replace(/\/+$/, "");
  return [BASE.test(path) ? `${path}/${MESSAGE_PATH}` : place, ...query].join("?");
}

function headersOf(operation: Operation, { headers, keys }: CallTarget): Readonly<Record<string, string>> {
  const said: Record<string, string> = {
    ...headers,
    accept: operation.kind === "cancel" ? "application/json" : "text/event-stream, application/json",
    "content-type": "application/json",
  };
  if (keys !== undefined) {
    const ts = String(keys.now);
    Object.assign(said, { accessKey: keys.ak, ts, sign: signTimestamp(keys.sk, ts) });
  }
  return said;
}

export const httpCalling: ExchangeCalling = {
  carrier: "exchange",
  binding: BINDING,
  version: VERSION,

  encode(operation, target) {
    const losses: Loss[] = [];
    if (target.tenant !== undefined && target.tenant !== "") losses.push(lossBy(LOSSES.tenant, "tenant"));
    if (target.extensions.length > 0) losses.push(lossBy(LOSSES.callExtensions, "extensions"));
    if (target.idempotencyKey !== undefined) losses.push(lossBy(LOSSES.callExtensions, "idempotencyKey"));
    const body = JSON.stringify({ jsonrpc: "2.0", ...requestOf(operation, losses) });
    const headers = headersOf(operation, target);
    return { value: { method: "POST", url: endpointOf(target.url), headers, body }, losses };
  },

  decode<Kind extends Exclude<OperationKind, "stream" | "subscribe">>(
    kind: Kind,
    answer: WholeAnswer,
    asked?: Operation,
  ) {
    const { contentType, status, text } = answer;
    if (status >= 200 && status <= 299 && kind === "send" && contentType.startsWith("text/event-stream")) {
      return taskOfStream(text, asked) as Lossy<Outcomes[Kind]>;
    }
    const envelope = parseAnswer(text);
    if (isRecord(envelope) && isRecord(envelope.error) && !isSuccess(envelope.error))
      throw refusal(envelope.error, status);
    if (status < 200 || status > 299) throw bareStatus(status);
    if (!isRecord(envelope)) throw unreadable("it is not a JSON object");
    if (kind === "cancel") return { value: taskOfCancel(envelope.result, asked) as Outcomes[Kind], losses: NO_LOSSES };
    throw unreadable("it is not a stream");
  },

  decodeFrame(frame) {
    const { losses, value } = this.openFrames?.().decode(frame) ?? { losses: NO_LOSSES, value: [] };
    const [first] = value;
    if (first === undefined) throw unreadable("a frame of the stream says nothing");
    return { losses, value: first };
  },

  openFrames(asked) {
    const answer = answerTo(asked);
    return {
      decode({ data }) {
        const { losses, value } = hear(answer, data);
        return { losses, value: value.map(toFrame) };
      },
      end: () => answer.settle().map(toFrame),
    };
  },
};

/** A task has the id that we have chosen for it, whatever the agent calls it. */
function answerTo(asked: Operation | undefined): HeardAnswer {
  if (asked?.kind !== "send" && asked?.kind !== "stream") return new HeardAnswer();
  const { sessionId, taskId } = placeOf(asked);
  return new HeardAnswer({ taskId, contextId: sessionId });
}

function hear(answer: HeardAnswer, data: string): Lossy<readonly TaskEvent[]> {
  const envelope = parseAnswer(data);
  if (!isRecord(envelope)) throw unreadable("a frame of the stream is not a JSON object");
  const { losses, value } = readHeardFrame(envelope);
  const misnamed = answer.misnames(value) ? [lossBy(LOSSES.foreignId, "result.taskId")] : NO_LOSSES;
  return { losses: [...losses, ...misnamed], value: answer.hear(value) };
}

function toFrame(event: TaskEvent): StreamFrame {
  return receivedFrame(event, undefined);
}

/** What HTTP says of who may call is plainer than what the codes say. */
function refusal(error: Readonly<Record<string, unknown>>, status: number): ProtocolError {
  const said = readError(error, status);
  if (status !== 401) return said;
  return new ProtocolError("UNAUTHENTICATED", said.message);
}

function taskOfCancel(result: unknown, asked: Operation | undefined): Task {
  const { id: named, status } = isRecord(result) ? result : {};
  const id = asked?.kind === "cancel" ? asked.id : named;
  if (typeof id !== "string") throw unreadable("result.id is missing");
  return canceledTask(placeOfTask(id), isRecord(status) ? status.state : undefined);
}

/** A whole stream, as the task it tells of. */
function taskOfStream(text: string, asked: Operation | undefined): Lossy<{ readonly task: Task }> {
  const answer = answerTo(asked);
  const losses: Loss[] = [];
  const events: TaskEvent[] = [];
  const parser = createSseParser(({ data }) => {
    const heard = hear(answer, data);
    losses.push(...heard.losses);
    events.push(...heard.value);
  });
  parser.push(text);
  parser.end();
  events.push(...answer.settle());
  if (events.length > 0 && !answer.ended) throw unreadable("the stream ended before the task did");
  return { value: { task: taskOf(events) }, losses };
}

function taskOf(events: readonly TaskEvent[]): Task {
  let fold: TaskFold | undefined;
  for (const event of events) {
    if ("task" in event) continue;
    const { contextId, taskId: id } = "statusUpdate" in event ? event.statusUpdate : event.artifactUpdate;
    fold ??= TaskFold.from({ id, contextId, status: { state: "TASK_STATE_SUBMITTED" } }, 0);
    if (fold.refusal(event) === undefined) fold.apply(LogEntry.of(fold.number + 1, event));
  }
  if (fold === undefined) throw unreadable("the stream ended before it said anything");
  return fold.toTask();
}
