import { describe, expect, it } from "vitest";
import { ERROR_CODES, ProtocolError, taskNotFound } from "../../model/errors.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { ExchangeRequest } from "../../wire/exchange.ts";
import { parseJsonRpc } from "../../wire/json-rpc.ts";
import type { ServeContext } from "../contract.ts";
import { batches, contextOf, exchangeOf, frame, full, streamed, writesOf } from "../suite/serving.ts";
import { jsonRpc } from "./bind-json-rpc.ts";
import { ERRORS } from "./errors.ts";
import { EXCHANGES, FRAMES, fakeService } from "./fixtures/serving.ts";

const MESSAGE = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "hi" }] };

async function post(body: unknown, context: ServeContext, exchange: Partial<ExchangeRequest> = {}) {
  const parsed = parseJsonRpc(JSON.stringify(body));
  if (!parsed.ok) throw new Error(parsed.message);
  return jsonRpc.handle(parsed.request, exchangeOf(exchange), context);
}

function rpc(method: string, params?: unknown, id: unknown = 1) {
  return { jsonrpc: "2.0", id, method, ...(params !== undefined && { params }) };
}

async function answerTo(body: unknown, answer: () => unknown = () => ({}), exchange: Partial<ExchangeRequest> = {}) {
  const reply = full(await post(body, contextOf(fakeService(answer)), exchange));
  return { status: reply.status, headers: reply.headers, body: JSON.parse(String(reply.body)) };
}

describe("methods", () => {
  it("are exactly those of A2A 1.0", () => {
    expect([...jsonRpc.methods].sort()).toEqual([
      "CancelTask",
      "CreateTaskPushNotificationConfig",
      "DeleteTaskPushNotificationConfig",
      "GetExtendedAgentCard",
      "GetTask",
      "GetTaskPushNotificationConfig",
      "ListTaskPushNotificationConfigs",
      "ListTasks",
      "SendMessage",
      "SendStreamingMessage",
      "SubscribeToTask",
    ]);
    expect(jsonRpc.versions).toEqual(["1.0"]);
  });

  it.each(EXCHANGES)(
    "[DM-SERIAL-002, DM-SERIAL-006, DM-PART-001, CORE-SEND-001, CORE-LIST-004, CORE-LIST-005] $name",
    async ({ method, params, operation, tenant, outcome, result }) => {
      const service = fakeService(() => outcome);
      const reply = full(await post(rpc(method, params, "x"), contextOf(service)));
      expect(service.asked).toEqual([
        {
          operation,
          call: {
            caller: { owner: "anonymous", authenticated: false },
            tenant: tenant ?? "",
            extensions: [],
            dialect: "a2a-v1",
          },
        },
      ]);
      expect(reply.status).toBe(200);
      expect(reply.headers).toEqual({ "content-type": "application/json", "cache-control": "private, no-store" });
      expect(JSON.parse(String(reply.body))).toStrictEqual({ jsonrpc: "2.0", id: "x", result });
    },
  );

  it.each([0, "", "a", -1, 1.5, null])("[JSONRPC-FMT-001] echoes the id %j", async (id) => {
    const { body } = await answerTo(rpc("GetTask", { id: "t1" }, id));
    expect(body.id).toBe(id);
  });
});

