import { describe, expect, it } from "vitest";
import { createScriptedService } from "../../../core/dialects/suite/join.ts";
import { FakeClock, settle } from "../../../core/engine/testing/fake-clock.ts";
import { ANONYMOUS } from "../../../core/model/caller.ts";
import { ProtocolError, taskNotFound } from "../../../core/model/errors.ts";
import type { FrameStream, Operation } from "../../../core/model/operation.ts";
import type { Task, TaskState } from "../../../core/model/task.ts";
import { AgentTasks } from "./agent-tasks.ts";

const MESSAGE = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hi" }] } as const;
const CALL = { caller: ANONYMOUS, tenant: "", extensions: [], dialect: "any" };

function setUp(answer: (operation: Operation) => unknown, streaming = false) {
  const scripted = createScriptedService();
  scripted.answer = answer;
  const clock = new FakeClock();
  const service = { ...scripted, profile: { ...scripted.profile, streaming } };
  return { tasks: new AgentTasks(service, CALL, clock), clock, asked: scripted.asked };
}

function taskOf(state: TaskState, ...texts: readonly string[]): Task {
  const artifacts = texts.map((text) => ({ artifactId: text, parts: [{ text }] }));
  return { id: "t", contextId: "c", status: { state }, ...(texts.length > 0 && { artifacts }) };
}

/** What comes, as it comes. */
function follow(frames: FrameStream): unknown[] {
  const events: unknown[] = [];
  void (async () => {
    for await (const batch of frames) events.push(...batch.map(({ event }) => event));
    events.push("end");
  })();
  return events;
}

const given = (text: string) => ({
  artifactUpdate: { taskId: "t", contextId: "c", artifact: { artifactId: text, parts: [{ text }] }, lastChunk: true },
});

describe("an agent that does not stream", () => {
  it("is asked at once, and then for its task until there is an answer", async () => {
    let now = taskOf("TASK_STATE_WORKING", "half");
    const { asked, clock, tasks } = setUp((operation) => {
      if (operation.kind === "send") return { task: now };
      if (asked.length === 1) throw taskNotFound("t");
      return now;
    });
    const { hasChosenId, frames } = await tasks.open(MESSAGE, "t");
    expect(hasChosenId).toBe(true);
    const events = follow(frames);
    await settle();
    expect(events).toEqual([{ task: taskOf("TASK_STATE_WORKING") }]);
    await clock.advance(50);
    expect(events).toHaveLength(1);
    now = taskOf("TASK_STATE_COMPLETED", "half", "rest");
    await clock.advance(100);
    expect(events.slice(1)).toEqual([given("half"), given("rest"), { task: taskOf("TASK_STATE_COMPLETED") }, "end"]);
    expect(asked.map(({ kind }) => kind)).toEqual(["get", "send", "get", "get"]);
    expect(asked[1]).toMatchObject({ chosenId: "t", alwaysTask: true, configuration: { returnImmediately: true } });
  });

  it("is no longer polled once the reader has left", async () => {
    const task = taskOf("TASK_STATE_WORKING");
    const { asked, clock, tasks } = setUp(({ kind }) => (kind === "send" ? { task } : task));
    const frames = (await tasks.open(MESSAGE, "t")).frames[Symbol.asyncIterator]();
    await frames.next();
    const next = frames.next();
    const left = frames.return?.();
    await clock.advance(50);
    expect([await next, await left]).toMatchObject([{ value: [] }, { done: true }]);
    await clock.advance(10_000);
    expect(asked.map(({ kind }) => kind)).toEqual(["get", "send"]);
  });

  it("sends only new content of a continued task", async () => {
    const after = taskOf("TASK_STATE_COMPLETED", "old", "new");
    const { asked, tasks } = setUp(({ kind }) => {
      if (kind === "send") return { task: after };
      return asked.length === 1 ? taskOf("TASK_STATE_INPUT_REQUIRED", "old") : after;
    });
    const events = follow((await tasks.open(MESSAGE, "t")).frames);
    await settle();
    expect(events).toEqual([given("new"), { task: taskOf("TASK_STATE_COMPLETED") }, "end"]);
  });

  it("may ask for input, and may answer with just a message", async () => {
    const asking = setUp(({ kind }) =>
      kind === "send" ? { task: taskOf("TASK_STATE_INPUT_REQUIRED") } : taskOf("TASK_STATE_WORKING"),
    );
    const question = follow((await asking.tasks.open(MESSAGE, "t")).frames);
    const talking = setUp(({ kind }) => (kind === "send" ? { message: MESSAGE } : taskOf("TASK_STATE_WORKING")));
    const message = follow((await talking.tasks.open(MESSAGE, "t")).frames);
    await settle();
    expect(question).toEqual([{ task: taskOf("TASK_STATE_INPUT_REQUIRED") }, "end"]);
    expect(message).toEqual([{ message: MESSAGE }, "end"]);
  });
});

describe("an id that was used", () => {
  it.each([true, false])("is not given again (streaming: %s)", async (streaming) => {
    const used = new ProtocolError("UNSUPPORTED_OPERATION", "It has ended.", { metadata: { taskId: "t" } });
    const { asked, tasks } = setUp((operation) => {
      if (operation.kind === "get") return taskOf("TASK_STATE_COMPLETED");
      if ("chosenId" in operation) throw used;
      return { task: taskOf("TASK_STATE_COMPLETED") };
    }, streaming);
    expect((await tasks.open(MESSAGE, "t")).hasChosenId).toBe(false);
    expect(asked.at(-1)).not.toHaveProperty("chosenId");
  });
});
