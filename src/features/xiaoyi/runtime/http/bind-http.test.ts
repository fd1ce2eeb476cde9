import { describe, expect, it } from "vitest";
import { ProtocolError, taskNotFound } from "../../../../core/model/errors.ts";
import type { JsonObject } from "../../../../core/model/json.ts";
import type { Operation } from "../../../../core/model/operation.ts";
import { isStreamReply } from "../../../../core/wire/exchange.ts";
import { xiaoyi } from "../../codec/builders.ts";
import {
  API_KEY,
  bodyOf,
  entryOf,
  frame,
  framesOf,
  page,
  quiet,
  serve,
  statusFrame,
  streamOf,
  taskOf,
  textFrame,
} from "./fixtures/serving.ts";
import type { Accounts } from "./options.ts";

const XIAOYI = "urn:dragoman:ext:xiaoyi:v1";

function message(parts: readonly JsonObject[] = [{ kind: "text", text: "hi" }], more: JsonObject = {}): JsonObject {
  const params = { id: "task-1", sessionId: "sess-1", message: { role: "user", parts }, ...more };
  return { jsonrpc: "2.0", id: "msg-1", method: "message/stream", params };
}

const OK = { code: 0, message: "" };

describe("a message", () => {
  it("is answered by a stream: working, artifacts, completed, and one final", async () => {
    const answer = (operation: Operation) =>
      operation.kind === "stream"
        ? streamOf(
            frame({ task: taskOf("task-1", "TASK_STATE_SUBMITTED") }),
            statusFrame("TASK_STATE_WORKING"),
            textFrame("Hel"),
            textFrame("lo", true),
            statusFrame("TASK_STATE_COMPLETED"),
          )
        : quiet(operation);
    const { asked, calls, reply } = await serve(message(), { answer });
    expect(reply).toMatchObject({ status: 200, headers: { "content-type": "text/event-stream" } });
    const artifact = (text: string, append: boolean, lastChunk = false) => ({
      jsonrpc: "2.0",
      id: "msg-1",
      result: {
        taskId: "task-1",
        kind: "artifact-update",
        append,
        lastChunk,
        final: false,
        artifact: { artifactId: "a", parts: [{ kind: "text", text }] },
      },
      error: OK,
    });
    const status = (state: string, final: boolean) => ({
      jsonrpc: "2.0",
      id: "msg-1",
      result: { taskId: "task-1", kind: "status-update", final, status: { state } },
      error: OK,
    });
    expect(await framesOf(reply)).toEqual([
      status("working", false),
      artifact("Hel", false),
      artifact("lo", true),
      artifact("", true, true),
      status("completed", true),
    ]);
    expect(asked.at(-1)).toMatchObject({
      kind: "stream",
      chosenId: "task-1",
      alwaysTask: true,
      message: { role: "ROLE_USER", contextId: "sess-1", parts: [{ text: "hi" }] },
    });
    expect(calls.at(-1)).toMatchObject({ caller: { owner: "phone" }, dialect: "xiaoyi-http" });
  });

  it("of a batch that repeats itself is sent once", async () => {
    const chunks = [textFrame("a"), textFrame("b", true), textFrame("c", true)];
    const answer = (operation: Operation) =>
      operation.kind === "stream"
        ? (async function* () {
            yield chunks;
            yield [statusFrame("TASK_STATE_COMPLETED")];
          })()
        : quiet(operation);
    const frames = await framesOf((await serve(message(), { answer, entries: [entryOf({ render: "phone" })] })).reply);
    const texts = frames.flatMap(({ result }) => JSON.stringify(result).match(/"text":"\w+"/g) ?? []);
    expect(texts).toEqual(['"text":"abc"']);
  });

  it("to an id whose task has ended begins another, answered under the platform's id", async () => {
    const answer = (operation: Operation) => {
      if (operation.kind !== "stream") return quiet(operation);
      if (operation.chosenId === undefined) return streamOf(statusFrame("TASK_STATE_COMPLETED"));
      throw new ProtocolError("UNSUPPORTED_OPERATION", "The task has ended.", { metadata: { taskId: "task-1" } });
    };
    const { asked, reply } = await serve(message(), { answer });
    expect((await framesOf(reply)).map(({ result }) => result.taskId)).toEqual(["task-1", "task-1"]);
    expect(asked.filter(({ kind }) => kind === "stream")).toHaveLength(2);
  });

  it("answers the question that the session's newest task asked, whichever id it comes with", async () => {
    const waiting = taskOf("older", "TASK_STATE_INPUT_REQUIRED");
    const shown = { artifacts: [{ artifactId: "before", parts: [{ text: "shown before" }] }] };
    const answer = (operation: Operation) => {
      if (operation.kind === "list") return page(waiting);
      return streamOf(
        frame({ task: taskOf("older", "TASK_STATE_WORKING", shown) }),
        statusFrame("TASK_STATE_COMPLETED"),
      );
    };
    const { asked, reply } = await serve(message(), { answer });
    expect(asked.at(-1)).toMatchObject({ kind: "stream", chosenId: "older" });
    const frames = await framesOf(reply);
    expect(JSON.stringify(frames)).not.toContain("shown before");
    expect(frames.map(({ result }) => [result.taskId, result.final])).toEqual([
      ["task-1", false],
      ["task-1", true],
    ]);
  });

  it("that is answered by a question ends the stream with it", async () => {
    const question = { messageId: "q", role: "ROLE_AGENT", parts: [{ text: "Which?" }] } as const;
    const status = { state: "TASK_STATE_INPUT_REQUIRED", message: question } as const;
    const answer = (operation: Operation) =>
      operation.kind === "stream"
        ? streamOf(frame({ statusUpdate: { taskId: "task-1", contextId: "sess-1", status } }), textFrame("never"))
        : quiet(operation);
    const frames = await framesOf((await serve(message(), { answer })).reply);
    expect(frames.at(-1)).toMatchObject({ result: { final: true, status: { state: "input-required" } } });
    expect(frames).toHaveLength(2);
  });

  it("that is answered by a question to the device leaves the way open for its answer", async () => {
    const question = { messageId: "q", role: "ROLE_AGENT", parts: [xiaoyi.location()] } as const;
    const status = { state: "TASK_STATE_INPUT_REQUIRED", message: question } as const;
    const answer = (operation: Operation) =>
      operation.kind === "stream"
        ? streamOf(frame({ statusUpdate: { taskId: "task-1", contextId: "sess-1", status } }))
        : quiet(operation);
    const frames = await framesOf((await serve(message(), { answer })).reply);
    expect(frames.at(-1)).toMatchObject({ result: { final: false, status: { state: "input-required" } } });
  });

  it("that takes long has keep-alive frames with the state working", async () => {
    let goOn = () => {};
    const said = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const answer = (operation: Operation) =>
      operation.kind === "stream"
        ? (async function* () {
            yield [statusFrame("TASK_STATE_WORKING")];
            await said;
            yield [statusFrame("TASK_STATE_COMPLETED")];
          })()
        : quiet(operation);
    const { reply } = await serve(message(), { answer, keepAliveMs: 2 });
    if (!isStreamReply(reply)) throw new Error("A stream was expected.");
    let text = "";
    for await (const write of reply.frames) {
      text += write;
      if (text.split('"status":{"state":"working"}').length > 3) goOn();
    }
    expect(text).not.toContain(": keep-alive");
    expect(text).toContain('"final":true,"status":{"state":"completed"}');
  });

  it("whose stream fails or stops ends with an error", async () => {
    const breaking = (operation: Operation) =>
      operation.kind === "stream"
        ? (async function* () {
            yield [textFrame("a")];
            throw new ProtocolError("RESOURCE_EXHAUSTED", "Too much.");
          })()
        : quiet(operation);
    const broken = await framesOf((await serve(message(), { answer: breaking })).reply);
    expect(broken.at(-1)).toMatchObject({
      result: { final: true, status: { state: "failed" } },
      error: { code: 99_911_113, message: "Too much." },
    });
    const stopping = (operation: Operation) =>
      operation.kind === "stream" ? streamOf(textFrame("a")) : quiet(operation);
    const stopped = await framesOf((await serve(message(), { answer: stopping })).reply);
    expect(stopped.at(-1)).toMatchObject({ result: { final: true, status: { state: "failed" } } });
    expect(stopped.filter(({ result }) => result.final)).toHaveLength(1);
  });

  it("of events that no task waits for starts nothing", async () => {
    const events = [{ header: { namespace: "Common", name: "UploadExeResult" }, payload: {} }];
    const answer = (operation: Operation) => {
      if (operation.kind === "get") throw taskNotFound(operation.id);
      return quiet(operation);
    };
    const { asked, reply } = await serve(message([{ kind: "data", data: { events } }]), { answer });
    expect((await framesOf(reply)).at(-1)).toMatchObject({ result: { final: true, status: { state: "completed" } } });
    expect(asked.map(({ kind }) => kind)).toEqual(["list", "get"]);
  });

  it("of events for a task that waits reaches it", async () => {
    const events = [{ header: { namespace: "Common", name: "UploadExeResult" }, payload: { outputs: { code: 0 } } }];
    const answer = (operation: Operation) =>
      operation.kind === "list" ? page(taskOf("task-1", "TASK_STATE_INPUT_REQUIRED")) : quiet(operation);
    const { asked } = await serve(message([{ kind: "data", data: { events } }]), { answer });
    expect(asked.at(-1)).toMatchObject({ chosenId: "task-1", message: { parts: [{ data: { events } }] } });
  });
});

