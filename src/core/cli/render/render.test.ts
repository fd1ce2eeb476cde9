import { describe, expect, it } from "vitest";
import type { StreamEvent } from "../../model/event.ts";
import type { Part } from "../../model/message.ts";
import type { Task } from "../../model/task.ts";
import { StreamedTask } from "../session/follow.ts";
import { captureOutput } from "../testing/run-in-process.ts";
import { ChatRenderer, StreamRenderer } from "./stream.ts";
import { renderPart, renderTask } from "./task.ts";

const ids = { taskId: "t", contextId: "c" };
const chunk = (text: string, append: boolean, lastChunk = false): StreamEvent => ({
  artifactUpdate: { ...ids, artifact: { artifactId: "a", name: "notes", parts: [{ text }] }, append, lastChunk },
});
const status = (state: Task["status"]["state"], text?: string): StreamEvent => ({
  statusUpdate: {
    ...ids,
    status: {
      state,
      ...(text === undefined ? {} : { message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text }] } }),
    },
  },
});

describe("parts", () => {
  it.each<[Part, string]>([
    [{ text: "hi" }, "Text:\n  hi\n\n"],
    [{ data: { a: [1] } }, 'Data:\n  {\n    "a": [\n      1\n    ]\n  }\n\n'],
    [{ data: null }, "Data:\n  null\n\n"],
    [{ raw: "aGVsbG8=", filename: "x.bin", mediaType: "a/b" }, "File: x.bin (a/b, 5 bytes)\n"],
    [{ url: "https://e.example/f", mediaType: "a/b" }, "File: unnamed (a/b, at https://e.example/f)\n"],
  ])("are all shown: %j", (part, text) => {
    expect(renderPart(part, false)).toBe(text);
  });

  it("show everything beside their content when asked", () => {
    expect(renderPart({ text: "hi", mediaType: "text/markdown", metadata: { k: 1 } }, true)).toBe(
      'Text:\n  hi\n\nPart Media Type: text/markdown\nPart Metadata:\n  {\n    "k": 1\n  }\n\n',
    );
  });
});

describe("tasks", () => {
  it("end with what they are called", () => {
    const task: Task = {
      id: "t",
      contextId: "c",
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ artifactId: "a", name: "answer", parts: [{ text: "42" }] }],
      history: [{ messageId: "m1", role: "ROLE_USER", parts: [{ text: "question" }] }],
    };
    expect(renderTask(task, { verbose: false, history: false })).toBe(
      "Artifact: answer\nText:\n  42\n\nTask ID: t\nContext ID: c\nState: TASK_STATE_COMPLETED\n",
    );
    expect(renderTask(task, { verbose: false, history: true })).toContain(
      "History: m1\nMessage: from user\nText:\n  question\n\n",
    );
  });
});

describe("streams", () => {
  const events = [
    status("TASK_STATE_WORKING", "Thinking"),
    chunk("Hel", false),
    chunk("lo", true),
    chunk("!", true, true),
    status("TASK_STATE_COMPLETED"),
  ];

  it("write text that comes in pieces as one block", () => {
    const seen = captureOutput();
    const renderer = new StreamRenderer(seen.output, false);
    for (const event of events) renderer.show(event);
    renderer.close();
    expect(seen.out).toBe(
      "Message: from agent\nText:\n  Thinking\n\nTask ID: t\nContext ID: c\nState: TASK_STATE_WORKING\n" +
        "Artifact: notes\nText:\n  Hello!\n\nTask ID: t\nContext ID: c\nState: TASK_STATE_COMPLETED\n",
    );
  });

  it("write every piece at once, and close the block before anything else", () => {
    const seen = captureOutput();
    const renderer = new StreamRenderer(seen.output, false);
    renderer.show(chunk("Hel", false));
    expect(seen.out).toBe("Artifact: notes\nText:\n  Hel");
    renderer.show({ artifactUpdate: { ...ids, artifact: { artifactId: "b", parts: [{ data: 1 }] } } });
    expect(seen.out).toBe("Artifact: notes\nText:\n  Hel\n\nArtifact: b\nData:\n  1\n\n");
  });

  it("are only words for a person in a chat", () => {
    const seen = captureOutput();
    const renderer = new ChatRenderer(seen.output);
    for (const event of [...events, status("TASK_STATE_INPUT_REQUIRED", "Which one?")]) renderer.show(event);
    expect({ out: seen.out, err: seen.err }).toEqual({
      out: "  Hello!\n  Which one?\n",
      err: "  Thinking\n[TASK_STATE_INPUT_REQUIRED]\n",
    });
  });

  it("show the messages of a turn that ends without any other answer", () => {
    const seen = captureOutput();
    const renderer = new ChatRenderer(seen.output);
    const turn = [status("TASK_STATE_WORKING", "It is"), status("TASK_STATE_WORKING", " 330 m.")];
    for (const event of [...turn, status("TASK_STATE_INPUT_REQUIRED")]) renderer.show(event);
    for (const event of [status("TASK_STATE_WORKING", "Bye."), status("TASK_STATE_COMPLETED")]) renderer.show(event);
    expect(seen.out).toBe("  It is 330 m.\n  Bye.\n");
  });

  it("add up to a task", () => {
    const view = new StreamedTask();
    for (const event of events) view.apply(event);
    expect(view.toTask()).toEqual({
      id: "t",
      contextId: "c",
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ artifactId: "a", name: "notes", parts: [{ text: "Hello!" }] }],
      history: [{ messageId: "m", role: "ROLE_AGENT", parts: [{ text: "Thinking" }] }],
    });
    view.apply({ task: { id: "t", contextId: "c", status: { state: "TASK_STATE_FAILED" } } });
    expect(view.toTask()).toEqual({ id: "t", contextId: "c", status: { state: "TASK_STATE_FAILED" } });
  });
});

describe("output", () => {
  it("[A2ACLI_AUTH_004] keeps credentials out of talk, plain and encoded", () => {
    const seen = captureOutput();
    seen.output.addSecret("s/3cret");
    seen.output.info("token s/3cret, ?key=s%2F3cret");
    expect(seen.err).toBe("token [redacted], ?key=[redacted]\n");
  });

  it("colours talk on a terminal, data never", () => {
    const coloured = captureOutput({ isTTY: true });
    coloured.output.warn("careful");
    coloured.output.write("plain\n");
    expect(coloured.err).toContain("\u001b[");
    expect(coloured.out).toBe("plain\n");
    const plain = captureOutput({ isTTY: true, environment: { NO_COLOR: "1" } });
    plain.output.warn("careful");
    expect(plain.err).toBe("Warning: careful\n");
  });
});
