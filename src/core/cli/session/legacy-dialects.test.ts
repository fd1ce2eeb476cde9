import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { dialectNames } from "../../client/dialect-names.ts";
import { callableDialects } from "../../client/dialects.ts";
import { type Handler, LEGACY_CARD, openStream, sendJson, startFakeAgent } from "../../client/testing/fake-agent.ts";
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

describe("older dialects", () => {
  it("[A2ACLI_VER_001] are not used unless requested, and the error names the flag", async () => {
    const { code, stderr } = await runInProcess("send", "-a", agent.url, "hello");
    expect(code).toBe(1);
    expect(stderr).toContain("What is older is used on request only: add --a2a-version 0.3.\n");
    expect(stderr).toContain("Code: VersionNotSupportedError\n");
    expect(methods()).toEqual([]);
    const card = await runInProcess("card", "get", "-a", agent.url);
    expect([card.code, card.stdout]).toEqual([
      0,
      expect.stringContaining("Selected Interface: none without --a2a-version 0.3\n"),
    ]);
  });

  it("[A2ACLI_VER_001] are requested by a flag, the environment or a file, and signalled on every request", async () => {
    const sent = await runInProcess("send", "-a", agent.url, "hello", "--a2a-version", "0.3");
    expect([sent.code, sent.stdout]).toEqual([0, expect.stringContaining("Hello!")]);
    expect(sent.stdout).toContain(`Resume: dragoman send -a ${agent.url} --a2a-version 0.3 --context-id context-1`);
    vi.stubEnv("A2ACLI_A2A_VERSION", "0.3");
    expect((await runInProcess("task", "get", "-a", agent.url, "task-1")).code).toBe(0);
    vi.stubEnv("A2ACLI_A2A_VERSION", "");
    const file = join(mkdtempSync(join(tmpdir(), "dragoman-")), "old.env");
    writeFileSync(file, "A2ACLI_A2A_VERSION=0.3\n");
    expect((await runInProcess("task", "get", "-a", agent.url, "task-1", "--config", file)).code).toBe(0);
    expect(methods()).toEqual(["message/send", "tasks/get", "tasks/get"]);
    for (const { headers } of agent.received) expect(headers["a2a-version"]).toBe("0.3");
  });

  it("are not used beside something newer", async () => {
    agent.card = { supportedInterfaces: [interfaceOf("0.3"), interfaceOf("1.0")], capabilities: {} };
    agent.replies.SendMessage = { error: { code: -32601, message: "Unknown." } };
    const { code, stderr } = await runInProcess("send", "-a", agent.url, "hello");
    expect(code).toBe(1);
    expect(stderr).not.toContain("on request only");
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
    expect(stderr).toContain(dialectNames().join(", "));
    expect(callableDialects().map(({ name }) => name)).toEqual(dialectNames());
  });

  it("lose what they have no words for: --debug tells each loss, otherwise one line tells that there are some", async () => {
    agent.card = { supportedInterfaces: [interfaceOf("0.1")], capabilities: {} };
    const send = [
      "send",
      "-a",
      agent.url,
      "--a2a-version",
      "0.1",
      "--async",
      "--accepted-output",
      "text/plain",
      "hello",
    ];
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

describe("an agent of an older dialect that cannot repeat what was missed", () => {
  const CARD = { ...LEGACY_CARD, authentication: { schemes: ["bearer"] } };

  /** Serves its card where older versions had it. */
  const startOldAgent = (handler: Handler) =>
    startFakeAgent(
      (request, response) => {
        if (!request.path.startsWith("/.well-known")) return handler(request, response);
        if (request.path !== "/.well-known/agent.json") response.writeHead(404).end();
        else sendJson(response, { ...CARD, url: `http://${request.headers.host}/a2a` });
      },
      { cardless: true },
    );

  it("is polled by task subscribe where it has no subscriptions", async () => {
    const states = ["working", "completed"];
    await using server = await startOldAgent(({ path }, response) => {
      if (path !== "/a2a/tasks/t1") sendJson(response, { detail: "Not Found" }, 404);
      else sendJson(response, { id: "t1", contextId: "c1", status: { state: states.shift() ?? "completed" } });
    });
    const dialect = ["--dialect", "tasks-rest"];
    const { code, stdout } = await runInProcess("task", "subscribe", "-a", server.url, "t1", "-o", "json", ...dialect);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ id: "t1", status: { state: "TASK_STATE_COMPLETED" } });
    expect(states).toEqual([]);
  });

  it("has its task read again by task subscribe after a break", async () => {
    const frame = (result: object) => `data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result })}\n\n`;
    const chunk = (text: string, append: boolean) =>
      frame({ id: "t1", artifact: { index: 0, append, parts: [{ type: "text", text }] } });
    let streams = 0;
    await using server = await startOldAgent(({ rpc: { method } }, response) => {
      if (method === "tasks/get") {
        const artifacts = [{ index: 0, parts: [{ type: "text", text: "one two three" }] }];
        const task = { id: "t1", sessionId: "c1", status: { state: "completed" }, artifacts };
        return sendJson(response, { jsonrpc: "2.0", id: 1, result: task });
      }
      openStream(response);
      if (++streams === 1) response.write(chunk("one ", false), () => setImmediate(() => response.destroy()));
      else response.end(chunk("three", true) + frame({ id: "t1", status: { state: "completed" }, final: true }));
    });
    const chosen = ["-a", server.url, "--a2a-version", "0.1"];
    const { code, stdout } = await runInProcess("task", "subscribe", ...chosen, "t1", "-o", "json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ parts: [{ text: "one two three" }] }],
    });
    expect(server.methods().at(-1)).toBe("tasks/get");
  });
});
