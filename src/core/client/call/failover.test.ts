import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { ConnectionError, type ConnectOptions, connect, ProtocolError } from "../../../client.ts";
import { toBytes } from "../../dialects/a2a-v1/proto/schema.ts";
import type { Notice } from "../options.ts";
import {
  artifactUpdate,
  cardOf,
  collect,
  type FakeAgent,
  type Handler,
  openStream,
  restFrame,
  rpcFrame,
  sendJson,
  sendResult,
  sendRpcError,
  startFakeAgent,
  statusUpdate,
  task,
} from "../testing/fake-agent.ts";
import { startGrpcServer } from "../transport/testing/grpc-server.ts";

const FAST = { attempts: 3, baseMs: 1, capMs: 2 };
const DONE = { task: task() };

/** An address that refuses connections. */
async function deadUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

type Entry = readonly [url: string, binding: string, version?: string];

function cardWith(...entries: readonly Entry[]): never {
  const supportedInterfaces = entries.map(([url, protocolBinding, protocolVersion = "1.0"]) => {
    return { url, protocolBinding, protocolVersion };
  });
  return cardOf("", { card: { supportedInterfaces } }) as never;
}

async function connected(entries: readonly Entry[], options: ConnectOptions = {}) {
  const notices: Notice[] = [];
  const agent = await connect(cardWith(...entries), {
    retry: FAST,
    onNotice: (notice) => notices.push(notice),
    ...options,
  });
  return { agent, notices, fallbacks: () => notices.filter(({ kind }) => kind === "fallback") };
}

/** Answers every JSON-RPC and HTTP+JSON send with a finished task. */
const working: Handler = ({ path }, response) => {
  if (path.startsWith("/rest")) sendJson(response, path.includes("/tasks/") ? task() : DONE);
  else sendResult(response, DONE);
};

const count = (server: FakeAgent) => server.requests.length;

test("an interface that refuses connections is left for the next one, for this call and later ones", async () => {
  await using server = await startFakeAgent(working);
  const dead = await deadUrl();
  const { agent, fallbacks } = await connected([
    [`${dead}/rpc`, "JSONRPC"],
    [`${server.url}/rest`, "HTTP+JSON"],
  ]);
  expect(agent.interface).toMatchObject({ url: `${dead}/rpc`, binding: "JSONRPC" });
  expect(await agent.send("x")).toEqual(DONE);
  expect(agent.interface).toMatchObject({ url: `${server.url}/rest`, binding: "HTTP+JSON" });
  expect(await agent.send("y")).toEqual(DONE);
  expect(fallbacks()).toHaveLength(1);
  expect(fallbacks()[0]?.message).toMatch(/Connection refused: .*Using HTTP\+JSON 1\.0 instead\./);
});

const html = (status: number): Handler => {
  return (_, response) => void response.writeHead(status, { "content-type": "text/html" }).end("<html></html>");
};

test.each<[string, Handler]>([
  ["404", html(404)],
  ["405", (_, response) => void response.writeHead(405).end()],
  ["a page", html(200)],
  ["a page without a type", (_, response) => void response.end("<!doctype html>")],
  ["an unknown method", (_, response) => sendRpcError(response, -32601)],
  ["an unknown version", (_, response) => sendRpcError(response, -32009, "VERSION_NOT_SUPPORTED", 400)],
  ["a redirect elsewhere", (_, response) => void response.writeHead(302, { location: "https://x.example" }).end()],
])("%s shows that nothing was taken: a send goes on over the next interface", async (_, refuse) => {
  await using first = await startFakeAgent(refuse);
  await using second = await startFakeAgent(working);
  const entries: Entry[] = [
    [`${first.url}/rpc`, "JSONRPC"],
    [`${second.url}/rest`, "HTTP+JSON"],
  ];
  const { agent, fallbacks } = await connected(entries);
  expect(await agent.send("x")).toEqual(DONE);
  expect(await agent.send("y")).toEqual(DONE);
  expect([count(first), count(second)]).toEqual([1, 2]);
  expect(fallbacks()).toHaveLength(1);
  const streamed = await connected(entries);
  expect((await collect(streamed.agent.stream("z"))).map(({ event }) => event)).toEqual([DONE]);
});

const TIMEOUT_MS = 100;

test.each<[string, Handler, string]>([
  ["a connection that breaks", (_, response) => void response.destroy(), "unreachable"],
  ["no answer in time", () => void vi.advanceTimersByTime(TIMEOUT_MS), "timeout"],
  ["an answer that cannot be read", (_, response) => void response.end("{}"), "INVALID_AGENT_RESPONSE"],
  ["a gateway's error page", html(502), "UNAVAILABLE"],
  ["a login page", html(401), "UNAUTHENTICATED"],
  ["an internal error", (_, response) => sendRpcError(response, -32603), "INTERNAL_ERROR"],
  ["a refusal", (_, response) => sendRpcError(response, -32004), "UNSUPPORTED_OPERATION"],
])("%s may have brought the message: it is never sent again elsewhere", async (_, answer, code) => {
  // Time passes only where a handler says so: on a busy machine answers may take longer than the timeout.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  await using first = await startFakeAgent(answer);
  await using second = await startFakeAgent(working);
  const { agent } = await connected(
    [
      [`${first.url}/rpc`, "JSONRPC"],
      [`${second.url}/rest`, "HTTP+JSON"],
    ],
    { timeoutMs: TIMEOUT_MS },
  );
  await expect(agent.send("x")).rejects.toMatchObject({ code });
  await expect(collect(agent.stream("x"))).rejects.toMatchObject({ code });
  expect([count(first), count(second)]).toEqual([2, 0]);
  expect(agent.interface.binding).toBe("JSONRPC");
});