describe("the other methods", () => {
  const rpc = (method: string, more: JsonObject = {}) => ({ jsonrpc: "2.0", id: "r-1", method, ...more });

  it("notifications/initialized is answered by nothing", async () => {
    const { reply } = await serve(rpc("notifications/initialized"));
    expect(reply).toMatchObject({ status: 200, body: undefined });
  });

  const running = (operation: Operation) => {
    if (operation.kind === "list")
      return page(taskOf("done", "TASK_STATE_COMPLETED"), taskOf("t", "TASK_STATE_WORKING"));
    if (operation.kind === "get" && operation.id === "t") return taskOf("t", "TASK_STATE_WORKING");
    if (operation.kind === "cancel" && operation.id === "t") return taskOf("t", "TASK_STATE_CANCELED");
    if (operation.kind === "cancel" && operation.id === "done") {
      throw new ProtocolError("TASK_NOT_CANCELABLE", "The task has already ended.");
    }
    throw taskNotFound(operation.kind === "cancel" ? operation.id : "");
  };

  it.each([
    ["tasks/cancel", { sessionId: "s" }, { id: "t", status: { state: "canceled" } }],
    ["tasks_cancel", { params: { sessionId: "s" } }, { id: "t", status: { state: "canceled" } }],
    ["tasks/cancel", { params: { id: "t" } }, { id: "t", status: { state: "canceled" } }],
    ["tasks/cancel", { taskId: "t" }, { id: "t", status: { state: "canceled" } }],
    ["tasks/cancel", { id: "t" }, { id: "t", status: { state: "canceled" } }],
    ["tasks/cancel", { params: { id: "done" } }, { id: "done", status: { state: "failed" } }],
    ["tasks/cancel", { params: { id: "none" } }, { id: "none", status: { state: "unknown" } }],
    ["tasks/cancel", {}, { id: "r-1", status: { state: "unknown" } }],
    ["clearContext", { sessionId: "s" }, { status: { state: "cleared" } }],
    ["clear_context", { params: { sessionId: "s" } }, { status: { state: "cleared" } }],
    ["clearContext", {}, { status: { state: "unknown" } }],
  ])("%s with %j", async (method, more: JsonObject, result) => {
    const { reply } = await serve(rpc(method, more), { answer: running });
    expect(reply.headers["content-type"]).toBe("application/json");
    expect(bodyOf(reply)).toEqual({ jsonrpc: "2.0", id: more.id ?? "r-1", result, error: OK });
  });

  it("clearContext stops what still runs", async () => {
    const { asked } = await serve(rpc("clearContext", { sessionId: "s" }), { answer: running });
    expect(asked).toEqual([expect.objectContaining({ kind: "list", contextId: "s" }), { kind: "cancel", id: "t" }]);
  });
});

