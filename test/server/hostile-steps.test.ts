/** Steps whose agents, elsewhere, do what no agent may: what the callers of the workflow and of `dragoman run` see. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startTestAgent, statusUpdate, type TestAgent, task } from "../../src/core/cli/testing/agent-server.ts";
import { runInProcess } from "../../src/core/cli/testing/run-in-process.ts";
import type { JsonValue } from "../../src/core/model/json.ts";
import { createWorkflowAgent } from "../../src/features/workflow/agent/index.ts";
import { loadWorkflow } from "../../src/features/workflow/definition/load.ts";
import { HTTP_BINDINGS } from "../support/bindings.ts";
import { closeLater, createFolder, startServer } from "../support/lifecycle.ts";
import { WireClient } from "../support/wire-client.ts";

const MEGABYTE = "x".repeat(1024 * 1024);

const chunk = (text: string, append = true): JsonValue => ({
  artifactUpdate: {
    taskId: "task-1",
    contextId: "context-1",
    artifact: { artifactId: "a", parts: [{ text }] },
    append,
  },
});

const renamed = JSON.parse(JSON.stringify(statusUpdate("COMPLETED", "")).replaceAll("task-1", "task-2")) as JsonValue;

async function* flood(): AsyncGenerator<JsonValue> {
  for (let sent = 0; sent < 40; sent++) yield chunk(MEGABYTE, sent > 0);
}

async function* gossip(): AsyncGenerator<JsonValue> {
  for (let sent = 0; sent < 5_000; sent++) yield statusUpdate("WORKING", `note ${sent} ${"y".repeat(2_000)}`);
  yield statusUpdate("COMPLETED", "");
}

type Replies = TestAgent["replies"];
const streams = (...events: readonly JsonValue[]): Replies => ({
  SendStreamingMessage: { events: [{ task: task("WORKING") }, ...events] },
  SubscribeToTask: { events: [{ task: task("WORKING") }] },
  CancelTask: { result: task("CANCELED") },
});

const CASES: readonly (readonly [what: string, replies: Replies, keys: string, reason: RegExp])[] = [
  ["changes the id of its task", streams(renamed), "", /changed the id of its task|another task/],
  ["goes back to a state behind it", streams(statusUpdate("SUBMITTED", "")), "", /state that cannot follow/],
  ["invents a state", streams(statusUpdate("DREAMING", "")), "", /state/],
  [
    "never ends",
    { ...streams(), SendStreamingMessage: { events: [{ task: task("WORKING") }], keepOpen: true } },
    ", timeout: 1s",
    /Timed out after 1 s\./,
  ],
  ["never answers", { SendStreamingMessage: { silence: true } }, ", timeout: 1s", /Timed out after 1 s\./],
  [
    "floods",
    { ...streams(), SendStreamingMessage: { events: [{ task: task("WORKING") }], more: flood() } },
    "",
    /more than 16777216 characters|too large|larger/,
  ],
  [
    "returns another type",
    streams(chunk("text", false), statusUpdate("COMPLETED", "")),
    ", outputSchema: { type: object }",
    /declares: the step returned no data/,
  ],
  [
    "asks for what it does not have",
    { SendStreamingMessage: { error: { code: -32602, message: "Say please." } } },
    "",
    /Say please\./,
  ],
];

async function prepare(replies: Replies, keys: string) {
  const agent = await startTestAgent();
  closeLater(() => agent.close());
  agent.replies = replies;
  const file = join(createFolder(), "flow.yaml");
  writeFileSync(file, `steps:\n  good: { url: "${agent.url}"${keys} }\n`);
  return { agent, file };
}

/** There is nothing to cancel: no task is known, or it has ended. */
const OVER = ["never answers", "returns another type", "asks for what it does not have"];

test.each(CASES)("an agent that %s fails its step", async (what, replies, keys, reason) => {
  const { agent, file } = await prepare(replies, keys);
  const flow = createWorkflowAgent({ workflow: await loadWorkflow(file), name: "Flow" });
  const server = await startServer({ grpcPort: false, agents: { flow } });
  const client = new WireClient(HTTP_BINDINGS[0], `${server.url}/agents/flow`);
  const { status } = await client.task("x");
  expect(status.state).toBe("TASK_STATE_FAILED");
  const text = status.message?.parts.map((part) => part.text).join("") ?? "";
  expect(text).toMatch(/^Step good failed: /);
  expect(text).toMatch(reason);
  expect(text.length).toBeLessThan(2_000);
  const wasCancelled = agent.received.some(({ body }) => body.method === "CancelTask");
  expect(wasCancelled).toBe(!OVER.includes(what));
});

test("a card cannot name another address inside the network for a step", async () => {
  const inner = await startTestAgent();
  closeLater(() => inner.close());
  const { agent, file } = await prepare({}, "");
  const url = `${inner.url.replace("127.0.0.1", "0.0.0.0")}/rpc`;
  agent.card = { supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }] };
  const flow = createWorkflowAgent({ workflow: await loadWorkflow(file), name: "Flow" });
  const server = await startServer({ grpcPort: false, agents: { flow } });
  const { status } = await new WireClient(HTTP_BINDINGS[0], `${server.url}/agents/flow`).task("x");
  expect(status.state).toBe("TASK_STATE_FAILED");
  expect(status.message?.parts[0]?.text).toMatch(/^Step good failed: .*forbidden-target/);
  expect(inner.received).toEqual([]);
});

test.each(CASES.filter(([what]) => what !== "floods"))(
  "dragoman run names the step of an agent that %s",
  async (_what, replies, keys, reason) => {
    const { file } = await prepare(replies, keys);
    const { code, stderr } = await runInProcess("run", file, "--text", "x");
    expect(code).toBe(1);
    expect(stderr).toMatch(/Error: Step good failed: /);
    expect(stderr).toMatch(reason);
  },
);

test("an agent that talks without end is passed on a hundred times, shortened", async () => {
  const { file } = await prepare(
    { ...streams(), SendStreamingMessage: { events: [{ task: task("WORKING") }], more: gossip() } },
    "",
  );
  const { code, stderr } = await runInProcess("run", file, "--text", "x");
  expect(code).toBe(0);
  expect(stderr.match(/note \d+/g)).toHaveLength(100);
  expect(stderr.length).toBeLessThan(100_000);
});
