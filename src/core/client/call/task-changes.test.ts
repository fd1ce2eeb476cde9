import fc from "fast-check";
import { expect, test } from "vitest";
import { LogEntry, type TaskEvent } from "../../model/event.ts";
import { TaskFold } from "../../model/fold.ts";
import type { Message } from "../../model/message.ts";
import type { StreamFrame } from "../../model/operation.ts";
import type { Task, TaskState } from "../../model/task.ts";
import { TaskChanges } from "./task-changes.ts";

const PLACE = { taskId: "t", contextId: "c" };

const frameOf = (event: TaskEvent, number?: number): StreamFrame => ({
  event,
  json: JSON.stringify(event),
  ...(number !== undefined && { number }),
});

const taskOf = (texts: readonly string[], state: TaskState = "TASK_STATE_WORKING", id = "t"): Task => ({
  id,
  contextId: "c",
  status: { state },
  artifacts: [{ artifactId: "a", parts: texts.map((text) => ({ text })) }],
});

test("a snapshot that follows another is reduced to what was added", () => {
  const changes = new TaskChanges();
  const first = frameOf({ task: taskOf(["one"]) });
  expect(changes.apply([first])).toEqual([first]);
  expect(changes.apply([frameOf({ task: taskOf(["one"]) })])).toEqual([]);
  const [more, done] = changes.apply([frameOf({ task: taskOf(["one two", "three"], "TASK_STATE_COMPLETED") }, 7)]);
  expect(more?.event).toEqual({
    artifactUpdate: {
      ...PLACE,
      artifact: { artifactId: "a", parts: [{ text: " two" }, { text: "three" }] },
      append: true,
    },
  });
  expect(more).not.toHaveProperty("number");
  expect(done).toMatchObject({ event: { statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } }, number: 7 });
  expect(changes.isSettled).toBe(true);
});

test("what was rewritten replaces what was there", () => {
  const changes = new TaskChanges();
  changes.apply([frameOf({ task: taskOf(["one"]) })]);
  expect(changes.apply([frameOf({ task: taskOf(["two"]) })]).map(({ event }) => event)).toEqual([
    { artifactUpdate: { ...PLACE, artifact: { artifactId: "a", parts: [{ text: "two" }] } } },
  ]);
});

test("what is stored is continued and never shortened, and a rewritten artifact replaces it", () => {
  const stored = { status: { state: "TASK_STATE_WORKING" }, artifacts: taskOf(["1;2;3;"]).artifacts ?? [] } as const;
  const textsAfter = (...texts: string[]) =>
    new TaskChanges(stored)
      .apply([frameOf({ task: taskOf(texts) })])
      .map(
        ({ event }) => "artifactUpdate" in event && [event.artifactUpdate.append, event.artifactUpdate.artifact.parts],
      );
  expect(textsAfter("1;2;3;4;")).toEqual([[true, [{ text: "4;" }]]]);
  expect(textsAfter("1;", "2;", "3;", "4;5;")).toEqual([[true, [{ text: "4;5;" }]]]);
  for (const behind of ["1;2;3;", "1;2;", "3;", ""]) expect(textsAfter(behind)).toEqual([]);
  expect(textsAfter("another")).toEqual([[undefined, [{ text: "another" }]]]);
});

test("messages that were missed between two snapshots come with the second, once", () => {
  const say = (text: string, role: Message["role"] = "ROLE_AGENT"): Message => ({
    messageId: `m-${text}`,
    role,
    parts: [{ text }],
  });
  const at = (history: readonly Message[], message?: Message): StreamFrame =>
    frameOf({ task: { ...taskOf([]), history, status: { state: "TASK_STATE_WORKING", ...(message && { message }) } } });
  const said = (frames: readonly StreamFrame[]) =>
    frames.flatMap(({ event }) => ("statusUpdate" in event ? [event.statusUpdate.status.message?.parts] : []));
  const asked = say("go", "ROLE_USER");
  const changes = new TaskChanges();
  changes.apply([at([asked], say("one"))]);
  const later = at([asked, say("one"), say("two"), say("three"), say("four")], say("four"));
  expect(said(changes.apply([later]))).toEqual([[{ text: "two" }, { text: "three" }], [{ text: "four" }]]);
  expect(changes.apply([later])).toEqual([]);
  const stored = { status: { state: "TASK_STATE_WORKING" }, history: [asked, say("one")] } as const;
  expect(said(new TaskChanges(stored).apply([at([asked, say("one"), say("two")])]))).toEqual([[{ text: "two" }]]);
});

