/** What is kept between runs and what is not, how waiting goes on, and the tool's own surface. */
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { pollTask } from "../../src/core/cli/session/follow.ts";
import type { Session } from "../../src/core/cli/session/session.ts";
import {
  startTestAgent,
  statusUpdate,
  type TestAgent,
  task,
  textChunk,
} from "../../src/core/cli/testing/agent-server.ts";
import { runCli, startCli, stopAll } from "../../src/core/cli/testing/run-cli.ts";
import { runInProcess } from "../../src/core/cli/testing/run-in-process.ts";
import { packageVersion } from "../../src/core/cli/version.ts";
import type { RemoteAgent } from "../../src/core/client/options.ts";
import { closeLater, createFolder } from "../support/lifecycle.ts";

let agent: TestAgent;
beforeEach(async () => {
  vi.stubEnv("HOME", "/nonexistent");
  agent = await startTestAgent();
  closeLater(() => agent.close());
});
afterEach(() => vi.unstubAllEnvs());
afterAll(stopAll);

describe("[A2ACLI_INTERACT_005, A2ACLI_CONFIG_001] between two runs", () => {
  it("nothing of a task is kept, and no flag offers to continue the last one", async () => {
    const home = createFolder();
    agent.card = { capabilities: {} };
    agent.replies.SendMessage = { result: { task: task("INPUT_REQUIRED") } };
    const options = { environment: { HOME: home, XDG_STATE_HOME: join(home, "state") }, workingDirectory: home };
    await runCli(["send", "-a", agent.url, "--text", "one"], options);
    expect(readdirSync(home)).toEqual([]);
    await runCli(["send", "-a", agent.url, "--text", "two"], options);
    const [, second] = agent.received.map(({ body }) => (body.params as { message: object }).message);
    expect(second).not.toHaveProperty("taskId");
    expect(second).not.toHaveProperty("contextId");
    const { code, stderr } = await runCli(["send", "-a", agent.url, "--continue", "x"], options);
    expect([code, stderr]).toEqual([2, expect.stringContaining("unknown option '--continue'")]);
  });
});

describe("[A2ACLI_CONFIG_002] a settings file", () => {
  it("holds the agent, its credentials and its defaults, and is chosen with --config", async () => {
    agent.card = { securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "X-Key" } } } };
    agent.replies.GetTask = { result: task("COMPLETED") };
    const file = join(createFolder(), "agent.env");
    const lines = [`A2ACLI_AGENT_CARD=${agent.url}`, "A2ACLI_API_KEY=sesame", "A2ACLI_OUTPUT=json"];
    writeFileSync(file, `${lines.join("\n")}\n`, { mode: 0o600 });
    const { code, stderr, stdout } = await runInProcess("task", "get", "task-1", "--config", file);
    expect([code, stderr, JSON.parse(stdout).id]).toEqual([0, "", "task-1"]);
    expect(agent.received[0]?.headers["x-key"]).toBe("sesame");
    const other = await runInProcess("task", "get", "task-1", "--config", file, "--api-key", "other", "-o", "text");
    expect(other.stdout).toContain("Task ID: task-1\n");
    expect(agent.received[1]?.headers["x-key"]).toBe("other");
  });
});

describe("[A2ACLI_TASK_POLL_002] polling", () => {
  it("keeps to --poll-interval, and backs off to five times of it", async () => {
    const waits: number[] = [];
    const states = [...Array.from({ length: 20 }, () => "WORKING"), "COMPLETED"].map((state) => task(state));
    const session: Partial<Record<keyof Session, unknown>> = {
      followedTask: undefined,
      settings: { pollIntervalMs: 100 },
      progress: { receive() {} },
      stop: { sleep: async (milliseconds: number) => void waits.push(milliseconds) },
    };
    const polled = { get: async () => states.shift() } as Partial<Record<keyof RemoteAgent, unknown>>;
    await pollTask(session as Session, polled as RemoteAgent, "task-1");
    expect(waits.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 100));
    expect(waits.slice(10)).toEqual([...waits.slice(10)].sort((one, other) => one - other));
    expect([waits.length, Math.max(...waits)]).toEqual([20, 500]);
    expect(session.followedTask).toEqual({ taskId: "task-1", contextId: "context-1" });
  });
});

