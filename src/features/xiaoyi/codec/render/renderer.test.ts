import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../../../core/model/errors.ts";
import type { StreamEvent } from "../../../../core/model/event.ts";
import { EXTENSIONS } from "../../../../core/model/extensions.ts";
import type { Loss } from "../../../../core/model/loss.ts";
import type { Part } from "../../../../core/model/message.ts";
import type { TaskState } from "../../../../core/model/task.ts";
import { xiaoyi } from "../builders.ts";
import { coalesce, enqueueFrames, type RenderedFrame, toErrorResponse, toResponse } from "../frames.ts";
import { withFileId } from "../metadata.ts";
import { Renderer, type RenderOptions } from "./renderer.ts";

const SCOPE = { taskId: "model-task", contextId: "c" };

function status(state: TaskState, text?: string): StreamEvent {
  const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: text ?? "" }] } as const;
  return { statusUpdate: { ...SCOPE, status: text === undefined ? { state } : { state, message } } };
}

function chunk(artifactId: string, parts: readonly Part[] | string, append = false): StreamEvent {
  const artifact = { artifactId, parts: typeof parts === "string" ? [{ text: parts }] : parts };
  return { artifactUpdate: { ...SCOPE, artifact, ...(append ? { append } : undefined) } };
}

const COMPLETED = status("TASK_STATE_COMPLETED");

function rendererOf(options: Partial<RenderOptions> = {}): { renderer: Renderer; losses: Loss[] } {
  let made = 0;
  const losses: Loss[] = [];
  const renderer = new Renderer({
    mode: "phone",
    language: "zh",
    taskId: "t",
    artifactId: () => `a-${++made}`,
    report: (lost) => losses.push(...lost),
    ...options,
  });
  return { renderer, losses };
}

function render(events: readonly StreamEvent[], options: Partial<RenderOptions> = {}): RenderedFrame[] {
  const { renderer } = rendererOf(options);
  return [...renderer.begin(), ...events.flatMap((event) => renderer.push(event))];
}

const OK = { code: 0, message: "" };
const WORKING = { taskId: "t", kind: "status-update", final: false, status: { state: "working" } };
const DONE = { taskId: "t", kind: "status-update", final: true, status: { state: "completed" } };

function artifact(artifactId: string, part: object, append: boolean, lastChunk = true): object {
  const update = { append, lastChunk, final: false, artifact: { artifactId, parts: [part] } };
  return { taskId: "t", kind: "artifact-update", ...update };
}

const JSON_BLOCK = "\n```json\n1\n```\n";
const text = (value: string) => ({ kind: "text", text: value });
const thought = (value: string) => ({ kind: "reasoningText", reasoningText: value });
const resultsOf = (frames: readonly RenderedFrame[]) => frames.map(({ result }) => result);

