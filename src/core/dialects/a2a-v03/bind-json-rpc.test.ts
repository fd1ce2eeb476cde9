import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../model/errors.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { Loss } from "../../model/loss.ts";
import type { TaskState } from "../../model/task.ts";
import { cases } from "../../model/testing/exploring.ts";
import { isStreamReply } from "../../wire/exchange.ts";
import { batches, contextOf, exchangeOf, frame, full, textOf } from "../suite/serving.ts";
import { jsonRpc } from "./bind-json-rpc.ts";
import { CARD, EXCHANGES, fakeService, post } from "./fixtures/serving.ts";
import { METHODS } from "./json/decode.ts";

const SEND =
  '{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"m","role":"user","parts":[{"kind":"text","text":"hi"}]}}}';
const WORKING = { id: "t1", contextId: "c1", status: { state: "TASK_STATE_WORKING" } } as const;

function rpc(method: string, params?: unknown): string {
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
}

async function errorOf(text: string, answer: () => unknown = () => WORKING, headers = {}) {
  const reply = full(await post(text, fakeService(answer), headers));
  return { status: reply.status, headers: reply.headers, ...JSON.parse(String(reply.body)) };
}

describe("recorded exchanges", () => {
  it.each(EXCHANGES)("$name", async ({ request, operation, outcome, response }) => {
    const service = fakeService(() => outcome);
    const losses: Loss[] = [];
    const reply = full(await post(request, service, {}, { report: (lost) => losses.push(...lost) }));
    expect(service.asked.map((asked) => asked.operation)).toEqual([operation]);
    expect(String(reply.body)).toBe(response);
    expect(reply.status).toBe(200);
    expect(reply.headers["content-type"]).toBe("application/json");
    expect(losses).toEqual([]);
  });

  it("cover every method that does not stream", () => {
    const covered = new Set(EXCHANGES.map(({ request }) => JSON.parse(request).method));
    const all = Object.keys(METHODS).filter((method) => !["message/stream", "tasks/resubscribe"].includes(method));
    expect([...covered].sort()).toEqual(all.sort());
  });
});

describe("what serves it", () => {
  it("is distinguished from the others by version and method", () => {
    expect(jsonRpc.versions).toEqual(["0.3", "0.2"]);
    expect(jsonRpc.unversioned).toBe(true);
    expect([...jsonRpc.methods].sort()).toEqual([
      "agent/authenticatedExtendedCard",
      "agent/getAuthenticatedExtendedCard",
      "message/send",
      "message/stream",
      "tasks/cancel",
      "tasks/get",
      "tasks/pushNotificationConfig/delete",
      "tasks/pushNotificationConfig/get",
      "tasks/pushNotificationConfig/list",
      "tasks/pushNotificationConfig/set",
      "tasks/resubscribe",
    ]);
  });

  it.each([
    [{ id: "t1" }, "t1"],
    [{ taskId: "t1" }, "t1"],
    [{ task_id: "t1" }, "t1"],
    [{ id: 1 }, undefined],
    [[], undefined],
    [undefined, undefined],
  ])("names the task of %j", (params, named) => {
    expect(jsonRpc.taskIdOf?.({ id: 1, method: "tasks/get", params, notification: false })).toBe(named);
  });
});

