import { describe, expect, it } from "vitest";
import { ERROR_CODES, ProtocolError, taskNotFound } from "../../model/errors.ts";
import { LogEntry } from "../../model/event.ts";
import { batches, bodyOf, eventsOf, frame, textOf } from "../suite/serving.ts";
import { http } from "./bind-http.ts";
import { HTTP_STATUSES } from "./errors.ts";
import { serve } from "./fixtures/serving.ts";

const MESSAGE = { role: "user", parts: [{ type: "text", text: "茶" }], messageId: "m1", contextId: "c" };
const TASK = { id: "t1", contextId: "c", status: { state: "TASK_STATE_WORKING" as const } };
const SAID = { id: "t1", contextId: "c", status: { state: "working" }, artifacts: [], history: [] };

describe("requests", () => {
  it("are found below /tasks", () => {
    expect([http.prefix, http.version]).toEqual(["tasks", "1"]);
  });

  it("a send is answered with the whole task", async () => {
    const message = {
      ...MESSAGE,
      taskId: "t1",
      parts: [
        { type: "text", text: "请根据以下大纲生成文章正文" },
        { type: "data", data: { title: "茶" } },
        { type: "file", file: { name: "a.txt", mimeType: "text/plain", bytes: "aGk=" } },
        { type: "file", file: { uri: "https://files.example/b" } },
      ],
    };
    const outcome = {
      task: {
        ...TASK,
        status: {
          state: "TASK_STATE_COMPLETED",
          timestamp: "2025-11-03T08:15:02.000Z",
          message: { messageId: "m2", taskId: "t1", contextId: "c", role: "ROLE_AGENT", parts: [{ text: "完成" }] },
        },
        artifacts: [
          { artifactId: "a", name: "outline", description: "d", parts: [{ data: { x: 1 } }] },
          { artifactId: "b", parts: [{ url: "https://files.example/c", mediaType: "text/csv" }], metadata: { k: 1 } },
        ],
        history: [{ messageId: "m1", taskId: "t1", contextId: "c", role: "ROLE_USER", parts: [{ text: "茶" }] }],
        metadata: { m: 1 },
      },
    };
    const { reply, asked, calls, losses } = await serve("POST /send", () => outcome, {
      body: { message },
      headers: { "content-type": "application/json", "idempotency-key": "k" },
    });
    expect(asked).toEqual([
      {
        kind: "send",
        alwaysTask: true,
        message: {
          messageId: "m1",
          taskId: "t1",
          contextId: "c",
          role: "ROLE_USER",
          parts: [
            { text: "请根据以下大纲生成文章正文" },
            { data: { title: "茶" } },
            { raw: "aGk=", filename: "a.txt", mediaType: "text/plain" },
            { url: "https://files.example/b" },
          ],
        },
      },
    ]);
    expect(calls).toEqual([
      {
        caller: { owner: "anonymous", authenticated: false },
        tenant: "",
        extensions: [],
        dialect: "tasks-rest",
        idempotencyKey: "k",
      },
    ]);
    expect([reply.status, reply.headers["content-type"]]).toEqual([200, "application/json"]);
    expect(bodyOf(reply)).toStrictEqual({
      id: "t1",
      contextId: "c",
      status: {
        state: "completed",
        message: {
          role: "agent",
          parts: [{ type: "text", text: "完成" }],
          messageId: "m2",
          taskId: "t1",
          contextId: "c",
        },
        timestamp: "2025-11-03T08:15:02.000Z",
      },
      artifacts: [
        {
          artifactId: "a",
          name: "outline",
          description: "d",
          parts: [{ type: "data", data: { x: 1 } }],
          index: 0,
        },
        {
          artifactId: "b",
          parts: [{ type: "file", file: { mimeType: "text/csv", uri: "https://files.example/c" } }],
          index: 1,
          metadata: { k: 1 },
        },
      ],
      history: [{ role: "user", parts: [{ type: "text", text: "茶" }], messageId: "m1", taskId: "t1", contextId: "c" }],
      metadata: { m: 1 },
    });
    expect(losses).toEqual([]);
  });

  it("a message may come without ids and with null", async () => {
    const message = { role: "user", parts: [{ text: "茶" }], messageId: null, taskId: null, contextId: "" };
    const { asked } = await serve("POST /send", () => ({ task: TASK }), { body: { message, metadata: null } });
    expect(asked).toEqual([
      { kind: "send", alwaysTask: true, message: { messageId: "id-1", role: "ROLE_USER", parts: [{ text: "茶" }] } },
    ]);
  });

  it.each([
    ["GET /t1", undefined, { kind: "get", id: "t1" }],
    ["GET /t1/", undefined, { kind: "get", id: "t1" }],
    ["GET /t1?historyLength=2", undefined, { kind: "get", id: "t1", historyLength: 2 }],
    ["GET /a%2Fb%20c", undefined, { kind: "get", id: "a/b c" }],
    ["GET /send", undefined, { kind: "get", id: "send" }],
    ["POST /t1/cancel", undefined, { kind: "cancel", id: "t1" }],
    ["POST /t1/cancel", { metadata: { why: "bored" } }, { kind: "cancel", id: "t1", metadata: { why: "bored" } }],
  ])("%s with %j", async (request, body, operation) => {
    const { reply, asked } = await serve(request, () => TASK, { body });
    expect(asked).toEqual([operation]);
    expect([reply.status, bodyOf(reply)]).toStrictEqual([200, SAID]);
  });

  it("HEAD is GET without a body", async () => {
    const { reply } = await serve("HEAD /t1", () => TASK);
    expect(reply).toEqual({
      status: 200,
      headers: { "content-type": "application/json", "cache-control": "private, no-store" },
      body: undefined,
    });
  });
});

