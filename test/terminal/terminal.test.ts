/** What a person at a terminal sees, on a pseudo-terminal. */
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startTestAgent, statusUpdate, type TestAgent, task } from "../../src/core/cli/testing/agent-server.ts";
import { openTerminal, type Terminal } from "../built/terminal.ts";

let agent: TestAgent;
let terminal: Terminal | undefined;
beforeEach(async () => {
  agent = await startTestAgent();
});
afterEach(async () => {
  terminal?.kill();
  await agent.close();
});

const COLUMNS = 72;
const open = (...words: readonly string[]): Terminal => {
  terminal = openTerminal(words, COLUMNS);
  return terminal;
};

describe("task list at a terminal", () => {
  const listed = (id: string, state: string, hours: number, text: string) => ({
    id,
    contextId: "context-1",
    status: { state: `TASK_STATE_${state}`, timestamp: new Date(Date.now() - (hours + 0.5) * 3_600_000).toISOString() },
    history: [
      { messageId: "m1", role: "ROLE_USER", parts: [{ text }] },
      { messageId: "m2", role: "ROLE_AGENT", parts: [{ text: "an answer" }] },
    ],
  });
  beforeEach(() => {
    const tasks = [
      listed(
        "task-1",
        "WORKING",
        2,
        "\n写一篇关于茶的历史的文章,从唐代开始一直写到今天,要有小标题和参考文献\nsecond line",
      ),
      listed(
        "task-22",
        "INPUT_REQUIRED",
        50,
        "Write \u001b[31ma poem\tof tea, with as many lines as the year has weeks",
      ),
    ];
    agent.replies.ListTasks = { result: { tasks, nextPageToken: "", pageSize: 2, totalSize: 2 } };
  });

  it("is a table that fits, however wide the characters are", async () => {
    const { code, screen } = await open("task", "list", "-a", agent.url).ended;
    expect(code).toBe(0);
    expect(screen).toEqual([
      "ID       STATE           AGENT       AGE  MESSAGE",
      "task-1   working         Test agent  2h   写一篇关于茶的历史的文章,从唐…",
      "task-22  input-required  Test agent  2d   Write \\x1b[31ma poem of tea,…",
      "Tasks: 2 of 2",
      "",
    ]);
  });

  it("has the fields instead where history or the text form is asked for", async () => {
    const asked = await open("task", "list", "-a", agent.url, "--history", "2").ended;
    expect(asked.screen).toEqual(expect.arrayContaining(["History: m1", "Task ID: task-1", "History: m2"]));
    const text = await open("task", "list", "-a", agent.url, "-o", "text").ended;
    expect(text.screen.slice(0, 3)).toEqual(["Task ID: task-1", "Context ID: context-1", "State: TASK_STATE_WORKING"]);
  });
});

describe("send at a terminal", () => {
  it("shows the newest status in place, and what it waits for after a while", async () => {
    const more = new Readable({ objectMode: true, read: () => {} });
    agent.replies = {
      SendStreamingMessage: { events: [{ task: task("SUBMITTED") }, statusUpdate("WORKING", "Step 1")], more },
      GetTask: { result: task("COMPLETED", { artifacts: [{ artifactId: "a", parts: [{ text: "done" }] }] }) },
    };
    const sending = open("send", "-a", agent.url, "hello");
    await sending.shows(/\d+s {2}working: Step 1/);
    more.push(statusUpdate("WORKING", `第二步 ${"很长".repeat(60)}`));
    await sending.shows(/\d+s {2}working: 第二步 很长/);
    await sending.shows(/Waiting for Test agent to finish task task-1/);
    more.push(statusUpdate("COMPLETED"));
    more.push(null);
    const { code, screen } = await sending.ended;
    expect(code).toBe(0);
    // The terminal wraps the one line that stays; of the statuses nothing is left.
    expect(screen.join("").replace(/Artifact:.*/, "")).toMatch(
      /^Waiting for Test agent to finish task task-1 in context context-1 \(working: [^)]+\)\. Ctrl-C stops the waiting, not the task\.$/,
    );
    expect(screen).toEqual(expect.arrayContaining(["Task ID: task-1", "State: TASK_STATE_COMPLETED"]));
  });

  it("counts connections that fail in place, and leaves one line of them", async () => {
    const more = new Readable({ objectMode: true, read: () => {} });
    agent.replies = {
      SendStreamingMessage: { events: [{ task: task("WORKING") }], cut: true },
      SubscribeToTask: [{ status: 503 }, { status: 503 }, { status: 503 }, { events: [], more }],
      GetTask: { status: 503 },
    };
    const sending = open("send", "-a", agent.url, "hello");
    await sending.shows(/Failed attempts: 4\. /);
    more.push({ task: task("COMPLETED") });
    more.push(null);
    const { code, screen } = await sending.ended;
    expect(code).toBe(0);
    expect(screen.slice(0, 2)).toEqual(["Reached the agent again after 4 failed attempts.", "Task ID: task-1"]);
  });
});
