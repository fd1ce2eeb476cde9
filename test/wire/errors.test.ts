import { describe, expect, it } from "vitest";
import type { Log } from "../../src/core/model/ports.ts";
import { BINDINGS, type Binding, type Method, type Params } from "../support/bindings.ts";
import { sendRaw } from "../support/raw-http.ts";
import { describeBindings, describeStores, useScene } from "../support/scene.ts";
import { userMessage, WireClient } from "../support/wire-client.ts";

const REQUIRED = { uri: "https://example.com/ext/needed/v1", required: true };
const AGENTS = { strict: { extensions: [REQUIRED] }, mute: { streaming: false } };

interface Row {
  readonly reason: string;
  readonly rpc: number;
  readonly http: number;
  readonly grpc: number;
  readonly agent?: string;
  readonly method: Method;
  readonly params: (made: { readonly ended: string }) => Params;
  readonly headers?: Readonly<Record<string, string>>;
}

const unknown = () => ({ id: "no-such-task" });

const TABLE: readonly Row[] = [
  { reason: "TASK_NOT_FOUND", rpc: -32001, http: 404, grpc: 5, method: "GetTask", params: unknown },
  {
    reason: "TASK_NOT_CANCELABLE",
    rpc: -32002,
    http: 400,
    grpc: 9,
    method: "CancelTask",
    params: ({ ended }) => ({ id: ended }),
  },
  {
    reason: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    rpc: -32003,
    http: 400,
    grpc: 9,
    method: "ListTaskPushNotificationConfigs",
    params: ({ ended }) => ({ taskId: ended }),
  },
  {
    reason: "UNSUPPORTED_OPERATION",
    rpc: -32004,
    http: 400,
    grpc: 9,
    method: "GetExtendedAgentCard",
    params: () => ({}),
  },
  {
    reason: "CONTENT_TYPE_NOT_SUPPORTED",
    rpc: -32005,
    http: 400,
    grpc: 3,
    method: "SendMessage",
    params: () => ({ message: userMessage([{ raw: "aGk=", mediaType: "image/png" }]) }),
  },
  {
    reason: "EXTENSION_SUPPORT_REQUIRED",
    rpc: -32008,
    http: 400,
    grpc: 9,
    agent: "strict",
    method: "ListTasks",
    params: () => ({}),
  },
  {
    reason: "VERSION_NOT_SUPPORTED",
    rpc: -32009,
    http: 400,
    grpc: 9,
    method: "ListTasks",
    params: () => ({}),
    headers: { "a2a-version": "7.0" },
  },
  { reason: "INVALID_PARAMS", rpc: -32602, http: 400, grpc: 3, method: "ListTasks", params: () => ({ pageSize: 101 }) },
];

describeStores("errors", { agents: AGENTS, push: false }, (scene, binding) => {
  it.each(TABLE)(
    "[ERR-CODE-001, JSONRPC-ERR-004, JSONRPC-ERR-003, HTTP_JSON-ERR-001, HTTP_JSON-ERR-002, GRPC-ERR-001] $reason has its code, status and details",
    async (row) => {
      const ended = (await scene.client().task("artifact ok")).id;
      const answer = await scene.client(row.agent).call(row.method, row.params({ ended }), row.headers);
      expect(answer.error?.reason).toBe(row.reason);
      expect(answer.error?.code).toBe({ "JSON-RPC": row.rpc, "HTTP+JSON": row.http, gRPC: row.grpc }[binding.name]);
      if (binding.name === "HTTP+JSON") expect(answer.status).toBe(row.http);
      for (const detail of answer.error?.details ?? []) {
        expect(detail["@type"]).toMatch(/^type\.googleapis\.com\/google\.rpc\.\w+$/);
        if (detail.metadata !== undefined) {
          expect(Object.values(detail.metadata).filter((value) => typeof value !== "string")).toEqual([]);
        }
      }
    },
  );

  it("[JSONRPC-ERR-004] names the task that was not found and the fields that do not fit", async () => {
    const missing = await scene.client().refusal("GetTask", { id: "no-such-task" });
    expect(missing.details[0]?.metadata).toEqual({ taskId: "no-such-task" });
    const bad = await scene.client().refusal("ListTasks", { pageSize: -1, historyLength: -1 });
    const violations = bad.details.find(({ fieldViolations }) => fieldViolations !== undefined)?.fieldViolations;
    expect(violations?.map(({ field }) => field).sort()).toEqual(["historyLength", "pageSize"]);
  });
});

