import { expect, onTestFinished, test, vi } from "vitest";
import { ConnectionError, connect, ProtocolError } from "../../../client.ts";
import type { JsonObject } from "../../model/json.ts";
import type { ExchangeTrace, Notice } from "../options.ts";
import { cardOf, collect, sendJson, sendResult, sendRpcError, startFakeAgent, task } from "../testing/fake-agent.ts";

const FAST = { attempts: 3, baseMs: 1, capMs: 2 };

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (ProtocolError.is(error) || ConnectionError.is(error)) return error.code;
  throw new Error(`expected a typed error, got ${String(error)}`);
}

test("[VER-CLIENT-001, CLIENT-TENANT-001] sends a text over JSON-RPC with version, credentials, extensions and the entry's tenant", async () => {
  await using server = await startFakeAgent((_, response) => sendResult(response, { task: task() }), {
    tenant: "Blue / Team",
  });
  const agent = await connect(server.url, { headers: { Authorization: "Bearer x" }, extensions: ["urn:a"] });
  const outcome = await agent.send("hello", { extensions: ["urn:b"], idempotencyKey: "k1" });

  expect(outcome).toEqual({ task: task() });
  const [request] = server.requests;
  expect(request?.path).toBe("/rpc");
  expect(request?.headers).toMatchObject({
    "a2a-version": "1.0",
    "a2a-extensions": "urn:a,urn:b",
    "idempotency-key": "k1",
    authorization: "Bearer x",
    "content-type": "application/json",
  });
  expect(request?.rpc.params).toMatchObject({
    tenant: "Blue / Team",
    message: { role: "ROLE_USER", parts: [{ text: "hello" }] },
  });
});

test("[CLIENT-TENANT-001] leaves out a tenant the entry does not have", async () => {
  await using server = await startFakeAgent((_, response) => sendResult(response, task()));
  const agent = await connect(server.url);
  await agent.get("t1");
  expect(server.requests[0]?.rpc.params).toEqual({ id: "t1" });
});

test("every operation over HTTP+JSON has its verb, path and query", async () => {
  const config = { id: "p1", taskId: "t/1", url: "https://hook.example" };
  await using server = await startFakeAgent(
    ({ method, path }, response) => {
      if (method === "DELETE") response.writeHead(204).end();
      else if (path.includes("pushNotificationConfigs?")) sendJson(response, { configs: [config] });
      else if (path.includes("pushNotificationConfigs")) sendJson(response, config, method === "POST" ? 201 : 200);
      else if (path.endsWith("message:send"))
        sendJson(response, { message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "hi" }] } });
      else if (path.includes("/tasks?")) sendJson(response, { tasks: [task()], totalSize: 1, pageSize: 5 });
      else if (path.endsWith("extendedAgentCard"))
        sendJson(response, cardOf("http://x.example", { card: { name: "More" } }));
      else sendJson(response, task());
    },
    { binding: "HTTP+JSON", tenant: "a/b" },
  );
  const agent = await connect(server.url);
  expect(agent.interface).toEqual({
    url: `${server.url}/rest`,
    binding: "HTTP+JSON",
    version: "1.0",
    dialect: "a2a-v1",
    tenant: "a/b",
  });

  expect(await agent.send("x")).toMatchObject({ message: { parts: [{ text: "hi" }] } });
  await agent.get("t/1", { historyLength: 0 });
  const page = await agent.listPage({
    status: "TASK_STATE_WORKING",
    pageSize: 5,
    contextId: "a b&c",
    includeArtifacts: true,
    statusTimestampAfter: Date.UTC(2026, 0, 2),
  });
  expect(page).toEqual({ tasks: [task()], nextPageToken: "", pageSize: 5, totalSize: 1 });
  await agent.cancel("t:1", { metadata: { why: "test" } });
  expect(await agent.createPushConfig("t/1", { url: "https://hook.example" })).toEqual(config);
  await agent.getPushConfig("t/1", "p1");
  expect(await agent.listPushConfigs("t/1", { pageSize: 2 })).toEqual({ configs: [config], nextPageToken: "" });
  expect(await agent.deletePushConfig("t/1", "p1")).toBeUndefined();
  expect((await agent.extendedCard()).name).toBe("More");

  expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    "POST /rest/a%2Fb/message:send",
    "GET /rest/a%2Fb/tasks/t%2F1?historyLength=0",
    "GET /rest/a%2Fb/tasks?status=TASK_STATE_WORKING&pageSize=5&contextId=a%20b%26c&includeArtifacts=true&statusTimestampAfter=2026-01-02T00%3A00%3A00.000Z",
    "POST /rest/a%2Fb/tasks/t%3A1:cancel",
    "POST /rest/a%2Fb/tasks/t%2F1/pushNotificationConfigs",
    "GET /rest/a%2Fb/tasks/t%2F1/pushNotificationConfigs/p1",
    "GET /rest/a%2Fb/tasks/t%2F1/pushNotificationConfigs?pageSize=2",
    "DELETE /rest/a%2Fb/tasks/t%2F1/pushNotificationConfigs/p1",
    "GET /rest/a%2Fb/extendedAgentCard",
  ]);
  expect(server.requests[0]?.headers["content-type"]).toBe("application/a2a+json");
  expect(server.requests.every(({ headers }) => headers["a2a-version"] === "1.0")).toBe(true);
});