describe("logins", () => {
  const bound = new Map<string, JsonObject>();
  const accounts: Accounts = {
    exchange: async (code) => {
      if (code === "bad") throw new ProtocolError("INVALID_PARAMS", "Not accepted.");
      return { openId: `user of ${code}` };
    },
    bindings: {
      save: async (id, account) => void bound.set(id, account),
      find: async (id) => bound.get(id),
      forget: async (id) => void bound.delete(id),
    },
  };
  const entries = [entryOf({ accounts })];
  const rpc = (method: string, data: JsonObject) => ({
    jsonrpc: "2.0",
    id: "a-1",
    method,
    params: { message: { role: "user", parts: [{ kind: "data", data }] } },
  });

  it("are kept, shown to the agent, and forgotten as often as asked", async () => {
    const { reply } = await serve(rpc("authorize", { authCode: "code-1" }), { entries });
    const body = bodyOf(reply) as { result: { agentLoginSessionId: string } };
    expect(body).toEqual({
      jsonrpc: "2.0",
      id: "a-1",
      result: { version: "1.0", agentLoginSessionId: expect.any(String) },
      error: OK,
    });
    const { agentLoginSessionId } = body.result;
    const said = message(undefined, { agentLoginSessionId });
    const { asked } = await serve(said, { entries });
    expect(asked.at(-1)).toMatchObject({
      message: { metadata: { [XIAOYI]: { agentLoginSessionId, account: { openId: "user of code-1" } } } },
    });
    for (let time = 0; time < 2; time++) {
      const { reply: over } = await serve(rpc("deauthorize", { agentLoginSessionId }), { entries });
      expect(bodyOf(over)).toEqual({ jsonrpc: "2.0", id: "a-1", result: { version: "1.0" }, error: OK });
    }
    const later = (await serve(said, { entries })).asked.at(-1);
    expect(JSON.stringify(later)).not.toContain("agentLoginSessionId");
  });

  it.each([
    [{ authCode: "bad" }, -32602],
    [{}, -32602],
    [{ authCode: 5 }, -32602],
  ])("with %j are refused", async (data, code) => {
    const { reply } = await serve(rpc("authorize", data), { entries });
    expect(bodyOf(reply)).toMatchObject({ id: "a-1", error: { code } });
  });

  it("are not possible where nothing was set up, and so there is nothing to forget", async () => {
    const refused = bodyOf((await serve(rpc("authorize", { authCode: "c" }))).reply);
    expect(refused).toMatchObject({ error: { code: -32004 } });
    const forgotten = bodyOf((await serve(rpc("deauthorize", { agentLoginSessionId: "x" }))).reply);
    expect(forgotten).toMatchObject({ result: { version: "1.0" }, error: OK });
  });
});

