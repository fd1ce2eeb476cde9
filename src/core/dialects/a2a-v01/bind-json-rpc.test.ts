import { describe, expect, it, test } from "vitest";
import { ERROR_CODES, type ErrorCode, ProtocolError } from "../../model/errors.ts";
import { TASK_STATES } from "../../model/task.ts";
import { batches, bodyOf, frame, textOf } from "../suite/serving.ts";
import { jsonRpc } from "./bind-json-rpc.ts";
import { EXCHANGES, resultsOf, serve } from "./fixtures/serving.ts";

const MESSAGE = { role: "user", parts: [{ type: "text", text: "hi" }] };

function rpc(method: string, params?: unknown, id: unknown = 1) {
  return { jsonrpc: "2.0", id, method, ...(params !== undefined && { params }) };
}

function send(params: object = {}) {
  return rpc("tasks/send", { id: "t1", message: MESSAGE, ...params });
}

const TASK = { task: { id: "t1", contextId: "c", status: { state: "TASK_STATE_COMPLETED" } } };

describe("methods", () => {
  it("are exactly those of A2A 0.1", () => {
    expect([...jsonRpc.methods].sort()).toEqual([
      "tasks/cancel",
      "tasks/get",
      "tasks/pushNotification/get",
      "tasks/pushNotification/set",
      "tasks/resubscribe",
      "tasks/send",
      "tasks/sendSubscribe",
    ]);
    expect(jsonRpc.versions).toEqual(["0.1"]);
    expect(jsonRpc.unversioned).toBe(true);
  });

  it.each(EXCHANGES)("$name", async ({ request, operation, outcome, response }) => {
    const { reply, asked, calls, losses } = await serve(request, () => outcome);
    expect(asked).toEqual([operation]);
    const caller = { owner: "anonymous", authenticated: false };
    expect(calls).toEqual([{ caller, tenant: "", extensions: [], dialect: "a2a-v01", cancelsOnce: true }]);
    expect(reply.status).toBe(200);
    expect(bodyOf(reply)).toStrictEqual(response);
    expect(losses).toEqual([]);
  });

  it("writes no null and no member that is not there", async () => {
    const { reply } = await serve(send(), () => TASK);
    expect(JSON.stringify(bodyOf(reply))).toBe(
      '{"jsonrpc":"2.0","id":1,"result":{"id":"t1","sessionId":"c","status":{"state":"completed"}}}',
    );
  });

  it.each([0, "", "a", -1, 1.5, null])("echoes the id %j", async (id) => {
    const { reply } = await serve(rpc("tasks/get", { id: "t1" }, id), () => TASK.task);
    expect(bodyOf(reply)).toMatchObject({ id });
  });

  test("the task a request is about is named by its id", () => {
    const named = (params: unknown) =>
      jsonRpc.taskIdOf?.({ id: 1, method: "tasks/get", params: params as never, notification: false });
    expect(named({ id: "t" })).toBe("t");
    expect([named({ id: 1 }), named({}), named(["t"]), named(undefined)]).toEqual(Array(4).fill(undefined));
  });

  test("a send can be made safe to repeat", async () => {
    const { calls } = await serve(send(), () => TASK, { headers: { "idempotency-key": "k" } });
    expect(calls).toMatchObject([{ idempotencyKey: "k" }]);
  });

  test("what callers of the time added is understood", async () => {
    const { asked } = await serve(send({ acceptedOutputModes: ["text"] }), () => TASK);
    expect(asked).toMatchObject([{ configuration: { acceptedOutputModes: ["text"] } }]);
  });
});

