import { describe, expect, it } from "vitest";
import type { CallTarget } from "../../../../core/dialects/contract.ts";
import type { StreamEvent } from "../../../../core/model/event.ts";
import type { Operation } from "../../../../core/model/operation.ts";
import { cardOf } from "../card.ts";
import { verifySignature } from "../signature.ts";
import { httpCalling } from "./call-http.ts";

const TARGET: CallTarget = {
  url: "https://x.example/hook",
  tenant: undefined,
  headers: { authorization: "Bearer k" },
  extensions: [],
};

function call(operation: Operation, target: Partial<CallTarget> = {}) {
  const { losses, value } = httpCalling.encode(operation, { ...TARGET, ...target });
  return { ...value, losses, body: JSON.parse(value.body as string) };
}

const MESSAGE = { messageId: "m-1", role: "ROLE_USER", parts: [{ text: "hi" }] } as const;

describe("a call", () => {
  it("of a message is a stream in a session of its own", () => {
    const { body, headers, losses, method, url } = call({ kind: "send", message: MESSAGE });
    expect([method, url, losses]).toEqual(["POST", "https://x.example/hook", []]);
    expect(headers).toMatchObject({ authorization: "Bearer k", accept: expect.stringContaining("text/event-stream") });
    const { sessionId } = body.params;
    expect(body).toEqual({
      jsonrpc: "2.0",
      id: "m-1",
      method: "message/stream",
      params: {
        id: `${sessionId}&m-1`,
        sessionId: expect.stringMatching(/^session-/),
        agentLoginSessionId: "",
        message: { kind: "message", messageId: "m-1", role: "user", parts: [{ kind: "text", text: "hi" }] },
      },
    });
  });

  it("keeps to the session and the task that are named", () => {
    const inContext = call({ kind: "stream", message: { ...MESSAGE, contextId: "c" } }).body.params;
    expect(inContext).toMatchObject({ id: "c&m-1", sessionId: "c" });
    const inTask = call({ kind: "stream", message: { ...MESSAGE, taskId: "c&m-0" } }).body.params;
    expect(inTask).toMatchObject({ id: "c&m-0", sessionId: "c" });
    const chosen = call({ kind: "stream", message: { ...MESSAGE, contextId: "c" }, chosenId: "1" }).body.params;
    expect(chosen).toMatchObject({ id: "c&1", sessionId: "c" });
  });

  it("to cancel a task whose chosen id has the form of the platform's names its session", () => {
    const message = { ...MESSAGE, contextId: "c" };
    const { id } = call({ kind: "stream", message, chosenId: "other&1%26" }).body.params;
    expect(id).toBe("c&other%261%2526");
    expect(call({ kind: "cancel", id }).body).toMatchObject({ sessionId: "c", taskId: id });
  });

  it("passes on variables and logins", () => {
    const mark = { variables: { systemVariables: { device_type: "phone" } }, agentLoginSessionId: "login-1" };
    const message = { ...MESSAGE, metadata: { "urn:dragoman:ext:xiaoyi:v1": mark } };
    const { body, losses } = call({ kind: "send", message });
    expect(losses).toEqual([]);
    expect(body.params).toMatchObject({
      agentLoginSessionId: "login-1",
      message: { parts: [{ kind: "text" }, { kind: "data", data: { variables: mark.variables } }] },
    });
  });

  it("is signed again each time", () => {
    const now = 1_785_024_000_000;
    const { headers } = call({ kind: "cancel", id: "c&1" }, { keys: { ak: "AK", sk: "SK", now } });
    expect(headers.accessKey).toBe("AK");
    expect(verifySignature("SK", { sign: headers.sign, timestamp: headers.ts }, now)).toBe("good");
    expect(JSON.stringify(headers)).not.toContain("SK");
  });

  it("to cancel names session and task wherever they are looked for", () => {
    expect(call({ kind: "cancel", id: "c&1" }).body).toEqual({
      jsonrpc: "2.0",
      id: "c&1",
      method: "tasks/cancel",
      sessionId: "c",
      taskId: "c&1",
      params: { id: "c&1", sessionId: "c" },
    });
  });

  it.each([
    ["https://x.example", "https://x.example/agent/message"],
    ["https://x.example/", "https://x.example/agent/message"],
    ["https://x.example/agents/echo/", "https://x.example/agents/echo/agent/message"],
    ["https://x.example?key=k", "https://x.example/agent/message?key=k"],
    ["https://x.example/agent/message", "https://x.example/agent/message"],
    ["https://x.example/api/xiaoyi/?key=k", "https://x.example/api/xiaoyi/?key=k"],
  ])("to %s goes to %s", (url, endpoint) => {
    expect(call({ kind: "cancel", id: "c&1" }, { url }).url).toBe(endpoint);
  });

  it("loses what the dialect cannot express, and reports it", () => {
    const message = { ...MESSAGE, extensions: ["x"], parts: [{ text: "a", metadata: { b: 1 } }] };
    const configuration = { historyLength: 1 };
    const { losses } = call(
      { kind: "send", message, configuration, metadata: { a: 1 } },
      { tenant: "t", extensions: ["x"], idempotencyKey: "k" },
    );
    expect(losses.map(({ path }) => path)).toEqual([
      "tenant",
      "extensions",
      "idempotencyKey",
      "configuration",
      "metadata",
      "message",
      "message.parts[0].metadata",
    ]);
    const empty = { configuration: {}, metadata: {}, message: { ...MESSAGE, metadata: {}, extensions: [] } };
    expect(call({ kind: "send", ...empty }).losses).toEqual([]);
    const cancel = { kind: "cancel", id: "c&1", metadata: { a: 1 } } as const;
    expect(call(cancel).losses.map(({ path }) => path)).toEqual(["metadata"]);
  });
});

