import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startTestAgent, statusUpdate, type TestAgent, task, textChunk } from "./testing/agent-server.ts";
import { finished, runCli, startCli, stopAll } from "./testing/run-cli.ts";

let folder: string;
let agent: TestAgent;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "dragoman-cli-"));
  agent = await startTestAgent();
});
afterEach(() => {
  stopAll();
  agent.received.length = 0;
  agent.card = {};
});
afterAll(async () => {
  await agent.close();
  rmSync(folder, { recursive: true });
});

/** Resolves when the child has written something that matches. */
function said(
  child: ReturnType<typeof startCli>,
  side: "stdout" | "stderr",
  pattern: RegExp,
): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    let text = "";
    child[side].on("data", (chunk: Buffer) => {
      text += chunk.toString("utf8");
      const match = pattern.exec(text);
      if (match !== null) resolve(match);
    });
    child.once("close", () => reject(new Error(`It ended without saying ${pattern}: ${text}`)));
  });
}

describe("as a process", () => {
  it("sends what it reads from a pipe, and ends with the right code", async () => {
    agent.card = { capabilities: {} };
    agent.replies = { SendMessage: { result: { task: task("COMPLETED") } } };
    const { code, stderr, stdout } = await runCli(["send", "-a", agent.url, "-o", "json"], { stdin: "piped words\n" });
    expect([code, stderr, JSON.parse(stdout)]).toEqual([0, "", { task: task("COMPLETED") }]);
    expect(agent.received[0]?.body.params).toMatchObject({ message: { parts: [{ text: "piped words" }] } });
  });

  it("[A2ACLI_TASK_POLL_002] stops following at Ctrl-C, says how to go on, and exits 130", async () => {
    agent.replies = {
      SendStreamingMessage: { events: [{ task: task("WORKING") }, textChunk("Half a sent")], keepOpen: true },
    };
    const child = startCli(["send", "-a", agent.url, "hello", "--stream"]);
    const end = finished(child);
    await said(child, "stdout", /Half a sent/);
    child.kill("SIGINT");
    const { code, stderr, stdout } = await end;
    expect(code).toBe(130);
    expect(stdout).toMatch(/Text:\n {2}Half a sent\n\n$/);
    expect(stderr).toContain("Interrupted. Task task-1 in context context-1 is still running at the agent.");
    expect(stderr).toContain(`dragoman task get --wait -a ${agent.url} task-1 waits for it`);
    expect(stderr).toContain(`dragoman task cancel -a ${agent.url} task-1 ends it`);
  });

  it("ends quietly when its reader goes away", async () => {
    const chunks = Array.from({ length: 50 }, (_, index) =>
      textChunk(`${index} ${"x".repeat(10_000)}\n`, { append: index > 0 }),
    );
    agent.replies = {
      SendStreamingMessage: { events: [{ task: task("WORKING") }, ...chunks, statusUpdate("COMPLETED")] },
    };
    const child = startCli(["send", "-a", agent.url, "hello", "--stream"]);
    let stderr = "";
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString("utf8");
    });
    child.stdout.once("data", () => child.stdout.destroy());
    const [code] = await once(child, "close");
    expect([code, stderr]).toEqual([0, ""]);
  });

  it("[A2ACLI_CHAT_001, A2ACLI_OUT_005] chats from a pipe: keeps the context, replies to the task that waits, and cancels it", async () => {
    agent.replies = {
      SendStreamingMessage: [
        { events: [{ task: task("SUBMITTED") }, statusUpdate("INPUT_REQUIRED", "Which one?")] },
        {
          events: [
            { task: task("INPUT_REQUIRED") },
            textChunk("The blue one."),
            statusUpdate("INPUT_REQUIRED", "Sure?"),
          ],
        },
      ],
      CancelTask: { result: task("CANCELED") },
    };
    const { code, stderr, stdout } = await runCli(["chat", "-a", agent.url], {
      stdin: "pick\n\nblue\n/cancel\n/quit\nnever\n",
    });
    expect(code).toBe(0);
    expect(stdout).toContain("Which one?");
    expect(stdout).toContain("Text:\n  The blue one.\n\n");
    expect(stdout).toMatch(/State: TASK_STATE_CANCELED\n$/);
    expect(stderr).toBe(`Resume: dragoman chat -a ${agent.url} --context-id context-1\n`);
    expect(agent.received.map(({ body }) => body)).toMatchObject([
      { method: "SendStreamingMessage", params: { message: { parts: [{ text: "pick" }] } } },
      { params: { message: { parts: [{ text: "blue" }], contextId: "context-1", taskId: "task-1" } } },
      { method: "CancelTask" },
    ]);
  });
});