describe("what 0.1 cannot say", () => {
  it("tells a message without a task as a completed task", async () => {
    const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "hello" }] };
    const { reply, losses } = await serve(send({ sessionId: "s" }), () => ({ message }));
    expect(bodyOf(reply)).toMatchObject({
      result: {
        id: "t1",
        sessionId: "s",
        status: { state: "completed", message: { role: "agent", parts: [{ type: "text", text: "hello" }] } },
      },
    });
    expect(losses).toMatchObject([{ kind: "bent", path: "message" }]);
  });

  it.each([
    ["TASK_STATE_REJECTED", "failed"],
    ["TASK_STATE_AUTH_REQUIRED", "input-required"],
  ])("%s is encoded as %s", async (state, word) => {
    const { reply, losses } = await serve(rpc("tasks/get", { id: "t" }), () => ({ ...TASK.task, status: { state } }));
    expect(bodyOf(reply)).toMatchObject({ result: { status: { state: word } } });
    expect(losses).toMatchObject([{ kind: "bent", path: "task.status.state" }]);
  });

  it("says where it lost what", async () => {
    const parts = [
      { text: "# x", mediaType: "text/markdown", filename: "x.md" },
      { data: 5 },
      { data: {}, mediaType: "application/json" },
      { text: "x", mediaType: "text/plain" },
    ];
    const message = { messageId: "m", role: "ROLE_USER", parts, extensions: ["urn:x"], referenceTaskIds: ["t0"] };
    const artifacts = [{ artifactId: "a", parts, extensions: ["urn:x"] }];
    const task = { ...TASK.task, artifacts, history: [message] };
    const { reply, losses } = await serve(rpc("tasks/get", { id: "t" }), () => task);
    expect(losses.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "dropped task.artifacts[0].extensions",
      "dropped task.artifacts[0].parts[0].filename",
      "dropped task.artifacts[0].parts[0].mediaType",
      "bent task.artifacts[0].parts[1].data",
      "dropped task.history[0].extensions",
      "dropped task.history[0].referenceTaskIds",
      "dropped task.history[0].parts[0].filename",
      "dropped task.history[0].parts[0].mediaType",
      "bent task.history[0].parts[1].data",
    ]);
    expect(bodyOf(reply)).toMatchObject({
      result: { history: [{ parts: [{ text: "# x" }, { data: { value: 5 } }, { data: {} }, {}] }] },
    });
  });

  it("keeps one scheme of a push config and says which it did not", async () => {
    const authentication = { schemes: ["bearer", "basic"], credentials: "c" };
    const { asked, losses } = await serve(
      send({ pushNotification: { url: "https://hook.example", authentication } }),
      () => TASK,
    );
    expect(asked).toMatchObject([
      { configuration: { taskPushNotificationConfig: { authentication: { scheme: "bearer", credentials: "c" } } } },
    ]);
    expect(losses).toMatchObject([{ kind: "dropped", path: "pushNotification.authentication.schemes" }]);
  });

  it("refuses instead where nothing may be lost", async () => {
    const report = () => {
      throw new ProtocolError("LOSS_REFUSED", "No.");
    };
    const rejected = { ...TASK.task, status: { state: "TASK_STATE_REJECTED" } };
    const { reply } = await serve(rpc("tasks/get", { id: "t" }), () => rejected, { report });
    expect(bodyOf(reply)).toMatchObject({ error: { code: -32004, data: [{ reason: "LOSS_REFUSED" }] } });
  });
});