test("what is safe to repeat is asked for elsewhere once an interface keeps breaking", async () => {
  await using first = await startFakeAgent((_, response) => void response.destroy());
  await using second = await startFakeAgent((request, response) => {
    if (!request.path.endsWith("message:stream")) return working(request, response);
    openStream(response);
    response.end(restFrame(DONE));
  });
  const entries: Entry[] = [
    [`${first.url}/rpc`, "JSONRPC"],
    [`${second.url}/rest`, "HTTP+JSON"],
  ];
  const keyed = await connected(entries);
  expect(await keyed.agent.send("x", { idempotencyKey: "k" })).toEqual(DONE);
  expect([count(first), count(second)]).toEqual([FAST.attempts, 1]);
  expect(second.requests[0]?.headers["idempotency-key"]).toBe("k");
  expect(keyed.agent.interface.binding).toBe("HTTP+JSON");
  const reading = await connected(entries);
  expect(await reading.agent.get("t1")).toEqual(task());
  const streaming = await connected(entries);
  expect(await collect(streaming.agent.stream("x", { idempotencyKey: "k" }))).toHaveLength(1);
});

test("when every interface fails, the first error is reported, and the others beside it", async () => {
  const dead = await deadUrl();
  await using server = await startFakeAgent(html(404));
  const { agent, fallbacks } = await connected([
    [`${dead}/rpc`, "JSONRPC"],
    [`${server.url}/rest`, "HTTP+JSON"],
  ]);
  const error: unknown = await agent.send("x").catch((reason: unknown) => reason);
  expect(ConnectionError.is(error) && error.code).toBe("unreachable");
  expect(String(error)).toMatch(/Connection refused: .* Also tried: HTTP\+JSON 1\.0: .*404/);
  expect(agent.interface.binding).toBe("JSONRPC");
  expect(fallbacks()).toEqual([]);

  const other = await connected([
    [`${server.url}/rest`, "HTTP+JSON"],
    [`${dead}/rpc`, "JSONRPC"],
  ]);
  const said: unknown = await other.agent.send("x").catch((reason: unknown) => reason);
  expect(ProtocolError.is(said) && said.code).toBe("METHOD_NOT_FOUND");
});

test("an operation one interface lacks is asked of another, without leaving the first", async () => {
  await using server = await startFakeAgent(({ path, rpc }, response) => {
    if (rpc.method === "ListTasks") sendRpcError(response, -32601);
    else if (path.startsWith("/rest")) sendJson(response, { tasks: [task()] });
    else sendResult(response, DONE);
  });
  const { agent, fallbacks } = await connected([
    [`${server.url}/rpc`, "JSONRPC"],
    [`${server.url}/rest`, "HTTP+JSON"],
  ]);
  expect((await agent.listPage()).tasks).toEqual([task()]);
  expect((await agent.listPage()).tasks).toEqual([task()]);
  expect(agent.interface.binding).toBe("JSONRPC");
  expect(fallbacks().map(({ message }) => message)).toEqual([expect.stringContaining("for this")]);
  expect(await agent.send("x")).toEqual(DONE);
});

test("an interface that has answered is not left because of one unknown method", async () => {
  let knows = true;
  await using server = await startFakeAgent((request, response) => {
    if (request.path === "/rpc" && !knows) sendRpcError(response, -32601);
    else void working(request, response);
  });
  const { agent } = await connected([
    [`${server.url}/rpc`, "JSONRPC"],
    [`${server.url}/rest`, "HTTP+JSON"],
  ]);
  await agent.send("x");
  knows = false;
  expect(await agent.send("y")).toEqual(DONE);
  expect(agent.interface.binding).toBe("JSONRPC");
});

test("a stream whose first word is that the version is unknown goes on over the next interface", async () => {
  const refusal = { jsonrpc: "2.0", id: 1, error: { code: -32009, message: "Not that one." } };
  await using server = await startFakeAgent(({ path }, response) => {
    openStream(response);
    if (path === "/rpc") response.end(`data: ${JSON.stringify(refusal)}\n\n`);
    else
      response.end(
        restFrame({ task: task("TASK_STATE_WORKING") }, 1) + restFrame(statusUpdate("TASK_STATE_FAILED"), 2),
      );
  });
  const { agent } = await connected([
    [`${server.url}/rpc`, "JSONRPC"],
    [`${server.url}/rest`, "HTTP+JSON"],
  ]);
  expect((await collect(agent.stream("x"))).map(({ number }) => number)).toEqual([1, 2]);
  expect(agent.interface.binding).toBe("HTTP+JSON");
});