describe("errors", () => {
  it.each(ERROR_CODES)("[ERR-CODE-001, JSONRPC-ERR-004] %s has its code, reason and domain", async (code) => {
    const { body } = await answerTo(rpc("GetTask", { id: "t1" }), () => {
      throw new ProtocolError(code, "Told to.", { metadata: { taskId: "t1" } });
    });
    expect(body.id).toBe(1);
    expect(body.result).toBeUndefined();
    expect(body.error.code).toBe(ERRORS[code].jsonRpc);
    expect(body.error.data[0]).toMatchObject({
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      reason: code,
      domain: "a2a-protocol.org",
    });
  });

  it("answers 200 for an error of an operation, with its facts", async () => {
    const { status, headers, body } = await answerTo(rpc("GetTask", { id: "t1" }), () => {
      throw taskNotFound("t1");
    });
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("application/json");
    expect(body.error.data).toEqual([
      {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        reason: "TASK_NOT_FOUND",
        domain: "a2a-protocol.org",
        metadata: { taskId: "t1" },
      },
    ]);
  });

  it("keeps the text of internal errors to itself", async () => {
    for (const failure of [
      new Error("secret"),
      new ProtocolError("INTERNAL_ERROR", "secret", { metadata: { a: "secret" } }),
    ]) {
      const { body } = await answerTo(rpc("GetTask", { id: "t1" }), () => {
        throw failure;
      });
      expect(body.error.code).toBe(-32603);
      expect(JSON.stringify(body)).not.toContain("secret");
    }
  });

  it("tells when to come back", async () => {
    const { status, headers, body } = await answerTo(rpc("GetTask", { id: "t1" }), () => {
      throw new ProtocolError("RESOURCE_EXHAUSTED", "Later.", { retryAfter: 1.5 });
    });
    expect(status).toBe(429);
    expect(headers["retry-after"]).toBe("2");
    expect(body.error.data[1]).toEqual({ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "1.5s" });
  });

  it("[JSONRPC-FMT-001] refuses an unknown method", async () => {
    const { status, body } = await answerTo(rpc("message/send", {}));
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: 1, error: { code: -32601 } });
  });

  it.each([
    ["a known task", "GetTask", { id: "t1" }, { result: { id: "t1" } }],
    ["bad params", "GetTask", {}, { error: { code: -32602 } }],
    ["an unknown method", "GetTasks", {}, { error: { code: -32601 } }],
  ])("[JSONRPC-FMT-001] answers a request without an id: %s", async (_, method, params, answer) => {
    const { status, body } = await answerTo({ jsonrpc: "2.0", method, params }, () => ({ id: "t1" }));
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: null, ...answer });
  });

  it.each([
    ["[JSONRPC-FMT-001] params missing", undefined, ["message"]],
    ["[JSONRPC-FMT-001] params as a list", [MESSAGE], [""]],
    ["[CORE-ERR-002] message missing", {}, ["message"]],
    ["[CORE-ERR-002] messageId missing", { message: { ...MESSAGE, messageId: undefined } }, ["message.messageId"]],
    ["[CORE-ERR-002] messageId empty", { message: { ...MESSAGE, messageId: "" } }, ["message.messageId"]],
    ["[CORE-ERR-002] role missing", { message: { ...MESSAGE, role: undefined } }, ["message.role"]],
    ["[CORE-ERR-002] role unspecified", { message: { ...MESSAGE, role: "ROLE_UNSPECIFIED" } }, ["message.role"]],
    ["[CORE-ERR-002] role of 0.3", { message: { ...MESSAGE, role: "user" } }, ["message.role"]],
    ["[CORE-ERR-002] parts missing", { message: { ...MESSAGE, parts: undefined } }, ["message.parts"]],
    ["[DM-PARTS-001] parts empty", { message: { ...MESSAGE, parts: [] } }, ["message.parts"]],
    [
      "[DM-PART-001] a part with two contents",
      { message: { ...MESSAGE, parts: [{ text: "a", url: "b" }] } },
      ["message.parts[0]"],
    ],
    ["[DM-PART-001] a part with none", { message: { ...MESSAGE, parts: [{ text: "a" }, {}] } }, ["message.parts[1]"]],
    [
      "[DM-BYTES-001] raw that is not base64",
      { message: { ...MESSAGE, parts: [{ raw: "a*b" }] } },
      ["message.parts[0].raw"],
    ],
    [
      "all at once, in the caller's spelling",
      { message: { message_id: 7, role: 9, parts: [{ text: 1 }] }, configuration: { history_length: -1 } },
      ["message.message_id", "message.role", "message.parts[0].text", "configuration.history_length"],
    ],
  ])("refuses %s before any work", async (_name, params, fields) => {
    const service = fakeService(() => ({}));
    const reply = full(await post(rpc("SendMessage", params), contextOf(service)));
    const { error } = JSON.parse(String(reply.body));
    expect(error.code).toBe(-32602);
    expect(error.data[0].reason).toBe("INVALID_PARAMS");
    expect(error.data[1]["@type"]).toBe("type.googleapis.com/google.rpc.BadRequest");
    expect(error.data[1].fieldViolations.map((violation: { field: string }) => violation.field)).toEqual(fields);
    expect(service.asked).toEqual([]);
  });

  it.each([
    { pageSize: 0 },
    { pageSize: 101 },
    { pageSize: "many" },
    { status: "TASK_STATE_ASLEEP" },
    { status: 9 },
    { historyLength: -1 },
    { statusTimestampAfter: "yesterday" },
    { includeArtifacts: "true" },
  ])("[CORE-LIST-006, DM-SERIAL-003] refuses ListTasks with %j", async (params) => {
    const { body } = await answerTo(rpc("ListTasks", params));
    expect(body.error.code).toBe(-32602);
    expect(body.error.data[1].fieldViolations[0].field).toBe(Object.keys(params)[0]);
  });

  it("refuses more parts than allowed", async () => {
    const parts = Array.from({ length: 4 }, () => ({ text: "x" }));
    const context = contextOf(
      fakeService(() => ({})),
      { limits: { maxDepth: 64, maxValues: 200_000, maxParts: 3, keepAliveMs: 1000 } },
    );
    const reply = full(await post(rpc("SendMessage", { message: { ...MESSAGE, parts } }), context));
    expect(JSON.parse(String(reply.body)).error.code).toBe(-32602);
  });

  it("says in its own words what went wrong before a method was known", () => {
    const reply = full(jsonRpc.refuse(new ProtocolError("PARSE_ERROR", "No JSON."), null));
    expect(reply.status).toBe(200);
    expect(JSON.parse(String(reply.body))).toMatchObject({ jsonrpc: "2.0", id: null, error: { code: -32700 } });
    expect(full(jsonRpc.refuse(new ProtocolError("VERSION_NOT_SUPPORTED", "No."), 5)).body).toContain(
      '"id":5,"error":{"code":-32009',
    );
  });
});