describe("streams", () => {
  const scope = { taskId: "t1", contextId: "c" };
  const status = (state: (typeof TASK_STATES)[number]) => ({ statusUpdate: { ...scope, status: { state } } });
  const chunk = (artifactId: string, text: string, more: object = {}) => ({
    artifactUpdate: { ...scope, artifact: { artifactId, parts: [{ text }] }, ...more },
  });
  const begun = { task: { id: "t1", contextId: "c", status: { state: "TASK_STATE_SUBMITTED" as const } } };
  const withArtifacts = {
    task: {
      ...begun.task,
      status: { state: "TASK_STATE_WORKING" as const },
      artifacts: [
        { artifactId: "x", name: "first", parts: [{ text: "1" }] },
        { artifactId: "y", parts: [{ text: "2" }] },
      ],
    },
  };
  const subscribe = rpc("tasks/sendSubscribe", { id: "t1", message: MESSAGE });
  const resubscribe = rpc("tasks/resubscribe", { id: "t1" });

  it("is a send, byte for byte", async () => {
    const frames = [
      frame(1, begun),
      frame(2, status("TASK_STATE_WORKING")),
      frame(3, chunk("x", "o")),
      frame(4, chunk("x", "k", { append: true, lastChunk: true, metadata: { a: 1 } })),
      frame(5, status("TASK_STATE_COMPLETED")),
    ];
    const { reply, asked } = await serve(subscribe, () => batches([frames.slice(0, 2), frames.slice(2)]));
    expect(asked).toMatchObject([{ kind: "stream", chosenId: "t1" }]);
    expect(reply.headers["content-type"]).toBe("text/event-stream");
    expect(await textOf(reply)).toBe(
      [
        'id: 1\ndata: {"jsonrpc":"2.0","id":1,"result":{"id":"t1","status":{"state":"submitted"},"final":false}}\n\n',
        'id: 2\ndata: {"jsonrpc":"2.0","id":1,"result":{"id":"t1","status":{"state":"working"},"final":false}}\n\n',
        'id: 3\ndata: {"jsonrpc":"2.0","id":1,"result":{"id":"t1","artifact":{"parts":[{"type":"text","text":"o"}],"index":0}}}\n\n',
        'id: 4\ndata: {"jsonrpc":"2.0","id":1,"result":{"id":"t1","artifact":{"parts":[{"type":"text","text":"k"}],"index":0,"append":true,"lastChunk":true},"metadata":{"a":1}}}\n\n',
        'id: 5\ndata: {"jsonrpc":"2.0","id":1,"result":{"id":"t1","status":{"state":"completed"},"final":true}}\n\n',
      ].join(""),
    );
  });

  it.each(TASK_STATES)("says of %s whether it is the last word", async (state) => {
    const finalIn = async (request: object) => {
      const [only] = await resultsOf((await serve(request, () => batches([[frame(2, status(state))]]))).reply);
      return (only as { result: { final: boolean } }).result.final;
    };
    const terminal = /COMPLETED|FAILED|CANCELED|REJECTED/.test(state);
    // Told as input-required, which ends a stream here.
    const asks = state === "TASK_STATE_INPUT_REQUIRED" || state === "TASK_STATE_AUTH_REQUIRED";
    expect(await finalIn(subscribe)).toBe(terminal || asks);
    expect(await finalIn(resubscribe)).toBe(terminal);
  });

  it("numbers artifacts by their first appearance, those of a task that goes on included", async () => {
    const frames = [
      frame(7, withArtifacts),
      frame(8, chunk("z", "3")),
      frame(9, chunk("y", "2", { append: true })),
      frame(10, chunk("w", "4")),
      frame(11, chunk("z", "3 again")),
    ];
    const { reply } = await serve(subscribe, () => batches([frames]));
    const results = (await resultsOf(reply)) as { result: { artifact?: { index: number } } }[];
    expect(results.map(({ result }) => result.artifact?.index)).toEqual([undefined, 2, 1, 3, 2]);
  });

  it("tells who comes back what there is, before a status that may be the last", async () => {
    const ended = { task: { ...withArtifacts.task, status: { state: "TASK_STATE_COMPLETED" as const } } };
    const { reply } = await serve(resubscribe, () => batches([[frame(7, ended)]]));
    expect(await resultsOf(reply)).toEqual([
      {
        id: undefined,
        result: { id: "t1", artifact: { name: "first", parts: [{ type: "text", text: "1" }], index: 0 } },
      },
      { id: undefined, result: { id: "t1", artifact: { parts: [{ type: "text", text: "2" }], index: 1 } } },
      { id: "7", result: { id: "t1", status: { state: "completed" }, final: true } },
    ]);
  });

  it("resumes after the number the caller has, without telling it again", async () => {
    const answer = () => batches([[frame(7, withArtifacts), frame(8, chunk("y", "!", { append: true }))]]);
    const { reply, asked, calls } = await serve(resubscribe, answer, { headers: { "last-event-id": "7" } });
    expect(asked).toEqual([{ kind: "subscribe", id: "t1", after: 7 }]);
    expect(calls).toMatchObject([{ extensions: [] }]);
    expect(await resultsOf(reply)).toEqual([
      { id: "7", result: { id: "t1", status: { state: "working" }, final: false } },
      { id: "8", result: { id: "t1", artifact: { parts: [{ type: "text", text: "!" }], index: 1, append: true } } },
    ]);
  });

  it("gives all there is to one whose number is no longer known", async () => {
    const answer = () => batches([[frame(7, withArtifacts)]]);
    const { reply } = await serve(resubscribe, answer, { headers: { "last-event-id": "3" } });
    expect((await resultsOf(reply)).map(({ id }) => id)).toEqual([undefined, undefined, "7"]);
  });

  it("refuses a number that is none", async () => {
    const { reply, asked } = await serve(resubscribe, undefined, { headers: { "last-event-id": "x" } });
    expect(bodyOf(reply)).toMatchObject({ error: { code: -32602 } });
    expect(asked).toEqual([]);
  });

  it("tells a message without a task as the end of one", async () => {
    const message = { messageId: "m", role: "ROLE_AGENT" as const, parts: [{ text: "hello" }] };
    const { reply, losses } = await serve(subscribe, () => batches([[frame(undefined, { message })]]));
    expect(await resultsOf(reply)).toEqual([
      {
        id: undefined,
        result: {
          id: "t1",
          status: { state: "completed", message: { role: "agent", parts: [{ type: "text", text: "hello" }] } },
          final: true,
        },
      },
    ]);
    expect(losses).toMatchObject([{ kind: "bent", path: "message" }]);
  });

  it("ends in an error where nothing may be lost, and lets go of its source", async () => {
    let returned = false;
    async function* source() {
      try {
        yield [frame(1, status("TASK_STATE_REJECTED"))];
        yield [frame(2, begun)];
      } finally {
        returned = true;
      }
    }
    const report = () => {
      throw new ProtocolError("LOSS_REFUSED", "No.");
    };
    const { reply } = await serve(subscribe, source, { report });
    expect(await textOf(reply)).toContain('"reason":"LOSS_REFUSED"');
    expect(returned).toBe(true);
  });
});