test("an error as the first word of a stream stays that error", async () => {
  await using server = await startFakeAgent((_, response) => {
    openStream(response);
    response.end('data: {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"No."}}\n\n');
  });
  const { agent } = await connected([
    [`${server.url}/rpc`, "JSONRPC"],
    [`${server.url}/rest`, "HTTP+JSON"],
  ]);
  await expect(collect(agent.stream("x"))).rejects.toMatchObject({ code: "INVALID_PARAMS" });
  expect(count(server)).toBe(1);
});

test("a stream that broke is resumed over another interface when its own is gone", async () => {
  await using second = await startFakeAgent(({ path }, response) => {
    if (!path.endsWith(":subscribe")) return void response.writeHead(500).end();
    openStream(response);
    response.end(restFrame(artifactUpdate("b"), 3) + restFrame(statusUpdate("TASK_STATE_COMPLETED"), 4));
  });
  const first = await startFakeAgent((_, response) => {
    openStream(response);
    const begun = rpcFrame({ task: task("TASK_STATE_WORKING") }, 1) + rpcFrame(artifactUpdate("a"), 2);
    response.write(begun, () => setImmediate(() => void first[Symbol.asyncDispose]()));
  });
  const { agent } = await connected([
    [`${first.url}/rpc`, "JSONRPC"],
    [`${second.url}/rest`, "HTTP+JSON"],
  ]);
  expect((await collect(agent.stream("x"))).map(({ number }) => number)).toEqual([1, 2, 3, 4]);
  expect(second.requests[0]?.headers["last-event-id"]).toBe("2");
});

const SERVICE = "lf.a2a.v1.A2AService";

test("gRPC is used where the card prefers it, with credentials and traces without secrets", async () => {
  await using server = await startGrpcServer(SERVICE, {
    unary: { SendMessage: (_, answer) => answer(null, Buffer.from(toBytes("SendMessageResponse", DONE))) },
    streaming: {
      SendStreamingMessage(received) {
        received.write(Buffer.from(toBytes("StreamResponse", { task: task("TASK_STATE_WORKING") })));
        received.write(Buffer.from(toBytes("StreamResponse", statusUpdate("TASK_STATE_COMPLETED"))));
        received.end();
      },
    },
  });
  const traces: string[] = [];
  const { agent } = await connected([[server.authority, "GRPC"]], {
    headers: { Authorization: "Bearer secret" },
    onExchange: ({ direction, headers, method, status, url }) =>
      traces.push(`${direction} ${method} ${url} ${status ?? ""} ${headers.authorization ?? ""}`),
  });
  expect(await agent.send("x")).toEqual(DONE);
  expect(await collect(agent.stream("x"))).toHaveLength(2);
  expect(server.calls.map(({ method }) => method)).toEqual(["SendMessage", "SendStreamingMessage"]);
  expect(server.calls[0]?.metadata.get("authorization")).toEqual(["Bearer secret"]);
  const url = `grpc://${server.authority}/${SERVICE}/SendMessage`;
  expect(traces.slice(0, 2)).toEqual([`request gRPC ${url}  [redacted]`, `response gRPC ${url} 0 `]);
  const streamed = `grpc://${server.authority}/${SERVICE}/SendStreamingMessage`;
  expect(traces.slice(2)).toEqual([
    `request gRPC ${streamed}  [redacted]`,
    `response gRPC ${streamed} 0 `,
    ...Array.from({ length: 2 }, () => `response gRPC ${streamed}  `),
  ]);
});

test("gRPC that is not there, or not this service, gives way to JSON-RPC; an error of the agent does not", async () => {
  await using rpc = await startFakeAgent(working);
  const dead = (await deadUrl()).replace("http://", "");
  await using other = await startGrpcServer("some.Other", { unary: { Echo: (_, answer) => answer(null) } });
  await using failing = await startGrpcServer(SERVICE, {
    unary: { SendMessage: (_, answer) => answer({ code: 3, details: "No parts." }) },
    streaming: { SendStreamingMessage: (call) => void call.emit("error", { code: 3, details: "No parts." }) },
  });
  for (const authority of [dead, other.authority]) {
    const entries: Entry[] = [
      [authority, "GRPC"],
      [`${rpc.url}/rpc`, "JSONRPC"],
    ];
    const sending = await connected(entries);
    expect(await sending.agent.send("x")).toEqual(DONE);
    expect(sending.agent.interface.binding).toBe("JSONRPC");
    expect(sending.fallbacks()).toHaveLength(1);
    const streaming = await connected(entries);
    expect(await collect(streaming.agent.stream("x"))).toHaveLength(1);
  }
  const { agent } = await connected([
    [failing.authority, "GRPC"],
    [`${rpc.url}/rpc`, "JSONRPC"],
  ]);
  await expect(agent.send("x")).rejects.toMatchObject({ code: "INVALID_PARAMS", message: "No parts." });
  await expect(collect(agent.stream("x"))).rejects.toMatchObject({ code: "INVALID_PARAMS" });
  expect(agent.interface.binding).toBe("GRPC");
});