describe("for the phone", () => {
  it("text is sent in full each time, under a new id, and the last frame has none", () => {
    const frames = render([chunk("x", "Hel"), chunk("x", "lo", true), COMPLETED]);
    expect(resultsOf(frames)).toEqual([
      WORKING,
      artifact("a-1", thought(""), false),
      artifact("a-2", text("Hel"), false),
      artifact("a-3", text("Hello"), false),
      DONE,
    ]);
    expect(frames.every(({ error }) => error.code === 0 && error.message === "")).toBe(true);
  });

  it("several artifacts are one text, also when an earlier one changes", () => {
    const frames = render([chunk("x", "one"), chunk("y", "two"), chunk("x", "!", true), chunk("y", "2"), COMPLETED]);
    const texts = resultsOf(frames).flatMap((result) =>
      result.kind === "artifact-update"
        ? result.artifact.parts.flatMap((part) => ("text" in part ? part.text : []))
        : [],
    );
    expect(texts).toEqual(["one", "one\n\ntwo", "one!\n\ntwo", "one!\n\n2"]);
  });

  it("what no longer fits a frame is added", () => {
    const frames = render([chunk("x", "a".repeat(3_999)), chunk("x", "😀bc", true), chunk("x", "d", true), COMPLETED]);
    expect(resultsOf(frames).slice(2)).toEqual([
      artifact("a-2", text("a".repeat(3_999)), false),
      artifact("a-3", text(`${"a".repeat(3_999)}😀`), false),
      artifact("a-4", text("bc"), true),
      artifact("a-5", text("d"), true),
      DONE,
    ]);
  });

  it("progress is reasoning, with a line for each", () => {
    const frames = render([
      status("TASK_STATE_WORKING", "Reading"),
      status("TASK_STATE_WORKING"),
      status("TASK_STATE_WORKING", "Writing"),
      chunk("x", [xiaoyi.reasoning(" hard")]),
      COMPLETED,
    ]);
    expect(resultsOf(frames).slice(2)).toEqual([
      artifact("a-2", thought("Reading"), false),
      artifact("a-3", thought("Reading\nWriting"), false),
      artifact("a-4", thought("Reading\nWriting hard"), false),
      DONE,
    ]);
  });

  it.each([
    ["zh", "步骤“outline”已开始。\n步骤“outline”：Step 1: page 1\n步骤“outline”将重试：Busy.\nStep aside."],
    [
      "en",
      "Step outline started (a).\nStep outline: Step 1: page 1\nStep outline will be tried again: Busy.\nStep aside.",
    ],
  ] as const)("progress of a workflow is in the language %s, but not what its agents wrote", (language, expected) => {
    const about = (state: string, text: string): StreamEvent => {
      const metadata = { [EXTENSIONS.workflow]: { step: "outline", state } };
      const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text }], metadata } as const;
      return { statusUpdate: { ...SCOPE, status: { state: "TASK_STATE_WORKING", message } } };
    };
    const events = [
      about("started", "Step outline started (a)."),
      about("working", "Step outline: Step 1: page 1"),
      about("retrying", "Step outline will be tried again: Busy."),
      status("TASK_STATE_WORKING", "Step aside."),
    ];
    expect(resultsOf(render(events, { language })).at(-1)).toEqual(artifact("a-5", thought(expected), false));
  });

  it.each([
    ["outline", "failed", "Step outline failed: Timed out after 5 s.", "步骤“outline”失败：5 秒内未完成，已超时。"],
    [
      "sub",
      "failed",
      "Step sub failed: Step sub/提纲[0]: The agent's answer broke off. Not cancelled: b (b: no answer).",
      "步骤“sub”失败：步骤“sub/提纲[0]”失败：智能体的回答中断了，请重试。以下步骤未能取消：b (b: no answer)。",
    ],
    [
      "sub",
      "failed",
      "Step sub failed: Step a rejected: Not on Sundays.",
      "步骤“sub”失败：步骤“a”被拒绝：Not on Sundays.",
    ],
    ["a", "rejected", "Step a rejected: No.", "步骤“a”被拒绝：No."],
    [undefined, "failed", "Step 1: preheat the oven.", "Step 1: preheat the oven."],
  ])("a workflow that fails at %s is told in Chinese", (step, state, text, expected) => {
    const metadata = step === undefined ? {} : { [EXTENSIONS.workflow]: { step, state } };
    const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text }], metadata } as const;
    const events: StreamEvent[] = [{ statusUpdate: { ...SCOPE, status: { state: "TASK_STATE_FAILED", message } } }];
    expect(JSON.stringify(render(events, { language: "zh" }))).toContain(expected);
    expect(JSON.stringify(render(events, { language: "en" }))).toContain(text);
  });

  it.each([
    ["TASK_STATE_COMPLETED", "Completed without steps a, b.", "任务已完成，但以下步骤未完成：a, b。"],
    [
      "TASK_STATE_CANCELED",
      "Not all agents confirmed the cancellation: b (b: no answer).",
      "部分智能体未确认取消：b (b: no answer)。",
    ],
  ] as const)("a workflow that ends as %s says in Chinese what is missing", (state, text, expected) => {
    expect(JSON.stringify(render([status(state, text)], { language: "zh" }))).toContain(expected);
  });

  it("of reasoning that no longer fits a frame, the newest part is sent, and the loss is reported", () => {
    const { losses, renderer } = rendererOf();
    const frames = [
      ...renderer.push(chunk("x", [xiaoyi.reasoning(`😀${"a".repeat(3_999)}`)])),
      ...renderer.push(status("TASK_STATE_WORKING", "bc")),
      ...renderer.push(status("TASK_STATE_WORKING", "d")),
    ];
    expect(resultsOf(frames).slice(2)).toEqual([
      artifact("a-2", thought(`😀${"a".repeat(3_999)}`), false),
      artifact("a-3", thought(`${"a".repeat(3_997)}\nbc`), false),
      artifact("a-4", thought(`${"a".repeat(3_995)}\nbc\nd`), false),
    ]);
    expect(losses.map(({ kind, path }) => `${path} ${kind}`)).toEqual(["reasoning dropped"]);
  });

  it("an answer without a task is text", () => {
    const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "Hi." }] } as const;
    expect(resultsOf(render([{ message }])).slice(2)).toEqual([artifact("a-2", text("Hi."), false), DONE]);
  });

  it.each(["phone", "spec"] as const)("messages of the work are the answer if there is no other (%s)", (mode) => {
    const work = [status("TASK_STATE_WORKING", "It is"), status("TASK_STATE_WORKING", " 330 m.")];
    for (const state of ["TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"] as const) {
      expect(JSON.stringify(resultsOf(render([...work, status(state)], { mode })).slice(-2))).toContain("It is 330 m.");
    }
    const shown = resultsOf(render([...work, chunk("x", "330 m"), COMPLETED], { mode }));
    expect(JSON.stringify(shown.slice(-2))).not.toContain("It is 330 m.");
  });

  it("the message of a task's end is text after the rest", () => {
    const frames = render([chunk("x", "one"), status("TASK_STATE_COMPLETED", "Done.")]);
    expect(resultsOf(frames).slice(-2)).toEqual([artifact("a-3", text("one\n\nDone."), false), DONE]);
  });

  it("cards show by themselves, and their text is for others", () => {
    const card = xiaoyi.card({ cardName: "c", cardData: {} }, { text: "for others" });
    const frames = render([chunk("x", [{ text: "See:" }, card]), COMPLETED]);
    expect(resultsOf(frames).slice(2)).toEqual([
      artifact("a-2", text("See:"), false),
      artifact("a-3", { kind: "data", data: { cardsInfo: [{ cardName: "c", cardData: {} }] } }, true),
      DONE,
    ]);
  });

  it("what is beside the text of an artifact shows once, however often the artifact is replaced", () => {
    const card = (cardName: string) => xiaoyi.card({ cardName, cardData: {} }, { text: "for others" });
    const file = withFileId({ url: "https://files.example/a", filename: "a" }, "f-1");
    const told = (words: string, ...more: readonly Part[]) =>
      chunk("x", [xiaoyi.reasoning(`why ${words}`), { text: words }, card("c"), file, ...more]);
    const frames = render([told("a"), told("ab", card("d")), chunk("x", [card("c")], true), chunk("y", [card("c")])]);
    const shown = resultsOf(frames).flatMap((result) =>
      result.kind === "artifact-update" ? result.artifact.parts : [],
    );
    expect(shown.flatMap((part) => (part.kind === "text" ? [part.text] : []))).toEqual(["a", "ab"]);
    expect(shown.findLast((part) => part.kind === "reasoningText")).toEqual(thought("why ab"));
    const cards = shown.flatMap((part) => (part.kind === "data" ? [JSON.stringify(part.data)] : []));
    expect(cards.map((data) => /"cardName":"(.)"/.exec(data)?.[1])).toEqual(["c", "d", "c", "c"]);
    expect(shown.filter((part) => part.kind === "file")).toHaveLength(1);
  });

  it("a file the platform has is shown as documented, any other is named", () => {
    const known = withFileId({ url: "https://f/1", filename: "a.pdf", mediaType: "application/pdf" }, "obj-1");
    const parts = [known, { url: "https://f/2", filename: "b[1].txt" }, { raw: "aGk=", filename: "c.bin" }];
    const { losses, renderer } = rendererOf();
    const frames = renderer.push(chunk("x", parts));
    const file = { name: "a.pdf", mimeType: "application/pdf", fileId: "obj-1" };
    expect(resultsOf(frames).slice(2)).toEqual([
      artifact("a-2", text("[b\\[1\\].txt](https://f/2)\nc.bin"), false),
      artifact("t", { kind: "file", file }, true, false),
    ]);
    expect(losses.map(({ path }) => path)).toEqual(["artifact.parts[1].url", "artifact.parts[2].raw"]);
  });

  it.each<[string, readonly StreamEvent[], readonly string[]]>([
    ["in one event", [chunk("x", [{ data: { a: 1 } }, { text: "One." }])], ["One."]],
    [
      "that came before",
      [chunk("x", "One."), chunk("x", [{ data: {} }], true), chunk("x", " Two.", true)],
      ["One.", "One. Two."],
    ],
    ["that comes later", [chunk("x", [{ data: 1 }]), chunk("x", "One.", true)], [JSON_BLOCK, "One."]],
    [
      "of another artifact, stands alone",
      [chunk("x", "One."), chunk("y", [{ data: 1 }])],
      ["One.", `One.\n\n${JSON_BLOCK}`],
    ],
    ["that was replaced, stands alone", [chunk("x", "One."), chunk("x", [{ data: 1 }])], ["One.", JSON_BLOCK]],
    ["beside the name of a file", [chunk("x", [{ data: 1 }, { raw: "aGk=", filename: "c.bin" }])], ["c.bin"]],
  ])("data beside text is not shown: text %s", (_, events, texts) => {
    const { losses, renderer } = rendererOf();
    const shown = events
      .flatMap((event) => renderer.push(event))
      .flatMap(({ result }) => (result.kind === "artifact-update" ? result.artifact.parts : []));
    expect(shown.flatMap((part) => (part.kind === "text" ? [part.text] : []))).toEqual(texts);
    const isShown = texts.some((one) => one.includes(JSON_BLOCK));
    expect(losses.find(({ path }) => path.endsWith(".data"))?.kind).toBe(isShown ? "bent" : "dropped");
  });

  it("messages of a status with text are shown without their data", () => {
    const parts = [{ text: "Done." }, { data: { a: 1 } }];
    const message = { messageId: "m", role: "ROLE_AGENT", parts } as const;
    for (const state of ["TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_WORKING"] as const) {
      for (const desktop of [true, false]) {
        const frames = render([{ statusUpdate: { ...SCOPE, status: { state, message } } }], { desktop });
        expect(JSON.stringify(frames)).toContain("Done.");
        expect(JSON.stringify(frames)).not.toContain("json");
      }
    }
  });

  it("data is sent as JSON unless the device shows it", () => {
    const { losses, renderer } = rendererOf();
    const frames = renderer.push(chunk("x", [{ data: { a: 1 } }, { data: { cardsInfo: [] } }]));
    expect(resultsOf(frames).slice(2)).toEqual([
      artifact("a-2", text('\n```json\n{\n  "a": 1\n}\n```\n'), false),
      artifact("a-3", { kind: "data", data: { cardsInfo: [] } }, true),
    ]);
    expect(losses).toEqual([expect.objectContaining({ kind: "bent", path: "artifact.parts[0].data" })]);
  });

  it("reports that artifacts are joined, and that messages become their text", () => {
    const { losses, renderer } = rendererOf();
    for (const event of [chunk("x", "one"), chunk("x", "more", true), chunk("y", "two"), chunk("y", "three", true)]) {
      renderer.push(event);
    }
    expect(losses.map(({ path }) => path)).toEqual(["artifact"]);
    renderer.push(status("TASK_STATE_FAILED", "No luck."));
    expect(losses.map(({ path }) => path)).toEqual(["artifact", "status.message"]);
  });

  it("sends no empty text, and nothing of empty artifacts", () => {
    expect(resultsOf(render([chunk("x", ""), chunk("x", "", true), COMPLETED])).slice(2)).toEqual([DONE]);
  });

  it("a failed task is sent with its reason and its state", () => {
    const frames = render([chunk("x", "one"), status("TASK_STATE_FAILED", "No luck.")]);
    expect(frames.slice(-2)).toEqual([
      { result: artifact("a-3", text("one\n\nNo luck."), false), error: OK, shows: "all-text" },
      {
        result: { taskId: "t", kind: "status-update", final: true, status: { state: "failed" } },
        error: { code: 99_921_111, message: "任务执行异常，请重试" },
      },
    ]);
  });

  it("a stream that failed ends with the reason and the code of the error", () => {
    const { renderer } = rendererOf();
    renderer.begin();
    const frames = renderer.fail(new ProtocolError("RESOURCE_EXHAUSTED", "Too much."));
    const message = "当前请求较多，请稍后再试。";
    expect(frames.at(-2)?.result).toEqual(artifact("a-2", text(message), false));
    expect(frames.at(-1)).toMatchObject({ result: { final: true }, error: { code: 99_911_113, message } });
    expect(renderer.fail(new ProtocolError("UNAVAILABLE", "again"))).toEqual([]);
  });

  it.each([
    ["an end", status("TASK_STATE_FAILED", "No luck.")],
    ["a question", status("TASK_STATE_INPUT_REQUIRED", "Which?")],
  ])("%s that may not lose anything is refused, and the refusal ends the stream", (_, event) => {
    const report = () => {
      throw new ProtocolError("LOSS_REFUSED", "Nothing may be lost.");
    };
    const { renderer } = rendererOf({ report, questionEnds: true });
    renderer.begin();
    expect(() => renderer.push(event)).toThrow("Nothing may be lost.");
    const frames = renderer.fail(new ProtocolError("LOSS_REFUSED", "Nothing may be lost."));
    expect(frames.at(-1)).toMatchObject({ result: { final: true, status: { state: "failed" } } });
    expect(renderer.ended).toBe(true);
  });

  it("a canceled task is sent as such", () => {
    expect(resultsOf(render([status("TASK_STATE_CANCELED")])).at(-1)).toEqual({
      taskId: "t",
      kind: "status-update",
      final: true,
      status: { state: "canceled" },
    });
  });
});

