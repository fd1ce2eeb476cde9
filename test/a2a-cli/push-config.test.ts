/** `task push-config` against a served agent over every binding, and against a hand-written one. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startTestAgent, type TestAgent, task } from "../../src/core/cli/testing/agent-server.ts";
import { runInProcess } from "../../src/core/cli/testing/run-in-process.ts";
import { BUILTIN_AGENTS } from "../support/builtin-agents.ts";
import { closeLater, startServer } from "../support/lifecycle.ts";

beforeEach(() => void vi.stubEnv("HOME", "/nonexistent"));
afterEach(() => vi.unstubAllEnvs());

const pushConfig = (...words: readonly string[]) => runInProcess("task", "push-config", ...words);

describe("[A2ACLI_PUSH_001] task push-config", () => {
  it.each(["JSONRPC", "HTTP+JSON", "GRPC"])("creates, shows, lists and deletes over %s", async (transport) => {
    const { url } = await startServer({
      agents: { echo: BUILTIN_AGENTS.echo() },
      push: { allowPrivateTargets: true },
    });
    const agent = ["-a", url, "--transport", transport];
    const sent = await runInProcess("send", ...agent, "--text", "hello", "-o", "json");
    const { id: taskId, contextId } = JSON.parse(sent.stdout).task;
    const ids = `Task ID: ${taskId}\nContext ID: ${contextId}\nState: TASK_STATE_COMPLETED\n`;
    const hook = "http://127.0.0.1:9/hook";

    const created = await pushConfig("create", ...agent, taskId, "--url", hook, "--id", "one", "--token", "sesame");
    expect([created.code, created.stderr]).toEqual([0, ""]);
    expect(created.stdout).toContain(`Config ID: one\nURL: ${hook}\n`);
    expect(created.stdout).toContain(ids);
    const flags = ["--auth-scheme", "Bearer", "--auth-credentials", "planted-secret", "--debug", "-o", "json"];
    const other = await pushConfig("create", ...agent, taskId, "--url", `${hook}?n=2`, ...flags);
    expect(other.code).toBe(0);
    expect(JSON.parse(other.stdout)).toMatchObject({ taskId, url: `${hook}?n=2`, id: expect.any(String) });
    expect(other.stderr).not.toContain("planted-secret");

    const found = await pushConfig("get", ...agent, taskId, "one", "-o", "json");
    expect(JSON.parse(found.stdout)).toEqual({ taskId, id: "one", url: hook });
    const listed = await pushConfig("list", ...agent, taskId, "-o", "json");
    expect(JSON.parse(listed.stdout)).toMatchObject({ configs: [{}, {}], nextPageToken: "" });
    const lines = (await pushConfig("list", ...agent, taskId, "-o", "json", "--stream")).stdout.trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).taskId)).toEqual([taskId, taskId]);

    expect((await pushConfig("delete", ...agent, taskId, "one")).stdout).toBe(`Deleted: one\n${ids}`);
    expect((await pushConfig("list", ...agent, taskId)).stdout).toMatch(/^Config ID: [\s\S]*\n\nConfigs: 1\nTask ID: /);
    const gone = await pushConfig("get", ...agent, taskId, "one", "-o", "json");
    expect(gone.code).toBe(1);
    expect(JSON.parse(gone.stdout).error.code).toMatch(/^\w+Error$/);
  });
});

describe("a hand-written agent", () => {
  let agent: TestAgent;
  beforeEach(async () => {
    agent = await startTestAgent();
    closeLater(() => agent.close());
    agent.card = { capabilities: { pushNotifications: true } };
  });

  it("[A2ACLI_PUSH_001] gets what the flags and variables say, and no secret is printed", async () => {
    const answer = { taskId: "task-1", id: "c1", url: "https://hooks.example/", token: "planted-token" };
    agent.replies = {
      CreateTaskPushNotificationConfig: { result: answer },
      GetTask: { result: task("WORKING") },
    };
    vi.stubEnv("A2ACLI_TOKEN", "planted-token");
    vi.stubEnv("A2ACLI_AUTH_CREDENTIALS", "planted-credentials");
    const words = ["create", "-a", agent.url, "task-1", "--url", "https://hooks.example/", "--auth-scheme", "Basic"];
    const { code, stderr, stdout } = await pushConfig(...words, "--debug");
    expect(code).toBe(0);
    expect(agent.received[0]?.body.params).toEqual({
      tenant: "acme",
      taskId: "task-1",
      url: "https://hooks.example/",
      token: "planted-token",
      authentication: { scheme: "Basic", credentials: "planted-credentials" },
    });
    expect(stdout).toContain("Token: (set)\n");
    expect(stdout + stderr).not.toContain("planted");
  });

  it("[A2ACLI_PUSH_001] reads all pages, and keeps what was done when the task cannot be read", async () => {
    const config = (id: string) => ({ taskId: "task-1", id, url: "https://hooks.example/" });
    agent.replies = {
      ListTaskPushNotificationConfigs: [
        { result: { configs: [config("a")], nextPageToken: "p2" } },
        { result: { configs: [config("b")] } },
      ],
      DeleteTaskPushNotificationConfig: { result: null },
      GetTask: { error: { code: -32001, message: "Gone." } },
    };
    const listed = await pushConfig("list", "-a", agent.url, "task-1", "-o", "json");
    expect(JSON.parse(listed.stdout)).toEqual({ configs: [config("a"), config("b")], nextPageToken: "" });
    const deleted = await pushConfig("delete", "-a", agent.url, "task-1", "a");
    expect([deleted.code, deleted.stdout]).toEqual([0, "Deleted: a\nTask ID: task-1\n"]);
    expect((await pushConfig("delete", "-a", agent.url, "task-1", "a", "-o", "json")).stdout).toBe("{}\n");
  });

  it.each([
    [["create", "task-1"], "--url"],
    [["create", "task-1", "--url", "ftp://x"], "--url must be an http or https URL"],
    [["create", "task-1", "--url", "https://x", "--auth-credentials", "y"], "requires --auth-scheme"],
    [["get", "task-1"], "missing required argument"],
  ])("%j is a usage error", async (words, message) => {
    const { code, stderr } = await pushConfig(...words, "-a", agent.url);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(agent.received).toEqual([]);
  });

  it.each([
    ["push-config", ["push-config", "list", "task-1"], "PushNotificationNotSupportedError"],
    ["subscribe", ["subscribe", "task-1"], "UnsupportedOperationError"],
  ])("[A2ACLI_VER_003] is asked for %s only if its card offers that", async (_, words, error) => {
    agent.card = { capabilities: {} };
    const { code, stdout } = await runInProcess("task", ...words, "-a", agent.url, "-o", "json");
    expect([code, JSON.parse(stdout).error.code]).toEqual([1, error]);
    expect(agent.received).toEqual([]);
  });
});
