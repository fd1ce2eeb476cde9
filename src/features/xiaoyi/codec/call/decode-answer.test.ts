import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../../../core/model/errors.ts";
import { LogEntry, type TaskEvent } from "../../../../core/model/event.ts";
import { EXTENSIONS } from "../../../../core/model/extensions.ts";
import { TaskFold } from "../../../../core/model/fold.ts";
import { textOf } from "../../../../core/model/message.ts";
import type { Task } from "../../../../core/model/task.ts";
import { cases } from "../../../../core/model/testing/exploring.ts";
import { XIAOYI_EXTENSION } from "../metadata.ts";
import { RENDER_MODES, Renderer } from "../render/renderer.ts";
import { AnswerDecoder } from "./decode-answer.ts";
import { decodeAnswerFrame } from "./decode-frame.ts";

const SCOPE = { taskId: "t", contextId: "c" };
const FAILED = { code: "99921111", message: "broken" };

/** What a caller sees of an answer. */
class Listener {
  readonly answer = new AnswerDecoder(SCOPE);
  readonly events: TaskEvent[] = [];
  readonly #fold = new TaskFold();

  constructor() {
    this.#apply({ task: { id: "t", contextId: "c", status: { state: "TASK_STATE_SUBMITTED" } } });
  }

  hear(result: unknown, error: object = { code: 0, message: "" }): this {
    for (const event of this.answer.decode(decodeAnswerFrame({ result, error }).value)) this.#take(event);
    return this;
  }

  settle(): this {
    for (const event of this.answer.settle()) this.#take(event);
    return this;
  }

  get task(): Task {
    return this.#fold.toTask();
  }

  /** By artifact. */
  get texts(): Record<string, string> {
    return Object.fromEntries((this.task.artifacts ?? []).map(({ artifactId, parts }) => [artifactId, textOf(parts)]));
  }

  get text(): string {
    return Object.values(this.texts).join(" | ");
  }

  get states(): string[] {
    return this.events.flatMap((event) =>
      "statusUpdate" in event ? [event.statusUpdate.status.state.replace("TASK_STATE_", "")] : [],
    );
  }

  get said(): string[] {
    return this.events.flatMap((event) =>
      "statusUpdate" in event ? [textOf(event.statusUpdate.status.message?.parts ?? [])] : [],
    );
  }

  #take(event: TaskEvent): void {
    this.events.push(event);
    this.#apply(event);
  }

  #apply(event: TaskEvent): void {
    this.#fold.apply(LogEntry.of(this.#fold.number + 1, event));
  }
}

let made = 0;
const freshId = () => `artifact-${++made}`;

interface TextOptions {
  readonly append?: boolean;
  readonly id?: string;
  readonly final?: boolean;
  readonly lastChunk?: boolean;
}

function text(words: string, options: TextOptions = {}): object {
  const { append = false, final = false, id = freshId(), lastChunk = true } = options;
  const parts = [{ kind: "text", text: words }];
  return { taskId: "t", kind: "artifact-update", append, lastChunk, final, artifact: { artifactId: id, parts } };
}

function think(words: string): object {
  return { artifact: { artifactId: freshId(), parts: [{ kind: "reasoningText", reasoningText: words }] } };
}

/** What those begin with who speak to phones. */
const DOTS = think("");

function status(state: string, words?: string, final = false): object {
  const message = { role: "agent", parts: [{ kind: "text", text: words }] };
  return { taskId: "t", kind: "status-update", final, status: words === undefined ? { state } : { state, message } };
}

const pieces = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 12 });
const grown = (all: readonly string[]) => all.map((_, at) => all.slice(0, at + 1).join(""));

