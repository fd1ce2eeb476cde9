import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LogEntry, type TaskEvent } from "./event.ts";
import { EXTENSIONS } from "./extensions.ts";
import { FoldError, fold, TaskFold } from "./fold.ts";
import type { JsonObject } from "./json.ts";
import { type Message, textOf } from "./message.ts";
import { jsonSize, messageSize } from "./size.ts";
import { isTerminal, isTransitionAllowed, TASK_STATES } from "./task.ts";
import { anyEvent, CONTEXT, ID, legalLog, message } from "./testing/events.ts";

const cut = fc.tuple(legalLog, fc.nat()).map(([log, where]) => ({ log, at: (where % log.length) + 1 }));

function refusalIn(run: () => void): string {
  try {
    run();
  } catch (error) {
    if (error instanceof FoldError) return error.refusal;
    throw error;
  }
  return "none";
}

const status = (state: (typeof TASK_STATES)[number], said?: Message): TaskEvent => ({
  statusUpdate: { taskId: ID, contextId: CONTEXT, status: said === undefined ? { state } : { state, message: said } },
});
const said = (text: string, role: Message["role"] = "ROLE_AGENT"): Message => ({
  messageId: text,
  role,
  parts: [{ text }],
});
const begun = () =>
  fold([
    LogEntry.of(1, {
      task: {
        id: ID,
        contextId: CONTEXT,
        status: { state: "TASK_STATE_SUBMITTED" },
        history: [said("hi", "ROLE_USER")],
      },
    }),
  ]);
const chunkOf = (text: string, append = true, artifactId = "a"): TaskEvent => ({
  artifactUpdate: { taskId: ID, contextId: CONTEXT, artifact: { artifactId, parts: [{ text }] }, append },
});

describe("folding", () => {
  test("in one go, continued, or from a snapshot gives the same task", () => {
    fc.assert(
      fc.property(cut, ({ log, at }) => {
        const whole = fold(log).toTask();
        const continued = fold(log.slice(0, at));
        const resumed = TaskFold.from(continued.toTask(), continued.number);
        expect(fold(log.slice(at), continued).toTask()).toEqual(whole);
        expect(fold(log.slice(at), resumed).toTask()).toEqual(whole);
        expect(resumed.number).toBe(log.length);
      }),
    );
  });

  test("a snapshot taken on the way does not change afterwards", () => {
    fc.assert(
      fc.property(cut, ({ log, at }) => {
        const open = fold(log.slice(0, at));
        const snapshot = open.toTask();
        const before = JSON.stringify(snapshot);
        fold(log.slice(at), open);
        expect(JSON.stringify(snapshot)).toBe(before);
      }),
    );
  });

  test("survives JSON in both directions", () => {
    fc.assert(
      fc.property(legalLog, (log) => {
        const stored = log.map((entry) => LogEntry.fromJson(entry.number, entry.json, entry.received));
        expect(fold(stored).toTask()).toEqual(fold(log).toTask());
      }),
    );
  });

  test("an event that cannot follow is refused and changes nothing", () => {
    fc.assert(
      fc.property(cut, anyEvent, ({ log, at }, event) => {
        const open = fold(log.slice(0, at));
        const before = JSON.stringify(open.toTask());
        const { state } = open.status;
        const next = "statusUpdate" in event ? event.statusUpdate.status.state : state;
        const legal = !("task" in event) && !isTerminal(state) && isTransitionAllowed(state, next);
        const refusal = refusalIn(() => open.apply(LogEntry.of(at + 1, event)));
        expect(refusal === "none").toBe(legal);
        if (legal) return;
        expect(open.number).toBe(at);
        expect(JSON.stringify(open.toTask())).toBe(before);
      }),
    );
  });

  test("a number out of line is refused and changes nothing", () => {
    fc.assert(
      fc.property(cut, anyEvent, fc.integer({ min: -3, max: 50 }), ({ log, at }, event, number) => {
        fc.pre(number !== at + 1);
        const open = fold(log.slice(0, at));
        const before = JSON.stringify(open.toTask());
        expect(refusalIn(() => open.apply(LogEntry.of(number, event)))).toBe("gap");
        expect(JSON.stringify(open.toTask())).toBe(before);
      }),
    );
  });

  test("ends exactly once: after a terminal event everything is refused", () => {
    fc.assert(
      fc.property(legalLog, fc.constantFrom(...TASK_STATES.filter(isTerminal)), anyEvent, (log, end, event) => {
        const open = fold(log);
        if (!isTerminal(open.status.state)) open.apply(LogEntry.of(open.number + 1, status(end)));
        expect(open.refusal(event)).toBe("task" in event ? "second-task" : "terminal");
      }),
    );
  });

  test("a log must begin with its task, and its events must be its own", () => {
    expect(refusalIn(() => new TaskFold().apply(LogEntry.of(1, status("TASK_STATE_WORKING"))))).toBe("no-task-yet");
    expect(refusalIn(() => void new TaskFold().status)).toBe("no-task-yet");
    const foreign: TaskEvent = {
      statusUpdate: { taskId: "other", contextId: CONTEXT, status: { state: "TASK_STATE_WORKING" } },
    };
    expect(begun().refusal(foreign)).toBe("other-task");
    const elsewhere: TaskEvent = {
      artifactUpdate: { taskId: ID, contextId: "other", artifact: { artifactId: "a", parts: [{ text: "x" }] } },
    };
    expect(begun().refusal(elsewhere)).toBe("other-task");
  });
});

