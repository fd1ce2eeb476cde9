import { describe, expect, it } from "vitest";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { startServer } from "../support/lifecycle.ts";
import { sendRaw } from "../support/raw-http.ts";
import { A2A_V1 } from "./a2a-v1.ts";
import { A2A_V01 } from "./a2a-v01.ts";
import { A2A_V03 } from "./a2a-v03.ts";
import type { RawCall } from "./raw-call.ts";
import { TASKS_REST } from "./tasks-rest.ts";

const server = await startServer({ agents: { echo: createEchoAgent() } });

async function expectAnswer(base: string, call: RawCall): Promise<void> {
  const [method = "", path = ""] = call.line.split(" ");
  const { headers, body } = call;
  const reply = await sendRaw(base, { method, path, headers, ...(body === undefined ? {} : { body }) });
  const text = reply.text;
  expect([reply.status, reply.headers["content-type"]], text).toEqual([call.status, call.type]);
  const said = call.type === "text/event-stream" ? eventsIn(text) : [JSON.parse(text)];
  expect(said).toMatchObject([...call.answer]);
}

function eventsIn(text: string): unknown[] {
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data as string));
}

describe.each([
  ["a2a-v1", A2A_V1],
  ["a2a-v03", A2A_V03],
  ["a2a-v01", A2A_V01],
  ["tasks-rest", TASKS_REST],
] as const)("%s, as typed by hand", (_dialect, calls) => {
  it.each(calls)("$title", (call) => expectAnswer(`${server.url}/agents/echo`, call));
});

describe("the cards", () => {
  const cardOf = async (path: string, headers: Record<string, string> = {}) => {
    const reply = await sendRaw(`${server.url}/agents/echo`, { path: `/.well-known/${path}`, headers });
    expect(reply.headers.vary).toContain("A2A-Version");
    return { etag: reply.headers.etag, card: reply.json as Record<string, unknown> };
  };

  it("one document serves readers of 1.0 and of 0.3", async () => {
    const { card } = await cardOf("agent-card.json");
    expect(card).toMatchObject({ protocolVersion: "0.3.0", preferredTransport: "JSONRPC", url: server.agents[0]?.url });
    const interfaces = card.supportedInterfaces as { protocolVersion: string; protocolBinding: string }[];
    expect(interfaces.map(({ protocolBinding, protocolVersion }) => `${protocolBinding} ${protocolVersion}`)).toEqual([
      "JSONRPC 1.0",
      "HTTP+JSON 1.0",
      "GRPC 1.0",
      "JSONRPC 0.3",
      "HTTP+JSON 0.3",
      "GRPC 0.3",
    ]);
  });

  it("a version that is named gets its own document, with its own tag", async () => {
    const hybrid = await cardOf("agent-card.json");
    const first = await cardOf("agent-card.json", { "a2a-version": "1.0" });
    const older = await cardOf("agent-card.json", { "a2a-version": "0.3" });
    expect(Object.keys(first.card)).not.toContain("protocolVersion");
    expect(Object.keys(older.card)).not.toContain("supportedInterfaces");
    expect(new Set([hybrid.etag, first.etag, older.etag]).size).toBe(3);
  });

  it("gRPC addresses are bare", async () => {
    const { card } = await cardOf("agent-card.json");
    const grpc = (card.supportedInterfaces as { protocolBinding: string; url: string }[]).find(
      ({ protocolBinding }) => protocolBinding === "GRPC",
    );
    expect(grpc?.url).toBe(server.grpc);
    expect(grpc?.url).toMatch(/^127\.0\.0\.1:\d+$/);
  });

  it("agent.json serves the oldest readers", async () => {
    const { card } = await cardOf("agent.json");
    expect(card).toMatchObject({
      name: "Echo",
      url: server.agents[0]?.url,
      protocolVersion: "0.2.6",
      capabilities: { streaming: true },
      skills: [{ id: "echo", inputModes: expect.arrayContaining(["text"]) }],
    });
  });
});
