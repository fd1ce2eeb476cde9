import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { ServedFolder, saidBy, type TaskJson } from "./served-folder.ts";

const MODULE = `import { threadId } from "node:worker_threads";
import { data, defineAgent, file } from "dragoman";

let turns = 0;
export default defineAgent({
  name: "All",
  description: "Uses all that a turn offers.",
  extended: (caller) => ({ description: "For " + caller.owner }),
  async *run(turn) {
    turns++;
    switch (turn.text) {
      case "hello":
        return turn.reply("thread " + threadId + " turn " + turns);
      case "everything": {
        yield turn.working("Starting");
        const first = await turn.memory.once("made", () => ({ list: [1, 2] }));
        await turn.memory.set("other", "x");
        await turn.memory.delete("other");
        yield turn.artifact({
          name: "facts",
          parts: [
            data({ first, other: (await turn.memory.get("other")) ?? null, caller: turn.caller.owner, attempt: turn.attempt }),
            file({ bytes: new Uint8Array([0, 1, 254, 255]), mediaType: "application/octet-stream", filename: "b.bin" }),
          ],
        });
        yield* turn.stream("notes", pieces());
        yield turn.inputRequired("And now?");
        return;
      }
      case "answer":
        yield turn.completed(JSON.stringify({ history: turn.history.length, memory: await turn.memory.get("made"), context: turn.task.contextId }));
        return;
      case "wait":
        yield turn.working("Waiting");
        await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
        yield turn.working("Stopped: " + turn.signal.reason.message);
        return;
      case "throw":
        throw new Error("with a secret path");
      case "exit":
        process.exit(3);
      case "loop":
        yield turn.working("Looping");
        for (;;) {}
    }
  },
});

async function* pieces() {
  yield "one ";
  yield "two";
}
`;

const served = new ServedFolder({
  "dragoman.yaml": `
store: "memory:"
server: { watchdog: 1s }
agents:
  all: { module: ./all.ts, isolate: true, concurrency: 2 }
  echo: { use: echo }
`,
  "all.ts": MODULE,
});
beforeAll(() => served.start());

const send = (agent: string, text: string, more: object = {}) => served.send(agent, text, more);

const ENDED = "Agent did not stop in time; its thread is ended";

async function settled(
  server: ServedFolder,
  agent: string,
  id: string,
  isSettled: (task: TaskJson) => boolean,
): Promise<TaskJson> {
  let task: TaskJson | undefined;
  const look = async () => {
    task = (await server.post(agent, "GetTask", { id })).result as TaskJson;
    return isSettled(task);
  };
  await expect.poll(look).toBe(true);
  return task as TaskJson;
}

describe("an isolated module", () => {
  test("runs in a thread that is used again", async () => {
    const [, thread, turn] = /^thread (\d+) turn (\d+)$/.exec((await served.ask("all", "hello")) ?? "") ?? [];
    expect(Number(thread)).toBeGreaterThan(0);
    expect(await served.ask("all", "hello")).toBe(`thread ${thread} turn ${Number(turn) + 1}`);
  });

  test("has all that a turn offers", async () => {
    const asked = await send("all", "everything");
    expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(saidBy(asked)).toBe("And now?");
    expect(asked.artifacts).toMatchObject([
      {
        name: "facts",
        parts: [
          { data: { first: { list: [1, 2] }, other: null, caller: "anonymous", attempt: 1 } },
          { raw: "AAH+/w==", filename: "b.bin" },
        ],
      },
      { name: "notes", parts: [{ text: "one two" }] },
    ]);
    const message = { messageId: randomUUID(), role: "ROLE_USER", taskId: asked.id, parts: [{ text: "answer" }] };
    const { result } = await served.post("all", "SendMessage", { message });
    const { task } = result as { readonly task: TaskJson };
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    const { history, memory, context } = JSON.parse(saidBy(task) ?? "");
    expect(history).toBeGreaterThan(0);
    expect(memory).toEqual({ list: [1, 2] });
    expect(context).toMatch(/./);
  });

  test("receives its cancellation", async () => {
    const { id } = await send("all", "wait", { configuration: { returnImmediately: true } });
    await settled(served, "all", id, (task) => saidBy(task) === "Waiting");
    await served.post("all", "CancelTask", { id });
    const task = await settled(served, "all", id, ({ status }) => status.state === "TASK_STATE_CANCELED");
    expect(JSON.stringify(task.history)).toContain("Stopped: The task was cancelled.");
  });

  test("fails alone when it throws or ends its thread, and its error is in the log", async () => {
    for (const [text, reason] of [
      ["throw", "with a secret path"],
      ["exit", "The agent's thread ended with exit code 3."],
    ] as const) {
      const task = await send("all", text);
      expect(task.status.state).toBe("TASK_STATE_FAILED");
      expect(saidBy(task)).toBe("The agent failed while it worked on this message; the server's log says why.");
      const line = await served.logged((entry) => entry.task === task.id && entry.err !== undefined);
      expect(line.err).toMatchObject({ message: reason });
    }
    expect(await served.ask("all", "hello")).toMatch(/^thread/);
  });
});

describe("an endless loop in an isolated module", () => {
  test("ends its thread, fails its task and nothing else; the next turn has a new thread", async () => {
    const before = await served.ask("all", "hello");
    const looping = send("all", "loop");
    expect((await send("echo", "still here")).status.state).toBe("TASK_STATE_COMPLETED");
    const task = await looping;
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(saidBy(task)).toBe("The agent did not return and was ended.");
    expect(await served.logged(({ task: id, level }) => id === task.id && level === 50)).toMatchObject({
      agent: "all",
      msg: "Agent does not return; its thread is ended",
    });
    const after = await served.ask("all", "hello");
    expect(after).toMatch(/ turn 1$/);
    expect(after).not.toBe(before);
  });
});

describe("where no watchdog looks, an endless loop in an isolated module", () => {
  const unwatched = new ServedFolder({
    "dragoman.yaml": `
store: "memory:"
server: { watchdog: false }
cancelGrace: 500ms
agents:
  all: { module: ./all.ts, isolate: true }
  hasty: { module: ./all.ts, isolate: true, timeout: 5s }
`,
    "all.ts": MODULE,
  });
  beforeAll(() => unwatched.start());

  test("is ended by its timeout", async () => {
    const task = await unwatched.send("hasty", "loop");
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(saidBy(task)).toBe("The agent did not finish within 5 s.");
    await unwatched.logged(({ agent, task: id, msg }) => agent === "hasty" && id === task.id && msg === ENDED);
  });

  test("is ended by a cancellation", async () => {
    const { id } = await unwatched.send("all", "loop", { configuration: { returnImmediately: true } });
    await settled(unwatched, "all", id, (task) => saidBy(task) === "Looping");
    const { result } = await unwatched.post("all", "CancelTask", { id });
    expect(result).toMatchObject({ status: { state: "TASK_STATE_CANCELED" } });
    await unwatched.logged(({ agent, task, msg }) => agent === "all" && task === id && msg === ENDED);
    expect(await unwatched.ask("all", "hello")).toMatch(/ turn 1$/);
  });
});
