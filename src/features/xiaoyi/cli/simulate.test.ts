import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { run } from "../../../core/cli/run.ts";
import { type Finished, finished, startCli, stopAll } from "../../../core/cli/testing/run-cli.ts";
import { captureOutput, runInProcess } from "../../../core/cli/testing/run-in-process.ts";
import { CloudAgent } from "../simulator/testing/cloud-agent.ts";
import type { Flaw } from "../simulator/testing/reference-agent.ts";
import { ReferenceAgent } from "../simulator/testing/reference-agent.ts";

const AGENT = { agentId: "agent-7", accessKey: "key-7", secretKey: "secret-7" };
const ENVIRONMENT = { XIAOYI_AGENT: AGENT.agentId, XIAOYI_AK: AGENT.accessKey, XIAOYI_SK: AGENT.secretKey };

let folder: string;
beforeAll(async () => {
  for (const [name, value] of Object.entries(ENVIRONMENT)) vi.stubEnv(name, value);
  folder = await mkdtemp(join(tmpdir(), "dragoman-simulate-"));
});
afterAll(async () => {
  vi.unstubAllEnvs();
  stopAll();
  await rm(folder, { recursive: true, force: true });
});

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** The platform, reading these lines from a file, and an agent that dials it once it says where it is. */
async function simulate(args: readonly string[], lines: string, ...flaws: readonly Flaw[]): Promise<Finished> {
  const script = join(folder, "script.txt");
  await writeFile(script, lines);
  const captured = captureOutput();
  const input = args.includes("--scenario") ? [] : ["--script", script];
  const done = run(["simulate", "xiaoyi", "--port", "0", "--seed", "5", ...input, ...args], captured.output);
  const [url = ""] = await vi.waitUntil(() => /ws:\S+/.exec(captured.err), { interval: 5, timeout: 60_000 });
  const agent = new ReferenceAgent({ agent: AGENT, linkUrls: [url] }, ...flaws);
  closing.push(() => agent.stop());
  return { code: await done, stdout: captured.out, stderr: captured.err };
}

/** The platform as a process, with lines from a pipe, and an agent with an address. */
async function simulateCalling(lines: string): Promise<Finished & { readonly agent: CloudAgent }> {
  const agent = await CloudAgent.start();
  closing.push(() => agent.close());
  const child = startCli(["simulate", "xiaoyi", "--port", "0", "--http", agent.url], { environment: ENVIRONMENT });
  child.stdin.end(lines);
  return { ...(await finished(child)), agent };
}