describe("a question", () => {
  const asked = (final: boolean, value: string) => ({
    taskId: "t",
    kind: "status-update",
    final,
    status: { state: "input-required", message: { role: "agent", parts: [text(value)] } },
  });

  it("on the phone is text, and leaves the task open for its answer", () => {
    const { renderer } = rendererOf();
    const frames = [chunk("x", "So."), status("TASK_STATE_INPUT_REQUIRED", "Which?")].flatMap((event) =>
      renderer.push(event),
    );
    expect(resultsOf(frames).slice(-2)).toEqual([artifact("a-3", text("So.\n\nWhich?"), false), asked(false, "")]);
    expect(renderer.asking).toBe(true);
    expect(renderer.keepAlive()).toBeUndefined();
    expect(resultsOf(renderer.push(status("TASK_STATE_WORKING")))).toEqual([WORKING]);
    expect(renderer.keepAlive()?.result).toEqual(WORKING);
    const rest = [chunk("y", "That."), COMPLETED].flatMap((event) => renderer.push(event));
    expect(resultsOf(rest)).toEqual([artifact("a-4", text("So.\n\nWhich?\n\nThat."), false), DONE]);
    expect(renderer.ended).toBe(true);
    expect(renderer.keepAlive()).toBeUndefined();
  });

  it("on the phone is not shown again if it is the text already", () => {
    const events = [chunk("x", "So."), chunk("y", "Which?"), status("TASK_STATE_INPUT_REQUIRED", "Which?")];
    expect(resultsOf(render(events)).slice(-2)).toEqual([
      artifact("a-3", text("So.\n\nWhich?"), false),
      asked(false, ""),
    ]);
  });

  it("on a desktop is in the status", () => {
    const frames = render([status("TASK_STATE_INPUT_REQUIRED", "Which?")], { desktop: true });
    expect(resultsOf(frames).slice(2)).toEqual([asked(false, "Which?")]);
  });

  it("on a desktop is in the answer where no status can carry it", () => {
    const frames = render([status("TASK_STATE_INPUT_REQUIRED", "?".repeat(4_001))], { desktop: true });
    expect(resultsOf(frames).slice(2)).toEqual([
      artifact("a-2", text("?".repeat(4_000)), false),
      artifact("a-3", text("?"), true),
      asked(false, ""),
    ]);
  });

  it("ends a stream that is the answer to a request", () => {
    const { renderer } = rendererOf({ questionEnds: true });
    const frames = renderer.push(status("TASK_STATE_AUTH_REQUIRED", "Log in."));
    expect(frames.at(-1)?.result).toEqual(asked(true, ""));
    expect(renderer.push(COMPLETED)).toEqual([]);
  });
});

