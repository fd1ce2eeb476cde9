import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../model/errors.ts";
import { LogEntry, type TaskEvent } from "../../model/event.ts";
import { fold, TaskFold } from "../../model/fold.ts";
import type { Loss } from "../../model/loss.ts";
import { isDataPart, isTextPart, isUrlPart, type Part } from "../../model/message.ts";
import type { Operation, StreamFrame } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import { legalLog } from "../../model/testing/events.ts";
import { cases } from "../../model/testing/exploring.ts";
import { nearMisses } from "../suite/arbitraries.ts";
import { toolsOf } from "../suite/join.ts";
import { legacyValues } from "../suite/legacy-values.ts";
import { jsonRpcCalling } from "./call-json-rpc.ts";
import { readCard } from "./card.ts";
import { decodeRequest, METHODS } from "./decode.ts";
import { encodeAnswer, StreamEncoder } from "./encode.ts";
import { comparableMessage, comparableTask } from "./fixtures/serving.ts";

const CASES = { numRuns: cases(10_000) };
const near = nearMisses(
  [
    "id",
    "sessionId",
    "message",
    "role",
    "parts",
    "type",
    "text",
    "file",
    "data",
    "bytes",
    "uri",
    "mimeType",
    "metadata",
  ]
    .concat(["status", "state", "timestamp", "artifact", "artifacts", "history", "index", "append", "final", "schemes"])
    .concat(["pushNotification", "pushNotificationConfig", "authentication", "url", "token", "result", "error", "code"])
    .concat(["historyLength", "session_id", "skills", "name", "capabilities", "inputModes"]),
  [
    "user",
    "agent",
    "text",
    "file",
    "completed",
    "unknown",
    "2025-05-01T10:00:00Z",
    "aGk=",
    -32001,
    "https://x.example",
  ],
);

function throwsOnlyProtocolErrors(run: () => unknown): void {
  try {
    run();
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
  }
}

describe("whatever comes", () => {
  const { ids } = toolsOf();

  it("a request is understood or refused", () => {
    const kinds = fc.constantFrom(...Object.values(METHODS));
    fc.assert(
      fc.property(kinds, near, fc.option(fc.string(), { nil: undefined }), (kind, params, lastEventId) => {
        throwsOnlyProtocolErrors(() => decodeRequest(kind, params, { maxItems: 100 }, lastEventId, ids));
      }),
      CASES,
    );
  });

  it("an answer is understood or refused", () => {
    const kinds = fc.constantFrom("send", "get", "cancel", "push-create", "push-get", "list" as const);
    fc.assert(
      fc.property(kinds, near, fc.boolean(), (kind, value, wrapped) => {
        const text = JSON.stringify(wrapped ? { jsonrpc: "2.0", id: 1, result: value } : value);
        const answer = { status: 200, contentType: "application/json", text };
        throwsOnlyProtocolErrors(() => jsonRpcCalling.decode(kind, answer));
        throwsOnlyProtocolErrors(() => jsonRpcCalling.decodeFrame({ data: text, event: "message", id: "1" }));
      }),
      CASES,
    );
  });

  it("a card is read or not", () => {
    fc.assert(
      fc.property(near, fc.option(fc.string(), { nil: undefined }), (value, cardUrl) => {
        readCard(value, cardUrl);
      }),
      CASES,
    );
  });
});