describe("dragoman simulate xiaoyi", () => {
  test("is a phone for lines from a file", async () => {
    const lines = ["# a remark", "hello", "ask me", "yes", "/reopen", "/kick", "/clear", "again", "/quit", "unheard"];
    const { code, stderr, stdout } = await simulate([], `${lines.join("\n")}\n`);
    expect(stdout).toBe("hello\nReally?\n[input-required]\nyes\nyes\n[clear] cleared\nagain\n");
    expect(code).toBe(0);
    expect(stderr).toContain(`agentId: ${AGENT.agentId}`);
    expect(stderr).toContain("was closed with 1000");
    expect(stderr).not.toContain("Warning");
  });

  test("says the same in JSON", async () => {
    const picture = join(folder, "photo.jpg");
    await writeFile(picture, "picture");
    const lines = `hello\n/file ${picture} look\n/send slow ${"word ".repeat(50)}\n/pause 20ms\n/cancel\n`;
    const { code, stdout } = await simulate(["-o", "json"], lines);
    const records = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(records).toMatchObject([
      { task: { said: "hello", ending: "final" }, screen: { text: "hello", state: "completed", painted: true } },
      { task: { said: "look", ending: "final" } },
      { task: { ending: "canceled" }, screen: { state: "canceled" } },
      { cancel: "canceled" },
    ]);
    expect(code).toBe(0);
  });

  test("fails when the agent breaks rules", async () => {
    const { code, stderr, stdout } = await simulate([], "/dup 1\nhello\n/pause 500ms\n", "answers-duplicates");
    expect(stdout).toBe("hello\n");
    expect(stderr).toContain("two-finals");
    expect(stderr).toContain("DRAGOMAN_ERR_RULES_BROKEN");
    expect(code).toBe(1);
  });

  test("says the next line when the agent is back", async () => {
    const { code, stdout } = await simulate([], "hello\n/kick\nstill there?\n/drop\n/send and now?\n/wait\n");
    expect(stdout).toBe("hello\nstill there?\nand now?\n");
    expect(code).toBe(0);
  });

  test("fails when an answer does not end, and says so in JSON", async () => {
    const args = ["--timeout", "1s", "-o", "json"];
    const { code, stdout } = await simulate(args, "hello\n", "leaves-answers-open");
    const records = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(records).toMatchObject([
      { violation: { rule: "no-final" } },
      { task: { said: "hello", ending: "silence" } },
      { error: { code: "DRAGOMAN_ERR_RULES_BROKEN" } },
    ]);
    expect(code).toBe(1);
  });

  test("fails without an answer", async () => {
    const { code, stderr, stdout } = await simulate(["--timeout", "1s"], "/freeze\nhello\n");
    expect(stdout).toContain("[failed]");
    expect(stderr).toContain("DRAGOMAN_ERR_UNANSWERED");
    expect(code).toBe(1);
  });

  test("reports what devices do", async () => {
    const { code, stderr } = await simulate([], '/event Common Trigger {"dataMap":{}}\n/event Common\n');
    expect(stderr).toContain("The namespace and the name of the event are required.");
    expect(code).toBe(2);
  });

  test("plays scenarios", async () => {
    const args = ["--scenario", "normal", "--scenario", "cancel", "--scenario", "question"];
    const phrase = [
      "--phrase",
      "plain=hello",
      "--phrase",
      `slow=slow ${"word ".repeat(50)}`,
      "--phrase",
      "asking=ask me",
    ];
    const { code, stdout } = await simulate([...args, ...phrase, "--timeout", "5s"], "", "hides-questions");
    expect(stdout).toBe(
      "normal: passed\ncancel: passed\nquestion: FAILED: The question cannot be read. [the publisher's plugin @ynhcj/xiaoyi 2.6]\n",
    );
    expect(code).toBe(1);
  });

  test("waits for an agent, but not for ever", async () => {
    const { code, stderr } = await runInProcess("simulate", "xiaoyi", "--port", "0", "--timeout", "100ms");
    expect(code).toBe(5);
    expect(stderr).toContain("The agent did not connect within 100ms.");
  });

  test("is the platform that it is configured to be", async () => {
    const args = ["--trait", "hosts=2", "--trait", "cut=3", "--timeout", "100ms"];
    const { code, stderr } = await runInProcess("simulate", "xiaoyi", "--port", "0", ...args);
    expect(stderr.match(/ws:\S+/g)).toHaveLength(2);
    expect(code).toBe(5);
  });

  test("calls agents that have an address, for lines from a pipe", async () => {
    const { agent, code, stderr, stdout } = await simulateCalling("hello\n/login\n/logout\n/clear\n");
    expect(stdout).toBe("Hello there\n[login] bound\n[logout] done\n[clear] cleared\n");
    expect(stderr).toContain("ak: key-7");
    expect(agent.received[0]?.headers.accesskey).toBe("key-7");
    expect(code).toBe(0);
  });

  test("disturbs no connection where there is none", async () => {
    const script = join(folder, "kick.txt");
    await writeFile(script, "/kick\n");
    const args = ["--port", "0", "--http", "http://127.0.0.1:9", "--script", script];
    const { code, stderr } = await runInProcess("simulate", "xiaoyi", ...args);
    expect(stderr).toContain("/kick works only with agents that dial");
    expect(code).toBe(2);
  });

  test("says what a line does wrong", async () => {
    const { code, stderr } = await simulate([], "/dance\n/help\n/dup many\n");
    expect(stderr).toContain("Unknown command /dance");
    expect(stderr).toContain("/reorder [off]");
    expect(stderr).toContain('The number of copies must be a whole number from 0 to 100, not "many".');
    expect(code).toBe(2);
  });

  test.each([
    [["--port", "x"], "--port must be a whole number from 0 to 65535"],
    [["--http", "here"], "--http must be an http or https URL"],
    [["--timeout", "soon"], "--timeout must be a duration"],
    [["--seed", "x"], "--seed must be a whole number"],
    [["--scenario", "war"], "--scenario must be one of"],
    [["--scenario", "normal", "--phrase", "x=y"], "--phrase must be NAME=TEXT"],
    [["--phrase", "plain=hello"], "--phrase requires --scenario"],
    [["--disconnects", "3"], "--disconnects requires --scenario"],
    [["--scenario", "disconnects", "--disconnects", "0"], "--disconnects must be a whole number"],
    [["--trait", "hosts=3"], "--trait must be one of hosts=1|2"],
    [["--trait", "toString=1"], "--trait must be one of hosts=1|2"],
    [["--trait", "hosts=2", "--http", "http://127.0.0.1:9"], "--trait cannot be combined with --http"],
    [["--stateless"], "--stateless requires --http"],
    [["--script", "nowhere"], "Cannot read the script nowhere"],
    [["--profile", "x"], "--profile"],
  ])("%j is refused", async (args, message) => {
    const { code, stderr } = await runInProcess(
      "simulate",
      "xiaoyi",
      ...(args.includes("--port") ? [] : ["--port", "0"]),
      ...args,
    );
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});
