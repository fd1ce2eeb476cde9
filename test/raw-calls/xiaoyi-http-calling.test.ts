/** Our client as the platform, and our server as an agent made for it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEchoAgent } from "../../src/agents/echo.ts";
import { connect, fetchCard } from "../../src/client/index.ts";
import type { ExchangeTrace } from "../../src/client/options.ts";
import { defineAgent, serve } from "../../src/index.ts";
import type { DragomanServer } from "../../src/server/serve.ts";
import { xiaoyi } from "../../src/xiaoyi.ts";
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

let server: DragomanServer;
beforeAll(async () => {
  const agents = { echo: createEchoAgent(), shower, sleeper };
  const http = Object.keys(agents).map((agent) => ({ agent, ...KEYS }));
  const specced = http.map((entry) => ({ ...entry, ak: "spec", render: "spec" as const, owner: "spec" }));
  server = await serve({ agents, port: 0, log: false, xiaoyi: { http: [...http, ...specced] } });
});
afterAll(() => server.close());

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

  it("is not called by strangers", async () => {
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