describe("a question to the device", () => {
  it("leaves the way open by which it is answered", () => {
    const message = { messageId: "q", role: "ROLE_AGENT", parts: [xiaoyi.location()] } as const;
    const update = { ...SCOPE, status: { state: "TASK_STATE_INPUT_REQUIRED", message } } as const;
    const { renderer } = rendererOf({ questionEnds: true });
    const frames = renderer.push({ statusUpdate: update });
    expect(frames.some(({ result }) => result.final)).toBe(false);
    expect(JSON.stringify(frames)).toContain("GetCurrentLocation");
    expect([renderer.asking, renderer.ended]).toEqual([true, false]);
  });
});

describe("as documented", () => {
  const options = { mode: "spec" } as const;

  it("artifacts keep their ids and chunks, statuses their messages", () => {
    const frames = render(
      [
        { task: { id: "m", contextId: "c", status: { state: "TASK_STATE_SUBMITTED" } } },
        status("TASK_STATE_WORKING", "Thinking"),
        chunk("x", "Hel"),
        {
          artifactUpdate: {
            ...SCOPE,
            artifact: { artifactId: "x", parts: [{ text: "lo" }] },
            append: true,
            lastChunk: true,
          },
        },
        COMPLETED,
      ],
      options,
    );
    expect(resultsOf(frames)).toEqual([
      WORKING,
      { ...WORKING, status: { state: "working", message: { role: "agent", parts: [text("Thinking")] } } },
      artifact("x", text("Hel"), false, false),
      artifact("x", text("lo"), true, true),
      DONE,
    ]);
  });

  it.each([
    ["TASK_STATE_COMPLETED", {}],
    ["TASK_STATE_FAILED", {}],
    ["TASK_STATE_INPUT_REQUIRED", { questionEnds: true }],
  ] as const)("artifacts that an agent left open are closed before the end: %s", (state, more) => {
    const closed = {
      artifactUpdate: { ...SCOPE, artifact: { artifactId: "z", parts: [{ text: "z" }] }, lastChunk: true },
    };
    const frames = render([chunk("x", "a"), chunk("y", "b"), chunk("x", "c", true), closed, status(state)], {
      ...options,
      ...more,
    });
    expect(resultsOf(frames).slice(-3)).toEqual([
      artifact("x", text(""), true, true),
      artifact("y", text(""), true, true),
      expect.objectContaining({ kind: "status-update", final: true }),
    ]);
    const open = render([chunk("x", "a"), status("TASK_STATE_INPUT_REQUIRED", "?")], options);
    expect(resultsOf(open).some((result) => "lastChunk" in result && result.lastChunk)).toBe(false);
  });

  it("text that does not fit a frame continues in the next", () => {
    const frames = render(
      [chunk("x", [{ text: "a".repeat(5_000) }, { text: "b".repeat(3_000) }, { data: {} }])],
      options,
    );
    expect(resultsOf(frames).slice(1)).toEqual([
      artifact("x", text("a".repeat(4_000)), false, false),
      {
        ...artifact("x", {}, true, false),
        artifact: {
          artifactId: "x",
          parts: [text("a".repeat(1_000)), text("b".repeat(3_000)), { kind: "data", data: {} }],
        },
      },
    ]);
  });

  it("reasoning that does not fit a frame continues in the next", () => {
    const frames = render([chunk("x", [xiaoyi.reasoning("a".repeat(4_001)), { text: "b".repeat(3_999) }])], options);
    expect(resultsOf(frames).slice(1)).toEqual([
      artifact("x", thought("a".repeat(4_000)), false, false),
      {
        ...artifact("x", {}, true, false),
        artifact: { artifactId: "x", parts: [thought("a"), text("b".repeat(3_999))] },
      },
    ]);
  });

  it.each([
    ["TASK_STATE_WORKING", "working", false],
    ["TASK_STATE_INPUT_REQUIRED", "input-required", false],
    ["TASK_STATE_FAILED", "failed", true],
  ] as const)("what a status cannot carry is told before it: %s", (state, word, final) => {
    const { losses, renderer } = rendererOf(options);
    const said = (value: string, words: object) => ({
      taskId: "t",
      kind: "status-update",
      final: false,
      status: { state: "working", message: { role: "agent", parts: [text(value)] } },
      ...words,
    });
    const frames = renderer.push(status(state, "a".repeat(8_001)));
    const message = { role: "agent", parts: [text("a")] };
    expect(resultsOf(frames).slice(1)).toEqual([
      said("a".repeat(4_000), {}),
      said("a".repeat(4_000), {}),
      said("a", { final, status: { state: word, message } }),
    ]);
    expect(losses.map(({ path }) => path)).toEqual(["status.message"]);
  });

  it("a failed task has the reason in its status", () => {
    const [last] = render([status("TASK_STATE_FAILED", "No.")], options).slice(-1);
    expect(last).toEqual({
      result: {
        taskId: "t",
        kind: "status-update",
        final: true,
        status: { state: "failed", message: { role: "agent", parts: [text("No.")] } },
      },
      error: { code: 99_921_111, message: "任务执行异常，请重试" },
    });
  });

  it("reports its losses", () => {
    const { losses, renderer } = rendererOf(options);
    renderer.push(chunk("x", [{ text: "a", metadata: { b: 1 } }, { data: 5 }, { text: "c", mediaType: "text/html" }]));
    expect(losses.map(({ path }) => path)).toEqual([
      "artifact.parts[0].metadata",
      "artifact.parts[1].data",
      "artifact.parts[2].mediaType",
    ]);
  });
});