describe("JSON-RPC envelopes", () => {
  const scene = useScene(BINDINGS[0] as Binding);
  const post = async (body: string | Uint8Array, path = "") => {
    const headers = { "content-type": "application/json", "a2a-version": "1.0" };
    const reply = await sendRaw(scene.server.url, { path, headers, body });
    expect(reply.headers["content-type"]).toBe("application/json");
    return { status: reply.status, ...reply.json };
  };
  const envelope = (more: object) =>
    JSON.stringify({ jsonrpc: "2.0", id: 7, method: "ListTasks", params: {}, ...more });

  it.each([
    ["nothing", ""],
    ["a torn object", '{"jsonrpc":"2.0","id":7,'],
    ["two values", '{"jsonrpc":"2.0"} {}'],
    ["bytes that are no UTF-8", Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])],
  ])("[JSONRPC-ERR-001] %s cannot be parsed", async (_, body) => {
    expect(await post(body)).toMatchObject({ status: 200, jsonrpc: "2.0", id: null, error: { code: -32700 } });
  });

  it.each([
    ["a list", "[]", null],
    ["a batch", `[${JSON.stringify({ jsonrpc: "2.0", id: 7, method: "ListTasks" })}]`, null],
    ["text", '"hello"', null],
    ["null", "null", null],
    ["no version", envelope({ jsonrpc: undefined }), 7],
    ["version 1.0", envelope({ jsonrpc: "1.0" }), 7],
    ["no method", envelope({ method: undefined }), 7],
    ["a method that is a number", envelope({ method: 5 }), 7],
    ["params that are text", envelope({ params: "x" }), 7],
    ["params that are null", envelope({ params: null }), 7],
    ["an id that is an object", envelope({ id: {} }), null],
    ["an id that is true", envelope({ id: true }), null],
  ])("[JSONRPC-FMT-001] %s is an invalid request", async (_, body, id) => {
    expect(await post(body)).toMatchObject({ status: 200, jsonrpc: "2.0", id, error: { code: -32600 } });
  });

  it.each(["", "listTasks", "tasks/get", "message/send", "toString", "__proto__", "rpc.discover"])(
    "[JSONRPC-FMT-001] there is no method %j",
    async (method) => {
      expect(await post(envelope({ method }))).toMatchObject({ status: 200, id: 7, error: { code: -32601 } });
      expect(await post(envelope({ method, id: undefined }))).toMatchObject({ id: null, error: { code: -32601 } });
    },
  );

  it.each([0, "", "0", -1, 1.5, '\u2713 "quoted"', 9007199254740991, null])(
    "[JSONRPC-FMT-001, JSONRPC-FMT-001, JSONRPC-ERR-005] the id %j comes back",
    async (id) => {
      expect(await post(envelope({ id }))).toMatchObject({ id, result: { tasks: [] } });
      expect(await post(envelope({ id, method: "GetTask" }))).toMatchObject({ id, error: { code: -32602 } });
    },
  );

  it("[JSONRPC-FMT-001] params that are a list do not fit", async () => {
    expect(await post(envelope({ params: [] }))).toMatchObject({ id: 7, error: { code: -32602 } });
  });

  it("takes the path with and without a slash at its end, at the root and at the agent", async () => {
    for (const path of ["", "/", "/agents/stage", "/agents/stage/"]) {
      expect(await post(envelope({}), path), path).toMatchObject({ id: 7, result: { tasks: [] } });
    }
  });

  it("takes a byte order mark and members in any order", async () => {
    expect(await post(`\ufeff{"params":{},"method":"ListTasks","id":7,"jsonrpc":"2.0"}`)).toMatchObject({
      id: 7,
      result: {},
    });
  });
});