describe("errors", () => {
  const CODES: Readonly<Record<string, number>> = {
    TASK_NOT_FOUND: -32001,
    TASK_NOT_CANCELABLE: -32002,
    PUSH_NOTIFICATION_NOT_SUPPORTED: -32003,
    UNSUPPORTED_OPERATION: -32004,
    CONTENT_TYPE_NOT_SUPPORTED: -32005,
    UNAUTHENTICATED: -32007,
    PERMISSION_DENIED: -32008,
    RESOURCE_EXHAUSTED: -32010,
    UNAVAILABLE: -32011,
    PARSE_ERROR: -32700,
    INVALID_REQUEST: -32600,
    METHOD_NOT_FOUND: -32601,
    INVALID_PARAMS: -32602,
    INTERNAL_ERROR: -32603,
  };
  const OF_THE_DIALECT = new Set(Object.values(CODES));

  it.each(ERROR_CODES)("%s has a code of 0.1 and its own reason", async (code: ErrorCode) => {
    const { reply } = await serve(rpc("tasks/get", { id: "t" }), () => {
      throw new ProtocolError(code, "Told to.", { metadata: { taskId: "t" } });
    });
    const { error } = bodyOf(reply) as { error: { code: number; data: unknown[] } };
    expect(OF_THE_DIALECT).toContain(error.code);
    if (CODES[code] !== undefined) expect(error.code).toBe(CODES[code]);
    expect(error.data[0]).toMatchObject({ reason: code });
  });

  it.each([
    ["no id", { id: undefined }, "id"],
    ["an empty id", { id: "" }, "id"],
    ["an id that is no text", { id: 5 }, "id"],
    ["no message", { message: undefined }, "message"],
    ["a message that is none", { message: "hi" }, "message"],
    ["no parts", { message: { role: "user", parts: [] } }, "message.parts"],
    ["an unknown role", { message: { role: "system", parts: MESSAGE.parts } }, "message.role"],
    ["a part without content", { message: { role: "user", parts: [{ type: "text" }] } }, "message.parts[0]"],
    ["a part with two contents", { message: { role: "user", parts: [{ text: "a", data: {} }] } }, "message.parts[0]"],
    ["a file without content", { message: { role: "user", parts: [{ file: {} }] } }, "message.parts[0].file"],
    [
      "bytes that are none",
      { message: { role: "user", parts: [{ file: { bytes: "?" } }] } },
      "message.parts[0].file.bytes",
    ],
    ["a negative history", { historyLength: -1 }, "historyLength"],
    ["metadata that is a list", { metadata: [] }, "metadata"],
    ["a push config without a url", { pushNotification: {} }, "pushNotification.url"],
  ])("refuses %s", async (_name, params, field) => {
    const { reply, asked } = await serve(send(params));
    expect(reply.status).toBe(200);
    const { error } = bodyOf(reply) as { error: { code: number; data: { fieldViolations?: { field: string }[] }[] } };
    expect(error.code).toBe(-32602);
    expect(error.data[1]?.fieldViolations?.map((violation) => violation.field)).toEqual([field]);
    expect(asked).toEqual([]);
  });

  it("refuses more parts than it may take", async () => {
    const parts = Array.from({ length: 1001 }, () => ({ type: "text", text: "" }));
    const { reply } = await serve(send({ message: { role: "user", parts } }));
    expect(bodyOf(reply)).toMatchObject({ error: { code: -32602 } });
  });

  it("refuses what is no request of its own", async () => {
    const unknown = await serve(rpc("message/send", {}));
    expect(bodyOf(unknown.reply)).toMatchObject({ error: { code: -32601 } });
    const silent = await serve({ jsonrpc: "2.0", method: "tasks/get", params: {} });
    expect([silent.reply.status, bodyOf(silent.reply)]).toMatchObject([200, { id: null, error: { code: -32602 } }]);
    const form = await serve(send(), undefined, { headers: { "content-type": "text/plain" } });
    expect([form.reply.status, bodyOf(form.reply)]).toMatchObject([200, { error: { code: -32005 } }]);
  });

  it("refuses push configs where the agent has none, and where the task has none", async () => {
    const get = rpc("tasks/pushNotification/get", { id: "t" });
    const unsupported = await serve(get, undefined, { push: false });
    expect(bodyOf(unsupported.reply)).toMatchObject({ error: { code: -32003 } });
    expect(unsupported.asked).toEqual([]);
    const missing = await serve(get, () => ({ configs: [], nextPageToken: "" }));
    expect(bodyOf(missing.reply)).toMatchObject({ error: { code: -32001 } });
  });

  it("says when to come back", async () => {
    const { reply } = await serve(rpc("tasks/get", { id: "t" }), () => {
      throw new ProtocolError("RESOURCE_EXHAUSTED", "Later.", { retryAfter: 1.5 });
    });
    expect([reply.status, reply.headers["retry-after"]]).toEqual([429, "2"]);
  });

  it("speaks its own words also before a method is known", () => {
    const reply = jsonRpc.refuse(new ProtocolError("UNAUTHENTICATED", "Who?"), 5);
    expect([reply.status, bodyOf(reply)]).toMatchObject([401, { id: 5, error: { code: -32007 } }]);
  });
});
