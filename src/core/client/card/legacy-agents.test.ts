/** Agents of older dialects, as their servers really answer. */
import { expect, test } from "vitest";
import { connect, fetchCard } from "../../../client.ts";
import type { Notice } from "../options.ts";
import {
  collect,
  type FakeAgent,
  type Handler,
  LEGACY_CARD,
  openStream,
  sendJson,
  startFakeAgent,
} from "../testing/fake-agent.ts";

const FAST = { attempts: 3, baseMs: 1, capMs: 2 };

/** Answers for the card at one path, 404 for it elsewhere, and by `handler` otherwise. */
async function oldAgent(path: string, card: (url: string) => object, handler: Handler): Promise<FakeAgent> {
  return startFakeAgent(
    (request, response) => {
      if (request.method !== "GET" || !request.path.startsWith("/.well-known")) return handler(request, response);
      if (request.path === path) sendJson(response, card(`http://${request.headers.host}/a2a`));
      else response.writeHead(404).end();
    },
    { cardless: true },
  );
}

async function connected(server: FakeAgent) {
  const notices: Notice[] = [];
  const agent = await connect(server.url, { retry: FAST, onNotice: (notice) => notices.push(notice) });
  server.requests.length = 0;
  return { agent, notices };
}

const rpc = (result: object, id: unknown = 1) => ({ jsonrpc: "2.0", id, result });
const refusal = (code: number) => ({
  jsonrpc: "2.0",
  id: 1,
  error: { code, message: "Request payload validation error" },
});

test("an agent of 0.3 is called by what its card says", async () => {
  await using server = await oldAgent(
    "/.well-known/agent-card.json",
    (url) => ({ ...LEGACY_CARD, url, protocolVersion: "0.3.0", preferredTransport: "JSONRPC" }),
    ({ rpc: { method } }, response) => {
      if (method !== "message/stream") {
        return sendJson(response, rpc({ kind: "task", id: "t1", contextId: "c1", status: { state: "completed" } }));
      }
      openStream(response);
      const frame = {
        kind: "status-update",
        taskId: "t1",
        contextId: "c1",
        status: { state: "completed" },
        final: true,
      };
      response.end(`data: ${JSON.stringify(rpc(frame))}\n\n`);
    },
  );
  const { agent } = await connected(server);
  expect(agent.interface).toMatchObject({ dialect: "a2a-v03", version: "0.3", binding: "JSONRPC" });
  expect(await agent.send("x")).toMatchObject({ task: { status: { state: "TASK_STATE_COMPLETED" } } });
  expect(await collect(agent.stream("x"))).toHaveLength(1);
  expect(server.methods()).toEqual(["message/send", "message/stream"]);
  await expect(agent.listPage()).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION" });
  expect(server.requests).toHaveLength(2);
});

test("cards of 0.2 are found where they were then", async () => {
  await using server = await oldAgent(
    "/.well-known/agent.json",
    (url) => ({ ...LEGACY_CARD, url, protocolVersion: "0.2.5" }),
    (_, response) => void response.writeHead(500).end(),
  );
  expect((await connected(server)).agent.interface).toMatchObject({ dialect: "a2a-v03" });
  expect((await fetchCard(server.url)).url).toBe(`${server.url}/.well-known/agent.json`);
});

test.each([-32600, -32601])("an agent of 0.1 is found out by trying; it calls other words %i", async (code) => {
  await using server = await oldAgent(
    "/.well-known/agent.json",
    (url) => ({ ...LEGACY_CARD, url }),
    ({ rpc: { method, params } }, response) => {
      if (method === "tasks/send") {
        sendJson(response, rpc({ id: params?.id, sessionId: "s", status: { state: "completed" } }));
      } else sendJson(response, refusal(code), code === -32600 ? 400 : 200);
    },
  );
  const { agent, notices } = await connected(server);
  expect(await agent.send("x")).toMatchObject({ task: { contextId: "s" } });
  expect(agent.interface).toMatchObject({ dialect: "a2a-v01", version: "0.1" });
  await agent.send("y");
  expect(server.methods()).toEqual(["message/send", "tasks/send", "tasks/send"]);
  expect(notices.filter(({ kind }) => kind === "fallback")).toHaveLength(1);
});

test("an agent of 0.1 is known by how its card says to log in, so that its tasks can be read at once", async () => {
  await using server = await oldAgent(
    "/.well-known/agent.json",
    (url) => ({ ...LEGACY_CARD, url, authentication: { schemes: ["bearer"] } }),
    ({ rpc: { params } }, response) =>
      sendJson(
        response,
        rpc({
          id: params?.id,
          status: { state: "completed" },
          artifacts: [{ index: 0, parts: [{ type: "text", text: "x" }] }],
        }),
      ),
  );
  const { agent, notices } = await connected(server);
  expect(await agent.get("t1")).toMatchObject({ id: "t1", artifacts: [{ parts: [{ text: "x" }] }] });
  expect(agent.interface).toMatchObject({ dialect: "a2a-v01" });
  expect(notices).toEqual([]);
});