describe("the text of an answer", () => {
  it("sent in full each time it grows is one artifact, and each piece of it is decoded once", () => {
    fc.assert(
      fc.property(pieces, (all) => {
        const listener = new Listener();
        for (const words of grown(all)) listener.hear(text(words));
        listener.hear(text(all.join(""), { final: true }));
        expect(listener.text).toBe(all.join(""));
        expect(listener.task.artifacts).toHaveLength(1);
        expect(JSON.stringify(listener.events).length).toBeLessThan(400 * (all.length + 2));
      }),
    );
  });

  it("sent in pieces under one id, or each under its own, is the same", () => {
    fc.assert(
      fc.property(pieces, fc.boolean(), fc.boolean(), (all, sameId, repeats) => {
        const listener = new Listener();
        for (const [at, words] of all.entries()) {
          listener.hear(text(words, { append: at > 0, id: sameId ? "one" : freshId() }));
        }
        if (repeats) listener.hear(text(all.join(""), { final: true }));
        else listener.hear(status("completed", undefined, true));
        expect(listener.text).toBe(all.join(""));
        expect(listener.states).toEqual(["COMPLETED"]);
      }),
    );
  });

  it("sent in pieces that append is one artifact, whatever ids and last chunks the pieces have", () => {
    const piece = fc.record({
      words: fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }),
      fresh: fc.boolean(),
    });
    const answer = fc.record({
      begins: fc.constantFrom("append", "replace", "dots"),
      lastChunk: fc.option(fc.boolean(), { nil: undefined }),
      rest: fc.array(piece, { minLength: 1, maxLength: 12 }),
      ends: fc.constantFrom("status", "whole", "corrected", "empty"),
    });
    fc.assert(
      fc.property(answer, ({ begins, ends, lastChunk, rest }) => {
        const listener = new Listener();
        const frame = (words: string, append: boolean, id: string) => {
          const { lastChunk: _, ...others } = text(words, { append, id }) as Record<string, unknown>;
          return lastChunk === undefined ? others : { ...others, lastChunk };
        };
        if (begins === "dots") listener.hear(DOTS);
        const first = freshId();
        const [head, ...tail] = rest as [(typeof rest)[number], ...typeof rest];
        listener.hear(frame(head.words, begins === "append", first));
        // No piece but the first has an id that is known: all the others are new, or the same unknown one again.
        for (const { fresh, words } of tail) listener.hear(frame(words, true, fresh ? freshId() : "other"));
        const all = rest.map(({ words }) => words).join("");
        if (ends === "whole") listener.hear(text(all, { final: true }));
        else if (ends === "corrected" && tail.length > 0) listener.hear(text(`(${all})`, { final: true }));
        else if (ends === "empty") listener.hear(text("", { append: true, final: true, lastChunk: true }));
        else listener.hear(status("completed", undefined, true));
        expect(listener.texts).toEqual({ [first]: ends === "corrected" && tail.length > 0 ? `(${all})` : all });
        expect(listener.states).toEqual(["COMPLETED"]);
      }),
      { numRuns: cases(1_500) },
    );
  });

  it("that appends under a new id beside a file is still the one text", () => {
    const file = { kind: "file", file: { name: "a.txt", mimeType: "text/plain", uri: "https://a.example/a.txt" } };
    const mixed = {
      append: true,
      lastChunk: false,
      artifact: { artifactId: "y", parts: [{ kind: "text", text: "." }, file] },
    };
    const listener = new Listener().hear(text("Here it is", { id: "x", append: true, lastChunk: false })).hear(mixed);
    expect(listener.task.artifacts).toEqual([
      { artifactId: "x", parts: [{ text: "Here it is." }] },
      { artifactId: "y", parts: [{ url: "https://a.example/a.txt", filename: "a.txt", mediaType: "text/plain" }] },
    ]);
  });

  it("is decoded from what our own renderers send, in either mode", () => {
    const artifact = fc.record({
      artifactId: fc.constantFrom("a", "b"),
      append: fc.boolean(),
      words: fc.string({ unit: "grapheme", minLength: 1, maxLength: 3_000 }),
    });
    fc.assert(
      fc.property(fc.array(artifact, { maxLength: 8 }), fc.constantFrom(...RENDER_MODES), (all, mode) => {
        const renderer = new Renderer({
          taskId: "t",
          artifactId: freshId,
          mode,
          language: "en",
          desktop: true,
          report: () => {},
        });
        const listener = new Listener();
        const wanted = new Map<string, string>();
        for (const { append: appends, artifactId, words } of all) {
          // The engine lets an agent append only to an artifact that is there.
          const append = appends && wanted.has(artifactId);
          const update = { taskId: "t", contextId: "c", artifact: { artifactId, parts: [{ text: words }] }, append };
          for (const { result } of renderer.push({ artifactUpdate: update })) listener.hear(result);
          wanted.set(artifactId, (append ? (wanted.get(artifactId) ?? "") : "") + words);
        }
        const done = { taskId: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" } } as const;
        for (const { result } of renderer.push({ statusUpdate: done })) listener.hear(result);
        if (mode === "spec") expect(listener.texts).toEqual(Object.fromEntries(wanted));
        else expect(listener.text).toBe([...wanted.values()].join("\n\n"));
        expect(listener.answer.ended).toBe(true);
        expect(listener.task.status.state).toBe("TASK_STATE_COMPLETED");
      }),
      { numRuns: cases(1_000) },
    );
  });

  it("that does not append replaces what was there, whatever its id, where it is for phones", () => {
    expect(new Listener().hear(DOTS).hear(text("Looking…")).hear(text("Found it.")).text).toBe("Found it.");
    const grows = new Listener().hear(text("Look")).hear(text("Looking…")).hear(text("Found it."));
    expect(grows.text).toBe("Found it.");
    const adds = new Listener()
      .hear(text("Look"))
      .hear(text("ing…", { append: true }))
      .hear(text("Found it."));
    expect(adds.text).toBe("Found it.");
    const twice = new Listener().hear(text("one", { id: "a" })).hear(text("two", { id: "a" }));
    expect(twice.texts).toEqual({ a: "two" });
  });

  it("is another one under another id, unless it shows that ids mean nothing", () => {
    const once = new Listener().hear(text("Looking…", { id: "a" })).hear(text("Found it.", { id: "b" }));
    expect(once.texts).toEqual({ a: "Looking…", b: "Found it." });
    const open = new Listener()
      .hear(DOTS)
      .hear(text("Part one", { id: "a", lastChunk: false }))
      .hear(text("Something else", { id: "b", lastChunk: false }))
      .hear(text(", more", { id: "c", lastChunk: false, append: true }));
    expect(open.texts).toEqual({ a: "Part one", b: "Something else, more" });
  });

  it("that is changed as it grows is still the same", () => {
    const listener = new Listener();
    for (const words of ["Hel▌", "Hello wo▌", "Hello world▌", "Hello world."]) listener.hear(text(words));
    expect(listener.text).toBe("Hello world.");
  });

  it("of an agent whose ids mean something is several texts", () => {
    const listener = new Listener()
      .hear(text("The out", { id: "a" }))
      .hear(text("line", { id: "a", append: true }))
      .hear(text("A sum", { id: "b" }))
      .hear(text("mary", { id: "b", append: true }))
      .hear(text("!", { id: "a", append: true }));
    expect(listener.texts).toEqual({ a: "The outline!", b: "A summary" });
    expect(listener.hear(text("Summary", { id: "b" })).texts).toEqual({ a: "The outline!", b: "Summary" });
  });

  it("without an id is one", () => {
    const piece = (words: string) => ({ artifact: { parts: [{ kind: "text", text: words }] }, append: true });
    expect(new Listener().hear(piece("Hel")).hear(piece("lo")).texts).toEqual({ answer: "Hello" });
  });

  it("sent in full at the end after pieces is not decoded twice, even if it is not quite the same", () => {
    const listener = new Listener()
      .hear(text("Hello ", { id: "a" }))
      .hear(text("world ", { id: "a", append: true }))
      .hear(text("Hello world.", { final: true }));
    expect(listener.text).toBe("Hello world.");
  });

  it("is not erased by an empty frame", () => {
    const listener = new Listener().hear(text("kept")).hear(text("", { final: true }));
    expect(listener.text).toBe("kept");
    expect(listener.states).toEqual(["COMPLETED"]);
  });

  it("may be left out where it is empty, and unknown parts are lost", () => {
    const result = { artifact: { artifactId: "a", parts: [{ kind: "text" }, { kind: "hologram" }] } };
    const { losses, value } = decodeAnswerFrame({ result });
    expect(value).toMatchObject({ kind: "artifact", parts: [], append: false, final: false });
    expect(losses.map(({ kind, path }) => [kind, path])).toEqual([["dropped", "artifact.parts[1]"]]);
  });
});