describe("media type", () => {
  it.each([
    undefined,
    "application/json",
    "Application/JSON; charset=utf-8",
    "application/a2a+json",
    "application/json;",
  ])("accepts %s", async (type) => {
    const { body } = await answerTo(rpc("GetTask", { id: "t1" }), () => ({ id: "t1" }), {
      headers: { "content-type": type },
    });
    expect(body.result).toEqual({ id: "t1" });
  });

  it("[ERR-CODE-001] refuses another one with -32005", async () => {
    const { status, body } = await answerTo(rpc("GetTask", { id: "t1" }), undefined, {
      headers: { "content-type": "text/plain" },
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: 1, error: { code: -32005, data: [{ reason: "CONTENT_TYPE_NOT_SUPPORTED" }] } });
  });
});

describe("tenant, extensions and keys", () => {
  const send = rpc("SendMessage", { tenant: "acme", message: MESSAGE });
  const outcome = { message: { ...MESSAGE, role: "ROLE_AGENT" } };

  it("[TENANT-001] partitions by a tenant that names no agent", async () => {
    const service = fakeService(() => outcome);
    await post(send, contextOf(service));
    expect(service.asked[0]?.call.tenant).toBe("acme");
  });

  it("[TENANT-001] goes to the agent a tenant names", async () => {
    const [own, other] = [fakeService(() => outcome), fakeService(() => outcome)];
    await post(send, contextOf(own, { agentOfTenant: (tenant) => (tenant === "acme" ? other : undefined) }));
    expect(own.asked).toEqual([]);
    expect(other.asked[0]?.call.tenant).toBe("");
  });

  it("[SVC-PARAM-001, SVC-PARAM-002] passes on the list of extensions and names those activated", async () => {
    const service = fakeService(
      () => outcome,
      (requested) => requested.filter((uri) => uri === "urn:a"),
    );
    const reply = await post(send, contextOf(service), { headers: { "a2a-extensions": " urn:a, urn:b ,," } });
    expect(service.asked[0]?.call.extensions).toEqual(["urn:a", "urn:b"]);
    expect(reply.headers).toEqual({
      "content-type": "application/json",
      "cache-control": "private, no-store",
      "a2a-extensions": "urn:a",
    });
  });

  it("[SVC-PARAM-002] says nothing of extensions when none is active", async () => {
    const reply = await post(send, contextOf(fakeService(() => outcome)), { headers: { "a2a-extensions": "urn:b" } });
    expect(reply.headers["a2a-extensions"]).toBeUndefined();
  });

  it.each([
    ["from the header", { "idempotency-key": "k1" }, "k1"],
    ["from the messageId when the extension is requested", { "a2a-extensions": EXTENSIONS.idempotency }, "m1"],
    ["the header before the messageId", { "a2a-extensions": EXTENSIONS.idempotency, "idempotency-key": "k1" }, "k1"],
    ["none otherwise", {}, undefined],
  ])("takes the idempotency key %s", async (_name, headers, key) => {
    const service = fakeService(() => outcome);
    await post(send, contextOf(service), { headers });
    expect(service.asked[0]?.call.idempotencyKey).toBe(key);
  });

  it("has no idempotency key for what starts no work", async () => {
    const service = fakeService(() => ({ id: "t1" }));
    await post(rpc("GetTask", { id: "t1" }), contextOf(service), { headers: { "idempotency-key": "k1" } });
    expect(service.asked.map(({ call }) => call.idempotencyKey)).toEqual([undefined]);
  });
});