describe("what this dialect cannot say", () => {
  it("tells a message without a task as a completed task", async () => {
    const message = { messageId: "m2", role: "ROLE_AGENT", parts: [{ text: "hello" }] };
    const { reply, losses } = await serve("POST /send", () => ({ message }), { body: { message: MESSAGE } });
    expect(bodyOf(reply)).toMatchObject({
      id: "m2",
      contextId: "c",
      status: { state: "completed", message: { role: "agent", parts: [{ type: "text", text: "hello" }] } },
      history: [{ messageId: "m1", role: "user" }],
    });
    expect(losses).toMatchObject([{ kind: "bent", path: "message" }]);
  });

  it("bends states and data, and says so", async () => {
    const status = { state: "TASK_STATE_REJECTED" };
    const artifacts = [
      { artifactId: "a", parts: [{ data: [1] }, { data: null }, { data: {} }], extensions: ["urn:x"] },
    ];
    const { reply, losses } = await serve("GET /t1", () => ({ ...TASK, status, artifacts }));
    expect(bodyOf(reply)).toMatchObject({
      status: { state: "failed" },
      artifacts: [{ parts: [{ data: { value: [1] } }, { data: { value: null } }, { data: {} }] }],
    });
    expect(losses.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "bent task.status.state",
      "dropped task.artifacts[0].extensions",
      "bent task.artifacts[0].parts[0].data",
      "bent task.artifacts[0].parts[1].data",
    ]);
  });
});