describe("the end of an answer", () => {
  it("is the final frame, whether the state was sent before it or not", () => {
    const before = new Listener().hear(status("completed", "Done.")).hear(text("All.", { final: true }));
    expect(before.states).toEqual(["COMPLETED"]);
    expect(before.said).toEqual(["Done."]);
    expect(before.text).toBe("All.");
    expect(before.hear(text("late")).text).toBe("All.");
    expect(new Listener().hear(text("All.", { final: true })).states).toEqual(["COMPLETED"]);
  });

  it("is waited for after a last state, and then taken for granted", () => {
    const listener = new Listener().hear(status("failed", "No."));
    expect(listener.answer.isSettling).toBe(true);
    expect(listener.states).toEqual([]);
    expect(listener.settle().states).toEqual(["FAILED"]);
    expect(listener.answer.ended).toBe(true);
    expect(new Listener().hear(status("working")).settle().states).toEqual(["WORKING"]);
  });

  it("with an error is a failure", () => {
    const artifact = new Listener().hear(text("Sorry.", { final: true }), FAILED);
    expect([artifact.states, artifact.said, artifact.text]).toEqual([["FAILED"], ["broken"], "Sorry."]);
    const spoken = new Listener().hear(status("failed", "Out of paper.", true), FAILED);
    expect([spoken.states, spoken.said]).toEqual([["FAILED"], ["Out of paper."]]);
    expect(new Listener().hear(status("completed", undefined, true), FAILED).states).toEqual(["FAILED"]);
    expect(new Listener().hear(status("canceled", undefined, true), FAILED).states).toEqual(["CANCELED"]);
  });

  it("may be an error of the answer as a whole", () => {
    const slow = { code: "99911113", message: "Slow down" };
    for (const result of [undefined, text("So far."), status("failed", undefined, true)]) {
      expect(() => decodeAnswerFrame({ result, error: slow })).toThrow(
        expect.objectContaining({ code: "RESOURCE_EXHAUSTED", message: "Slow down" }),
      );
    }
  });

  it("by a state that is none is a failure, unless the task was just being worked on", () => {
    expect(new Listener().hear(status("unknown", undefined, true)).states).toEqual(["FAILED"]);
    expect(new Listener().hear(status("dancing", undefined, true)).states).toEqual(["FAILED"]);
    expect(new Listener().hear(status("unknown")).states).toEqual([]);
    expect(new Listener().hear(status("working", undefined, true)).states).toEqual(["COMPLETED"]);
  });
});