describe("text chunks", () => {
  test("are one part with the whole text, however it was cut", () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1, maxLength: 20 }), (pieces) => {
        const open = begun();
        pieces.forEach((piece, index) => {
          open.apply(LogEntry.of(index + 2, chunkOf(piece, index > 0)));
        });
        expect(open.toTask().artifacts?.[0]?.parts).toEqual([{ text: pieces.join("") }]);
      }),
    );
  });

  test("of several artifacts do not run together", () => {
    const pieces = fc.array(fc.tuple(fc.constantFrom("a", "b"), fc.string()), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(pieces, (all) => {
        const open = begun();
        all.forEach(([artifactId, text], index) => {
          open.apply(LogEntry.of(index + 2, chunkOf(text, true, artifactId)));
        });
        for (const artifact of open.toTask().artifacts ?? []) {
          const own = all.filter(([artifactId]) => artifactId === artifact.artifactId).map(([, text]) => text);
          expect(textOf(artifact.parts)).toBe(own.join(""));
        }
      }),
    );
  });

  test("with something beside the text stay apart", () => {
    const open = begun();
    const marked: TaskEvent = {
      artifactUpdate: {
        taskId: ID,
        contextId: CONTEXT,
        artifact: { artifactId: "a", parts: [{ text: "b", mediaType: "text/html" }] },
        append: true,
      },
    };
    [chunkOf("a", false), marked, chunkOf("c")].forEach((event, index) => {
      open.apply(LogEntry.of(index + 2, event));
    });
    expect(open.toTask().artifacts?.[0]?.parts).toEqual([
      { text: "a" },
      { text: "b", mediaType: "text/html" },
      { text: "c" },
    ]);
  });

  test("replace the artifact unless they say that they continue it", () => {
    const open = begun();
    [chunkOf("old", false), chunkOf("er"), chunkOf("new", false)].forEach((event, index) => {
      open.apply(LogEntry.of(index + 2, event));
    });
    expect(open.hasArtifact("a")).toBe(true);
    expect(open.toTask().artifacts).toEqual([{ artifactId: "a", parts: [{ text: "new" }] }]);
  });

  test("a later chunk may describe the artifact, and what it does not mention stays", () => {
    const open = begun();
    const first: TaskEvent = {
      artifactUpdate: {
        taskId: ID,
        contextId: CONTEXT,
        artifact: { artifactId: "a", name: "notes", parts: [{ text: "x" }] },
      },
    };
    const later: TaskEvent = {
      artifactUpdate: {
        taskId: ID,
        contextId: CONTEXT,
        artifact: { artifactId: "a", description: "all", parts: [{ text: "y" }] },
        append: true,
      },
    };
    open.apply(LogEntry.of(2, first));
    open.apply(LogEntry.of(3, later));
    expect(open.toTask().artifacts).toEqual([
      { artifactId: "a", name: "notes", description: "all", parts: [{ text: "xy" }] },
    ]);
  });
});