describe("bad requests", () => {
  it.each([
    ["{", 400, -32700, null],
    ["[]", 400, -32600, null],
    ['{"jsonrpc":"1.0","id":"x","method":"initialize"}', 400, -32600, "x"],
    ['{"jsonrpc":"2.0","id":"x","method":"tasks/send"}', 200, -32601, "x"],
    ['{"jsonrpc":"2.0","method":"message/stream"}', 400, -32600, null],
    ['{"jsonrpc":"2.0","id":"x","method":"message/stream"}', 200, -32602, "x"],
    ['{"jsonrpc":"2.0","id":0,"method":"message/stream","params":{"id":"t"}}', 200, -32602, 0],
  ])("%s", async (body, status, code, id) => {
    const { reply } = await serve(body);
    expect(reply.status).toBe(status);
    expect(bodyOf(reply)).toMatchObject({ jsonrpc: "2.0", id, error: { code, message: expect.any(String) } });
  });

  it("come to other paths or by other methods", async () => {
    expect((await serve("", { path: "/other" })).reply.status).toBe(404);
    const { reply } = await serve("", { method: "GET" });
    expect(reply).toMatchObject({ status: 405, headers: { allow: "POST" } });
  });

  it("are no JSON", async () => {
    const headers = { authorization: API_KEY, "content-type": "text/plain" };
    expect(bodyOf((await serve("{}", { headers })).reply)).toMatchObject({ error: { code: -32602 } });
  });

  it("learn nothing of what went wrong inside", async () => {
    const answer = () => {
      throw new Error("password is 1234");
    };
    const { reply } = await serve(message(), { answer });
    expect(bodyOf(reply)).toMatchObject({ id: "msg-1", error: { code: -32603 } });
    expect(JSON.stringify(bodyOf(reply))).not.toContain("1234");
  });
});