describe("streams", () => {
  const status = (number: number, state: TaskState) =>
    frame(number, { statusUpdate: { taskId: "t1", contextId: "c1", status: { state } } });
  const finals = (text: string) =>
    [...text.matchAll(/"state":"([a-z-]+)"},"final":(true|false)/g)].map((m) => `${m[1]} ${m[2]}`);

  it("are whole responses, numbered, byte for byte", async () => {
    const frames = [
      frame(1, { task: { id: "t1", contextId: "c1", status: { state: "TASK_STATE_SUBMITTED" } } }),
      frame(2, {
        artifactUpdate: {
          taskId: "t1",
          contextId: "c1",
          artifact: { artifactId: "a1", parts: [{ text: "o\nk" }] },
          append: true,
          lastChunk: true,
        },
      }),
      status(3, "TASK_STATE_COMPLETED"),
      frame(undefined, { message: { messageId: "r", role: "ROLE_AGENT", parts: [{ text: "bye" }] } }),
    ];
    const service = fakeService(() => batches(frames.map((one) => [one])));
    const reply = await post(SEND.replace("message/send", "message/stream"), service);
    expect(reply.headers["content-type"]).toBe("text/event-stream");
    expect(await textOf(reply)).toBe(
      [
        'id: 1\ndata: {"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t1","contextId":"c1","status":{"state":"submitted"}}}\n\n',
        'id: 2\ndata: {"jsonrpc":"2.0","id":1,"result":{"kind":"artifact-update","taskId":"t1","contextId":"c1","artifact":{"artifactId":"a1","parts":[{"kind":"text","text":"o\\nk"}]},"append":true,"lastChunk":true}}\n\n',
        'id: 3\ndata: {"jsonrpc":"2.0","id":1,"result":{"kind":"status-update","taskId":"t1","contextId":"c1","status":{"state":"completed"},"final":true}}\n\n',
        'data: {"jsonrpc":"2.0","id":1,"result":{"kind":"message","messageId":"r","role":"agent","parts":[{"kind":"text","text":"bye"}]}}\n\n',
      ].join(""),
    );
  });

  const STATES: readonly TaskState[] = [
    "TASK_STATE_WORKING",
    "TASK_STATE_AUTH_REQUIRED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_COMPLETED",
  ];

  it("of a message end where the agent asks back", async () => {
    const service = fakeService(() => batches(STATES.map((state, at) => [status(at + 1, state)])));
    expect(finals(await textOf(await post(SEND.replace("message/send", "message/stream"), service)))).toEqual([
      "working false",
      "auth-required false",
      "input-required true",
      "rejected true",
      "failed true",
      "canceled true",
      "completed true",
    ]);
  });

  it("of a task go on when the agent asks back", async () => {
    const service = fakeService(() => batches(STATES.map((state, at) => [status(at + 1, state)])));
    const text = await textOf(await post(rpc("tasks/resubscribe", { id: "t1" }), service, { "last-event-id": "7" }));
    expect(finals(text)).toContain("input-required false");
    expect(finals(text)).toContain("rejected true");
    expect(service.asked[0]?.operation).toEqual({ kind: "subscribe", id: "t1", after: 7 });
  });

  it("that fail say so in the form of a response", async () => {
    const failing = fakeService(() =>
      batches([[status(1, "TASK_STATE_WORKING")]], new ProtocolError("UNAVAILABLE", "Gone.")),
    );
    const text = await textOf(await post(rpc("tasks/resubscribe", { id: "t1" }), failing));
    expect(text).toContain('data: {"jsonrpc":"2.0","id":1,"error":{"code":-32053,"message":"Gone.","data":[');
  });

  it("that cannot begin are refused by a plain response", async () => {
    const { error } = await errorOf(rpc("tasks/resubscribe", { id: "t1" }), () => {
      throw new ProtocolError("UNSUPPORTED_OPERATION", "The task has ended.");
    });
    expect(error).toMatchObject({ code: -32004, message: "The task has ended." });
  });
});

describe("what comes beside a request", () => {
  it("is extensions, under either name", async () => {
    const service = fakeService(() => ({ task: WORKING }));
    const headers = { "x-a2a-extensions": "urn:known:a, urn:other", "a2a-extensions": "urn:known:b,urn:known:a" };
    const reply = full(await post(SEND, service, headers));
    expect(service.asked[0]?.call.extensions).toEqual(["urn:known:a", "urn:other", "urn:known:b"]);
    expect(reply.headers["x-a2a-extensions"]).toBe("urn:known:a,urn:known:b");
    expect(service.asked[0]?.call).toMatchObject({ dialect: "a2a-v03", tenant: "" });
  });

  it("is the key of a send", async () => {
    const service = fakeService(() => ({ task: WORKING }));
    await post(SEND, service, { "idempotency-key": "k" });
    await post(SEND, service, { "x-a2a-extensions": EXTENSIONS.idempotency });
    await post(SEND, service);
    expect(service.asked.map(({ call }) => call.idempotencyKey)).toEqual(["k", "m", undefined]);
  });
});

