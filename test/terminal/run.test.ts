/** `dragoman run` as it is published: at a terminal, in a pipe, and interrupted. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startTestAgent, statusUpdate, task } from "../../src/core/cli/testing/agent-server.ts";
import { CLI, cleanEnvironment, ROOT, requireBuild, runCli } from "../built/cli.ts";
import { createProject, type Project } from "../built/project.ts";
import { openTerminal, type Terminal } from "../built/terminal.ts";

const ARTICLE = join(ROOT, "workflows/article.yaml");
const CONFIG = join(ROOT, "dragoman.yaml");

let project: Project;
let terminal: Terminal | undefined;
beforeEach(() => {
  project = createProject();
});
afterEach(() => {
  terminal?.kill();
  terminal = undefined;
  project.remove();
});

/** Says that it works, and leaves a file when it is told to end. */
const STUBBORN = `
process.on("SIGTERM", () => {
  require("node:fs").writeFileSync("ended", "");
  process.exit();
});
console.log(JSON.stringify({ status: "at work" }));
setInterval(() => {}, 1000);
`;

/** Waits to be authorised, and answers with the reply. */
const LOCKED = `
let input = "";
process.stdin.on("data", (chunk) => { input += chunk; }).on("end", () => {
  const { history, message } = JSON.parse(input);
  const asked = { status: { state: "auth-required", message: "Log in at https://login.example." } };
  console.log(history.length === 0 ? JSON.stringify(asked) : "told " + message.parts[0].text);
});
`;

const writeConfig = (): string => {
  project.write("stubborn.cjs", STUBBORN);
  project.write("locked.cjs", LOCKED);
  return project.write(
    "agents.yaml",
    `
agents:
  echo: { use: echo }
  outline: { use: outline }
  broken: { exec: [sh, -c, "echo out of paper >&2; exit 3"] }
  stubborn: { exec: ["${process.execPath}", stubborn.cjs], format: json }
  locked: { exec: ["${process.execPath}", locked.cjs], format: json }
  phone: { link: { agentId: phone-1, ak: key, sk: hunter2-hunter2 } }
`,
  );
};

const writeFlow = (steps: string): string => project.write("flow.yaml", `steps:\n${steps}\n`);

describe("run", () => {
  it.each([
    ["City bees", "Artifact: document\nText:\n  # City bees\n"],
    ["城市里的蜜蜂", "Artifact: document\nText:\n  # 城市里的蜜蜂\n"],
  ])("writes an article about %s offline", async (topic, expected) => {
    const { code, stdout, stderr } = await runCli(["run", ARTICLE, "--config", CONFIG, "--text", topic]);
    expect(code).toBe(0);
    expect(stdout.match(/^Artifact: .*$/gm)).toEqual(["Artifact: outline", "Artifact: document", "Artifact: summary"]);
    expect(stdout).toContain(expected);
    expect(stderr.replace(/after \d+s/g, "after 0s")).toBe(
      ["outline", "document", "summary"]
        .map((step) => `${step}: started (${step}, local)\n${step}: completed after 0s (${step}, local)\n`)
        .join(""),
    );
  });

  it("prints the task as one JSON document", async () => {
    const { code, stdout } = await runCli(["run", ARTICLE, "--config", CONFIG, "--text", "City bees", "-o", "json"]);
    expect(code).toBe(0);
    const { task } = JSON.parse(stdout);
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task.artifacts.map(({ name }: { name: string }) => name)).toEqual(["outline", "document", "summary"]);
  });

  it("fails with the step and the reason, and leaves what earlier steps returned", async () => {
    const words = ["run", writeFlow("  a: { agent: echo }\n  b: { agent: broken, needs: [a] }\noutput: [a, b]")];
    const run = [...words, "--config", writeConfig(), "--text", "hello"];
    const failed = await runCli(run);
    expect(failed.code).toBe(1);
    expect(failed.stdout).toContain("Artifact: a\nText:\n  hello\n");
    expect(failed.stderr).toContain("Warning: broken: Program exited with code 3: out of paper\n");
    expect(failed.stderr).toContain(
      "Error: Step b failed: The agent's program exited with code 3.\nCode: DRAGOMAN_ERR_WORKFLOW_FAILED\n",
    );
    const json = await runCli([...run, "-o", "json"]);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout).task.status.state).toBe("TASK_STATE_FAILED");
    expect(json.stderr).toContain("Error: Step b failed: The agent's program exited with code 3.\n");
  });

  it("says that an agent that dials in needs a server", async () => {
    const words = ["run", writeFlow("  a: { agent: phone }"), "--config", writeConfig(), "--text", "hello"];
    const { code, stderr } = await runCli(words);
    expect(code).toBe(1);
    expect(stderr).toContain("Step a failed: Agent phone dials in to a server, and dragoman run does not listen.");
  });

  it("ends with the question of a step where nobody can answer", async () => {
    const words = ["run", writeFlow("  a: { agent: outline }"), "--config", writeConfig(), "--text", " "];
    const { code, stderr } = await runCli(words);
    expect(code).toBe(1);
    expect(stderr).toMatch(/Error: Step a asks: What should the outline be about\?.*the run was cancelled\./);
    expect(stderr).toContain("Code: DRAGOMAN_ERR_INPUT_REQUIRED\nHint: Run it at a terminal");
    expect(stderr).not.toContain("Warning");
  });

  it("cancels the steps at Ctrl-C", async () => {
    requireBuild();
    const words = ["run", writeFlow("  a: { agent: stubborn }"), "--config", writeConfig(), "--text", "hello"];
    const child = spawn(process.execPath, [CLI, ...words], { env: cleanEnvironment(), stdio: "pipe" });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (!stderr.includes("at work") && text.includes("at work")) child.kill("SIGINT");
      stderr += text;
    });
    const code = await new Promise((resolve) => child.once("close", resolve));
    expect(code).toBe(130);
    expect(stderr).toMatch(/^a: canceled after \d+s \(stubborn, local\)$/m);
    expect(stderr).toContain("Error: Interrupted. The run was cancelled.\nCode: DRAGOMAN_ERR_INTERRUPTED\n");
    expect(existsSync(join(project.folder, "ended"))).toBe(true);
  });
});

