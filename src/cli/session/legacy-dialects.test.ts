import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DIALECT_NAMES } from "../../client/dialect-names.ts";
import { DIALECTS } from "../../client/dialects.ts";
import { startTestAgent, type TestAgent } from "../testing/agent-server.ts";
import { runInProcess } from "../testing/run-in-process.ts";

const DONE = {
  kind: "task",
  id: "task-1",
  contextId: "context-1",
  status: { state: "completed" },
  artifacts: [{ artifactId: "a", name: "answer", parts: [{ kind: "text", text: "Hello!" }] }],
};

let agent: TestAgent;
beforeEach(async () => {
  vi.stubEnv("HOME", "/nonexistent");
  agent = await startTestAgent();
  agent.card = { supportedInterfaces: [interfaceOf("0.3.0")], capabilities: {} };
  agent.replies = {
    "message/send": { result: DONE },
    "tasks/get": { result: DONE },
    "tasks/send": { result: { id: "task-1", sessionId: "context-1", status: { state: "completed" } } },
  };
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await agent.close();
});

function interfaceOf(protocolVersion: string) {
  return { url: `${agent.url}/rpc`, protocolBinding: "JSONRPC", protocolVersion };
}

const methods = () => agent.received.map(({ body }) => body.method);
const OLDER = "The agent offers nothing of A2A 1.0 or later; using a2a-v03 over JSONRPC.\n";

describe("older dialects", () => {
  it("are used when the card offers nothing newer, and that is reported", async () => {
    const { code, stderr, stdout } = await runInProcess("send", "-a", agent.url, "hello");
    expect(code).toBe(0);
    expect(stdout).toContain("Hello!");
    expect(stderr).toBe(OLDER);
    expect(methods()).toEqual(["message/send"]);
  });

  it("are not used beside something newer", async () => {
    agent.card = { supportedInterfaces: [interfaceOf("0.3"), interfaceOf("1.0")], capabilities: {} };
    agent.replies.SendMessage = { error: { code: -32601, message: "Unknown." } };
    const { code, stderr } = await runInProcess("send", "-a", agent.url, "hello");
    expect(code).toBe(1);
    expect(stderr).not.toContain("nothing of A2A");
    expect(methods()).toEqual(["SendMessage"]);
  });

  it("can be asked for by version or by name, silently", async () => {
    agent.card = {
      supportedInterfaces: [interfaceOf("1.0"), interfaceOf("0.3"), interfaceOf("0.1")],
      capabilities: {},
    };
    expect((await runInProcess("send", "-a", agent.url, "hello", "--a2a-version", "0.3")).stderr).toBe("");
    expect((await runInProcess("send", "-a", agent.url, "hello", "--dialect", "a2a-v01")).code).toBe(0);
    expect(methods()).toEqual(["message/send", "tasks/send"]);
  });

  it("are refused by --a2a-version 1.0", async () => {
    const { code, stderr } = await runInProcess("send", "-a", agent.url, "hello", "--a2a-version", "1.0");
    expect(code).toBe(1);
    expect(stderr).toContain("offers only 0.3, not A2A 1.0");
    expect(agent.received).toEqual([]);
  });

  it("that are unknown are named with those that are known", async () => {
    const { code, stderr } = await runInProcess("send", "-a", agent.url, "hello", "--dialect", "a2a-v9");
    expect(code).toBe(2);
    expect(stderr).toContain("a2a-v1, a2a-v03, a2a-v01, tasks-rest, xiaoyi-http");
    expect(DIALECTS.map(({ name }) => name)).toEqual([...DIALECT_NAMES]);
  });

  it("lose what they have no words for: --debug tells each loss, otherwise one line tells that there are some", async () => {
    agent.card = { supportedInterfaces: [interfaceOf("0.1")], capabilities: {} };
    const send = ["send", "-a", agent.url, "--async", "--accepted-output", "text/plain", "hello"];
    const debug = await runInProcess(...send, "--debug");
    expect(debug.code).toBe(0);
    const lost = debug.stderr.split("\n").filter((line) => line.startsWith("Loss: "));
    expect(lost).toEqual([
      "Loss: configuration.acceptedOutputModes dropped: A send does not say which output it takes.",
      "Loss: configuration.returnImmediately dropped: A send waits until the task ends or asks something.",
    ]);
    const usual = await runInProcess(...send);
    expect(usual.stderr.match(/--debug shows what was lost/g)).toHaveLength(1);
    expect(usual.stderr).not.toContain("Loss:");
  });
});