describe("all bindings", () => {
  const scene = useScene(BINDINGS[0] as Binding, { agents: AGENTS });
  const clients = () => BINDINGS.map((binding) => new WireClient(binding, scene.server.url));

  it("[BIND-EQUIV-001, BIND-EQUIV-002, BIND-EQUIV-003] see the same tasks in the same form", async () => {
    for (const one of clients()) {
      for (const other of clients()) {
        const made = await one.task("work; artifact ok; input more?");
        expect(await other.get(made.id)).toEqual(made);
        const message = userMessage("artifact done", { taskId: made.id });
        const finished = await other.task(message);
        expect(finished.status.state).toBe("TASK_STATE_COMPLETED");
        const listed = await Promise.all([one, other].map((client) => client.list({ contextId: made.contextId })));
        expect(listed[0]).toEqual(listed[1]);
      }
    }
  });

  it("[BIND-EQUIV-002, BIND-EQUIV-003] stream the same events", async () => {
    const started = await (clients()[0] as WireClient).start("work; hold both; chunks 20; work done");
    await scene.stage.reached("both");
    const streams = await Promise.all(clients().map((client) => client.subscribe(started.id)));
    scene.stage.open("both");
    const [one, ...others] = await Promise.all(streams.map((stream) => stream.rest()));
    expect(one?.length).toBeGreaterThan(3);
    for (const other of others) expect(other).toEqual(one);
  });

  it("[BIND-EQUIV-002, BIND-EQUIV-003] refuse the same things for the same reasons", async () => {
    const { id } = await (clients()[0] as WireClient).task("artifact ok");
    const requests: readonly (readonly [Method, Params])[] = [
      ["SendMessage", {}],
      ["SendMessage", { message: userMessage("x", { taskId: "no-such-task" }) }],
      ["SendMessage", { message: userMessage("x", { taskId: id }) }],
      ["SendMessage", { message: userMessage([{ url: "https://example.com/", mediaType: "video/mp4" }]) }],
      ["GetTask", { id, historyLength: -1 }],
      ["ListTasks", { pageToken: "bad" }],
      ["ListTasks", { pageSize: 101 }],
      ["CancelTask", { id }],
      ["CancelTask", { id: "no-such-task" }],
      ["SubscribeToTask", { id }],
      ["SubscribeToTask", { id: "no-such-task" }],
    ];
    const misfits: typeof requests = [
      ["ListTasks", { status: "TASK_STATE_DREAMING" }],
      ["ListTasks", { statusTimestampAfter: "yesterday" }],
    ];
    const expectSame = async (method: Method, params: Params, callers: readonly WireClient[]) => {
      const [one, ...others] = await Promise.all(callers.map((client) => client.refusal(method, params)));
      for (const other of others) {
        expect(one?.reason, `${method} ${JSON.stringify(params)}`).toBe(other.reason);
        expect(one?.message).toBe(other.message);
        expect(one?.details).toEqual(other.details);
      }
    };
    for (const [method, params] of requests) await expectSame(method, params, clients());
    const loose = clients().filter(({ binding }) => binding.can.anyJson);
    for (const [method, params] of misfits) await expectSame(method, params, loose);
  });
});

const lines: string[] = [];
const write = (fields: object, message: string) => {
  const error = (fields as { err?: Error }).err;
  lines.push(JSON.stringify({ ...fields, message, error: error?.stack }));
};
const log: Log = { debug: write, info: write, warn: write, error: write };

describeBindings("logs", { log }, (scene) => {
  it("[SEC-LOG-001] hold no credentials, whatever goes wrong", async () => {
    const secrets = {
      authorization: "Bearer secret-bearer",
      "x-api-key": "secret-key",
      cookie: "session=secret-cookie",
      "proxy-authorization": "Basic secret-basic",
    };
    const task = await scene.client().task("throw broken", {}, secrets);
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    await scene.client().call("GetTask", { id: "no-such-task" }, secrets);
    await scene.client().call("SendMessage", {}, secrets);
    await sendRaw(scene.server.url, { path: "/nowhere", headers: secrets });
    expect(lines.join("\n")).toContain("broken");
    expect(lines.join("\n")).not.toContain("secret-");
    expect(JSON.stringify(task.status)).not.toContain("broken");
  });
});
