/** Our client as the platform, and our server as an agent made for it, or another that does as it likes. */

import { createServer, type ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { connect, fetchCard } from "../../src/client.ts";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import type { ExchangeTrace } from "../../src/core/client/options.ts";
import { xiaoyi } from "../../src/features/xiaoyi/index.ts";
import { defineAgent } from "../../src/index.ts";
import { listen, startServer } from "../support/lifecycle.ts";
import { SHOWN_DATA, sleeper, withoutComments } from "./xiaoyi-http.ts";

const KEYS = { ak: "access-key", sk: "secret-key" };
const PRINTED = JSON.parse(withoutComments(SHOWN_DATA));

/** Shows what only Xiaoyi can show. */
const shower = defineAgent({
  name: "Shower",
  description: "Shows things.",
  async *run(turn) {
    yield turn.artifact({ name: "things", parts: [{ text: "Look:" }, { data: PRINTED.data }] });
    yield turn.artifact({ name: "more", parts: [xiaoyi.deeplink({ url: "https://a.example", appName: "Shop" })] });
  },
});

const agents = { echo: createEchoAgent(), shower, sleeper };
const http = Object.keys(agents).map((agent) => ({ agent, ...KEYS }));
const specced = http.map((entry) => ({ ...entry, ak: "spec", render: "spec" as const, owner: "spec" }));
const server = await startServer({ agents, xiaoyi: { http: [...http, ...specced] } });

const dial = (agent: string, more: object = {}) =>
  connect(`${server.url}/agents/${agent}`, { dialect: "xiaoyi-http", keys: KEYS, ...more });

describe("an agent made for Xiaoyi", () => {
  it("is called without a card, and signed for", async () => {
    const traces: ExchangeTrace[] = [];
    const agent = await dial("echo", { onExchange: (trace: ExchangeTrace) => traces.push(trace) });
    expect(agent.interface).toMatchObject({ dialect: "xiaoyi-http", version: "1.0" });
    const outcome = await agent.send("hello");
    expect(outcome).toMatchObject({
      task: { status: { state: "TASK_STATE_COMPLETED" }, artifacts: [{ parts: [{ text: "hello" }] }] },
    });
    expect(traces[0]?.headers).toMatchObject({ accessKey: "[redacted]", sign: "[redacted]" });
  });

  it("is not called by unauthenticated callers", async () => {
    const agent = await dial("echo", { keys: { ak: "access-key", sk: "wrong" } });
    await expect(agent.send("hello")).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
  });

  it("streams a text that grows", async () => {
    const agent = await dial("echo");
    const states: string[] = [];
    let text = "";
    for await (const { event } of agent.stream("x".repeat(9_000))) {
      if ("statusUpdate" in event) states.push(event.statusUpdate.status.state);
      if ("artifactUpdate" in event) {
        for (const part of event.artifactUpdate.artifact.parts) if ("text" in part) text += part.text;
      }
    }
    expect(states).toEqual(["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
    expect(text).toBe("x".repeat(9_000));
  });

  it("is stopped by the task's id", async () => {
    const agent = await dial("sleeper");
    const states: string[] = [];
    for await (const { event } of agent.stream("sleep")) {
      if (!("statusUpdate" in event)) continue;
      const { status, taskId } = event.statusUpdate;
      states.push(status.state);
      if (states.length === 1) expect(await agent.cancel(taskId)).toMatchObject({ id: taskId });
    }
    expect(states.at(-1)).toBe("TASK_STATE_CANCELED");
  });

  it("cannot be looked at later", async () => {
    const agent = await dial("echo");
    await expect(agent.get("t")).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION" });
  });

  it.each([KEYS, { ...KEYS, ak: "spec" }])(
    "shows things as the guide prints them, with text for others: %j",
    async (keys) => {
      const agent = await dial("shower", { keys });
      const outcome = await agent.send("show");
      const parts = "task" in outcome ? (outcome.task.artifacts ?? []).flatMap((artifact) => artifact.parts) : [];
      expect(parts).toContainEqual({ text: "Look:" });
      expect(parts).toContainEqual({
        text: expect.stringContaining("查看详情: https://..."),
        metadata: { "urn:dragoman:ext:xiaoyi:v1": { data: PRINTED.data } },
      });
      expect(parts).toContainEqual(xiaoyi.deeplink({ url: "https://a.example", appName: "Shop" }));
    },
  );

  it("has a card made of its address", async () => {
    const { card } = await fetchCard(server.url, { dialect: "xiaoyi-http" });
    expect(card).toMatchObject({ name: new URL(server.url).host, capabilities: { streaming: true } });
  });
});

describe("an agent that does as it likes", () => {
  const FOREIGN = "a name of its own";
  const final = (text: string) => ({
    jsonrpc: "2.0",
    id: FOREIGN,
    result: {
      taskId: FOREIGN,
      kind: "artifact-update",
      append: false,
      lastChunk: true,
      final: true,
      artifact: { artifactId: "a", parts: [{ kind: "text", text }] },
    },
  });

  async function against<T>(answer: (response: ServerResponse) => void, body: (url: string) => Promise<T>): Promise<T> {
    const liked = createServer((request, response) => {
      request.resume().on("end", () => answer(response));
    });
    return body(`http://127.0.0.1:${await listen(liked)}/agent/message`);
  }

  const streaming = (response: ServerResponse, ...frames: object[]) => {
    response.setHeader("content-type", "text/event-stream");
    response.end(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join(""));
  };
  const asJson = (response: ServerResponse, body: object) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(body));
  };
  const reach = (url: string) => connect(url, { dialect: "xiaoyi-http" });
  const message = { parts: [{ text: "hi" }], messageId: "m", contextId: "talk" };

  it.each<[string, (response: ServerResponse) => void]>([
    ["in a stream", (response) => streaming(response, final("Hi!"))],
    ["in one piece", (response) => asJson(response, final("Hi!"))],
  ])("does not name our tasks, %s", async (_, answer) => {
    await against(answer, async (url) => {
      const agent = await reach(url);
      const seen: unknown[] = [];
      for await (const { event } of agent.stream({ message })) seen.push(event);
      const ours = { taskId: "talk&m", contextId: "talk" };
      expect(seen).toMatchObject([
        { artifactUpdate: { ...ours, artifact: { parts: [{ text: "Hi!" }] } } },
        { statusUpdate: { ...ours, status: { state: "TASK_STATE_COMPLETED" } } },
      ]);
    });
  });

  it("does not name our tasks, read as a whole", async () => {
    await against(
      (response) => streaming(response, final("Hi!")),
      async (url) => {
        const outcome = await (await reach(url)).send({ message });
        expect(outcome).toMatchObject({ task: { id: "talk&m", contextId: "talk" } });
      },
    );
  });

  it("that stops before its end has given no answer", async () => {
    const { jsonrpc, id, result } = final("half");
    await against(
      (response) => streaming(response, { jsonrpc, id, result: { ...result, final: false } }),
      async (url) => {
        await expect((await reach(url)).send({ message })).rejects.toMatchObject({ code: "INVALID_AGENT_RESPONSE" });
      },
    );
  });

  it("does not name what was canceled", async () => {
    const canceled = { jsonrpc: "2.0", id: "1", result: { id: FOREIGN, status: { state: "canceled" } } };
    await against(
      (response) => asJson(response, canceled),
      async (url) =>
        expect(await (await reach(url)).cancel("talk&m")).toMatchObject({ id: "talk&m", contextId: "talk" }),
    );
  });

  it("that answers with a page is reported as such", async () => {
    const page = (response: ServerResponse) => response.setHeader("content-type", "text/html").end("<h1>Hi");
    await against(page, async (url) => {
      const stream = (await reach(url)).stream("hello")[Symbol.asyncIterator]();
      await expect(stream.next()).rejects.toMatchObject({
        code: "INVALID_AGENT_RESPONSE",
        message: expect.stringContaining("it is a page (text/html), not a stream"),
      });
    });
  });
});