describe("whatever can be encoded", () => {
  const { message: anyMessage, task: anyTask } = legacyValues({ lists: true });

  it("arrives as it was", () => {
    const { ids } = toolsOf();
    const target = { url: "https://x.example", tenant: undefined, headers: {}, extensions: [] };
    fc.assert(
      fc.property(anyMessage, (message) => {
        const said = jsonRpcCalling.encode({ kind: "send", message }, target);
        const { params } = JSON.parse(said.value.body as string);
        const heard = decodeRequest("send", params, {}, undefined, ids);
        expect([...said.losses, ...heard.losses]).toEqual([]);
        expect(heard.value).toMatchObject({ kind: "send", chosenId: message.taskId ?? message.messageId });
        expect("message" in heard.value && comparableMessage(heard.value.message)).toEqual(comparableMessage(message));
      }),
      CASES,
    );
  });

  it("comes back as it was", () => {
    fc.assert(
      fc.property(anyTask, (task) => {
        const losses: Loss[] = [];
        const result = encodeAnswer({ kind: "get", operation: { kind: "get", id: task.id }, outcome: task }, losses);
        const text = `{"jsonrpc":"2.0","id":1,"result":${result}}`;
        const heard = jsonRpcCalling.decode("get", { status: 200, contentType: "application/json", text });
        expect([...losses, ...heard.losses]).toEqual([]);
        expect(comparableTask(heard.value)).toEqual(comparableTask(task));
      }),
      CASES,
    );
  });
});

function words(parts: readonly Part[]): string {
  return parts
    .map((part) => {
      if (isTextPart(part)) return part.text;
      if (isUrlPart(part)) return part.url;
      if (!isDataPart(part)) return "";
      const { data } = part;
      return JSON.stringify(typeof data === "object" && data !== null ? data : { value: data });
    })
    .join("");
}

function wordsOfArtifacts(task: Task): readonly string[] {
  return (task.artifacts ?? []).map(({ parts }) => words(parts));
}

/** What a caller makes of the frames it hears. */
function retold(operation: Extract<Operation, { kind: "stream" | "subscribe" }>, frames: readonly StreamFrame[]) {
  const encoder = new StreamEncoder(operation as never, () => {});
  const said: StreamFrame[] = [];
  for (const frame of frames) encoder.encode(frame, said);
  const heard = said.map(({ json, number }) => {
    const data = `{"jsonrpc":"2.0","id":1,"result":${json}}`;
    const id = number === undefined ? undefined : String(number);
    return jsonRpcCalling.decodeFrame({ data, event: "message", id }).value as StreamFrame;
  });
  const view = TaskFold.from({ id: "task", contextId: "", status: { state: "TASK_STATE_SUBMITTED" } }, 0);
  for (const { event } of heard) {
    if ("artifactUpdate" in event) view.apply(LogEntry.of(view.number + 1, event as TaskEvent));
  }
  return { heard, view: view.toTask() };
}

describe("any log", () => {
  it("is sent to the sender, with every artifact in its place and every number once", () => {
    fc.assert(
      fc.property(legalLog, (log) => {
        const message = { messageId: "m", role: "ROLE_USER" as const, parts: [{ text: "" }] };
        const { heard, view } = retold({ kind: "stream", message, chosenId: "task" }, log);
        expect(heard.map(({ number }) => number)).toEqual(log.map(({ number }) => number));
        expect(wordsOfArtifacts(view)).toEqual(wordsOfArtifacts(fold(log).toTask()));
      }),
      { numRuns: cases(2_000) },
    );
  });

  it("is sent to a reader that resumes at any place, complete from there on", () => {
    fc.assert(
      fc.property(legalLog, fc.nat(), fc.boolean(), (log, any, hasCursor) => {
        const at = 1 + (any % log.length);
        const before = fold(log.slice(0, at));
        const event = { task: before.toTask() };
        const snapshot = { number: at, event, json: JSON.stringify(event) };
        const operation = { kind: "subscribe" as const, id: "task", ...(hasCursor && { after: 0 }) };
        const { heard, view } = retold(operation, [snapshot, ...log.slice(at)]);
        expect(heard.flatMap(({ number }) => number ?? [])).toEqual(log.slice(at - 1).map(({ number }) => number));
        expect(wordsOfArtifacts(view)).toEqual(wordsOfArtifacts(fold(log).toTask()));
      }),
      { numRuns: cases(2_000) },
    );
  });
});
