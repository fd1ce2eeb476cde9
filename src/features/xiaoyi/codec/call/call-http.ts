/** Calls agents as the platform does: with credentials in every request, and in a session if the agent requires one. */

import type {
  BufferedResponse,
  CallableDialect,
  CallTarget,
  ExchangeCalling,
  SessionCalling,
} from "../../../../core/dialects/contract.ts";
import { httpStatusError } from "../../../../core/dialects/shared/errors.ts";
import { createFrame, invalidResponse, parseResponse } from "../../../../core/dialects/shared/responses.ts";
import { ProtocolError } from "../../../../core/model/errors.ts";
import { LogEntry, type TaskEvent } from "../../../../core/model/event.ts";
import { TaskFold } from "../../../../core/model/fold.ts";
import { fieldsOf, isObject } from "../../../../core/model/json.ts";
import { type Loss, type Lossy, NO_LOSSES, toLoss } from "../../../../core/model/loss.ts";
import type { Operation, OperationKind, Outcomes, StreamFrame } from "../../../../core/model/operation.ts";
import type { Task } from "../../../../core/model/task.ts";
import type { ExchangeCall } from "../../../../core/wire/exchange.ts";
import { createSseParser } from "../../../../core/wire/sse.ts";
import { BINDING, cardOf, HTTP_DIALECT, MESSAGE_PATH, SESSION_HEADER, VERSION } from "../card.ts";
import { decodeError, isSuccess, PLATFORM_CODES } from "../errors.ts";
import { can, HTTP_LOSSES as LOSSES } from "../losses.ts";
import { xiaoyiMetadata } from "../metadata.ts";
import { signTimestamp } from "../signature.ts";
import { AnswerDecoder } from "./decode-answer.ts";
import { decodeAnswerFrame } from "./decode-frame.ts";
import {
  decodeCanceledTask,
  encodeCancel,
  encodeMessageParams,
  loseRequestMetadata,
  messageIdsOf,
  messageIdsOfTask,
} from "./encode-message.ts";

function requestOf(operation: Operation, { loginId }: CallTarget, losses: Loss[]): object {
  switch (operation.kind) {
    case "send":
    case "stream": {
      const { message } = operation;
      const params = encodeMessageParams(operation, messageIdsOf(operation), losses);
      const namesLogin = loginId === undefined || xiaoyiMetadata(message.metadata)?.agentLoginSessionId !== undefined;
      return {
        id: message.messageId,
        method: "message/stream",
        params: namesLogin ? params : { ...params, agentLoginSessionId: loginId },
      };
    }
    case "cancel": {
      const { id, metadata } = operation;
      loseRequestMetadata(metadata, losses);
      return encodeCancel(messageIdsOfTask(id));
    }
    default:
      throw new ProtocolError("UNSUPPORTED_OPERATION", `This agent's dialect does not support ${operation.kind}.`);
  }
}

/** A host without a path, or an agent of a Dragoman server. */
const BASE = /^https?:\/\/[^/]+(?:\/agents\/[^/]+)?$/i;

/** A URL is the endpoint itself, whatever its path; for a base URL, the endpoint is at our own path. */
function endpointOf(url: string): string {
  const [place = "", ...query] = url.split("?");
  const path = place.replace(/\/+$/, "");
  return [BASE.test(path) ? `${path}/${MESSAGE_PATH}` : place, ...query].join("?");
}

const JSON_TYPE = "application/json";

function toCall(request: object, target: CallTarget, accept: string = JSON_TYPE): ExchangeCall {
  const { headers, keys, url } = target;
  return {
    method: "POST",
    url: endpointOf(url),
    headers: { ...headers, accept, "content-type": JSON_TYPE, ...(keys && signatureOf(keys)) },
    body: JSON.stringify({ jsonrpc: "2.0", ...request }),
  };
}

function signatureOf({ ak, now, sk }: NonNullable<CallTarget["keys"]>): Readonly<Record<string, string>> {
  const ts = String(now);
  return { accessKey: ak, ts, sign: signTimestamp(sk, ts) };
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

/** Characters that are valid in a header. */
const ID = /^[\x21-\x7e]{1,1024}$/;

function requiredId(result: unknown, name: string): string {
  const id = fieldsOf(result)[name];
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
    const accept = operation.kind === "cancel" ? JSON_TYPE : `text/event-stream, ${JSON_TYPE}`;
    return { value: toCall(requestOf(operation, target, losses), target, accept), losses };
  },

  decode<Kind extends Exclude<OperationKind, "stream" | "subscribe">>(
    kind: Kind,
    answer: BufferedResponse,
    operation?: Operation,
  ) {
    const { contentType, status, text } = answer;
    if (status >= 200 && status <= 299 && kind === "send" && contentType.startsWith("text/event-stream")) {
      return decodeWholeStream(text, operation) as Lossy<Outcomes[Kind]>;
    }
    const result = resultOf(answer);
    if (kind === "cancel") return { value: decodeCancelResult(result, operation) as Outcomes[Kind], losses: NO_LOSSES };
    throw invalidResponse("it is not a stream");
  },

  sessions,

  decodeFrame(frame) {
    const { losses, value } = this.openFrames?.().decode(frame) ?? { losses: NO_LOSSES, value: [] };
    const [first] = value;
    if (first === undefined) throw invalidResponse("a frame of the stream says nothing");
    return { losses, value: first };
  },

  openFrames(operation) {
    const answer = createAnswerDecoder(operation);
    let isFirst = true;
    return {
      decode({ data }) {
        const { losses, value } = decodeFrameData(answer, data, isFirst);
        isFirst = false;
        return { losses, value: value.map(toFrame) };
      },
      end: () => answer.settle().map(toFrame),
    };
  },
};