describe("serving", () => {
  const config = (port: number): string => {
    const directory = mkdtempSync(join(folder, "serve-"));
    const file = join(directory, "dragoman.yaml");
    writeFileSync(file, `server: { port: ${port} }\nstore: sqlite:data.db\nagents:\n  echo: { use: echo }\n`);
    return file;
  };

  it("tells what is served, answers, and closes at a signal", async () => {
    const file = config(0);
    const child = startCli(["serve", file, "--log-level", "silent"]);
    const end = finished(child);
    const [, url = ""] = await said(child, "stdout", /listens on (http:\S+)[\s\S]*agent-card\.json\n/);
    const reply = await runCli(["send", "-a", `${url}/agents/echo`, "--text", "hello"]);
    expect([reply.code, reply.stderr]).toEqual([0, ""]);
    expect(reply.stdout).toContain("Text:\n  hello\n\n");
    const doctor = await runCli(["doctor", file, "-o", "json"]);
    const byName = new Map(JSON.parse(doctor.stdout).checks.map((check: { name: string }) => [check.name, check]));
    expect(byName.get("store")).toMatchObject({ status: "warning", detail: expect.stringContaining("in use") });
    child.kill("SIGTERM");
    const { code, stderr, stdout } = await end;
    expect(code).toBe(0);
    expect(stderr).toContain("Shutting down; waiting for running tasks. Press Ctrl-C again to quit now.");
    expect(stdout).toContain(`echo (default)  ${url}/agents/echo/ `);
    expect(stdout).toContain(`npx dragoman send -a ${url}/agents/echo/ --text hello\n`);
    expect(stdout).toContain(`curl ${url}/agents/echo/.well-known/agent-card.json\n`);

    const stats = await runCli(["store", "stats", "--config", file, "-o", "json"]);
    expect(JSON.parse(stats.stdout)).toMatchObject({ tasks: 1, byState: { TASK_STATE_COMPLETED: 1 } });
  });

  it("says that a port is taken", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const { code, stderr } = await runCli(["serve", config(port), "--log-level", "silent"]);
    await new Promise((resolve) => server.close(resolve));
    expect(code).toBe(1);
    expect(stderr).toContain(`Error: Port ${port} is already in use.\nCode: DRAGOMAN_ERR_PORT_IN_USE\nHint: `);
  });

  it("makes a project whose agents load, once", async () => {
    const project = join(folder, "Meine Agenten");
    mkdirSync(project);
    const made = await runCli(["init", "Meine Agenten"], { workingDirectory: folder });
    expect([made.code, made.stdout.split("\n").length]).toEqual([0, 6]);
    expect(JSON.parse(readFileSync(join(project, "package.json"), "utf8"))).toMatchObject({
      name: "meine-agenten",
      dependencies: { dragoman: expect.stringMatching(/^file:/) },
    });
    const checked = await runCli(["doctor"], { workingDirectory: project });
    expect(checked.stdout).toMatch(/^ok +agent hello +Hello 0\.1\.0$/m);
    const again = await runCli(["init", "Meine Agenten"], { workingDirectory: folder });
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("Nothing was written.")]);
  });
});
