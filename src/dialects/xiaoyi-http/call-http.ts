/** Calling agents as the platform does: with credentials in every request, and in a session where the agent requires one. */

import { ProtocolError } from "../../model/errors.ts";
import { LogEntry, type TaskEvent } from "../../model/event.ts";
import { TaskFold } from "../../model/fold.ts";
import { type Loss, type Lossy, NO_LOSSES, toLoss } from "../../model/loss.ts";
import type { Operation, OperationKind, Outcomes, StreamFrame } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import type { ExchangeCall } from "../../wire/exchange.ts";
import { createSseParser } from "../../wire/sse.ts";
import type { BufferedResponse, CallTarget, ExchangeCalling, SessionCalling } from "../contract.ts";
import { httpStatusError } from "../shared/errors.ts";
import { isRecord } from "../shared/proto/json-reading.ts";
import { createFrame, invalidResponse, parseResponse } from "../shared/responses.ts";
import { isSuccess, PLATFORM_CODES, readError } from "../xiaoyi/errors.ts";
import { HeardAnswer } from "../xiaoyi/heard-answer.ts";
import { readHeardFrame } from "../xiaoyi/heard-frame.ts";
import { xiaoyiMark } from "../xiaoyi/marks.ts";
import { canceledTask, toCancelWords } from "../xiaoyi/said-cancel.ts";
import { loseRequestMetadata, placeOf, placeOfTask, toMessageParams } from "../xiaoyi/said-message.ts";
import { signTimestamp } from "../xiaoyi/signature.ts";
import { LOSSES } from "./losses.ts";
import { BINDING, MESSAGE_PATH, SESSION_HEADER, VERSION } from "./version.ts";