describe("history", () => {
  test("holds earlier messages, not that of the current status", () => {
    const open = begun();
    open.apply(LogEntry.of(2, status("TASK_STATE_INPUT_REQUIRED", said("which?"))));
    expect(open.history.map(({ messageId }) => messageId)).toEqual(["hi"]);
    open.apply(LogEntry.of(3, status("TASK_STATE_WORKING"), said("this", "ROLE_USER")));
    expect(open.history.map(({ messageId }) => messageId)).toEqual(["hi", "which?", "this"]);
    open.apply(LogEntry.of(4, status("TASK_STATE_COMPLETED", said("done"))));
    expect(open.toTask().history?.map(({ messageId }) => messageId)).toEqual(["hi", "which?", "this"]);
    expect(open.toTask().status.message?.messageId).toBe("done");
  });

  test("gives the newest messages when fewer are asked for", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 30 }), fc.integer({ min: 0, max: 40 }), (messages, length) => {
        const open = begun();
        messages.forEach((received, index) => {
          open.apply(LogEntry.of(index + 2, status("TASK_STATE_WORKING"), received));
        });
        const all = [said("hi", "ROLE_USER"), ...messages];
        const wanted = length === 0 ? [] : all.slice(-length);
        expect(open.toTask({ historyLength: length }).history ?? []).toEqual(wanted);
      }),
    );
  });

  test("with a limit keeps at least that many of the newest and not more than twice", () => {
    const limit = 5;
    fc.assert(
      fc.property(fc.array(message, { maxLength: 60 }), (messages) => {
        const open = TaskFold.from(begun().toTask(), 1, limit);
        messages.forEach((received, index) => {
          open.apply(LogEntry.of(index + 2, status("TASK_STATE_WORKING"), received));
        });
        const all = [said("hi", "ROLE_USER"), ...messages];
        expect(open.history.length).toBeLessThanOrEqual(2 * limit);
        expect(open.history.slice(-limit)).toEqual(all.slice(-limit));
        expect(open.historySize).toBe(open.history.reduce((sum, kept) => sum + messageSize(kept), 0));
      }),
    );
  });

  test("is left out when there is none, as are artifacts", () => {
    const bare = fold([
      LogEntry.of(1, { task: { id: ID, contextId: CONTEXT, status: { state: "TASK_STATE_SUBMITTED" } } }),
    ]).toTask();
    expect(bare).toEqual({ id: ID, contextId: CONTEXT, status: { state: "TASK_STATE_SUBMITTED" } });
  });
});

test("a member that is undefined takes up nothing", () => {
  expect(jsonSize({ a: undefined, b: [{ c: undefined, d: 1 }] })).toBe(jsonSize({ b: [{ d: 1 }] }));
});

test("a later chunk of an artifact keeps what it does not mention, also as undefined", () => {
  const folded = begun();
  const chunk = (number: number, append: boolean, about: object) =>
    folded.apply(
      LogEntry.of(number, {
        artifactUpdate: {
          taskId: ID,
          contextId: CONTEXT,
          append,
          artifact: { artifactId: "a", parts: [{ text: "x" }], ...about },
        },
      }),
    );
  chunk(2, false, { name: "n", metadata: { kept: true } });
  chunk(3, true, { name: undefined, metadata: undefined, description: "d" });
  expect(folded.toTask().artifacts).toMatchObject([{ name: "n", description: "d", metadata: { kept: true } }]);
});

test("a task keeps the usage that a status reports, and no other metadata of it", () => {
  const folded = begun();
  const usage = (tokens: number) => ({ [EXTENSIONS.usage]: { tokens } });
  const working = (metadata: JsonObject): TaskEvent => ({
    statusUpdate: { taskId: ID, contextId: CONTEXT, status: { state: "TASK_STATE_WORKING" }, metadata },
  });
  folded.apply(LogEntry.of(2, working({ attempt: 2 })));
  expect(folded.toTask().metadata).toBeUndefined();
  folded.apply(LogEntry.of(3, working(usage(5))));
  folded.apply(LogEntry.of(4, working({ ...usage(9), attempt: 3 })));
  folded.apply(LogEntry.of(5, status("TASK_STATE_COMPLETED")));
  expect(folded.toTask().metadata).toEqual(usage(9));
});