test("a message keeps what the caller gave and gets what is missing", async () => {
  await using server = await startFakeAgent((_, response) => sendResult(response, { task: task() }));
  const agent = await connect(server.url);
  await agent.send({
    message: { messageId: "mine", taskId: "t9", parts: [{ data: null }] },
    configuration: { returnImmediately: true },
    metadata: { a: 1 },
  });
  expect(server.requests[0]?.rpc.params).toEqual({
    message: { messageId: "mine", role: "ROLE_USER", taskId: "t9", parts: [{ data: null }] },
    configuration: { returnImmediately: true },
    metadata: { a: 1 },
  });
});

test("list walks all pages, fetching each only when it is needed", async () => {
  await using server = await startFakeAgent(({ rpc }, response) => {
    const token = rpc.params?.pageToken;
    if (token === undefined) sendResult(response, { tasks: [task("TASK_STATE_WORKING", "1")], nextPageToken: "p2" });
    else if (token === "p2") sendResult(response, { tasks: [], nextPageToken: "p3" });
    else sendResult(response, { tasks: [task("TASK_STATE_WORKING", "2")] });
  });
  const agent = await connect(server.url);
  for await (const first of agent.list()) {
    expect(first.id).toBe("1");
    break;
  }
  expect(server.requests).toHaveLength(1);
  expect((await collect(agent.list({ pageSize: 1 }))).map(({ id }) => id)).toEqual(["1", "2"]);
});

test.each([null, {}, undefined])("delete takes %j for success", async (result) => {
  await using server = await startFakeAgent((_, response) => sendJson(response, { jsonrpc: "2.0", id: 1, result }));
  const agent = await connect(server.url);
  expect(await agent.deletePushConfig("t1", "p1")).toBeUndefined();
});

test("errors are decoded by reason, then by JSON-RPC code, whatever the HTTP status", async () => {
  const answers: [number, string | undefined, number][] = [
    [-32603, "TASK_NOT_FOUND", 200],
    [-32001, undefined, 500],
    [-32009, undefined, 500],
    [-32004, "SOMETHING_OF_THEIR_OWN", 400],
  ];
  await using server = await startFakeAgent((_, response) =>
    sendRpcError(response, ...(answers.shift() ?? [0, "", 200])),
  );
  const agent = await connect(server.url, { retry: { ...FAST, attempts: 1 } });
  expect(await codeOf(agent.get("x"))).toBe("TASK_NOT_FOUND");
  expect(await codeOf(agent.get("x"))).toBe("TASK_NOT_FOUND");
  expect(await codeOf(agent.get("x"))).toBe("VERSION_NOT_SUPPORTED");
  expect(await codeOf(agent.get("x"))).toBe("UNSUPPORTED_OPERATION");
});

test("reads are repeated after 503, up to the limit", async () => {
  let left = 2;
  await using server = await startFakeAgent((_, response) => {
    if (left-- > 0) response.writeHead(503, { "retry-after": "0" }).end("busy");
    else sendResult(response, task());
  });
  const notices: string[] = [];
  const agent = await connect(server.url, { retry: FAST, onNotice: ({ kind }) => notices.push(kind) });
  expect((await agent.get("t1")).id).toBe("t1");
  expect(notices).toEqual(["reconnect", "reconnect"]);
  left = 5;
  expect(await codeOf(agent.get("t1"))).toBe("UNAVAILABLE");
  expect(left).toBe(2);
});

test("an internal error of the agent is repeated for reads in either binding, never for a send", async () => {
  await using rpc = await startFakeAgent((_, response) => sendRpcError(response, -32603));
  const overRpc = await connect(rpc.url, { retry: FAST });
  expect(await codeOf(overRpc.get("t1"))).toBe("INTERNAL_ERROR");
  expect(await codeOf(overRpc.send("x"))).toBe("INTERNAL_ERROR");
  expect(rpc.methods()).toEqual(["GetTask", "GetTask", "GetTask", "SendMessage"]);
  await using rest = await startFakeAgent((_, response) => sendJson(response, { error: { status: "INTERNAL" } }, 500), {
    binding: "HTTP+JSON",
  });
  expect(await codeOf((await connect(rest.url, { retry: FAST })).get("t1"))).toBe("INTERNAL_ERROR");
  expect(rest.requests).toHaveLength(3);
});