describe("streams", () => {
  const scope = { taskId: "t1", contextId: "c" };
  const submitted = { ...TASK, status: { state: "TASK_STATE_SUBMITTED" as const } };
  const working = { statusUpdate: { ...scope, status: { state: "TASK_STATE_WORKING" as const } } };
  const completed = { statusUpdate: { ...scope, status: { state: "TASK_STATE_COMPLETED" as const } } };
  const chunk = (artifactId: string, text: string, more: object = {}) => ({
    artifactUpdate: { ...scope, artifact: { artifactId, name: "outline", parts: [{ text }] }, ...more },
  });

  it("tell changes of state by the whole task, and output as it comes", async () => {
    const frames = [
      frame(1, { task: submitted }),
      frame(2, working),
      frame(3, chunk("a", "o")),
      frame(4, chunk("a", "k", { append: true, lastChunk: true })),
      frame(5, completed),
    ];
    const { reply, asked } = await serve("POST /sendSubscribe", () => batches([frames]), {
      body: { message: MESSAGE },
    });
    expect(asked).toMatchObject([{ kind: "stream", message: { messageId: "m1" } }]);
    const artifact = '"artifact":{"artifactId":"a","name":"outline","parts":[{"type":"text","text"';
    expect(await textOf(reply)).toBe(
      [
        'id: 1\ndata: {"task":{"id":"t1","contextId":"c","status":{"state":"submitted"},"artifacts":[],"history":[]}}\n\n',
        'id: 2\ndata: {"task":{"id":"t1","contextId":"c","status":{"state":"working"},"artifacts":[],"history":[]}}\n\n',
        `id: 3\ndata: {"taskId":"t1","contextId":"c",${artifact}:"o"}],"index":0}}\n\n`,
        `id: 4\ndata: {"taskId":"t1","contextId":"c",${artifact}:"k"}],"index":0,"append":true,"lastChunk":true}}\n\n`,
        'id: 5\ndata: {"task":{"id":"t1","contextId":"c","status":{"state":"completed"},"artifacts":[{"artifactId":"a","name":"outline","parts":[{"type":"text","text":"ok"}],"index":0}],"history":[]}}\n\n',
      ].join(""),
    );
  });

  it("show the messages that joined the history", async () => {
    const asked = { messageId: "q", role: "ROLE_AGENT" as const, parts: [{ text: "Which?" }] };
    const received = { messageId: "m2", role: "ROLE_USER" as const, parts: [{ text: "this" }] };
    const waiting = { ...TASK, status: { state: "TASK_STATE_INPUT_REQUIRED" as const, message: asked } };
    const answer = () => batches([[frame(4, { task: waiting })], [LogEntry.of(5, working, received)]]);
    const { reply } = await serve("POST /sendSubscribe", answer, { body: { message: MESSAGE } });
    const [, after] = (await eventsOf(reply)) as { data: { task: { history: { messageId: string }[] } } }[];
    expect(after?.data.task.history.map(({ messageId }) => messageId)).toEqual(["q", "m2"]);
  });

  it("can be taken up again", async () => {
    const begun = { ...TASK, artifacts: [{ artifactId: "x", parts: [{ text: "1" }] }] };
    const answer = () => batches([[frame(7, { task: begun }), frame(8, chunk("y", "2")), frame(9, completed)]]);
    const { reply, asked, calls } = await serve("GET /t1/subscribe", answer, { headers: { "last-event-id": "7" } });
    expect(asked).toEqual([{ kind: "subscribe", id: "t1", after: 7 }]);
    expect(calls).toMatchObject([{ extensions: [] }]);
    expect(await eventsOf(reply)).toMatchObject([
      { id: "7", data: { task: { artifacts: [{ artifactId: "x", index: 0 }] } } },
      { id: "8", data: { artifact: { artifactId: "y", index: 1 } } },
      { id: "9", data: { task: { status: { state: "completed" }, artifacts: [{}, { artifactId: "y", index: 1 }] } } },
    ]);
  });

  it("tell a message without a task as a completed task", async () => {
    const message = { messageId: "m2", role: "ROLE_AGENT" as const, parts: [{ text: "hello" }] };
    const answer = () => batches([[frame(undefined, { message })]]);
    const { reply, losses } = await serve("POST /sendSubscribe", answer, { body: { message: MESSAGE } });
    expect(await eventsOf(reply)).toMatchObject([{ data: { task: { id: "m2", status: { state: "completed" } } } }]);
    expect(losses).toMatchObject([{ kind: "bent" }]);
  });

  it("show what was sent, also out of order", async () => {
    const ended = { ...TASK, status: { state: "TASK_STATE_COMPLETED" as const } };
    const other = { statusUpdate: { taskId: "t2", contextId: "d", status: { state: "TASK_STATE_FAILED" as const } } };
    const told = [chunk("a", "1"), { task: ended }, chunk("b", "2"), working, other];
    const { reply } = await serve("GET /t1/subscribe", () => batches([told.map((event, at) => frame(at + 1, event))]));
    expect(await eventsOf(reply)).toMatchObject([
      { data: { artifact: { artifactId: "a" } } },
      { data: { task: { status: { state: "completed" } } } },
      { data: { artifact: { artifactId: "b" } } },
      { data: { task: { id: "t1", status: { state: "working" }, artifacts: [{ artifactId: "b" }] } } },
      { data: { task: { id: "t2", contextId: "d", status: { state: "failed" }, artifacts: [] } } },
    ]);
  });

  it("say what they leave out", async () => {
    const update = { statusUpdate: { ...working.statusUpdate, metadata: { a: 1 } } };
    const answer = () => batches([[frame(1, { task: submitted }), frame(2, update)]]);
    const { reply, losses } = await serve("GET /t1/subscribe", answer);
    await textOf(reply);
    expect(losses).toMatchObject([{ kind: "dropped", path: "statusUpdate.metadata" }]);
  });

  it("end in the error that broke them", async () => {
    async function* broken() {
      yield [frame(1, { task: submitted })];
      throw taskNotFound("t1");
    }
    const { reply } = await serve("GET /t1/subscribe", broken);
    expect(await textOf(reply)).toContain(
      'event: error\ndata: {"error":{"code":"task-not-found","message":"Task not found.","taskId":"t1"}}\n\n',
    );
  });
});

