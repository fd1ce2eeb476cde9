import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { TaskArtifactUpdate } from "../../../src/core/model/event.ts";
import type { Scenario } from "../scenario.ts";
import {
  artifactText,
  collect,
  endedTask,
  isState,
  next,
  rest,
  says,
  saysAtOnce,
  sendTask,
  statusOf,
  taskIdOf,
  until,
  untilEnded,
} from "../send-helpers.ts";

export const STREAMING: readonly Scenario[] = [
  {
    name: "stream in pieces",
    operation: "stream",
    shows:
      "The task first, each piece of an artifact while the agent still writes, marked as to be appended, then the end.",
    async run(driver, gates) {
      const gate = randomUUID();
      const updates: TaskArtifactUpdate[] = [];
      const events = [];
      for await (const event of driver.stream(says(`chunks 3 ${gate}`))) {
        events.push(event);
        if (!("artifactUpdate" in event)) continue;
        updates.push(event.artifactUpdate);
        // The agent writes nothing more before this: a client that waits for the end would wait for ever.
        gates.open(gate);
      }
      expect(events[0]).toHaveProperty("task");
      expect(updates.map(({ artifact }) => artifact.parts)).toMatchObject([
        [{ text: "1;" }],
        [{ text: "2;" }],
        [{ text: "3;" }],
      ]);
      expect(updates.map(({ append = false }) => append)).toEqual([false, true, true]);
      expect(updates.map(({ lastChunk = false }) => lastChunk)).toEqual([false, false, true]);
      const last = events.at(-1);
      expect(last && statusOf(last)?.state).toBe("TASK_STATE_COMPLETED");
      const [first] = events;
      if (first === undefined) expect.fail("The stream was empty.");
      expect(artifactText(await driver.get(taskIdOf(first)), "pieces")).toBe("1;2;3;");
    },
  },
  {
    name: "stream a plain message",
    operation: "stream",
    shows: "One event, the message, and the end.",
    async run(driver) {
      const events = await collect(driver.stream(says("direct hello")));
      expect(events).toMatchObject([{ message: { role: "ROLE_AGENT", parts: [{ text: "Directly: hello" }] } }]);
    },
  },
  {
    name: "stream a question",
    operation: "stream",
    shows: "The stream ends with the question; the answer is streamed to the end of the task.",
    async run(driver) {
      const asked = await collect(driver.stream(says("ask")));
      const last = asked.at(-1);
      if (last === undefined) expect.fail("The stream was empty.");
      expect(statusOf(last)?.state).toBe("TASK_STATE_INPUT_REQUIRED");
      const answered = await collect(driver.stream(says("red", { taskId: taskIdOf(last) })));
      expect(answered.map(taskIdOf)).toEqual(answered.map(() => taskIdOf(last)));
      expect(answered.some((event) => "artifactUpdate" in event)).toBe(true);
      expect(answered.at(-1)).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } });
    },
  },
  {
    name: "subscribe",
    operation: "subscribe",
    shows: "The task as it is, then what follows, to its end.",
    async run(driver, gates) {
      const gate = randomUUID();
      const begun = await sendTask(driver, saysAtOnce(`hold ${gate}`));
      const events = driver.subscribe(begun.id)[Symbol.asyncIterator]();
      expect(await next(events)).toMatchObject({ task: { id: begun.id } });
      gates.open(gate);
      const followed = await rest(events);
      expect(followed.filter((event) => "artifactUpdate" in event)).toMatchObject([
        { artifactUpdate: { taskId: begun.id, artifact: { parts: [{ text: "released" }] } } },
      ]);
      expect(followed.at(-1)).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } });
    },
  },
  {
    name: "leave and come back",
    operation: "subscribe",
    shows: "A task continues when its reader leaves, and can be followed again.",
    async run(driver, gates) {
      const gate = randomUUID();
      const left = driver.stream(says(`hold ${gate}`))[Symbol.asyncIterator]();
      const seen = await until(left, isState("TASK_STATE_WORKING"));
      await left.return?.();
      const id = taskIdOf(seen);
      const events = driver.subscribe(id)[Symbol.asyncIterator]();
      expect(await next(events)).toMatchObject({ task: { id, status: { state: "TASK_STATE_WORKING" } } });
      gates.open(gate);
      expect((await rest(events)).at(-1)).toMatchObject({
        statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } },
      });
      expect(artifactText(await untilEnded(driver, id), "held")).toBe("released");
    },
  },
  {
    name: "subscribe after the end",
    operation: "subscribe",
    shows: "The task as it ended, and nothing more.",
    async run(driver) {
      const { id } = await endedTask(driver);
      const events = await collect(driver.subscribe(id));
      expect(events).toMatchObject([{ task: { id, status: { state: "TASK_STATE_COMPLETED" } } }]);
    },
  },
  {
    name: "cancel while streaming",
    operation: "cancel",
    shows: "The stream of a task ends with its cancellation.",
    async run(driver) {
      const events = driver.stream(says("slow"))[Symbol.asyncIterator]();
      const id = taskIdOf(await until(events, isState("TASK_STATE_WORKING")));
      const [followed, cancelled] = await Promise.all([rest(events), driver.cancel(id)]);
      const last = followed.at(-1);
      expect(last && statusOf(last)?.state).toBe("TASK_STATE_CANCELED");
      expect(cancelled.status.state).toBe("TASK_STATE_CANCELED");
    },
  },
];