test("a refusal in the protocol's own words is not repeated although it came with status 500", async () => {
  await using server = await startFakeAgent((_, response) => sendRpcError(response, -32009, undefined, 500));
  const agent = await connect(server.url, { retry: FAST });
  expect(await codeOf(agent.get("t1"))).toBe("VERSION_NOT_SUPPORTED");
  expect(server.requests).toHaveLength(1);
});

test("a send is repeated only with an idempotency key, and then as the same message", async () => {
  let failures = 1;
  await using server = await startFakeAgent((_, response) => {
    if (failures-- > 0) response.destroy();
    else sendResult(response, { task: task() });
  });
  const agent = await connect(server.url, { retry: FAST });
  expect(await codeOf(agent.send("once"))).toBe("unreachable");
  expect(server.requests).toHaveLength(1);

  failures = 2;
  await agent.send("again", { idempotencyKey: "k" });
  const [, ...tries] = server.requests;
  const ids = tries.map(({ rpc }) => (rpc.params as { message: JsonObject }).message.messageId);
  expect(ids).toHaveLength(3);
  expect(new Set(ids).size).toBe(1);
  expect(tries.every(({ headers }) => headers["idempotency-key"] === "k")).toBe(true);
});

test("a cancel whose answer was lost is asked once more and believed when the task is canceled", async () => {
  let calls = 0;
  await using server = await startFakeAgent(({ rpc }, response) => {
    if (rpc.method === "GetTask") sendResult(response, task("TASK_STATE_CANCELED"));
    else if (calls++ === 0) response.destroy();
    else sendRpcError(response, -32002);
  });
  const agent = await connect(server.url, { retry: { ...FAST, attempts: 9 } });
  expect((await agent.cancel("t1")).status.state).toBe("TASK_STATE_CANCELED");
  expect(server.methods()).toEqual(["CancelTask", "CancelTask", "GetTask"]);
  expect(await codeOf(agent.cancel("t1"))).toBe("TASK_NOT_CANCELABLE");
});

test("a server that does not answer times out, also in the middle of an answer", async () => {
  // Time passes when the request has arrived, or the beginning of its answer: a busy machine cannot be slower than that.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const timeoutMs = 20;
  await using server = await startFakeAgent(({ rpc }, response) => {
    if (rpc.method === "SendMessage") vi.advanceTimersByTime(timeoutMs);
    else response.writeHead(200, { "content-type": "application/json" }).write('{"jsonrpc"');
  });
  const agent = await connect(server.url, {
    retry: { ...FAST, attempts: 2 },
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (init?.method === "POST") setImmediate(() => vi.advanceTimersByTime(timeoutMs));
      return response;
    },
  });
  expect(await codeOf(agent.send("x", { timeoutMs }))).toBe("timeout");
  expect(await codeOf(agent.get("x", { timeoutMs }))).toBe("timeout");
  expect(server.methods()).toEqual(["SendMessage", "GetTask", "GetTask"]);
});

test("an abort ends a call at any stage, without repeats", async () => {
  const controller = new AbortController();
  await using server = await startFakeAgent(({ rpc }, response) => {
    if (rpc.method === "GetTask") controller.abort();
    else response.writeHead(503).end();
  });
  const agent = await connect(server.url, { retry: { attempts: 5, baseMs: 60_000, capMs: 60_000 } });
  expect(await codeOf(agent.get("x", { signal: controller.signal }))).toBe("aborted");
  expect(await codeOf(agent.get("x", { signal: AbortSignal.abort() }))).toBe("aborted");
  expect(server.requests).toHaveLength(1);

  const waiting = new AbortController();
  const noticed = connect(server.url, {
    retry: { attempts: 5, baseMs: 60_000, capMs: 60_000 },
    onNotice: () => waiting.abort(),
  });
  expect(await codeOf((await noticed).listPage({}, { signal: waiting.signal }))).toBe("aborted");

  const whole = new AbortController();
  const ended = await connect(server.url, { signal: whole.signal });
  whole.abort();
  expect(await codeOf(ended.get("x"))).toBe("aborted");
});