describe("errors", () => {
  it.each(ERROR_CODES)("%s has a status and a word", async (code) => {
    const { reply } = await serve("GET /t1", () => {
      throw new ProtocolError(code, "Told to.", { metadata: { taskId: "t1" }, retryAfter: 1.5 });
    });
    expect(reply.status).toBe(HTTP_STATUSES[code]);
    expect(bodyOf(reply)).toMatchObject({ error: { code: code.toLowerCase().replaceAll("_", "-") } });
    if (code !== "INTERNAL_ERROR") {
      expect(bodyOf(reply)).toMatchObject({ error: { message: "Told to.", taskId: "t1" } });
      expect(reply.headers["retry-after"]).toBe("2");
    }
  });

  it.each([
    ["POST /send", { body: {} }, 400, "invalid-params", ["message"]],
    ["POST /send", {}, 400, "invalid-params", ["message"]],
    [
      "POST /send",
      { body: { message: { parts: [], role: "x" } } },
      400,
      "invalid-params",
      ["message.role", "message.parts"],
    ],
    ["POST /send", { body: [] }, 400, "invalid-params", [""]],
    ["POST /send", { rawBody: "{" }, 400, "parse-error", undefined],
    ["POST /send", { rawBody: "[".repeat(70) + "]".repeat(70) }, 400, "invalid-request", undefined],
    [
      "POST /send",
      { body: {}, headers: { "content-type": "text/plain" } },
      415,
      "content-type-not-supported",
      undefined,
    ],
    ["POST /send", { body: {}, headers: { "content-encoding": "gzip" } }, 415, "content-type-not-supported", undefined],
    ["GET /t?historyLength=x", {}, 400, "invalid-params", ["historyLength"]],
    ["GET /%ff", {}, 400, "invalid-params", ["id"]],
    ["GET /t/subscribe", { headers: { "last-event-id": "x" } }, 400, "invalid-params", ["Last-Event-ID"]],
    ["GET /t/elsewhere", {}, 404, "method-not-found", undefined],
    ["GET ", {}, 404, "method-not-found", undefined],
    ["GET /a/b/c", {}, 404, "method-not-found", undefined],
  ])("%s with %j is refused with %i", async (request, options, status, code, fields) => {
    const { reply, asked } = await serve(request, undefined, options);
    expect(reply.status).toBe(status);
    const { error } = bodyOf(reply) as { error: { code: string; violations?: { field: string }[] } };
    expect(error.code).toBe(code);
    expect(error.violations?.map(({ field }) => field)).toEqual(fields);
    expect(asked).toEqual([]);
  });

  it.each([
    ["DELETE /t1", "GET, HEAD"],
    ["PUT /send", "POST, GET, HEAD"],
    ["GET /t1/cancel", "POST"],
    ["constructor /t1/subscribe", "GET, HEAD, POST"],
  ])("%s is refused with what is allowed", async (request, allow) => {
    const { reply } = await serve(request);
    expect([reply.status, reply.headers.allow]).toEqual([405, allow]);
  });

  it("have the same form when something else refuses", () => {
    const exchange = {
      method: "GET",
      path: "/",
      query: "",
      headers: {},
      body: Buffer.alloc(0),
      remoteAddress: undefined,
    };
    const reply = http.refuse(new ProtocolError("UNAUTHENTICATED", "Who?"), exchange);
    expect([reply.status, bodyOf(reply)]).toEqual([401, { error: { code: "unauthenticated", message: "Who?" } }]);
  });
});
