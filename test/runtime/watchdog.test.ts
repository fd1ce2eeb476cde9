import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createStallDetector } from "../../src/core/agents/threads.ts";
import { EXIT } from "../../src/core/cli/errors.ts";
import { STALLED_EXIT_CODE } from "../../src/core/server/watchdog.ts";
import { ServedFolder } from "./served-folder.ts";

const FILES = {
  "dragoman.yaml": `
store: sqlite:data.db
server: { watchdog: 1s }
agents:
  echo: { use: echo }
  loop: { module: ./agents/loop.ts, timeout: 1s }
  sleeper: { exec: [sh, -c, "echo $$ > pid; exec sleep 600"] }
`,
  "agents/loop.ts": `import { writeFileSync } from "node:fs";
import { defineAgent } from "dragoman";
export default defineAgent({
  name: "Loop",
  description: "Never returns.",
  async *run(turn) {
    if (turn.text === "regular") return turn.reply("fine");
    yield turn.working("Looping");
    if (turn.text === "later") await new Promise((resolve) => setTimeout(resolve, 1));
    writeFileSync("looping", "");
    spin();
  },
});
function spin() {
  for (;;) {}
}
`,
};

describe("an agent in an endless loop", () => {
  test.each(["at once", "later"])("is named with its task, and the process ends (%s)", async (text) => {
    const served = new ServedFolder(FILES);
    await served.start();
    const answer = served.send("loop", text).catch(() => undefined);
    const { code } = await served.ended();
    expect(code).toBe(STALLED_EXIT_CODE);
    await answer;
    const line = served.log.find(({ level }) => level === 60);
    expect(line).toMatchObject({ agent: "loop", task: expect.any(String), exitCode: STALLED_EXIT_CODE });
    expect(line?.msg).toBe("Agent loop kept the server from running for 1 s of CPU time; the process is ended");
    expect(line?.stack).toContainEqual(expect.stringMatching(/^spin \(.*agents\/loop\.ts:\d+:\d+\)$/));

    await served.start();
    const { result } = await served.post("loop", "GetTask", { id: line?.task });
    expect(result).toMatchObject({ status: { state: "TASK_STATE_FAILED" } });
    expect(await served.ask("loop", "regular")).toBe("fine");
  });

  test("is not what a server does that is busy with many large answers", async () => {
    const served = new ServedFolder(FILES);
    await served.start();
    const large = await served.send("echo", "x".repeat(6_000_000));
    const reads = Array.from({ length: 40 }, () =>
      served.post("echo", "GetTask", { id: large.id }).catch(() => undefined),
    );
    await Promise.all(reads);
    expect(await served.ask("loop", "regular")).toBe("fine");
    expect(served.log.filter(({ level }) => level === 60)).toEqual([]);
  });

  test("does not keep SIGTERM from ending the process, nor the programs of other agents from ending with it", async () => {
    const served = new ServedFolder(FILES);
    await served.start();
    const sleeping = served.send("sleeper", "go").catch(() => undefined);
    await expect.poll(() => existsSync(served.path("pid"))).toBe(true);
    const looping = served.send("loop", "at once").catch(() => undefined);
    await expect.poll(() => existsSync(served.path("looping"))).toBe(true);
    served.kill("SIGTERM");
    expect((await served.ended()).code).toBe(STALLED_EXIT_CODE);
    await Promise.all([sleeping, looping]);
    const pid = Number(readFileSync(served.path("pid"), "utf8"));
    await expect.poll(() => isAlive(pid)).toBe(false);
  });
});

test("the exit code is the documented one", () => {
  expect(EXIT.stalled).toBe(STALLED_EXIT_CODE);
});

describe("a thread counts as stalled", () => {
  const watch = (limit: number) => {
    const thread = { cpu: 0, beats: 1 };
    const isStalled = createStallDetector(limit, () => thread.cpu);
    return { thread, look: () => isStalled(thread.beats) };
  };

  test("when it used its time without a beat", () => {
    const { thread, look } = watch(1_000);
    expect(look()).toBe(false);
    thread.cpu = 999;
    expect(look()).toBe(false);
    thread.cpu = 1_000;
    expect(look()).toBe(true);
  });

  test("but not while it beats, however much it works", () => {
    const { thread, look } = watch(1_000);
    for (let second = 0; second < 100; second++) {
      thread.cpu += 900;
      thread.beats++;
      expect(look()).toBe(false);
    }
  });

  test("nor while it is suspended, or shares a busy machine: it then uses little", () => {
    const { thread, look } = watch(1_000);
    look();
    for (let times = 0; times < 1_000; times++) expect(look()).toBe(false);
    thread.cpu += 900;
    expect(look()).toBe(false);
    thread.beats++;
    thread.cpu += 900;
    expect(look()).toBe(false);
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
