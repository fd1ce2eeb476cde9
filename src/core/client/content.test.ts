import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, data, file, type RemoteAgent, type SendContent, text } from "../../client.ts";
import type { JsonObject } from "../model/json.ts";
import type { Task } from "../model/task.ts";
import { collect, type FakeAgent, sendResult, startFakeAgent, task } from "./testing/fake-agent.ts";

let server: FakeAgent;
let agent: RemoteAgent;
let folder: string;
beforeAll(async () => {
  server = await startFakeAgent((_, response) => sendResult(response, { task: task() }));
  agent = await connect(server.url);
  folder = mkdtempSync(join(tmpdir(), "dragoman-content-"));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await server[Symbol.asyncDispose]();
});

/** What the last request said, without the id that the client makes. */
function sent(): JsonObject {
  const { message, ...rest } = (server.requests.at(-1)?.rpc.params ?? {}) as { message: JsonObject };
  const { messageId: _, ...known } = message;
  return { ...rest, message: known };
}

const role = "ROLE_USER";

describe("what is sent", () => {
  test.each<[string, SendContent, unknown[]]>([
    ["text", "hi", [{ text: "hi" }]],
    ["a part", data({ a: 1 }), [{ data: { a: 1 } }]],
    ["parts", [text("hi"), data(null)], [{ text: "hi" }, { data: null }]],
    ["a request", { message: { parts: [text("hi")] } }, [{ text: "hi" }]],
  ])("may be %s", async (_, content, parts) => {
    await agent.send(content);
    expect(sent()).toEqual({ message: { role, parts } });
  });

  test("belongs to the task and the conversation that the options name", async () => {
    await agent.send("small", { taskId: "t1", contextId: "c1", metadata: { a: 1 } });
    expect(sent()).toEqual({
      metadata: { a: 1 },
      message: { role, taskId: "t1", contextId: "c1", parts: [text("small")] },
    });
    await agent.send(
      { message: { parts: [text("x")], taskId: "t1" }, metadata: { b: 2 } },
      { taskId: "t1", metadata: { a: 1 } },
    );
    expect(sent()).toMatchObject({ metadata: { a: 1, b: 2 }, message: { taskId: "t1" } });
    const other = agent.send({ message: { parts: [text("x")], taskId: "t1" } }, { taskId: "t2" });
    await expect(other).rejects.toThrow("the message has the taskId t1 and the options t2");
  });

  test("answers a task, by its id, as an object or as what send resolved to, or continues a conversation", async () => {
    const asking = task("TASK_STATE_INPUT_REQUIRED") as Task;
    await agent.reply("t1", "small");
    expect(sent()).toEqual({ message: { role, taskId: "t1", parts: [text("small")] } });
    for (const to of [asking, { task: asking }]) {
      await agent.reply(to, [text("small")], { metadata: { a: 1 } });
      const { contextId, id: taskId } = asking;
      expect(sent()).toEqual({ metadata: { a: 1 }, message: { role, taskId, contextId, parts: [text("small")] } });
    }
    await agent.reply({ message: { messageId: "m", role: "ROLE_AGENT", contextId: "c9", parts: [] } }, "small");
    expect(sent()).toEqual({ message: { role, contextId: "c9", parts: [text("small")] } });
  });

  test("has files after its other parts, with the media types of their names", async () => {
    const path = join(folder, "notes.md");
    writeFileSync(path, "hi");
    const bytes = new TextEncoder().encode("hi");
    const files = [
      path,
      "https://x.example/a%20b.pdf?v=1",
      new File(["hi"], "a.png"),
      new Blob(["hi"], { type: "image/gif" }),
      { bytes, name: "b.csv" },
      { url: "https://x.example/", filename: "c.bin", mediaType: "x/y" },
      file({ bytes, filename: "d.unknown" }),
    ];
    await agent.send("look", { files });
    const raw = "aGk=";
    const parts = [
      { raw, filename: "notes.md", mediaType: "text/markdown" },
      { url: "https://x.example/a%20b.pdf?v=1", filename: "a b.pdf", mediaType: "application/pdf" },
      { raw, filename: "a.png", mediaType: "image/png" },
      { raw, mediaType: "image/gif" },
      { raw, filename: "b.csv", mediaType: "text/csv" },
      { url: "https://x.example/", filename: "c.bin", mediaType: "x/y" },
      { raw, filename: "d.unknown" },
    ];
    expect(sent()).toEqual({ message: { role, parts: [text("look"), ...parts] } });
    await agent.send([], { files: [path] });
    expect(sent()).toEqual({ message: { role, parts: parts.slice(0, 1) } });
  });
});