describe("run that is interrupted", () => {
  it("names the agents that refuse to cancel", async () => {
    requireBuild();
    const agent = await startTestAgent();
    agent.replies = {
      SendStreamingMessage: { events: [{ task: task("WORKING") }, statusUpdate("WORKING", "busy")], keepOpen: true },
      CancelTask: { error: { code: -32002, message: "Too late." } },
      GetTask: { result: task("WORKING") },
    };
    const flow = writeFlow(`  a: { url: "${agent.url}" }\n  b: { agent: stubborn }`);
    const words = ["run", flow, "--config", writeConfig(), "--text", "hello"];
    const child = spawn(process.execPath, [CLI, ...words], { env: cleanEnvironment(), stdio: "pipe" });
    let stderr = "";
    const working = new Promise<void>((resolve) => {
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        stderr += text;
        if (stderr.includes("at work") && stderr.includes("busy")) resolve();
      });
    });
    const closed = new Promise((resolve) => child.once("close", resolve));
    await working;
    child.kill("SIGINT");
    expect(await closed).toBe(130);
    await agent.close();
    expect(stderr).toContain(
      "Error: Interrupted. The run was cancelled. Not all agents confirmed the cancellation: a (",
    );
    expect(stderr).toContain("Too late.");
    expect(existsSync(join(project.folder, "ended"))).toBe(true);
  });
});

describe("run at a terminal", () => {
  it("shows a tree, asks what a step asks, and leaves the tree", async () => {
    const flow = writeFlow("  a: { agent: outline }\n  b: { agent: echo, input: 'Topic: ${steps.a.data.topic}' }");
    terminal = openTerminal(["run", flow, "--config", writeConfig(), "--text", " "], 72);
    await terminal.shows(/What should the outline be about\?/);
    await terminal.shows(/> /);
    terminal.type("Tea\r");
    const { code, screen } = await terminal.ended;
    expect(code).toBe(0);
    const lines = screen.map((line) => line.replace(/\d+s$/, "0s"));
    expect(lines).toContain("✓ a  outline  local  completed  0s");
    expect(lines).toContain("✓ b  echo     local  completed  0s");
    expect(lines).toContain("  Topic: Tea");
  });

  it("sends the agent of a step that waits to be authorised what is written meanwhile", async () => {
    const flow = writeFlow("  a: { agent: locked }");
    terminal = openTerminal(["run", flow, "--config", writeConfig(), "--text", "hello"], 72);
    await terminal.shows(/a: auth-required.*Log in at https:\/\/login\.example\./);
    await terminal.shows(/> /);
    terminal.type("the code is 7\r");
    const { code, screen } = await terminal.ended;
    expect(code).toBe(0);
    expect(screen).toContain("  told the code is 7");
    expect(screen.map((line) => line.replace(/\d+s$/, "0s"))).toContain("✓ a  locked  local  completed  0s");
  });

  it("cancels the steps at Ctrl-C", async () => {
    const flow = writeFlow("  a: { agent: stubborn }");
    terminal = openTerminal(["run", flow, "--config", writeConfig(), "--text", "hello"], 72);
    await terminal.shows(/▸ a +stubborn +local +working/);
    terminal.type("\u0003");
    const { code, screen } = await terminal.ended;
    expect(code).toBe(130);
    expect(screen.map((line) => line.replace(/\d+s$/, "0s"))).toContain("✗ a  stubborn  local  canceled  0s");
    expect(existsSync(join(project.folder, "ended"))).toBe(true);
  });
});
