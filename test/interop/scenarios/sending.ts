import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { Part } from "../../../src/core/model/message.ts";
import { isTerminal, type TaskState } from "../../../src/core/model/task.ts";
import type { Scenario } from "../scenario.ts";
import { artifactText, endedTask, saidWith, says, saysAtOnce, sendTask, untilEnded } from "../send-helpers.ts";

export const SENDING: readonly Scenario[] = [
  {
    name: "send and wait",
    operation: "send",
    shows: "The answer is the completed task with its artifact, in the context the caller chose.",
    async run(driver) {
      const contextId = randomUUID();
      const task = await sendTask(driver, says("echo hello there", { contextId }));
      expect(task.status.state).toBe("TASK_STATE_COMPLETED");
      expect(task.contextId).toBe(contextId);
      expect(artifactText(task, "echo")).toBe("hello there");
    },
  },
  {
    name: "send without waiting",
    operation: "send",
    shows: "The answer comes while the agent works; asked for later, the task has ended.",
    async run(driver, gates) {
      const gate = randomUUID();
      const begun = await sendTask(driver, saysAtOnce(`hold ${gate}`));
      expect(isTerminal(begun.status.state)).toBe(false);
      const held = await driver.get(begun.id);
      expect(isTerminal(held.status.state)).toBe(false);
      gates.open(gate);
      const ended = await untilEnded(driver, begun.id);
      expect(ended.status.state).toBe("TASK_STATE_COMPLETED");
      expect(artifactText(ended, "held")).toBe("released");
    },
  },
  {
    name: "a plain message",
    operation: "send",
    shows: "An agent that answers without a task is understood to have done so.",
    async run(driver) {
      const outcome = await driver.send(says("direct good morning"));
      if (!("message" in outcome)) expect.fail("The agent answered with a task.");
      expect(outcome.message.role).toBe("ROLE_AGENT");
      expect(outcome.message.parts).toMatchObject([{ text: "Directly: good morning" }]);
    },
  },
  {
    name: "a question, answered",
    operation: "send",
    shows: "The task pauses with the agent's question; a message to it continues the same task to its end.",
    async run(driver) {
      const asked = await sendTask(driver, says("ask"));
      expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
      expect(saidWith(asked.status)).toBe("Which colour?");
      const { contextId, id: taskId } = asked;
      const answered = await sendTask(driver, says("blue", { taskId, contextId }));
      expect(answered.id).toBe(taskId);
      expect(answered.contextId).toBe(contextId);
      expect(answered.status.state).toBe("TASK_STATE_COMPLETED");
      expect(artifactText(answered, "answer")).toBe("You said blue.");
    },
  },
  {
    name: "a log-in, asked for",
    operation: "send",
    shows: "The task pauses until someone has logged in; a message to it continues it.",
    async run(driver) {
      const asked = await sendTask(driver, says("authorize"));
      expect(asked.status.state).toBe("TASK_STATE_AUTH_REQUIRED");
      expect(saidWith(asked.status)).toBe("Please log in.");
      const { contextId, id: taskId } = asked;
      const answered = await sendTask(driver, says("done", { taskId, contextId }));
      expect(answered.id).toBe(taskId);
      expect(answered.status.state).toBe("TASK_STATE_COMPLETED");
    },
  },
  ending("a failure", "fail", "TASK_STATE_FAILED", "It broke."),
  ending("a rejection", "reject", "TASK_STATE_REJECTED", "Not that."),
  {
    name: "bytes, links and data",
    operation: "send",
    shows: "Bytes, a link and a nested object come back as they were sent.",
    async run(driver) {
      const bytes = Buffer.from([0, 1, 2, 250, 251, 252, 253, 254, 255]).toString("base64");
      const sent = [
        { raw: bytes, mediaType: "application/octet-stream" },
        { url: "https://files.example/a%20b.bin", mediaType: "application/octet-stream" },
        { data: { text: "Grüße, 世界", number: -1.5, nested: { list: [1, "two", true, { deep: [] }] } } },
      ];
      const task = await sendTask(driver, says("parts", { parts: [{ text: "parts" }, ...sent] }));
      expect(task.status.state).toBe("TASK_STATE_COMPLETED");
      expect(task.artifacts?.[0]?.parts).toHaveLength(sent.length);
      expect(task.artifacts?.[0]?.parts).toMatchObject(sent);
    },
  },
  comingBack("nothing inside data", "A null inside data is still null when it comes back.", {
    data: { nothing: null, list: [null, 1] },
  }),
  comingBack("names of files", "A file keeps its name.", {
    raw: "AAECAw==",
    mediaType: "application/octet-stream",
    filename: "four bytes.bin",
  }),
  {
    name: "get a task",
    operation: "get",
    shows: "An ended task reads as it was answered.",
    async run(driver) {
      const task = await endedTask(driver);
      const read = await driver.get(task.id);
      expect(read.id).toBe(task.id);
      expect(read.contextId).toBe(task.contextId);
      expect(read.status.state).toBe(task.status.state);
      expect(read.artifacts).toEqual(task.artifacts);
    },
  },
  {
    name: "get with some history",
    operation: "get",
    shows: "Asked for one message of its history, the task comes with the newest one.",
    async run(driver) {
      const asked = await sendTask(driver, says("ask"));
      const { contextId, id: taskId } = asked;
      await sendTask(driver, says("green", { taskId, contextId }));
      const read = await driver.get(taskId, 1);
      expect(read.history).toMatchObject([{ role: "ROLE_USER", parts: [{ text: "green" }] }]);
    },
  },
  {
    name: "list tasks",
    operation: "list",
    shows: "The tasks of a context and no others, newest first.",
    async run(driver) {
      if (driver.list === undefined) expect.fail("This client cannot list tasks.");
      const contextId = randomUUID();
      const first = await sendTask(driver, says("echo one", { contextId }));
      const second = await sendTask(driver, says("ask", { contextId }));
      await endedTask(driver);
      const tasks = await driver.list(contextId);
      expect(tasks.map(({ id, status }) => [id, status.state])).toEqual([
        [second.id, "TASK_STATE_INPUT_REQUIRED"],
        [first.id, "TASK_STATE_COMPLETED"],
      ]);
    },
  },
  {
    name: "cancel",
    operation: "cancel",
    shows: "A running task is cancelled and stays so.",
    async run(driver) {
      const begun = await sendTask(driver, saysAtOnce("slow"));
      const cancelled = await driver.cancel(begun.id);
      expect(cancelled.id).toBe(begun.id);
      expect(cancelled.status.state).toBe("TASK_STATE_CANCELED");
      expect((await driver.get(begun.id)).status.state).toBe("TASK_STATE_CANCELED");
    },
  },
];

function ending(name: string, word: string, state: TaskState, reason: string): Scenario {
  return {
    name,
    operation: "send",
    shows: `The task ends as ${state === "TASK_STATE_FAILED" ? "failed" : "rejected"}, with the reason.`,
    async run(driver) {
      const { status } = await sendTask(driver, says(word));
      expect(status.state).toBe(state);
      expect(saidWith(status)).toBe(reason);
    },
  };
}

function comingBack(name: string, shows: string, part: Part): Scenario {
  return {
    name,
    operation: "send",
    shows,
    async run(driver) {
      const task = await sendTask(driver, says("parts", { parts: [{ text: "parts" }, part] }));
      expect(task.artifacts?.[0]?.parts).toMatchObject([part]);
    },
  };
}
