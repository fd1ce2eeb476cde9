import { describe, expect, test } from "vitest";
import { agentOf, chunk, createGate, echo, inputText, messageAgent, status, textDraft } from "../testing/agents.ts";
import { promptly, settle } from "../testing/fake-clock.ts";
import { framesOf, Harness } from "../testing/harness.ts";
import { logViolations } from "../testing/log-invariants.ts";
import { createStoreGate } from "../testing/stores.ts";

const POLICIES = ["fail", "resume"] as const;

describe("a send", () => {
  test("that blocks is answered with the finished task", async () => {
    const harness = await Harness.start({ agent: echo() });
    const task = await promptly(harness.task("hello"));
    expect(task).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED", timestamp: "2026-01-01T00:00:00.000Z" },
      artifacts: [{ artifactId: "echo", parts: [{ text: "hello" }] }],
      history: [{ role: "ROLE_USER", parts: [{ text: "hello" }], taskId: task.id, contextId: task.contextId }],
    });
    expect(logViolations(await harness.log(task.id), { ended: true })).toEqual([]);
    expect(harness.engine.load).toEqual({ tasks: 0, queued: 0, streams: 0 });
  });

  test("that blocks is answered when the task needs its caller", async () => {
    const harness = await Harness.start({
      agent: agentOf(async function* () {
        yield status("TASK_STATE_INPUT_REQUIRED", "Which one?");
      }),
    });
    const task = await promptly(harness.task("hello"));
    expect(task.status).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { parts: [{ text: "Which one?" }] },
    });
  });

  test.each(POLICIES)("that does not block is answered at once (%s)", async (onCrash) => {
    const gate = createGate();
    const agent = agentOf(
      async function* () {
        await gate.pass();
        yield chunk("a", "late", false);
      },
      { onCrash },
    );
    const harness = await Harness.start({ agent });
    const task = await promptly(harness.begin("hello"));
    // The run has begun before the task is written.
    expect(task.status.state).toBe("TASK_STATE_WORKING");
    gate.open();
    await settle();
    expect((await harness.get(task.id)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("keeps the context it was given and makes one otherwise", async () => {
    const harness = await Harness.start({ agent: echo() });
    expect((await harness.task("a", { contextId: "chosen" })).contextId).toBe("chosen");
    const [one, two] = [await harness.task("b"), await harness.task("c")];
    expect(one.contextId).not.toBe(two.contextId);
  });

  test("of a kind of content the agent does not take is refused", async () => {
    const agent = echo();
    const harness = await Harness.start({
      agent: { ...agent, profile: { ...agent.profile, inputModes: ["text/plain"] } },
    });
    await expect(harness.send("", { parts: [{ data: 1 }] })).rejects.toMatchObject({
      code: "CONTENT_TYPE_NOT_SUPPORTED",
    });
    expect((await harness.memory.stats()).tasks).toBe(0);
  });

  test("with a file is refused by its type, which its name may tell, with the types that the agent takes", async () => {
    const agent = echo();
    const inputModes = ["text/plain", "image/*"];
    const harness = await Harness.start({ agent: { ...agent, profile: { ...agent.profile, inputModes } } });
    const refusals = [
      [{ raw: "aGk=" }, "application/octet-stream"],
      [{ raw: "aGk=", filename: "a.pdf" }, "application/pdf"],
      [{ url: "https://x.example/a.PDF?v=1" }, "application/pdf"],
    ] as const;
    for (const [part, mediaType] of refusals) {
      await expect(harness.send("", { parts: [part] })).rejects.toThrow(
        `This agent does not take ${mediaType}; its inputModes are text/plain, image/*.`,
      );
    }
    const taken = [{ raw: "aGk=", filename: "a.PNG" }, { url: "https://x.example/notes.txt#top" }];
    const outcome = await promptly(harness.task("", { parts: taken }));
    expect(outcome.status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("whose agent throws fails the task without telling what was thrown", async () => {
    const harness = await Harness.start({
      agent: agentOf(async function* () {
        yield status("TASK_STATE_WORKING");
        throw new Error("password is 1234");
      }),
    });
    const task = await promptly(harness.task("hello"));
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(JSON.stringify(task)).not.toContain("1234");
  });

  test("to an agent that takes too long fails the task and tells the agent", async () => {
    let told = false;
    const harness = await Harness.start({
      agent: agentOf(
        async function* (turn) {
          yield status("TASK_STATE_WORKING");
          await new Promise<void>((resolve) => {
            turn.signal.addEventListener("abort", () => resolve());
          });
          told = true;
          yield chunk("late", "too late", false);
        },
        { timeoutMs: 2_000 },
      ),
    });
    const answer = harness.task("hello");
    await harness.clock.advance(2_000);
    expect((await promptly(answer)).status).toMatchObject({
      state: "TASK_STATE_FAILED",
      message: { parts: [{ text: "The agent did not finish within 2 s." }] },
    });
    expect(told).toBe(true);
    expect((await answer).artifacts).toBeUndefined();
  });
});

describe("a message as the answer", () => {
  test.each(POLICIES)("leaves no task behind (%s)", async (onCrash) => {
    const harness = await Harness.start({ agent: messageAgent({ onCrash }) });
    const outcome = await promptly(harness.send("hello"));
    expect(outcome).toMatchObject({ message: { role: "ROLE_AGENT", parts: [{ text: "You said hello." }] } });
    expect(outcome).not.toHaveProperty("message.taskId");
    await settle();
    expect((await harness.memory.stats()).tasks).toBe(0);
    expect((await harness.list()).tasks).toEqual([]);
    expect(harness.engine.load.tasks).toBe(0);
  });

  test.each(POLICIES)("is one frame of a stream (%s)", async (onCrash) => {
    const harness = await Harness.start({ agent: messageAgent({ onCrash }) });
    const frames = await promptly(framesOf(await promptly(harness.stream("hello"))));
    expect(frames).toHaveLength(1);
    expect(frames[0]).not.toHaveProperty("number");
    expect(JSON.parse(frames[0]?.json ?? "")).toEqual(frames[0]?.event);
    expect((await harness.memory.stats()).tasks).toBe(0);
    expect(harness.engine.load.streams).toBe(0);
  });

  test.each(POLICIES)("that comes when the task has been shown completes the task (%s)", async (onCrash) => {
    const gate = createGate();
    const agent = agentOf(
      // biome-ignore lint/correctness/useYield: an agent that only answers yields nothing.
      async function* () {
        await gate.pass();
        return textDraft("at last");
      },
      { onCrash },
    );
    const harness = await Harness.start({ agent });
    const stream = harness.stream("hello");
    await harness.clock.advance(1_000);
    const frames = framesOf(await promptly(stream));
    gate.open();
    const all = await promptly(frames);
    expect(all.map(({ number }) => number)).toEqual([1, 2, 3]);
    expect(all[1]?.event).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_WORKING" } } });
    expect(all[2]?.event).toMatchObject({
      statusUpdate: { status: { state: "TASK_STATE_COMPLETED", message: { parts: [{ text: "at last" }] } } },
    });
  });

  test("is not shown as a task once it is being taken back", async () => {
    const held = createStoreGate();
    const harness = await Harness.start({ agent: messageAgent(), wrap: held.wrap });
    held.gate.hold();
    const stream = harness.stream("hello", { key: "key" });
    await held.gate.waiting();
    await held.gate.step();
    expect(await held.gate.waiting()).toMatchObject([{ kind: "discard" }]);
    await harness.clock.advance(2_000);
    held.gate.open();
    const frames = await promptly(framesOf(await promptly(stream)));
    expect(frames.map(({ event }) => Object.keys(event))).toEqual([["message"]]);
  });

  test.each(POLICIES)("never takes back a task that the caller holds (%s)", async (onCrash) => {
    const atOnce = { next: () => Promise.resolve({ done: true as const, value: textDraft("hi") }) };
    for (const agent of [messageAgent({ onCrash }), agentOf(() => atOnce, { onCrash })]) {
      const harness = await Harness.start({ agent });
      const outcome = await promptly(harness.send("hello", { returnImmediately: true }));
      await settle();
      if ("task" in outcome) {
        expect((await harness.get(outcome.task.id)).status.state).toBe("TASK_STATE_COMPLETED");
      }
    }
  });
});

describe("limits", () => {
  const busy = () => {
    const gate = createGate();
    const agent = agentOf(
      async function* () {
        yield status("TASK_STATE_WORKING");
        await gate.pass();
      },
      { concurrency: 1 },
    );
    return { gate, agent };
  };
  const exhausted = { code: "RESOURCE_EXHAUSTED", retryAfter: expect.any(Number) };

  test("tasks of one owner, and of that owner only", async () => {
    const { agent, gate } = busy();
    const harness = await Harness.start({ agent, limits: { tasksPerOwner: 2 } });
    await harness.begin("1");
    await harness.begin("2");
    await expect(harness.begin("3")).rejects.toMatchObject(exhausted);
    await harness.begin("other", { owner: "bob" });
    gate.open();
    await settle(20);
    await expect(promptly(harness.begin("4"))).resolves.toBeDefined();
  });

  test("tasks waiting for one agent", async () => {
    const { agent, gate } = busy();
    const harness = await Harness.start({ agents: { agent, free: echo() }, limits: { queue: 2 } });
    await harness.begin("runs");
    await settle();
    await harness.begin("waits");
    await harness.begin("waits");
    await expect(harness.begin("too many")).rejects.toMatchObject(exhausted);
    expect((await promptly(harness.task("elsewhere", { agent: "free" }))).status.state).toBe("TASK_STATE_COMPLETED");
    gate.open();
    await settle(20);
    expect(harness.engine.load.queued).toBe(0);
  });

  test("streams of one owner; one that ended makes room", async () => {
    const { agent, gate } = busy();
    const harness = await Harness.start({ agent, limits: { streamsPerOwner: 2 } });
    const task = await harness.begin("1");
    await settle();
    const first = await harness.subscribe(task.id);
    await harness.subscribe(task.id);
    await expect(harness.subscribe(task.id)).rejects.toMatchObject(exhausted);
    await expect(harness.stream("2")).rejects.toMatchObject(exhausted);
    await first[Symbol.asyncIterator]().return?.();
    const again = await promptly(harness.subscribe(task.id));
    gate.open();
    await promptly(framesOf(again));
    expect(harness.engine.load.streams).toBeLessThanOrEqual(1);
  });

  test("a refused stream does not count", async () => {
    const harness = await Harness.start({ agent: echo(), limits: { streamsPerOwner: 1 } });
    for (let attempt = 0; attempt < 3; attempt++) {
      await expect(harness.subscribe("unknown")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    }
    expect(await promptly(framesOf(await harness.stream("hello")))).not.toEqual([]);
  });
});

test("what was said is in the history of the next turn, what is said is not", async () => {
  const seen: string[][] = [];
  const harness = await Harness.start({
    agent: agentOf(async function* (turn) {
      seen.push(turn.history.map(({ parts }) => inputText({ ...turn, message: { ...turn.message, parts } })));
      yield inputText(turn) === "end"
        ? status("TASK_STATE_COMPLETED")
        : status("TASK_STATE_INPUT_REQUIRED", `${inputText(turn)}?`);
    }),
  });
  const { id } = await harness.task("one");
  await harness.task("two", { taskId: id });
  await harness.task("end", { taskId: id });
  expect(seen).toEqual([[], ["one", "one?"], ["one", "one?", "two", "two?"]]);
});
