import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { connect, type RemoteAgent } from "../../../client.ts";
import { Abort } from "../../model/abort.ts";
import { connectCaller } from "../connect.ts";
import {
  artifactUpdate,
  collect,
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

const FAST = { attempts: 3, baseMs: 1, capMs: 2 };
const WORKING = { task: task("TASK_STATE_WORKING") };
const DONE = statusUpdate("TASK_STATE_COMPLETED");

async function eventsOf(agent: RemoteAgent): Promise<unknown[]> {
  return (await collect(agent.stream("go"))).map(({ event }) => event);
}

test("events come in order with their numbers, and the call asks for a stream", async () => {
  await using server = await startFakeAgent((_, response) => {
    openStream(response);
    response.end(rpcFrame(WORKING, 1) + rpcFrame(artifactUpdate("a"), 2) + rpcFrame(DONE, 3));
  });
  const agent = await connect(server.url);
  expect(await collect(agent.stream("go"))).toEqual([
    { number: 1, event: WORKING },
    { number: 2, event: artifactUpdate("a") },
    { number: 3, event: JSON.parse(JSON.stringify(DONE)) },
  ]);
  expect(server.methods()).toEqual(["SendStreamingMessage"]);
  expect(server.requests[0]?.headers.accept).toContain("text/event-stream");
});

test.each([
  ["one byte at a time", (text: string) => Buffer.from(text), 1],
  ["CRLF line ends", (text: string) => Buffer.from(text.replaceAll("\n", "\r\n")), 7],
  ["CR line ends", (text: string) => Buffer.from(text.replaceAll("\n", "\r")), 5],
  [
    "comments and unknown fields",
    (text: string) => Buffer.from(`: hi\nretry: 5\nfoo: bar\n\n${text.replaceAll("\n\n", "\n: x\n\n: y\n\n")}`),
    11,
  ],
])("a stream can be read with %s", async (_, spell, size) => {
  const pretty = JSON.stringify(artifactUpdate("grün 漢字 🙂"), null, 2)
    .split("\n")
    .map((line) => `data: ${line}\n`)
    .join("");
  const bytes = spell(`${restFrame(WORKING)}${pretty}\n${restFrame(DONE)}`);
  await using server = await startFakeAgent(
    async (__, response) => {
      openStream(response);
      for (let at = 0; at < bytes.length; at += size) {
        if (!response.write(bytes.subarray(at, at + size))) await once(response, "drain");
        await new Promise(setImmediate);
      }
      response.end();
    },
    { binding: "HTTP+JSON" },
  );
  const events = await eventsOf(await connect(server.url));
  expect(events).toEqual([WORKING, artifactUpdate("grün 漢字 🙂"), JSON.parse(JSON.stringify(DONE))]);
});

test("an answer without a task is one message, whether the connection then closes or breaks", async () => {
  const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "hi" }] };
  let breaks = false;
  await using server = await startFakeAgent((_, response) => {
    openStream(response);
    response.write(rpcFrame({ message }), () => (breaks ? response.destroy() : response.end()));
  });
  const agent = await connect(server.url, { retry: FAST });
  expect(await eventsOf(agent)).toEqual([{ message }]);
  breaks = true;
  expect(await eventsOf(agent)).toEqual([{ message }]);
  expect(server.requests).toHaveLength(2);
});

test("a single JSON result instead of a stream is its only event", async () => {
  await using server = await startFakeAgent((_, response) => sendResult(response, { task: task() }));
  expect(await eventsOf(await connect(server.url))).toEqual([{ task: task() }]);
});

test("an agent that says it does not stream is sent to instead", async () => {
  await using server = await startFakeAgent((_, response) => sendResult(response, { task: task() }), {
    card: { capabilities: { streaming: false } },
  });
  const notices: string[] = [];
  const agent = await connect(server.url, { onNotice: ({ kind }) => notices.push(kind) });
  expect(await eventsOf(agent)).toEqual([{ task: task() }]);
  expect(server.methods()).toEqual(["SendMessage"]);
  expect(notices).toEqual(["fallback"]);
});

const STATUS = {
  code: 400,
  status: "FAILED_PRECONDITION",
  message: "Not now.",
  details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "CONTENT_TYPE_NOT_SUPPORTED" }],
};

test.each([
  ["event: error with a status", `event: error\ndata: ${JSON.stringify({ error: STATUS })}\n\n`],
  ["event: error with a bare status", `event: error\ndata: ${JSON.stringify(STATUS)}\n\n`],
  ["a member named error", restFrame({ error: STATUS })],
])("an error in the middle of an HTTP+JSON stream is thrown after what came before it: %s", async (_, frame) => {
  await using server = await startFakeAgent(
    (__, response) => {
      openStream(response);
      response.end(restFrame(WORKING) + frame);
    },
    { binding: "HTTP+JSON" },
  );
  const agent = await connect(server.url);
  const seen: unknown[] = [];
  const reading = (async () => {
    for await (const { event } of agent.stream("go")) seen.push(event);
  })();
  await expect(reading).rejects.toMatchObject({ code: "CONTENT_TYPE_NOT_SUPPORTED", message: "Not now." });
  expect(seen).toEqual([WORKING]);
});