const OK = { code: 0, message: "" };

function hear(...frames: readonly object[]): StreamEvent[] {
  const decoder = httpCalling.openFrames?.();
  return frames.flatMap((frame) => {
    const data = JSON.stringify({ jsonrpc: "2.0", id: "m-1", error: OK, ...frame });
    return decoder?.decode({ data, event: "message", id: undefined }).value.map(({ event }) => event) ?? [];
  });
}

const status = (state: string, final: boolean, text?: string) => ({
  result: {
    taskId: "c&1",
    kind: "status-update",
    final,
    status: { state, ...(text !== undefined && { message: { role: "agent", parts: [{ kind: "text", text }] } }) },
  },
});

const shown = (artifactId: string, part: object, append: boolean, { final = false, lastChunk = true } = {}) => ({
  result: { taskId: "c&1", kind: "artifact-update", append, lastChunk, final, artifact: { artifactId, parts: [part] } },
});

const scope = { taskId: "c&1", contextId: "c" };
const moved = (state: string) => ({ statusUpdate: { ...scope, status: { state } } });
const text = (value: string) => ({ kind: "text", text: value });

describe("a stream", () => {
  it("as documented is decoded unchanged", () => {
    expect(
      hear(
        status("working", false),
        shown("a", text("Hel"), true, { lastChunk: false }),
        shown("a", text("lo"), true, { lastChunk: false }),
        status("completed", true),
      ),
    ).toEqual([
      moved("TASK_STATE_WORKING"),
      { artifactUpdate: { ...scope, artifact: { artifactId: "a", parts: [{ text: "Hel" }] } } },
      { artifactUpdate: { ...scope, artifact: { artifactId: "a", parts: [{ text: "lo" }] }, append: true } },
      moved("TASK_STATE_COMPLETED"),
    ]);
  });

  it("as sent for phones is decoded as one text", () => {
    const thought = { kind: "reasoningText", reasoningText: "" };
    const events = hear(
      shown("r", thought, false),
      shown("1", text("Hel"), false),
      shown("2", text("Hello"), false),
      shown("3", text("Hello"), false),
      shown("4", text(", you"), true),
      status("completed", true),
    );
    const chunk = (value: string, append: boolean) => ({
      artifactUpdate: {
        ...scope,
        artifact: { artifactId: "1", parts: [{ text: value }] },
        ...(append && { append }),
      },
    });
    expect(events).toEqual([
      chunk("Hel", false),
      chunk("lo", true),
      chunk(", you", true),
      moved("TASK_STATE_COMPLETED"),
    ]);
  });

  it.each([true, false])("in pieces under an id each is one artifact; the first appends: %s", (append) => {
    const open = { lastChunk: false };
    const events = hear(
      shown("1", text("One"), append, open),
      shown("2", text(", two"), true, open),
      shown("3", text(", three."), true, open),
      shown("4", text(""), true, { final: true }),
    );
    const chunk = (value: string, more: object = { append: true }) => ({
      artifactUpdate: { ...scope, artifact: { artifactId: "1", parts: [{ text: value }] }, ...more },
    });
    expect(events).toEqual([chunk("One", {}), chunk(", two"), chunk(", three."), moved("TASK_STATE_COMPLETED")]);
  });

  it("may end with an artifact, after saying that it is complete", () => {
    const events = hear(
      status("completed", false),
      shown("1", text("All."), false, { final: true }),
      status("failed", true),
    );
    expect(events).toEqual([
      { artifactUpdate: { ...scope, artifact: { artifactId: "1", parts: [{ text: "All." }] }, lastChunk: true } },
      moved("TASK_STATE_COMPLETED"),
    ]);
  });

  it("may end without a final frame after a terminal state", () => {
    const decoder = httpCalling.openFrames?.();
    const data = JSON.stringify({ ...status("completed", false, "Done."), error: OK });
    expect(decoder?.decode({ data, event: "message", id: undefined }).value).toEqual([]);
    expect(decoder?.end?.().map(({ event }) => event)).toMatchObject([
      {
        statusUpdate: { ...scope, status: { state: "TASK_STATE_COMPLETED", message: { parts: [{ text: "Done." }] } } },
      },
    ]);
    expect(decoder?.end?.()).toEqual([]);
  });

  it("may end in failure, beside which there is an error", () => {
    const error = { code: "99921111", message: "任务执行异常，请重试" };
    const events = hear({ ...shown("1", text("Sorry."), false, { final: true }), error });
    expect(events.at(-1)).toEqual(moved("TASK_STATE_FAILED"));
    expect(hear({ ...status("failed", true, "Why."), error }).at(-1)).toMatchObject({
      statusUpdate: {
        status: { state: "TASK_STATE_FAILED", message: { role: "ROLE_AGENT", parts: [{ text: "Why." }] } },
      },
    });
  });

  it("may end in an error", () => {
    expect(() => hear({ ...status("failed", true), error: { code: 99_911_113, message: "Slow down." } })).toThrow(
      expect.objectContaining({ code: "RESOURCE_EXHAUSTED", message: "Slow down." }),
    );
    expect(() => hear({ error: { code: -32001, message: "None." } })).toThrow(
      expect.objectContaining({ code: "TASK_NOT_FOUND" }),
    );
  });

  it("asks its question where it likes", () => {
    expect(hear(status("input-required", false, ""))).toEqual([moved("TASK_STATE_INPUT_REQUIRED")]);
    expect(hear(status("input-required", false, "Which?"))).toMatchObject([
      { statusUpdate: { status: { state: "TASK_STATE_INPUT_REQUIRED", message: { parts: [{ text: "Which?" }] } } } },
    ]);
  });

  it("shows cards as text that others can read", () => {
    const data = { cardsInfo: [{ cardName: "c", cardData: { title: "T", url: "https://t.example" } }] };
    expect(hear(shown("1", { kind: "data", data }, true))).toMatchObject([
      {
        artifactUpdate: {
          artifact: {
            parts: [{ text: "c\nT: https://t.example", metadata: { "urn:dragoman:ext:xiaoyi:v1": { data } } }],
          },
        },
      },
    ]);
  });

  it.each([
    [{ result: { status: { state: "working" } } }, "taskId"],
    [{ result: { taskId: "t" } }, "artifact"],
    [{}, "neither result nor error"],
  ])("that cannot be read is refused: %j", (frame, why) => {
    expect(() => hear(frame)).toThrow(
      expect.objectContaining({ code: "INVALID_AGENT_RESPONSE", message: expect.stringContaining(why) }),
    );
  });
});