describe("refusals", () => {
  const message = (more: object) =>
    rpc("message/send", { message: { messageId: "m", role: "user", parts: [{ kind: "text", text: "hi" }], ...more } });

  it.each([
    ["no message", rpc("message/send", {}), "message", "is required"],
    ["params in a list", rpc("message/send", []), "", "must be an object"],
    ["no parts", message({ parts: [] }), "message.parts", "must not be empty"],
    ["no list of parts", message({ parts: undefined }), "message.parts", "is required"],
    ["no role", message({ role: null }), "message.role", "is required"],
    ["another role", message({ role: "system" }), "message.role", "must be one of user, agent"],
    ["another kind", message({ kind: "task" }), "message.kind", "must be message"],
    ["an empty part", message({ parts: [{}] }), "message.parts[0]", "must be a part of kind text, file or data"],
    [
      "an unknown part",
      message({ parts: [{ kind: "video", text: "x" }] }),
      "message.parts[0]",
      "must be a part of kind text, file or data",
    ],
    ["no messageId", message({ messageId: undefined }), "message.messageId", "is required"],
    ["an empty messageId", message({ messageId: "" }), "message.messageId", "must not be empty"],
    [
      "an unknown type",
      message({ parts: [{ type: "unsupported_type", text: "a" }] }),
      "message.parts[0]",
      "must be a part of kind text, file or data",
    ],
    [
      "two contents",
      message({ parts: [{ text: "a", data: {} }] }),
      "message.parts[0]",
      "must be a part of kind text, file or data",
    ],
    ["a part without its content", message({ parts: [{ kind: "text" }] }), "message.parts[0].text", "is required"],
    [
      "a file without content",
      message({ parts: [{ kind: "file", file: {} }] }),
      "message.parts[0].file",
      "must have exactly one of bytes, uri",
    ],
    [
      "a file with two",
      message({ parts: [{ kind: "file", file: { bytes: "", uri: "" } }] }),
      "message.parts[0].file",
      "must have exactly one of bytes, uri",
    ],
    ["no file", message({ parts: [{ kind: "file" }] }), "message.parts[0].file", "is required"],
    [
      "bad base64",
      message({ parts: [{ kind: "file", file: { bytes: "?" } }] }),
      "message.parts[0].file.bytes",
      "must be base64",
    ],
    ["no data", message({ parts: [{ kind: "data", data: null }] }), "message.parts[0].data", "is required"],
    ["metadata that is none", message({ metadata: [] }), "message.metadata", "must be an object"],
    [
      "both spellings",
      message({ contextId: "a", context_id: "b" }),
      "message.context_id",
      "is given in both spellings",
    ],
    ["a number for an id", message({ context_id: 1 }), "message.context_id", "must be a string"],
    [
      "a negative length",
      rpc("tasks/get", { id: "t", historyLength: -1 }),
      "historyLength",
      "must be an integer not below 0",
    ],
    ["no id", rpc("tasks/get", {}), "id", "is required"],
    ["an empty id", rpc("tasks/cancel", { id: "" }), "id", "must not be empty"],
    ["no config", rpc("tasks/pushNotificationConfig/set", { taskId: "t" }), "pushNotificationConfig", "is required"],
    [
      "a config without a url",
      rpc("tasks/pushNotificationConfig/set", { taskId: "t", pushNotificationConfig: {} }),
      "pushNotificationConfig.url",
      "is required",
    ],
    [
      "no config id",
      rpc("tasks/pushNotificationConfig/delete", { id: "t" }),
      "pushNotificationConfigId",
      "is required",
    ],
  ])("name what is wrong: %s", async (_, text, field, description) => {
    const service = fakeService(() => WORKING);
    const { error } = JSON.parse(String(full(await post(text, service)).body));
    expect(error.code).toBe(-32602);
    expect(error.data[1].fieldViolations).toContainEqual({ field, description });
    expect(service.asked).toEqual([]);
  });

  it("bound the number of parts", async () => {
    const text = message({ parts: Array.from({ length: 1001 }, () => ({ kind: "text", text: "" })) });
    expect((await errorOf(text)).error).toMatchObject({
      code: -32602,
      message: "message.parts must not have more than 1000 items",
    });
  });

  it("of an operation come with 200, in the words of the protocol and with the exact code", async () => {
    const { status, error, id } = await errorOf(rpc("tasks/get", { id: "t1" }), () => {
      throw new ProtocolError("TASK_NOT_FOUND", "Task not found.", { metadata: { taskId: "t1" } });
    });
    expect([status, id]).toEqual([200, 1]);
    expect(error).toEqual({
      code: -32001,
      message: "Task not found.",
      data: [
        {
          "@type": "type.googleapis.com/google.rpc.ErrorInfo",
          reason: "TASK_NOT_FOUND",
          domain: "a2a-protocol.org",
          metadata: { taskId: "t1" },
        },
      ],
    });
  });

  it.each([
    ["an unknown method", '{"jsonrpc":"2.0","method":"message/ssend","params":{}}', -32601],
    ["bad params", '{"jsonrpc":"2.0","method":"message/send","params":{"":"not_a_dict"}}', -32602],
  ])("of a request without an id have the id null: %s", async (_, text, code) => {
    expect(await errorOf(text)).toMatchObject({ status: 200, error: { code }, id: null });
  });

  it("about access and load have an HTTP status", async () => {
    expect(await errorOf(SEND, undefined, { "content-type": "text/plain" })).toMatchObject({
      status: 200,
      error: { code: -32005 },
    });
    const limited = () => {
      throw new ProtocolError("RESOURCE_EXHAUSTED", "Later.", { retryAfter: 1.5 });
    };
    expect(await errorOf(SEND, limited)).toMatchObject({ status: 429, headers: { "retry-after": "2" } });
    const refused = full(jsonRpc.refuse(new ProtocolError("UNAUTHENTICATED", "Who?"), "x"));
    expect(refused.status).toBe(401);
    expect(JSON.parse(String(refused.body))).toMatchObject({ id: "x", error: { code: -32050 } });
  });

  it("tell nothing of what went wrong inside", async () => {
    const { error } = await errorOf(SEND, () => {
      throw new Error("password is 1234");
    });
    expect(error.code).toBe(-32603);
    expect(JSON.stringify(error)).not.toContain("1234");
  });

  it("say that there are no lists of tasks", async () => {
    expect((await errorOf(rpc("tasks/list", {}))).error.code).toBe(-32601);
  });

  it("come first where an agent does no push at all", async () => {
    const service = fakeService(() => WORKING, { ...CARD, capabilities: {} });
    const reply = full(await post(rpc("tasks/pushNotificationConfig/set", {}), service));
    expect(JSON.parse(String(reply.body)).error.code).toBe(-32003);
  });

  it("answer an earlier caller whose task has no push config", async () => {
    const { error } = await errorOf(rpc("tasks/pushNotificationConfig/get", { id: "t1" }), () => ({
      configs: [],
      nextPageToken: "",
    }));
    expect(error.code).toBe(-32001);
  });
});