describe("[A2ACLI_TASK_SUBSCRIBE_002] a subscription that breaks", () => {
  it("is made again, and its first event is the whole task", async () => {
    agent.replies.SubscribeToTask = [
      { events: [{ task: task("WORKING") }, textChunk("Hel")], cut: true },
      {
        events: [
          { task: task("WORKING", { artifacts: [{ artifactId: "artifact-1", parts: [{ text: "Hello!" }] }] }) },
          statusUpdate("COMPLETED"),
        ],
      },
    ];
    const { code, stdout } = await runInProcess(
      "task",
      "subscribe",
      "-a",
      agent.url,
      "task-1",
      "-o",
      "json",
      "--stream",
    );
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.map((line) => Object.keys(JSON.parse(line))[0])).toEqual([
      "task",
      "artifactUpdate",
      "task",
      "statusUpdate",
    ]);
    expect(agent.received.map(({ body }) => body.method)).toEqual(["SubscribeToTask", "SubscribeToTask"]);
  });
});

describe("the tool itself", () => {
  it("[A2ACLI_CLI_001] prints its version and its usage on stdout, with exit 0", async () => {
    for (const flag of ["-v", "--version"])
      expect(await runInProcess(flag)).toEqual({ code: 0, stdout: `${packageVersion()}\n`, stderr: "" });
    for (const words of [["help"], ["--help"], ["help", "task", "push-config", "create"], ["task", "get", "--help"]]) {
      const { code, stderr, stdout } = await runInProcess(...words);
      expect([code, stderr, stdout]).toEqual([0, "", expect.stringContaining("Usage: dragoman")]);
    }
  });

  it("[A2ACLI_CLI_001, A2ACLI_DEFAULT_001, A2ACLI_AUTH_002] shows every default in the help, and what a flag exposes", async () => {
    const help = (await runInProcess("send", "--help")).stdout.replace(/\s+/g, " ");
    for (const text of [
      "(default: the agent's own order)",
      "(default: wait until the task ends or needs the caller)",
      "(default: text)",
      "(default: concise)",
      "(default: the newest of both sides from 1.0 on, never an older one)",
      "(default: certificates are verified)",
      "(default: 2s)",
      "other users can see it in the process list and it stays in the shell's history",
      "[A2ACLI_BEARER]",
      "[A2ACLI_API_KEY]",
    ])
      expect(help).toContain(text);
  });

  it.each(["bash", "zsh", "fish"])("[A2ACLI_CLI_002] prints a completion script for %s", async (shell) => {
    const { code, stderr, stdout } = await runInProcess("completion", shell);
    expect([code, stderr, stdout]).toEqual([0, "", expect.stringContaining("push-config")]);
  });

  it("[A2ACLI_DEMO_SERVER_001] is an agent to practise with", async () => {
    const home = createFolder();
    const child = startCli(["demo-server", "--port", "0"], { workingDirectory: home });
    const url = await new Promise<string>((resolve) => {
      let shown = "";
      child.stdout.on("data", (chunk: Buffer) => {
        shown += chunk.toString("utf8");
        const found = /listens on (http:\S+)/.exec(shown)?.[1];
        if (found !== undefined) resolve(found);
      });
    });
    const { code, stdout } = await runInProcess("send", "-a", url, "--text", "hello");
    expect([code, stdout]).toEqual([0, expect.stringContaining("State: TASK_STATE_COMPLETED\n")]);
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(existsSync(join(home, ".dragoman"))).toBe(false);
  });
});