describe("a mistake is refused, and nothing is sent", () => {
  // As from JavaScript, where the compiler does not help.
  const untyped = () => agent as unknown as Record<string, (...values: unknown[]) => Promise<unknown>>;
  test.each<[string, unknown[], string]>([
    ["send", [undefined], "send: needs text, a part"],
    ["send", [], "it was called with undefined"],
    ["send", [42], "it was called with 42"],
    ["send", [{ txt: "a" }], "it was called with an object with txt"],
    ["send", [[]], "the list of parts is empty"],
    [
      "send",
      [["a"]],
      'parts[0] must have exactly one of text, data, raw, url, but is "a"; a text is a part as { text: … }',
    ],
    ["send", [{ message: { parts: [{}] } }], "parts[0] must have exactly one of"],
    ["send", ["a", { taskid: "t1" }], 'send: unknown option "taskid"; did you mean "taskId"?'],
    ["send", [{ message: { parts: [{ text: "a" }], taskid: "t1" } }], 'message: unknown option "taskid"'],
    ["send", [{ message: { parts: [{ text: "a" }] }, config: {} }], 'send: unknown option "config"'],
    ["send", ["a", null], "send: the options must be an object"],
    ["send", ["a", "t1"], "send: the options must be an object"],
    ["send", ["a", { metadata: "m" }], 'send: metadata must be an object, but is "m"'],
    ["send", ["a", { taskId: {} }], "the taskId must be a string that is not empty, but is an object without members"],
    ["send", ["a", { files: [42] }], "files[0] must be a path, a URL, a Blob, { bytes, name } or { url }, but is 42"],
    ["send", ["a", { files: "a.txt" }], "files must be a list"],
    ["send", ["a", { files: ["no-such-file"] }], "files[0]: cannot read no-such-file"],
    ["reply", [undefined, "a"], "reply: needs a task or its id first, but got undefined"],
    ["reply", [{}, "a"], "neither a task, nor what send resolves to"],
    ["reply", ["", "a"], "the task id must be a string that is not empty"],
    ["reply", ["t1"], "reply: needs text"],
    ["reply", ["t1", "a", { taskId: "t2" }], 'reply: unknown option "taskId"'],
    ["get", [undefined], "get: the id must be a string that is not empty, but is undefined"],
    ["get", ["t1", { historylength: 1 }], 'did you mean "historyLength"?'],
    ["cancel", [task()], "cancel: the id must be a string"],
    ["listPage", [{ state: "x" }], 'listPage: unknown option "state"; did you mean "status"?'],
    ["extendedCard", [{ timeout: 1 }], 'did you mean "timeoutMs"?'],
  ])("%s %j", async (method, given, message) => {
    const before = server.requests.length;
    await expect(untyped()[method]?.(...given)).rejects.toThrow(message);
    expect(server.requests).toHaveLength(before);
  });

  test("of a stream too, before it is read", async () => {
    expect(() => untyped().stream?.(undefined)).toThrow("stream: needs text");
    expect(() => untyped().stream?.("a", { contextID: "c" })).toThrow('did you mean "contextId"?');
    await expect(collect(agent.stream("a", { files: ["no-such-file"] }))).rejects.toThrow("cannot read no-such-file");
  });
});