describe("lists of push configs", () => {
  it("are gathered from all pages", async () => {
    const pages: Record<string, object> = {
      "": { configs: [{ id: "p1", url: "https://a.example" }], nextPageToken: "2" },
      2: { configs: [{ id: "p2", url: "https://b.example" }], nextPageToken: "3" },
      3: { configs: [], nextPageToken: "4" },
    };
    const service = fakeService((operation) => pages[(operation.kind === "push-list" && operation.pageToken) || ""]);
    const reply = full(await post(rpc("tasks/pushNotificationConfig/list", { id: "t1" }), service));
    const ids = JSON.parse(String(reply.body)).result.map(
      (one: { pushNotificationConfig: { id: string } }) => one.pushNotificationConfig.id,
    );
    expect(ids).toEqual(["p1", "p2"]);
    expect(service.asked).toHaveLength(3);
  });
});

describe("losses", () => {
  const lossesOf = async (text: string, outcome: unknown = WORKING) => {
    const losses: Loss[] = [];
    await post(
      text,
      fakeService(() => outcome),
      {},
      { report: (lost) => losses.push(...lost) },
    );
    return losses.map(({ kind, path }) => `${kind} ${path}`);
  };

  it.each([
    ["tasks/get", { id: "t", metadata: { a: 1 } }, "dropped get.metadata"],
    ["tasks/resubscribe", { id: "t", metadata: { a: 1 } }, "dropped subscribe.metadata"],
    ["tasks/pushNotificationConfig/list", { id: "t", metadata: { a: 1 } }, "dropped push-list.metadata"],
    [
      "tasks/pushNotificationConfig/set",
      { taskId: "t", pushNotificationConfig: { url: "https://a.example", authentication: { schemes: ["a", "b"] } } },
      "dropped pushNotificationConfig.authentication.schemes",
    ],
    [
      "message/send",
      {
        message: { messageId: "m", role: "user", parts: [{ text: "x" }] },
        configuration: {
          pushNotificationConfig: { url: "https://a.example", authentication: { schemes: [], credentials: "c" } },
        },
      },
      "dropped configuration.pushNotificationConfig.authentication.credentials",
    ],
  ])("of %s are reported", async (method, params, loss) => {
    expect(await lossesOf(rpc(method, params), { configs: [], nextPageToken: "" })).toEqual([loss]);
  });

  it("of a card are reported", async () => {
    const card = { ...CARD, signatures: [{ protected: "p", signature: "s" }] };
    expect(await lossesOf(rpc("agent/getAuthenticatedExtendedCard"), card)).toEqual(["dropped card.signatures"]);
  });

  it("that may not happen are refused before anything is done", async () => {
    const service = fakeService(() => WORKING);
    const report = () => {
      throw new ProtocolError("LOSS_REFUSED", "Nothing may be lost.");
    };
    const reply = full(await post(rpc("tasks/get", { id: "t", metadata: { a: 1 } }), service, {}, { report }));
    expect(JSON.parse(String(reply.body)).error.code).toBe(-32055);
    expect(service.asked).toEqual([]);
  });
});