test("an agent of the REST dialect is found out by trying", async () => {
  const task = { id: "t1", contextId: "c1", status: { state: "completed" } };
  await using server = await oldAgent(
    "/.well-known/agent.json",
    (url) => ({ ...LEGACY_CARD, url }),
    ({ path }, response) => {
      if (path === "/a2a/tasks/send") sendJson(response, task);
      else if (path === "/a2a/tasks/sendSubscribe") {
        openStream(response);
        response.end(`data: ${JSON.stringify({ task })}\n\n`);
      } else sendJson(response, { detail: "Not Found" }, 404);
    },
  );
  const sending = await connected(server);
  expect(await sending.agent.send("x")).toMatchObject({ task: { id: "t1" } });
  expect(sending.agent.interface).toMatchObject({ dialect: "tasks-rest", url: `${server.url}/a2a` });
  const streaming = await connected(server);
  expect(await collect(streaming.agent.stream("x"))).toHaveLength(1);
  expect(server.requests.map(({ path }) => path)).toEqual(["/a2a", "/a2a", "/a2a/tasks/sendSubscribe"]);
});

test("a task of a REST agent without subscriptions is polled", async () => {
  const states = ["working", "completed"];
  await using server = await oldAgent(
    "/.well-known/agent.json",
    (url) => ({ ...LEGACY_CARD, url }),
    ({ path }, response) => {
      if (path !== "/a2a/tasks/t1") sendJson(response, { detail: "Not Found" }, 404);
      else sendJson(response, { id: "t1", contextId: "c1", status: { state: states.shift() ?? "completed" } });
    },
  );
  const agent = await connect(server.url, { dialect: "tasks-rest", retry: FAST });
  const events = (await collect(agent.subscribe("t1"))).map(({ event }) => event);
  expect(events).toMatchObject([
    { task: { status: { state: "TASK_STATE_WORKING" } } },
    { task: { status: { state: "TASK_STATE_COMPLETED" } } },
  ]);
  expect(server.requests.filter(({ path }) => path.endsWith("/subscribe"))).toHaveLength(1);
});

test("chunks that an agent of 0.1 sent during a break are read from the task", async () => {
  const frame = (result: object) => `data: ${JSON.stringify(rpc(result))}\n\n`;
  const chunk = (text: string, append: boolean) =>
    frame({ id: "t1", artifact: { index: 0, append, parts: [{ type: "text", text }] } });
  await using server = await oldAgent(
    "/.well-known/agent.json",
    (url) => ({ ...LEGACY_CARD, url, authentication: { schemes: ["bearer"] } }),
    ({ rpc: { method } }, response) => {
      if (method === "tasks/get") {
        const artifacts = [{ index: 0, parts: [{ type: "text", text: "one two three" }] }];
        sendJson(response, rpc({ id: "t1", sessionId: "c1", status: { state: "completed" }, artifacts }));
        return;
      }
      openStream(response);
      if (method === "tasks/sendSubscribe") {
        response.write(chunk("one ", false), () => setImmediate(() => response.destroy()));
      } else {
        // "two " was sent while the connection was broken, and this agent does not repeat it.
        response.end(chunk("three", true) + frame({ id: "t1", status: { state: "completed" }, final: true }));
      }
    },
  );
  const { agent } = await connected(server);
  const events = (await collect(agent.stream("go"))).map(({ event }) => event);
  expect(server.methods()).toEqual(["tasks/sendSubscribe", "tasks/resubscribe", "tasks/get"]);
  expect(events).toMatchObject([
    { artifactUpdate: { artifact: { parts: [{ text: "one " }] } } },
    { task: { status: { state: "TASK_STATE_COMPLETED" }, artifacts: [{ parts: [{ text: "one two three" }] }] } },
  ]);
});

test("a dialect can be forced where the card leaves it open", async () => {
  await using server = await oldAgent(
    "/.well-known/agent.json",
    (url) => ({ ...LEGACY_CARD, url }),
    ({ rpc: { params } }, response) => sendJson(response, rpc({ id: params?.id, status: { state: "completed" } })),
  );
  const agent = await connect(server.url, { dialect: "a2a-v01" });
  expect(agent.interface).toMatchObject({ dialect: "a2a-v01" });
  await agent.send("x");
  expect(server.methods().at(-1)).toBe("tasks/send");
  await expect(connect(server.url, { version: "1.0" })).rejects.toThrow(/nothing matches with the version 1\.0/);
});

test("what a dialect cannot express is reported; strict refuses it before anything is sent", async () => {
  await using server = await oldAgent(
    "/.well-known/agent.json",
    (url) => ({ ...LEGACY_CARD, url }),
    ({ rpc: { params } }, response) => sendJson(response, rpc({ id: params?.id, status: { state: "completed" } })),
  );
  const input = { message: { parts: [{ text: "x" }], referenceTaskIds: ["t0"] } };
  const notices: Notice[] = [];
  const agent = await connect(server.url, { dialect: "a2a-v01", onNotice: (notice) => notices.push(notice) });
  await agent.send(input);
  expect(notices).toEqual([
    {
      kind: "loss",
      message: expect.stringContaining("message.referenceTaskIds was dropped"),
      loss: { kind: "dropped", path: "message.referenceTaskIds", reason: expect.any(String) },
    },
  ]);
  const strict = await connect(server.url, { dialect: "a2a-v01", strict: true, retry: FAST });
  server.requests.length = 0;
  const refused = { code: "LOSS_REFUSED", violations: [{ field: "message.referenceTaskIds" }] };
  await expect(strict.send(input)).rejects.toMatchObject(refused);
  await expect(collect(strict.stream(input))).rejects.toMatchObject(refused);
  expect(server.requests).toEqual([]);
  expect(await strict.send("x")).toMatchObject({ task: {} });
});
