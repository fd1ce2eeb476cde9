import { existsSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runToEnd, statesOf, textOfArtifact, turnOf } from "../testing/turns.ts";
import { createProcessAgent, type ProcessAgentOptions } from "./index.ts";

let folder: string;
beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "dragoman-process-")));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const agentOf = (command: readonly [string, ...string[]], options: Partial<ProcessAgentOptions> = {}) =>
  createProcessAgent({ name: "Script", description: "A script.", cwd: folder, command, ...options });
const shell = (script: string, options?: Partial<ProcessAgentOptions>) => agentOf(["sh", "-c", script], options);
const node = (script: string, options?: Partial<ProcessAgentOptions>) =>
  agentOf([process.execPath, "-e", script], options);

const failureOf = async (agent: ReturnType<typeof agentOf>) => {
  const { events } = await runToEnd(agent, { text: "x" });
  const last = events.at(-1);
  if (last === undefined || !("status" in last)) throw new Error("no status at the end");
  expect(last.status).toBe("TASK_STATE_FAILED");
  return last.message?.parts.map((part) => ("text" in part ? part.text : "")).join("") ?? "";
};

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

describe("a process agent", () => {
  it("gives the text on stdin and streams stdout by lines", async () => {
    const { events } = await runToEnd(shell("cat; printf '\\nlast'"), { text: "zwölf\n你好" });
    expect(events).toEqual([
      { artifact: { artifactId: "output", name: "output", parts: [{ text: "zwölf\n" }] } },
      { artifact: { artifactId: "output", name: "output", parts: [{ text: "你好\n" }] }, append: true },
      { artifact: { artifactId: "output", name: "output", parts: [{ text: "last" }] }, append: true },
    ]);
  });

  it("sends a line as it comes, before the process ends", async () => {
    const controller = new AbortController();
    const run = shell("echo first; sleep 600").run(turnOf({ signal: controller.signal }));
    expect(await run.next()).toMatchObject({ value: { artifact: { parts: [{ text: "first\n" }] } } });
    controller.abort();
    expect(await run.next()).toEqual({ done: true, value: undefined });
  });

  it("gives one JSON object when asked", async () => {
    const agent = node("process.stdin.pipe(process.stdout)", { format: "json" });
    const { events } = await runToEnd(agent, { text: "hi" });
    const turn = turnOf({ text: "hi" });
    expect(JSON.parse(textOfArtifact(events, "output"))).toEqual({
      message: turn.message,
      history: [],
      task: turn.task,
    });
  });

  it("is told how the request came here and how long its caller waits", async () => {
    const { events } = await runToEnd(shell("echo $DRAGOMAN_HOPS"), {
      hops: { hops: 2, ancestors: ["a", "b"], deadline: Date.now() + 60_000 },
    });
    const { remainingMs, ...came } = JSON.parse(textOfArtifact(events, "output"));
    expect(came).toEqual({ hops: 2, ancestors: ["a", "b"] });
    expect(remainingMs).toBeLessThanOrEqual(60_000);
    expect(remainingMs).toBeGreaterThan(0);
  });

  it("runs in its folder with the environment, its own values and the ids of the task", async () => {
    const script = 'pwd; echo $GIVEN $DRAGOMAN_TASK_ID $DRAGOMAN_CONTEXT_ID; test -n "$PATH"';
    const { events } = await runToEnd(shell(script, { env: { GIVEN: "value" } }));
    expect(textOfArtifact(events, "output")).toBe(`${folder}\nvalue task-1 context-1\n`);
  });

  it("turns event lines into events", async () => {
    const lines = [
      '{"status":"Reading"}',
      "text",
      '{"artifact":{"name":"a","data":{"b":1}}}',
      '{"inputRequired":"More?"}',
    ];
    const { events } = await runToEnd(shell(`printf '%s\\n' ${lines.map((line) => `'${line}'`).join(" ")}`));
    expect(events).toEqual([
      { status: "TASK_STATE_WORKING", message: { parts: [{ text: "Reading" }] } },
      { artifact: { artifactId: "output", name: "output", parts: [{ text: "text\n" }] } },
      { artifact: { artifactId: "a", name: "a", parts: [{ data: { b: 1 } }] } },
      { status: "TASK_STATE_INPUT_REQUIRED", message: { parts: [{ text: "More?" }] } },
    ]);
  });

  it("answers without a task when it only says a message, else ends with it", async () => {
    expect(await runToEnd(shell(`echo '{"message":"hi"}'`))).toEqual({
      events: [],
      answer: { parts: [{ text: "hi" }] },
    });
    const { events, answer } = await runToEnd(shell(`echo text; echo '{"message":"a"}'; echo '{"message":"b"}'`));
    expect(answer).toBeUndefined();
    expect(events.slice(1)).toEqual([
      { status: "TASK_STATE_WORKING", message: { parts: [{ text: "a" }] } },
      { status: "TASK_STATE_COMPLETED", message: { parts: [{ text: "b" }] } },
    ]);
  });

  it("fails with the code, and with stderr only where that is for callers", async () => {
    const script = "echo out; echo why >&2; exit 3";
    expect(await failureOf(shell(script))).toBe("The agent's program exited with code 3.");
    expect(await failureOf(shell(script, { stderr: "caller" }))).toBe("The agent's program exited with code 3.\nwhy");
    expect(await failureOf(shell("kill -9 $$"))).toBe("The agent's program was ended by SIGKILL.");
  });

  it("passes on only the end of a long stderr, cut between characters", async () => {
    const script = "process.stderr.write('你'.repeat(5000) + 'END', () => process.exit(1))";
    const reason = await failureOf(node(script, { stderr: "caller" }));
    const tail = reason.slice(reason.indexOf("\n") + 1);
    expect(tail).toMatch(/^你+END$/);
    expect(Buffer.byteLength(tail)).toBeGreaterThan(4_000);
    expect(Buffer.byteLength(tail)).toBeLessThanOrEqual(4_096);
  });

  it("fails clearly when it cannot be started", async () => {
    const failure = "The agent's program could not be started.";
    expect(await failureOf(agentOf(["no-such-program-here"]))).toBe(failure);
    expect(await failureOf(shell("true", { cwd: join(folder, "gone") }))).toBe(failure);
  });

  it("does not mind a process that leaves its input unread", async () => {
    const { events } = await runToEnd(shell("exec 0<&-; echo fine"), { text: "x".repeat(1_000_000) });
    expect(textOfArtifact(events, "output")).toBe("fine\n");
    expect(statesOf(events)).toEqual([]);
  });

  it("passes on a line that is too long in pieces", async () => {
    const { events } = await runToEnd(node("process.stdout.write('x'.repeat(3_000_000))"));
    expect(events.length).toBeGreaterThan(1);
    expect(textOfArtifact(events, "output")).toBe("x".repeat(3_000_000));
  });

  it("fails and ends a process that writes more than it may", async () => {
    const reason = await failureOf(shell("while :; do echo 0123456789; done", { maxOutput: 1_000 }));
    expect(reason).toBe("The agent's program wrote more than 1000 characters of output.");
  });

  it("holds the process up while its output is not read", async () => {
    const line = 'require("fs").writeSync(1, "y".repeat(65535) + "\\n");';
    const run = node(`for (let i = 0; i < 100; i++) ${line} require("fs").writeFileSync("written", "")`).run(turnOf());
    await run.next();
    // Another process starts, runs and ends meanwhile: time enough to write 6 MB if nothing holds it back.
    await runToEnd(node(""));
    expect(existsSync(join(folder, "written"))).toBe(false);
    let lines = 1;
    while (!(await run.next()).done) lines++;
    expect(lines).toBe(100);
    expect(existsSync(join(folder, "written"))).toBe(true);
  });

  it("ends the whole group when the turn is aborted", async () => {
    const controller = new AbortController();
    // The inner process holds stdout open: only when it ends too does the run end.
    const agent = shell("sleep 600 & echo started; wait", { cancelGraceMs: 600_000 });
    const run = agent.run(turnOf({ signal: controller.signal }));
    await run.next();
    controller.abort();
    expect(await run.next()).toEqual({ done: true, value: undefined });
  });

  it("kills what ignores the polite signal", async () => {
    const controller = new AbortController();
    const script = "process.on('SIGTERM', () => console.log('no')); console.log('ready'); setInterval(() => {}, 1000)";
    const run = node(script, { cancelGraceMs: 200 }).run(turnOf({ signal: controller.signal }));
    await run.next();
    controller.abort();
    let step = await run.next();
    while (step.done !== true) step = await run.next();
    expect(step).toEqual({ done: true, value: undefined });
  });

  it("ends when the run is given up", async () => {
    const run = shell("echo $$; sleep 600").run(turnOf());
    const first = await run.next();
    if (first.done || !("artifact" in first.value)) throw new Error("no output");
    const [part] = first.value.artifact.parts;
    const pid = Number(part && "text" in part ? part.text : "");
    await run.return?.();
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  it("starts nothing for a turn that is already aborted", async () => {
    expect(await runToEnd(agentOf(["no-such-program-here"]), { signal: AbortSignal.abort() })).toEqual({
      events: [],
      answer: undefined,
    });
  });
});
