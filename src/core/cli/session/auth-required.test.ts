import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { defineAgent } from "../../agents/define.ts";
import { type DragomanServer, serve } from "../../server/serve.ts";
import { startTestAgent, statusUpdate, type TestAgent, task } from "../testing/agent-server.ts";
import { finished, startCli, stopAll } from "../testing/run-cli.ts";
import { runInProcess } from "../testing/run-in-process.ts";

const ASKED = "Approve the payment at https://bank.example.com/approve";

describe("a task that waits for an authorisation", () => {
  let agent: TestAgent;
  beforeEach(async () => {
    vi.stubEnv("HOME", "/nonexistent");
    agent = await startTestAgent();
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await agent.close();
  });

  it.each([[["--stream"]], [[]]])(
    "[A2ACLI_AUTH_011, A2ACLI_EXIT_002] is shown by send %j: what is needed, and how to continue",
    async (flags) => {
      const events = [{ task: task("WORKING") }, statusUpdate("AUTH_REQUIRED", ASKED)];
      const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: ASKED }] };
      agent.replies = {
        SendStreamingMessage: { events, keepOpen: true },
        GetTask: { result: task("AUTH_REQUIRED", { status: { state: "TASK_STATE_AUTH_REQUIRED", message } }) },
      };
      const { code, stderr, stdout } = await runInProcess("send", "-a", agent.url, "--text", "pay", ...flags);
      expect(code).toBe(0);
      expect(stdout).toContain(ASKED);
      expect(stdout).toContain("State: TASK_STATE_AUTH_REQUIRED\n");
      expect(stdout).toContain(`Resume: dragoman task subscribe -a ${agent.url} task-1\n`);
      expect(stderr).toContain("Task task-1 waits for an authorisation.");
      expect(stderr).toContain("outside of this conversation");
      expect(stderr).toContain(`Reply to it: dragoman send -a ${agent.url} --task-id task-1 --text '<reply>'\n`);
    },
  );

  it("says so when the agent does not tell what it needs", async () => {
    agent.card = { capabilities: { streaming: false } };
    agent.replies = { SendMessage: { result: { task: task("AUTH_REQUIRED") } } };
    const { stderr } = await runInProcess("send", "-a", agent.url, "--text", "pay");
    expect(stderr).toContain("The agent did not describe what it needs");
  });

  it("[A2ACLI_AUTH_011] is followed by task subscribe until it goes on, on the stream and after it", async () => {
    agent.replies = {
      SubscribeToTask: { events: [{ task: task("AUTH_REQUIRED") }] },
      GetTask: [
        { result: task("AUTH_REQUIRED") },
        { result: task("WORKING") },
        { result: task("AUTH_REQUIRED") },
        { result: task("COMPLETED") },
      ],
    };
    const subscribe = ["task", "subscribe", "-a", agent.url, "task-1", "--poll-interval", "10ms"];
    const { code, stderr, stdout } = await runInProcess(...subscribe);
    expect([code, stdout]).toEqual([0, expect.stringContaining("State: TASK_STATE_COMPLETED\n")]);
    expect(stderr).toContain("Still following it.");
    expect(agent.received.filter(({ body }) => body.method === "GetTask")).toHaveLength(4);
  });

  it("ends task subscribe when it wants an answer instead", async () => {
    agent.replies = {
      SubscribeToTask: {
        events: [{ task: task("AUTH_REQUIRED") }, statusUpdate("INPUT_REQUIRED", "Which account?")],
        keepOpen: true,
      },
    };
    const { stdout } = await runInProcess("task", "subscribe", "-a", agent.url, "task-1");
    expect(stdout).toContain(`Resume: dragoman send -a ${agent.url} --task-id task-1`);
  });
});

describe("a step that waits for an authorisation", () => {
  it("is waited for by run, also after its agent has closed the stream", async () => {
    const agent = await startTestAgent();
    const folder = mkdtempSync(join(tmpdir(), "dragoman-run-"));
    try {
      const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: ASKED }] };
      const waiting = task("AUTH_REQUIRED", { status: { state: "TASK_STATE_AUTH_REQUIRED", message } });
      const done = task("COMPLETED", { artifacts: [{ artifactId: "r", name: "r", parts: [{ text: "Paid." }] }] });
      agent.replies = {
        SendStreamingMessage: { events: [{ task: waiting }] },
        GetTask: [{ result: waiting }, { result: done }],
        SubscribeToTask: { events: [{ task: done }] },
      };
      const file = join(folder, "flow.yaml");
      writeFileSync(file, `steps: { pay: { url: "${agent.url}" } }\n`);
      const { code, stderr, stdout } = await runInProcess("run", file, "--text", "pay");
      expect([code, stdout]).toEqual([0, expect.stringContaining("Artifact: pay\nText:\n  Paid.\n")]);
      expect(stderr).toContain(ASKED);
    } finally {
      rmSync(folder, { recursive: true });
      await agent.close();
    }
  });
});

describe("an authorisation that is given elsewhere", () => {
  let server: DragomanServer;
  let approve: () => void;
  beforeEach(async () => {
    const approved = new Promise<void>((resolve) => {
      approve = resolve;
    });
    const payer = defineAgent({
      name: "Payer",
      description: "Pays when the bank allows it.",
      async *run(turn) {
        yield turn.authRequired(ASKED);
        await approved;
        yield turn.working("Paying");
        yield turn.artifact({ name: "receipt", parts: [{ text: "Paid." }] });
      },
    });
    server = await serve({ port: 0, grpcPort: false, agents: { payer } });
  });
  afterEach(async () => {
    stopAll();
    approve();
    await server.close();
  });

  it("[A2ACLI_AUTH_011] lets the task continue for any caller that follows it", async () => {
    const sent = await runInProcess("send", "-a", server.url, "--text", "pay", "--stream", "-o", "json");
    const last = JSON.parse(sent.stdout.trim().split("\n").at(-1) ?? "");
    expect(last.statusUpdate.status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    const child = startCli(["task", "subscribe", "-a", server.url, last.statusUpdate.taskId]);
    child.stdin.end();
    child.stderr.on("data", (chunk: Buffer) => {
      if (chunk.toString("utf8").includes("Still following it.")) approve();
    });
    const { code, stdout } = await finished(child);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/AUTH_REQUIRED[\s\S]*Paid\.[\s\S]*COMPLETED/)]);
  });

  it("may have let the task end by the time someone looks", async () => {
    const sent = await runInProcess("send", "-a", server.url, "--text", "pay", "--stream", "-o", "json");
    const { taskId } = JSON.parse(sent.stdout.trim().split("\n").at(-1) ?? "").statusUpdate;
    approve();
    const waited = await runInProcess("task", "subscribe", "-a", server.url, taskId);
    const again = await runInProcess("task", "subscribe", "-a", server.url, taskId);
    for (const { code, stdout } of [waited, again])
      expect([code, stdout]).toEqual([0, expect.stringContaining("Paid.")]);
    expect(again.stderr).toContain("The task has already ended.");
  });

  it("lets a chat go on", async () => {
    const child = startCli(["chat", "-a", server.url]);
    let talk = "";
    child.stdin.write("pay\n");
    child.stderr.on("data", (chunk: Buffer) => {
      talk += chunk.toString("utf8");
      if (!child.stdin.writableEnded && talk.includes("/follow waits for it")) {
        approve();
        child.stdin.end("/follow\n");
      }
    });
    const { code, stdout } = await finished(child);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/AUTH_REQUIRED[\s\S]*Paid\.[\s\S]*COMPLETED/)]);
    expect(talk).toContain("The task waits for an authorisation");
  });
});