function requestOf(operation: Operation, { loginId }: CallTarget, losses: Loss[]): object {
  switch (operation.kind) {
    case "send":
    case "stream": {
      const { message } = operation;
      const params = toMessageParams(operation, placeOf(operation), losses);
      const namesLogin = loginId === undefined || xiaoyiMark(message.metadata)?.agentLoginSessionId !== undefined;
      return {
        id: message.messageId,
        method: "message/stream",
        params: namesLogin ? params : { ...params, agentLoginSessionId: loginId },
      };
    }
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

function headersOf({ headers, keys }: CallTarget, accept: string): Readonly<Record<string, string>> {
  const said: Record<string, string> = {
    ...headers,
    accept,
    "content-type": "application/json",
  };
  if (keys !== undefined) {
    const ts = String(keys.now);
    Object.assign(said, { accessKey: keys.ak, ts, sign: signTimestamp(keys.sk, ts) });
  }
  return said;
}

const WHOLE = "application/json";

function toCall(request: object, target: CallTarget, accept: string = WHOLE): ExchangeCall {
  const headers = headersOf(target, accept);
  return {
    method: "POST",
    url: endpointOf(target.url),
    headers,
    body: JSON.stringify({ jsonrpc: "2.0", ...request }),
  };
}

const sessions: SessionCalling = {
  header: SESSION_HEADER,
  isRequiredBy: ({ code }) => code === "UNAUTHENTICATED",
  encodeOpen: (target) => toCall({ id: "initialize", method: "initialize" }, target),
  decodeOpen: (answer) => requiredId(resultOf(answer), "agentSessionId"),
  encodeOpened: (target) => toCall({ id: "initialized", method: "notifications/initialized" }, target),
  encodeLogin(target, authCode) {
    const message = { role: "user", parts: [{ kind: "data", data: { authCode } }] };
    return toCall({ id: "authorize", method: "authorize", params: { message } }, target);
  },
  decodeLogin: (answer) => requiredId(resultOf(answer), "agentLoginSessionId"),
};

/** What a header takes. */
const ID = /^[\x21-\x7e]{1,1024}$/;

function requiredId(result: unknown, name: string): string {
  const id = isRecord(result) ? result[name] : undefined;
  const trimmed = typeof id === "string" ? id.trim() : "";
  if (!ID.test(trimmed)) throw invalidResponse(`result.${name} is missing or is not a usable id`);
  return trimmed;
}

export const httpCalling: ExchangeCalling = {
  carrier: "exchange",
  binding: BINDING,
  version: VERSION,

  encode(operation, target) {
    const losses: Loss[] = [];
    if (target.tenant !== undefined && target.tenant !== "") losses.push(toLoss(LOSSES.tenant, "tenant"));
    if (target.extensions.length > 0) losses.push(toLoss(LOSSES.callExtensions, "extensions"));
    if (target.idempotencyKey !== undefined) losses.push(toLoss(LOSSES.callExtensions, "idempotencyKey"));
    const accept = operation.kind === "cancel" ? WHOLE : `text/event-stream, ${WHOLE}`;
    return { value: toCall(requestOf(operation, target, losses), target, accept), losses };
  },

  decode<Kind extends Exclude<OperationKind, "stream" | "subscribe">>(
    kind: Kind,
    answer: BufferedResponse,
    asked?: Operation,
  ) {
    const { contentType, status, text } = answer;
    if (status >= 200 && status <= 299 && kind === "send" && contentType.startsWith("text/event-stream")) {
      return taskOfStream(text, asked) as Lossy<Outcomes[Kind]>;
    }
    const result = resultOf(answer);
    if (kind === "cancel") return { value: taskOfCancel(result, asked) as Outcomes[Kind], losses: NO_LOSSES };
    throw invalidResponse("it is not a stream");
  },

  sessions,

  decodeFrame(frame) {
    const { losses, value } = this.openFrames?.().decode(frame) ?? { losses: NO_LOSSES, value: [] };
    const [first] = value;
    if (first === undefined) throw invalidResponse("a frame of the stream says nothing");
    return { losses, value: first };
  },

  openFrames(asked) {
    const answer = answerTo(asked);
    let isFirst = true;
    return {
      decode({ data }) {
        const { losses, value } = hear(answer, data, isFirst);
        isFirst = false;
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

/** The result of an answer that is not a stream. */
function resultOf({ status, text }: BufferedResponse): unknown {
  const envelope = parseResponse(text);
  if (isRecord(envelope) && isRecord(envelope.error) && !isSuccess(envelope.error)) {
    throw refusal(envelope.error, status);
  }
  if (status < 200 || status > 299) throw httpStatusError(status);
  if (!isRecord(envelope)) throw invalidResponse("it is not a JSON object");
  return envelope.result;
}

/** Only the first frame can refuse the message: after that the agent has accepted it. */
function hear(answer: HeardAnswer, data: string, isFirst: boolean): Lossy<readonly TaskEvent[]> {
  const envelope = parseResponse(data);
  if (!isRecord(envelope)) throw invalidResponse("a frame of the stream is not a JSON object");
  const { error, result } = envelope;
  if (isFirst && isRecord(error) && !isSuccess(error) && !isRecord(result)) throw refusal(error, 0);
  const { losses, value } = readHeardFrame(envelope);
  const misnamed = answer.misnames(value) ? [toLoss(LOSSES.foreignId, "result.taskId")] : NO_LOSSES;
  return { losses: [...losses, ...misnamed], value: answer.hear(value) };
}

function toFrame(event: TaskEvent): StreamFrame {
  return createFrame(event, undefined);
}

/** The HTTP status tells a refused caller better than the codes do, and no code is reserved for a session that is required. */
function refusal(error: Readonly<Record<string, unknown>>, status: number): ProtocolError {
  const said = readError(error, status);
  return status === 401 || namesSession(said) ? new ProtocolError("UNAUTHENTICATED", said.message) : said;
}

/** A session of the caller's own, neither the conversation (`sessionId`) nor the login of a user. */
const REQUIRES_SESSION = new RegExp(
  [
    String.raw`agent[-_\s]?session`,
    String.raw`\b(?:missing|invalid|expired|unknown|no|bad)\s+(?:\w+\s+)?session\b`,
    String.raw`\bsession\b.{0,20}\b(?:missing|required|invalid|expired|unknown|not found|not initiali[sz]ed|timed out)\b`,
    "会话.{0,8}(?:过期|失效|无效|不存在|缺失|超时|未初始化)",
    "(?:无效|过期|失效|缺少|缺失|未知).{0,4}会话",
  ].join("|"),
  "i",
);

/** Codes that say that something was tried and failed, which must not be tried again. */
const TRIED: ReadonlySet<string> = new Set(
  [-32603, PLATFORM_CODES.taskFailed, PLATFORM_CODES.flowControl, PLATFORM_CODES.contentRejected].map(String),
);

function namesSession({ message, metadata }: ProtocolError): boolean {
  return REQUIRES_SESSION.test(message) && !TRIED.has(metadata?.code ?? "");
}

function taskOfCancel(result: unknown, asked: Operation | undefined): Task {
  const { id: named, status } = isRecord(result) ? result : {};
  const id = asked?.kind === "cancel" ? asked.id : named;
  if (typeof id !== "string") throw invalidResponse("result.id is missing");
  return canceledTask(placeOfTask(id), isRecord(status) ? status.state : undefined);
}

/** A whole stream, as the task it tells of. */
function taskOfStream(text: string, asked: Operation | undefined): Lossy<{ readonly task: Task }> {
  const answer = answerTo(asked);
  const losses: Loss[] = [];
  const events: TaskEvent[] = [];
  let isFirst = true;
  const parser = createSseParser(({ data }) => {
    const heard = hear(answer, data, isFirst);
    isFirst = false;
    losses.push(...heard.losses);
    events.push(...heard.value);
  });
  parser.push(text);
  parser.end();
  events.push(...answer.settle());
  if (events.length > 0 && !answer.ended) throw invalidResponse("the stream ended before the task did");
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
  if (fold === undefined) throw invalidResponse("the stream ended before it said anything");
  return fold.toTask();
}