describe("frames that wait", () => {
  it("are replaced by those that show the same and more", () => {
    const waiting: RenderedFrame[] = [];
    enqueueFrames(render([chunk("x", "a"), chunk("x", "b", true), chunk("x", "c", true), COMPLETED]), waiting);
    expect(resultsOf(waiting)).toEqual([
      WORKING,
      artifact("a-1", thought(""), false),
      artifact("a-4", text("abc"), false),
      DONE,
    ]);
  });

  it("are joined where both add something, as far as a frame takes it", () => {
    const [first, second, third] = render([
      chunk("x", "a".repeat(4_000)),
      chunk("x", "b".repeat(2_000), true),
      chunk("x", "c".repeat(2_000), true),
      chunk("x", "d", true),
    ]).slice(3) as [RenderedFrame, RenderedFrame, RenderedFrame];
    const both = coalesce(first, second) as RenderedFrame;
    expect(both.result).toEqual(artifact("a-4", text("b".repeat(2_000) + "c".repeat(2_000)), true));
    expect(coalesce(both, third)).toBeUndefined();
  });
});

describe("on the wire", () => {
  it("an answer has an error with the code of success, a refusal has no result", () => {
    expect(toResponse("msg-1", { a: 1 })).toBe(
      '{"jsonrpc":"2.0","id":"msg-1","result":{"a":1},"error":{"code":0,"message":""}}',
    );
    expect(toErrorResponse(null, { code: -32001, message: "No." })).toBe(
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"No."}}',
    );
  });
});