describe("an answer", () => {
  const decode = (kind: "send" | "cancel", status: number, body: unknown, contentType = "application/json") =>
    httpCalling.decode(kind, { status, contentType, text: typeof body === "string" ? body : JSON.stringify(body) });

  it("to a cancel is the task, or why not", () => {
    const answer = (state: string) => ({
      jsonrpc: "2.0",
      id: "c&1",
      result: { id: "c&1", status: { state } },
      error: OK,
    });
    expect(decode("cancel", 200, answer("canceled")).value).toEqual({
      id: "c&1",
      contextId: "c",
      status: { state: "TASK_STATE_CANCELED" },
    });
    expect(() => decode("cancel", 200, answer("failed"))).toThrow(
      expect.objectContaining({ code: "TASK_NOT_CANCELABLE" }),
    );
    expect(() => decode("cancel", 200, answer("unknown"))).toThrow(expect.objectContaining({ code: "TASK_NOT_FOUND" }));
    expect(() => decode("cancel", 200, answer("odd"))).toThrow(
      expect.objectContaining({ code: "INVALID_AGENT_RESPONSE" }),
    );
  });

  it.each([
    [401, { error: { code: -32600, message: "Who?" } }, "UNAUTHENTICATED"],
    [401, "", "UNAUTHENTICATED"],
    [404, "<html>", "METHOD_NOT_FOUND"],
    [500, "", "INTERNAL_ERROR"],
    [200, { error: { code: "99911114", message: "No." } }, "PERMISSION_DENIED"],
    [200, "hello", "INVALID_AGENT_RESPONSE"],
    [200, { result: {} }, "INVALID_AGENT_RESPONSE"],
  ])("%i %j is %s", (status, body, code) => {
    expect(() => decode("send", status, body)).toThrow(expect.objectContaining({ code }));
  });

  it("without content is not an answer", () => {
    expect(() => decode("send", 200, ": nothing\n\n", "text/event-stream")).toThrow(
      expect.objectContaining({ code: "INVALID_AGENT_RESPONSE" }),
    );
  });
});

describe("a card", () => {
  it("is made of the address", () => {
    expect(cardOf("https://x.example/hook")).toMatchObject({
      name: "x.example",
      supportedInterfaces: [{ url: "https://x.example/hook", protocolBinding: "urn:dragoman:binding:xiaoyi-http" }],
    });
  });
});
