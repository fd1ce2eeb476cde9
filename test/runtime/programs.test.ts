import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { type LogLine, ServedFolder, saidBy } from "./served-folder.ts";

const TRACEBACK = `echo 'File "/srv/private/agent.py", line 3: login with sesame-of-the-vault failed' >&2; exit 3`;

const served = new ServedFolder({
  "dragoman.yaml": `
store: "memory:"
limits: { part: 1MiB }
agents:
  echo: { use: echo }
  fails: { exec: [sh, -c, ${JSON.stringify(TRACEBACK)}], env: { VAULT_PASSWORD: sesame-of-the-vault } }
  open: { exec: [sh, -c, ${JSON.stringify(TRACEBACK)}], stderr: caller }
  chatty: { exec: [sh, -c, "echo loading the model >&2; echo done"] }
  missing: { exec: [/opt/private-place/agent, --serve], description: Not there. }
  lost: { exec: [no-such-program-here] }
  flood: { exec: [sh, -c, "echo $$ > pid; exec yes"] }
`,
});
beforeAll(() => served.start());

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

const about = (agent: string) => (line: LogLine) => line.agent === agent && line.program !== undefined;

test("what a failed program wrote to stderr is in the log without its secrets, and not in the answer", async () => {
  const task = await served.send("fails", "go");
  expect(task.status.state).toBe("TASK_STATE_FAILED");
  expect(saidBy(task)).toBe("The agent's program exited with code 3.");
  const line = await served.logged(about("fails"));
  expect(line).toMatchObject({ level: 50, task: task.id, code: 3, msg: "Program exited with code 3" });
  expect(line.stderr).toBe('File "/srv/private/agent.py", line 3: login with [redacted] failed');
  expect(served.stderr).not.toContain("sesame");
});

test("stderr: caller gives its end to the caller, too", async () => {
  const task = await served.send("open", "go");
  expect(saidBy(task)).toMatch(/^The agent's program exited with code 3\.\nFile ".*" ?.* failed$/s);
  expect(await served.logged(about("open"))).toMatchObject({ code: 3 });
});

test("stderr of a program that did well is in the log", async () => {
  expect((await served.send("chatty", "go")).status.state).toBe("TASK_STATE_COMPLETED");
  expect(await served.logged(about("chatty"))).toMatchObject({ level: 30, stderr: "loading the model" });
});

test("a program that is not there is named at the start and in the log, and its place to no caller", async () => {
  for (const [agent, program] of Object.entries({
    missing: "/opt/private-place/agent",
    lost: "no-such-program-here",
  })) {
    expect(await served.logged(({ level, agent: name }) => level === 40 && name === agent)).toMatchObject({ program });
    const task = await served.send(agent, "go");
    expect(saidBy(task)).toBe("The agent's program could not be started.");
    expect(JSON.stringify(task)).not.toContain("private-place");
    expect(await served.logged(({ level, agent: name }) => level === 50 && name === agent)).toMatchObject({ program });
  }
});

test("a program that writes without end is ended, its task fails, and others are served meanwhile", async () => {
  const flood = served.send("flood", "go");
  expect((await served.send("echo", "hello")).status.state).toBe("TASK_STATE_COMPLETED");
  const task = await flood;
  expect(task.status.state).toBe("TASK_STATE_FAILED");
  expect(saidBy(task)).toBe("The agent's program wrote more than 1048576 characters of output.");
  await served.logged(({ agent, level }) => agent === "flood" && level === 40);
  const pid = Number(readFileSync(served.path("pid"), "utf8"));
  await expect.poll(() => isAlive(pid)).toBe(false);
});
