/** Commands to an agent made for Xiaoyi, whose tasks are known by one stream only. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startTestAgent, type TestAgent } from "../../../core/cli/testing/agent-server.ts";
import { runInProcess } from "../../../core/cli/testing/run-in-process.ts";

const artifact = (text: string, final: boolean) => ({
  taskId: "a name of the agent's own",
  kind: "artifact-update",
  append: false,
  lastChunk: true,
  final,
  artifact: { artifactId: "a", parts: [{ kind: "text", text }] },
});

let agent: TestAgent;
beforeEach(async () => {
  vi.stubEnv("HOME", "/nonexistent");
  agent = await startTestAgent();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await agent.close();
});

const here = (...words: string[]) =>
  runInProcess(...words, "-a", `${agent.url}/agent/message`, "--dialect", "xiaoyi-http");

describe("an answer that breaks off", () => {
  it.each([
    ["because the stream ends", { cut: false }, ["--stream"]],
    ["because the connection breaks", { cut: true }, ["--stream"]],
    ["because the stream ends, for those who wait for all of it", { cut: false }, []],
  ])("is reported: %s", async (_, how, words) => {
    agent.replies = { "message/stream": { events: [artifact("half", false)], ...how } };
    const { code, stderr } = await here("send", "hello", ...words);
    expect(stderr).toContain("Error: The answer is incomplete");
    expect(stderr).toContain("Code: A2ACLI_ERR_UNREACHABLE");
    expect(code).toBe(3);
    expect(agent.received).toHaveLength(1);
  });
});

describe("an agent that requires a session", () => {
  const refused = { error: { code: -32001, message: "Missing agent-session-id header" } };

  it("is given one, and the user's login with it", async () => {
    vi.stubEnv("A2ACLI_AUTH_CODE", "the-code");
    agent.replies = {
      initialize: { result: { version: "1.0", agentSessionId: "s", agentSessionTtl: 604_800 } },
      "notifications/initialized": { result: {} },
      authorize: [refused, { result: { version: "1.0", agentLoginSessionId: "l" } }],
      "message/stream": { events: [artifact("Hi!", true)] },
    };
    const { code, stderr, stdout } = await here("send", "hello", "--debug");
    expect([code, stdout]).toEqual([0, expect.stringContaining("Hi!")]);
    expect(stderr).not.toContain("the-code");
    const [, , , login, message] = agent.received;
    expect(login?.headers["agent-session-id"]).toBe("s");
    expect(message).toMatchObject({
      headers: { "agent-session-id": "s" },
      body: { params: { agentLoginSessionId: "l" } },
    });
  });

  it("and opens none is not reported as a task that was not found", async () => {
    agent.replies = {
      initialize: { error: { code: -32600, message: "Wrong key." } },
      "message/stream": refused,
    };
    const { code, stderr } = await here("send", "hello");
    expect(code).toBe(4);
    expect(stderr).toContain("Missing agent-session-id header. No session could be opened: Wrong key.");
    expect(stderr).toContain("A2ACLI_ERR_CREDENTIALS_MISSING");
    expect(stderr).not.toMatch(/TaskNotFound|not found/i);
    expect(agent.received).toHaveLength(2);
  });
});

describe("what comes next", () => {
  it("is shown with the dialect, and the ids that the client chose", async () => {
    agent.replies = { "message/stream": { events: [artifact("Hi!", true)] } };
    const { code, stdout } = await here("send", "hello", "--context-id", "talk");
    expect([code, stdout]).toEqual([0, expect.stringContaining("Hi!")]);
    expect(stdout).toContain(
      `Resume: dragoman send -a ${agent.url}/agent/message --dialect xiaoyi-http --context-id talk --text '<message>'`,
    );
    expect(stdout).not.toContain("a name of the agent's own");
  });

  it("is not to look at a task that cannot be looked at", async () => {
    agent.replies = { "message/stream": { events: [artifact("Hi", false)], keepOpen: true } };
    const { code, stderr } = await here("send", "hello", "--stream", "--timeout", "1s");
    expect(code).toBe(5);
    expect(stderr).toContain("dragoman task cancel");
    expect(stderr).not.toContain("task get");
  });
});