test("an error in the middle of a JSON-RPC stream is thrown", async () => {
  await using server = await startFakeAgent((_, response) => {
    openStream(response);
    response.end(`${rpcFrame(WORKING)}data: {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Oh."}}\n\n`);
  });
  await expect(eventsOf(await connect(server.url))).rejects.toMatchObject({ code: "INTERNAL_ERROR", message: "Oh." });
});

test("a JSON error instead of a stream is thrown, in both bindings, and the send is not repeated", async () => {
  await using rpc = await startFakeAgent((_, response) => sendRpcError(response, -32004, "UNSUPPORTED_OPERATION"));
  await expect(eventsOf(await connect(rpc.url, { retry: FAST }))).rejects.toMatchObject({
    code: "UNSUPPORTED_OPERATION",
  });
  await using rest = await startFakeAgent((_, response) => sendJson(response, { error: STATUS }, 400), {
    binding: "HTTP+JSON",
  });
  await expect(eventsOf(await connect(rest.url))).rejects.toMatchObject({ code: "CONTENT_TYPE_NOT_SUPPORTED" });
  await using busy = await startFakeAgent((_, response) => void response.writeHead(503).end());
  await expect(eventsOf(await connect(busy.url, { retry: FAST }))).rejects.toMatchObject({ code: "UNAVAILABLE" });
  expect([rpc.requests.length, rest.requests.length, busy.requests.length]).toEqual([1, 1, 1]);
});

test("frames that cannot be read are an invalid answer", async () => {
  await using server = await startFakeAgent((_, response) => {
    openStream(response);
    response.end("data: not json\n\n");
  });
  await expect(eventsOf(await connect(server.url))).rejects.toMatchObject({ code: "INVALID_AGENT_RESPONSE" });
});

test("leaving the loop closes the connection", async () => {
  let closed: Promise<unknown> | undefined;
  await using server = await startFakeAgent((_, response) => {
    closed = once(response, "close");
    openStream(response);
    response.write(rpcFrame(WORKING, 1));
  });
  const agent = await connect(server.url);
  for await (const { number } of agent.stream("go")) {
    expect(number).toBe(1);
    break;
  }
  await closed;
  expect(server.requests).toHaveLength(1);
});

test("returning ends a read that is under way", async () => {
  let response: ServerResponse | undefined;
  await using server = await startFakeAgent((_, opened) => {
    response = opened;
    openStream(opened);
    opened.write(rpcFrame(WORKING, 1));
  });
  const agent = await connect(server.url);
  const events = agent.stream("go")[Symbol.asyncIterator]();
  await events.next();
  const pending = events.next();
  const closed = once(response as ServerResponse, "close");
  expect(await events.return?.()).toEqual({ done: true, value: undefined });
  expect(await pending).toEqual({ done: true, value: undefined });
  expect(await events.next()).toEqual({ done: true, value: undefined });
  await closed;
});

test("an abort in the middle of a stream is an abort, also while waiting to resume", async () => {
  const controller = new AbortController();
  await using server = await startFakeAgent((_, response) => {
    openStream(response);
    response.write(rpcFrame(WORKING, 1));
  });
  const agent = await connect(server.url);
  const reading = (async () => {
    for await (const _event of agent.stream("go", { signal: controller.signal })) controller.abort();
  })();
  await expect(reading).rejects.toMatchObject({ code: "aborted" });

  const waiting = new AbortController();
  await using broken = await startFakeAgent((_, response) => {
    openStream(response);
    response.write(rpcFrame(WORKING, 1), () => response.destroy());
  });
  const patient = await connect(broken.url, {
    retry: { attempts: 3, baseMs: 60_000, capMs: 60_000 },
    onNotice: () => waiting.abort(),
  });
  await expect(collect(patient.stream("go", { signal: waiting.signal }))).rejects.toMatchObject({ code: "aborted" });
});

test("a server that never closes after the end of a task does not hold the caller", async () => {
  await using server = await startFakeAgent((_, response) => {
    openStream(response);
    response.write(rpcFrame(WORKING, 1) + rpcFrame(DONE, 2));
  });
  expect(await eventsOf(await connect(server.url))).toHaveLength(2);
});

test("a stream that does not begin in time is a timeout", async () => {
  await using server = await startFakeAgent(() => {});
  const agent = await connect(server.url, { retry: FAST });
  await expect(collect(agent.stream("go", { timeoutMs: 20 }))).rejects.toMatchObject({ code: "timeout" });
});

test("a task that is named only after its owner was cancelled is cancelled once, and nothing of it is delivered", async () => {
  const signal = new Abort();
  await using server = await startFakeAgent(({ rpc: { method } }, response) => {
    if (method === "CancelTask") return sendResult(response, task("TASK_STATE_CANCELED"));
    signal.abort();
    openStream(response);
    response.write(rpcFrame(WORKING, 1) + rpcFrame(artifactUpdate("late"), 2));
  });
  const caller = await connectCaller(server.url);
  const owner = { signal, acquire() {}, countSuccess() {}, countFailure() {}, explain: (error: unknown) => error };
  const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "go" }] } as const;
  const stream = await caller.dispatch({ kind: "stream", message }, { owner });
  expect(await stream[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined });
  expect(server.methods()).toEqual(["SendStreamingMessage", "CancelTask"]);
});