test("what cannot be read is an invalid answer that says what is wrong", async () => {
  const answers: unknown[] = ["nonsense", { jsonrpc: "2.0", id: 1 }, { result: { id: "t1" } }];
  await using server = await startFakeAgent((_, response) => {
    const answer = answers.shift();
    response.writeHead(200).end(typeof answer === "string" ? answer : JSON.stringify(answer));
  });
  const agent = await connect(server.url);
  await expect(agent.get("x")).rejects.toThrow(/not JSON/);
  await expect(agent.get("x")).rejects.toThrow(/neither result nor error/);
  await expect(agent.get("x")).rejects.toThrow(/status is required/);
});

test("what an agent left out is filled in with a notice, and refused if nothing may be lost", async () => {
  await using server = await startFakeAgent((_, response) => {
    sendResult(response, { id: "", status: { state: "DANCING", message: { parts: [{ text: "x" }] } } });
  });
  const notices: Notice[] = [];
  const task = await (await connect(server.url, { onNotice: (notice) => notices.push(notice) })).get("t1");
  expect(task).toMatchObject({
    id: "t1",
    status: { state: "TASK_STATE_UNSPECIFIED", message: { role: "ROLE_AGENT" } },
  });
  expect(notices.map(({ kind, loss }) => `${kind} ${loss?.kind} ${loss?.path}`)).toEqual([
    'loss filled status.state ("DANCING")',
    "loss filled status.message.messageId",
    "loss filled status.message.role",
    "loss filled id",
  ]);
  await expect((await connect(server.url, { strict: true })).get("t1")).rejects.toMatchObject({ code: "LOSS_REFUSED" });
});

test("nothing follows a redirect to another host with a message or with credentials", async () => {
  await using other = await startFakeAgent((_, response) => sendResult(response, task()));
  await using server = await startFakeAgent(({ path, rpc }, response) => {
    const location = rpc.method === "GetTask" && path === "/rpc" ? "/rpc/moved" : `${other.url}/rpc`;
    if (path === "/rpc/moved") sendResult(response, task());
    else response.writeHead(307, { location }).end();
  });
  const agent = await connect(server.url, { headers: { "X-API-Key": "secret" }, retry: FAST });
  expect((await agent.get("t1")).id).toBe("t1");
  expect(server.requests[1]?.headers["x-api-key"]).toBe("secret");
  await expect(agent.send("x")).rejects.toThrow(`it redirected a POST to ${other.url}/rpc`);
  await expect(agent.listPage()).rejects.toMatchObject({ code: "unreachable" });
  expect(other.requests).toEqual([]);
  expect(server.methods()).toEqual(["GetTask", "GetTask", "SendMessage", "ListTasks"]);
});

test("a trace shows the exchange and no secret", async () => {
  await using server = await startFakeAgent((_, response) => {
    response.setHeader("set-cookie", "session=secret");
    sendResult(response, { url: "https://h.example", token: "secret" });
  });
  const traces: ExchangeTrace[] = [];
  const agent = await connect(server.url, {
    headers: { Authorization: "Bearer secret", "X-Odd": "secret" },
    onExchange: (trace) => traces.push(trace),
  });
  await agent.createPushConfig("t1", {
    url: "https://h.example",
    token: "secret",
    authentication: { scheme: "Bearer", credentials: "sec\\ret" },
  });
  expect(traces.map(({ direction }) => direction)).toEqual(["request", "response", "request", "response"]);
  expect(traces[2]).toMatchObject({ method: "POST", url: `${server.url}/rpc`, headers: { "a2a-version": "1.0" } });
  expect(traces[3]).toMatchObject({ status: 200, headers: { "content-type": "application/json" } });
  expect(JSON.stringify(traces)).not.toMatch(/secret|sec\\/);
});

test("an unreachable agent is reported with what was tried and what to do, without secrets", async () => {
  let url = "";
  {
    await using server = await startFakeAgent(() => {});
    url = server.url;
  }
  const card = cardOf(`${url.replace("//", "//user:pass@")}`, { tenant: "x" });
  const { supportedInterfaces } = card as { supportedInterfaces: { url: string }[] };
  for (const entry of supportedInterfaces) entry.url += "?key=secret";
  const agent = await connect(card as never, { retry: FAST });
  const error: unknown = await agent.get("t1").catch((reason: unknown) => reason);
  expect(ConnectionError.is(error) && error.code).toBe("unreachable");
  expect(String(error)).toContain(`Connection refused: ${url}/rpc. Check that the agent is running`);
  expect(String(error)).not.toMatch(/secret|pass/);
});

test("user info of a URL becomes a header", async () => {
  await using server = await startFakeAgent((_, response) => sendResult(response, task()));
  const card = cardOf(server.url.replace("//", "//me:p%40ss@"));
  const agent = await connect(card as never);
  await agent.get("t1");
  expect(server.requests[0]?.headers.authorization).toBe(`Basic ${Buffer.from("me:p@ss").toString("base64")}`);
});
