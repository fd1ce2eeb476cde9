import { expect, it } from "vitest";
import { withAnswer } from "./answer.ts";
import { EXTENSIONS } from "./extensions.ts";
import type { Message, Part } from "./message.ts";
import type { Task, TaskState } from "./task.ts";

const message = (role: "USER" | "AGENT", ...parts: readonly Part[]): Message => ({
  messageId: "m",
  role: `ROLE_${role}`,
  parts,
});
const answerOf = (history: readonly Message[], more: Partial<Task> = {}, state: TaskState = "TASK_STATE_COMPLETED") =>
  withAnswer({ id: "t", contextId: "c", status: { state }, history, ...more }).status.message?.parts;
const asked = message("USER", { text: "How tall?" });

it("takes what the agent wrote in this turn where there is nothing else", () => {
  const earlier = [asked, message("AGENT", { text: "Which tower?" })];
  const now = [
    message("USER", { text: "Eiffel" }),
    message("AGENT", { text: "It is" }),
    message("AGENT", { text: " 330 m." }),
  ];
  expect(answerOf([...earlier, ...now])).toEqual([{ text: "It is 330 m." }]);
  expect(answerOf([...now, message("AGENT", { text: "Next?" })], {}, "TASK_STATE_INPUT_REQUIRED")).toEqual([
    { text: "It is 330 m.\nNext?" },
  ]);
});

it("leaves out the data of the work, reasoning and the steps of a workflow", () => {
  const reasoning = { text: "Hm.", metadata: { [EXTENSIONS.reasoning]: true } };
  const step = { ...message("AGENT", { text: "Step 1" }), metadata: { [EXTENSIONS.workflow]: { step: "one" } } };
  const work = [asked, step, message("AGENT", { data: { tool: "ruler" } }, reasoning)];
  expect(answerOf([...work, message("AGENT", { text: "330 m" })])).toEqual([{ text: "330 m" }]);
  expect(answerOf(work)).toEqual([{ data: { tool: "ruler" } }]);
});

it("changes no task that has an answer, or none to give", () => {
  const history = [asked, message("AGENT", { text: "Thinking" })];
  expect(answerOf(history, { artifacts: [{ artifactId: "a", parts: [{ text: "330 m" }] }] })).toBeUndefined();
  expect(answerOf(history, {}, "TASK_STATE_CANCELED")).toBeUndefined();
  expect(answerOf([asked])).toBeUndefined();
  const last = message("AGENT", { text: "Done" });
  expect(answerOf(history, { status: { state: "TASK_STATE_COMPLETED", message: last } })).toEqual(last.parts);
});