test("nothing follows the end, and events of another task are refused", () => {
  const changes = new TaskChanges();
  changes.apply([frameOf({ task: taskOf([], "TASK_STATE_FAILED") })]);
  expect(changes.apply([frameOf({ task: taskOf(["late"]) })])).toEqual([]);
  const other = new TaskChanges();
  other.apply([frameOf({ task: taskOf([]) })]);
  expect(() => other.apply([frameOf({ task: taskOf([], "TASK_STATE_WORKING", "u") })])).toThrow(/another task/);
});

/** Text of the artifact after these events, as a task's log has it. */
function foldedText(frames: readonly StreamFrame[]): string {
  const events = frames.map(({ event }) => event as TaskEvent);
  const begun: TaskEvent = { task: { id: "t", contextId: "c", status: { state: "TASK_STATE_SUBMITTED" } } };
  const [first] = events;
  const unfolded = first !== undefined && "task" in first ? events : [begun, ...events];
  const fold = new TaskFold();
  unfolded.forEach((event, at) => void fold.apply(LogEntry.of(at + 1, event)));
  const [artifact] = fold.toTask().artifacts ?? [];
  return (artifact?.parts ?? []).map((part) => ("text" in part ? part.text : "")).join("");
}

/** Characters of all events together: nothing may be stored twice. */
function emittedText(frames: readonly StreamFrame[]): number {
  const artifacts = frames.flatMap(({ event }) => {
    if ("task" in event) return event.task.artifacts ?? [];
    return "artifactUpdate" in event ? [event.artifactUpdate.artifact] : [];
  });
  return artifacts
    .flatMap(({ parts }) => parts)
    .reduce((sum, part) => sum + ("text" in part ? part.text.length : 0), 0);
}

test("however chunks and snapshots alternate, the changes fold to the newest text", () => {
  const step = fc.record({ text: fc.string({ maxLength: 4 }), kind: fc.constantFrom("chunk", "snapshot", "both") });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
      const changes = new TaskChanges();
      const seen: StreamFrame[] = [];
      let text = "";
      for (const { kind, text: added } of steps) {
        const isFirst = text === "" && seen.length === 0;
        text += added;
        const chunk = frameOf({
          artifactUpdate: { ...PLACE, artifact: { artifactId: "a", parts: [{ text: added }] }, append: !isFirst },
        });
        const snapshot = frameOf({ task: taskOf([text]) });
        seen.push(...changes.apply(kind === "both" ? [chunk, snapshot] : [kind === "chunk" ? chunk : snapshot]));
      }
      expect(foldedText(seen)).toBe(text);
      expect(emittedText(seen)).toBe(text.length);
    }),
  );
});

test("chunks that are parts of their own at the peer are not repeated", () => {
  const changes = new TaskChanges();
  const chunk = (text: string, append: boolean) =>
    frameOf({ artifactUpdate: { ...PLACE, artifact: { artifactId: "a", parts: [{ text }] }, append } });
  const seen = [
    ...changes.apply([frameOf({ task: { ...taskOf([]), artifacts: [] } }), chunk("one ", false), chunk("two", true)]),
    ...changes.apply([frameOf({ task: taskOf(["one ", "two"]) })]),
    ...changes.apply([chunk(" three", true), frameOf({ task: taskOf(["one ", "two", " three"]) })]),
  ];
  expect(seen).toHaveLength(4);
  expect(foldedText(seen)).toBe("one two three");
});