describe("along the way", () => {
  it("keep-alive statuses are decoded once, texts each time they change", () => {
    const listener = new Listener();
    for (const words of [undefined, undefined, "Please wait", "Please wait", undefined, "Nearly", ""]) {
      listener.hear(status("working", words));
    }
    expect(listener.said).toEqual(["", "Please wait", "Nearly"]);
  });

  it("a question is the message of the status, else the text", () => {
    const desktop = new Listener().hear(text("So far.")).hear(status("input-required", "Which?"));
    expect([desktop.states, desktop.said]).toEqual([["INPUT_REQUIRED"], ["Which?"]]);
    expect(desktop.answer.ended).toBe(true);
    const phone = new Listener().hear(text("Which one?")).hear(status("input-required", ""));
    expect(phone.said).toEqual(["Which one?"]);
  });

  it("reasoning is progress: passed on when it is new, then in longer pieces, and before the answer", () => {
    const listener = new Listener()
      .hear(think(""))
      .hear(think("I"))
      .hear(think("I look"))
      .hear(think("I look it up.\nFound"))
      .hear(think("I look it up.\nFound."))
      .hear(text("Answer"));
    expect(listener.said).toEqual(["I", " look it up.\nFound."]);
    expect(listener.states).toEqual(["WORKING", "WORKING"]);
    expect(listener.events[0]).toMatchObject({
      statusUpdate: { status: { message: { parts: [{ metadata: { [EXTENSIONS.reasoning]: true } }] } } },
    });
    expect(listener.task.artifacts).toHaveLength(1);
  });

  it("long reasoning in many lines is a few messages", () => {
    const listener = new Listener();
    const lines = Array.from({ length: 200 }, (_, at) => `${at}: the next thing to consider.\n`);
    for (let count = 1; count <= lines.length; count++) listener.hear(think(lines.slice(0, count).join("")));
    listener.hear(text("Answer"));
    expect(listener.said.join("")).toBe(lines.join(""));
    expect(listener.said.length).toBeLessThan(10);
  });

  it("cards, data and files are artifacts of their own, to phones given once", () => {
    const show = (id: string, ...parts: object[]) => ({ append: true, artifact: { artifactId: id, parts } });
    const file = { kind: "file", file: { name: "a.pdf", mimeType: "application/pdf", uri: "https://a.example/a.pdf" } };
    const card = { kind: "data", data: { cardsInfo: [{ cardName: "weather", cardData: {} }] } };
    const listener = new Listener()
      .hear(DOTS)
      .hear(text("Here.", { id: "one" }))
      .hear(show("t", file))
      .hear(show("x", card, { kind: "data", data: { n: 1 } }))
      .hear(show("y", card))
      .hear(show("z", { kind: "text", text: " Look!" }, card));
    const shown = { text: "weather", metadata: { [XIAOYI_EXTENSION]: { data: card.data } } };
    expect(listener.task.artifacts?.map(({ artifactId, parts }) => [artifactId, parts])).toEqual([
      ["one", [{ text: "Here. Look!" }]],
      ["t", [{ url: "https://a.example/a.pdf", filename: "a.pdf", mediaType: "application/pdf" }]],
      ["x", [shown, { data: { n: 1 } }]],
    ]);
    const documented = new Listener().hear(show("x", { kind: "text", text: "Look" }, card)).hear(show("x", card));
    expect(documented.task.artifacts).toEqual([{ artifactId: "x", parts: [{ text: "Look" }, shown, shown] }]);
  });
});

describe("any frame", () => {
  it("is read or refused with a ProtocolError", () => {
    const value = fc.jsonValue();
    const part = fc.oneof(
      value,
      fc.record({ kind: fc.constantFrom("text", "file", "data", "x"), text: value, file: value }),
    );
    const result = fc.oneof(
      value,
      fc.record({ final: value, append: value, artifact: fc.record({ artifactId: value, parts: fc.array(part) }) }),
      fc.record({
        final: fc.boolean(),
        status: fc.record({ state: value, message: fc.record({ parts: fc.array(part) }) }),
      }),
    );
    fc.assert(
      fc.property(fc.array(result), (all) => {
        const answer = new AnswerDecoder();
        for (const one of all) {
          try {
            answer.decode(decodeAnswerFrame({ result: one }).value);
          } catch (error) {
            expect(ProtocolError.is(error) && error.code).toBe("INVALID_AGENT_RESPONSE");
          }
        }
      }),
      { numRuns: cases(1_500) },
    );
  });
});