/** Huawei's assistant Xiaoyi, calling over HTTP. No card is published for it: the URL is entered in its console. */
export const xiaoyiHttp: CallableDialect = {
  name: HTTP_DIALECT,
  can,
  losses: Object.values(LOSSES),
  calling: [httpCalling],
  cardOf,
  credentialHint: "Set A2ACLI_ACCESS_KEY and A2ACLI_SECRET_KEY to sign requests, or A2ACLI_BEARER for an API key.",
};

/** A task has the id that we chose for it, whatever id the agent uses. */
function createAnswerDecoder(operation: Operation | undefined): AnswerDecoder {
  if (operation?.kind !== "send" && operation?.kind !== "stream") return new AnswerDecoder();
  const { sessionId, taskId } = messageIdsOf(operation);
  return new AnswerDecoder({ taskId, contextId: sessionId });
}

/** The result of a response that is not a stream. */
function resultOf({ status, text }: BufferedResponse): unknown {
  const envelope = parseResponse(text);
  if (isObject(envelope) && isObject(envelope.error) && !isSuccess(envelope.error)) {
    throw toRefusal(envelope.error, status);
  }
  if (status < 200 || status > 299) throw httpStatusError(status);
  if (!isObject(envelope)) throw invalidResponse("it is not a JSON object");
  return envelope.result;
}

/** Only the first frame can refuse the message: afterwards, the agent has accepted it. */
function decodeFrameData(answer: AnswerDecoder, data: string, isFirst: boolean): Lossy<readonly TaskEvent[]> {
  const envelope = parseResponse(data);
  if (!isObject(envelope)) throw invalidResponse("a frame of the stream is not a JSON object");
  const { error, result } = envelope;
  if (isFirst && isObject(error) && !isSuccess(error) && !isObject(result)) throw toRefusal(error, 0);
  const { losses, value } = decodeAnswerFrame(envelope);
  const misnamed = answer.namesOtherTask(value) ? [toLoss(LOSSES.foreignId, "result.taskId")] : NO_LOSSES;
  return { losses: [...losses, ...misnamed], value: answer.decode(value) };
}

function toFrame(event: TaskEvent): StreamFrame {
  return createFrame(event, undefined);
}

/**
 * The HTTP status identifies an unauthenticated caller better than the codes do, and no code is reserved for a required
 * session.
 */
function toRefusal(error: Readonly<Record<string, unknown>>, status: number): ProtocolError {
  const decoded = decodeError(error, status);
  return status === 401 || mentionsSession(decoded) ? new ProtocolError("UNAUTHENTICATED", decoded.message) : decoded;
}

/** The caller's session (`agentSessionId`), neither the conversation (`sessionId`) nor a user's login. */
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

/** Codes for a request that was attempted and failed, and so must not be retried. */
const NOT_RETRYABLE: ReadonlySet<string> = new Set(
  [-32603, PLATFORM_CODES.taskFailed, PLATFORM_CODES.flowControl, PLATFORM_CODES.contentRejected].map(String),
);

function mentionsSession({ message, metadata }: ProtocolError): boolean {
  return REQUIRES_SESSION.test(message) && !NOT_RETRYABLE.has(metadata?.code ?? "");
}

function decodeCancelResult(result: unknown, operation: Operation | undefined): Task {
  const { id: named, status } = fieldsOf(result);
  const id = operation?.kind === "cancel" ? operation.id : named;
  if (typeof id !== "string") throw invalidResponse("result.id is missing");
  return decodeCanceledTask(messageIdsOfTask(id), fieldsOf(status).state);
}

function decodeWholeStream(text: string, operation: Operation | undefined): Lossy<{ readonly task: Task }> {
  const answer = createAnswerDecoder(operation);
  const losses: Loss[] = [];
  const events: TaskEvent[] = [];
  let isFirst = true;
  const parser = createSseParser(({ data }) => {
    const decoded = decodeFrameData(answer, data, isFirst);
    isFirst = false;
    losses.push(...decoded.losses);
    events.push(...decoded.value);
  });
  parser.push(text);
  parser.end();
  events.push(...answer.settle());
  if (events.length > 0 && !answer.ended) throw invalidResponse("the stream ended before the task did");
  return { value: { task: foldTask(events) }, losses };
}

function foldTask(events: readonly TaskEvent[]): Task {
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