describe("streams", () => {
  const stream = rpc("SendStreamingMessage", { message: MESSAGE }, "r");

  it("[CORE-STREAM-003, STREAM-FRAME-001] repeat the id in every frame, number them, and write a batch at once", async () => {
    const service = fakeService(() => batches([FRAMES.slice(0, 2), FRAMES.slice(2)]));
    const reply = streamed(await post(stream, contextOf(service)));
    expect(service.asked[0]?.operation).toEqual({ kind: "stream", message: MESSAGE });
    expect(reply.status).toBe(200);
    expect(reply.headers).toEqual({
      "content-type": "text/event-stream",
      "cache-control": "no-cache, private, no-store",
      "x-accel-buffering": "no",
    });
    const text = FRAMES.map(
      ({ json, number }) => `id: ${number}\ndata: {"jsonrpc":"2.0","id":"r","result":${json}}\n\n`,
    );
    expect(await writesOf(reply)).toEqual([`${text[0]}${text[1]}`, text[2]]);
  });

  it("[CORE-STREAM-002] carry the one message of an agent that made no task", async () => {
    const event = { message: { ...MESSAGE, role: "ROLE_AGENT" as const } };
    const reply = await post(stream, contextOf(fakeService(() => batches([[frame(undefined, event)]]))));
    expect(await writesOf(reply)).toEqual([`data: {"jsonrpc":"2.0","id":"r","result":${JSON.stringify(event)}}\n\n`]);
  });

  it("name the extensions activated", async () => {
    const service = fakeService(
      () => batches([FRAMES]),
      (requested) => requested,
    );
    const reply = streamed(await post(stream, contextOf(service), { headers: { "a2a-extensions": "urn:a" } }));
    expect(reply.headers["a2a-extensions"]).toBe("urn:a");
    await writesOf(reply);
  });

  it.each(["SendStreamingMessage", "SubscribeToTask"])(
    "[CORE-CAP-002, STREAM-SUB-003] %s refused at once is an ordinary error",
    async (method) => {
      const { status, headers, body } = await answerTo(rpc(method, { message: MESSAGE, id: "t1" }, "r"), () => {
        throw new ProtocolError("UNSUPPORTED_OPERATION", "The task has ended.");
      });
      expect(status).toBe(200);
      expect(headers["content-type"]).toBe("application/json");
      expect(body).toMatchObject({ id: "r", error: { code: -32004 } });
    },
  );

  it("[STREAM-SUB-003] refused before they begin are an ordinary error", async () => {
    const { headers, body } = await answerTo(stream, () => {
      throw taskNotFound("t1");
    });
    expect(headers["content-type"]).toBe("application/json");
    expect(body).toMatchObject({ id: "r", error: { code: -32001 } });
  });

  it("failing later end with an error frame", async () => {
    const reply = await post(stream, contextOf(fakeService(() => batches([FRAMES.slice(0, 1)], new Error("secret")))));
    const [first, last, ...rest] = await writesOf(reply);
    expect(first).toContain('"result":{"task"');
    expect(rest).toEqual([]);
    expect(last).toMatch(/^data: \{"jsonrpc":"2.0","id":"r","error":\{"code":-32603,.*\}\n\n$/);
    expect(last).not.toContain("secret");
  });

  it("[STREAM-SUB-001] resume after the event the caller names", async () => {
    const service = fakeService(() => batches([FRAMES]));
    await writesOf(
      await post(rpc("SubscribeToTask", { id: "t1" }), contextOf(service), { headers: { "last-event-id": "17" } }),
    );
    await writesOf(
      await post(rpc("SubscribeToTask", { id: "t1" }), contextOf(service), { headers: { "last-event-id": "" } }),
    );
    expect(service.asked.map(({ operation }) => operation)).toEqual([
      { kind: "subscribe", id: "t1", after: 17 },
      { kind: "subscribe", id: "t1" },
    ]);
  });

  it.each(["x", "-1", "1.5", "1e3"])("refuse the cursor %s", async (cursor) => {
    const { body } = await answerTo(rpc("SubscribeToTask", { id: "t1" }), undefined, {
      headers: { "last-event-id": cursor },
    });
    expect(body.error.code).toBe(-32602);
  });
});