describe("anything else", () => {
  const names = [
    "id",
    "taskId",
    "message",
    "kind",
    "role",
    "parts",
    "text",
    "file",
    "data",
    "bytes",
    "uri",
    "metadata",
    "configuration",
    "blocking",
    "pushNotificationConfig",
    "authentication",
    "schemes",
    "url",
    "historyLength",
  ];
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.constantFrom<unknown>("text", "user", "message", "file", "data", "", 0, 1, true, false, null),
      fc.dictionary(fc.constantFrom(...names), tie("value"), { maxKeys: 6 }),
      fc.array(tie("value"), { maxLength: 2 }),
    ),
  }));

  it("is answered", async () => {
    const refuse = () => {
      throw new ProtocolError("TASK_NOT_FOUND", "Task not found.");
    };
    const service = fakeService(refuse);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...jsonRpc.methods),
        fc.dictionary(fc.constantFrom(...names), value),
        async (method, params) => {
          const request = { id: 1, method, params: JSON.parse(JSON.stringify(params)), notification: false };
          const reply = await jsonRpc.handle(request, exchangeOf(), contextOf(service));
          if (isStreamReply(reply)) throw new Error("Nothing streams here.");
          expect([-32001, -32602]).toContain(JSON.parse(String(reply.body)).error.code);
        },
      ),
      { numRuns: cases(10_000) },
    );
  });
});
