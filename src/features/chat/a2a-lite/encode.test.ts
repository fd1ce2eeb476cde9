import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { message as anyMessage, task as anyTask } from "../../../core/dialects/suite/arbitraries.ts";
import { EXTENSIONS } from "../../../core/model/extensions.ts";
import type { JsonValue } from "../../../core/model/json.ts";
import type { Loss } from "../../../core/model/loss.ts";
import type { Message, Part } from "../../../core/model/message.ts";
import { STATE_CLASS, TASK_STATES, type Task } from "../../../core/model/task.ts";
import { cases } from "../../../core/model/testing/exploring.ts";
import { formatChatAddress, parseChatAddress } from "./address.ts";
import { decodeBody, decodeFile } from "./decode.ts";
import { encodeMessage, encodeOutcome } from "./encode.ts";
import { LOSSES } from "./losses.ts";
import { STATES } from "./message.ts";
import { isTerminalLiteState, toLiteState, toTaskState } from "./states.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");

function encode(...parts: readonly Part[]) {
  const losses: Loss[] = [];
  const message: Message = { messageId: "m1", role: "ROLE_USER", parts };
  const { body, files } = encodeMessage(message, "message", losses);
  return {
    body,
    files: files.map(({ name }) => name),
    losses: losses.map(({ path, reason }) => [ruleOf(reason), path]),
    raw: files,
  };
}

function ruleOf(reason: string): string | undefined {
  return Object.entries(LOSSES).find(([, rule]) => rule.reason === reason)?.[0];
}

describe("parts", () => {
  it("of text are the body", () => {
    expect(encode({ text: "one" })).toMatchObject({ body: "one", losses: [] });
    expect(encode({ text: "one" }, { text: "two" })).toMatchObject({
      body: "one\ntwo",
      losses: [["textParts", "message.parts[1]"]],
    });
  });

  it("of data are code blocks, and data again", () => {
    const { body, losses } = encode({ text: "one" }, { data: { a: [1] } }, { data: null });
    expect(body).toBe('one\n```json\n{\n  "a": [\n    1\n  ]\n}\n```\n```json\nnull\n```');
    expect(losses).toEqual([]);
    expect(decodeBody(body)).toEqual([{ text: "one" }, { data: { a: [1] } }, { data: null }]);
  });

  it("of data before text come after it", () => {
    const { body, losses } = encode({ data: 1 }, { text: "one" });
    expect(losses).toEqual([["dataBeforeText", "message.parts[0]"]]);
    expect(decodeBody(body)).toEqual([{ text: "one" }, { data: 1 }]);
  });

  it("of large data are files, and data again", () => {
    const data = { text: "x".repeat(5_000) };
    const { body, files, losses, raw } = encode({ data }, { data });
    expect({ body, files }).toEqual({ body: "", files: ["data.json", "data-2.json"] });
    expect(losses[0]).toEqual(["largeData", "message.parts[0].data"]);
    for (const file of raw) expect(decodeFile(file, file.bytes)).toEqual({ data });
  });

  it("of bytes are files with safe names", () => {
    const { files, losses, raw } = encode(
      { raw: base64("a"), filename: "a.md", mediaType: "text/markdown" },
      { raw: base64("b"), filename: "a.md" },
      { raw: base64("c"), filename: "../../etc/passwd" },
      { raw: base64("d") },
    );
    expect(files).toEqual(["a.md", "a-2.md", "passwd", "file"]);
    expect(losses).toEqual([
      ["fileName", "message.parts[1].filename"],
      ["fileName", "message.parts[2].filename"],
    ]);
    const [first] = raw;
    expect(first && decodeFile(first, first.bytes)).toEqual({
      raw: base64("a"),
      filename: "a.md",
      mediaType: "text/markdown",
    });
  });

  it("with an address are lines of text, without those of this machine", () => {
    const url = "https://example.org/a.md";
    expect(encode({ url }, { url, filename: "a.md" }, { url: "file:///home/me/b.md" })).toMatchObject({
      body: `${url}\na.md: ${url}\nb.md`,
      losses: [
        ["url", "message.parts[0].url"],
        ["url", "message.parts[1].url"],
        ["localFile", "message.parts[2].url"],
      ],
    });
  });

  it("lose what posts do not have", () => {
    const part = { text: "```json\n1\n```", metadata: { a: 1 }, mediaType: "text/html" };
    expect(encode(part).losses).toEqual([
      ["partMetadata", "message.parts[0].metadata"],
      ["partNames", "message.parts[0]"],
      ["textAsData", "message"],
    ]);
  });

  it("of any kind are encoded and decoded", () => {
    fc.assert(
      fc.property(anyMessage, anyTask, (message, task) => {
        const losses: Loss[] = [];
        for (const { body, files } of [encodeMessage(message, "message", losses), encodeOutcome(task, losses)]) {
          decodeBody(body);
          expect(new Set(files.map(({ name }) => name)).size).toBe(files.length);
          for (const file of files) decodeFile(file, file.bytes);
        }
        expect(losses.every(({ reason }) => ruleOf(reason) !== undefined)).toBe(true);
      }),
      { numRuns: cases(10_000, 500) },
    );
  });

  it("of text and then data arrive as they were", () => {
    const texts = fc.string({ minLength: 1 }).filter((text) => text.trimEnd() === text && !text.includes("`"));
    const values = fc.array(
      fc.jsonValue().map((any) => JSON.parse(JSON.stringify(any)) as JsonValue),
      { maxLength: 3 },
    );
    fc.assert(
      fc.property(texts, values, (text, data) => {
        const parts: Part[] = [{ text }, ...data.map((value) => ({ data: value }))];
        const { body, losses } = encode(...parts);
        expect(losses).toEqual([]);
        expect(decodeBody(body)).toEqual(parts);
      }),
      { numRuns: cases(50_000, 1_000) },
    );
  });
});

describe("a body", () => {
  it.each([
    ["", []],
    ["text\n```json\n{broken\n```", undefined],
    ["text\n```js\n1\n```", undefined],
    ["text\n```json\n1\n```\nmore text", undefined],
    ["~~~json\n1\n~~~\n\n", [{ data: 1 }]],
    [`\`\`\`json\n${"[".repeat(100)}${"]".repeat(100)}\n\`\`\``, undefined],
  ])("is data only where that is certain: %j", (body, parts) => {
    expect(decodeBody(body)).toEqual(parts ?? [{ text: body }]);
  });
});

describe("the outcome of a task", () => {
  const task: Task = {
    id: "t1",
    contextId: "c1",
    status: {
      state: "TASK_STATE_COMPLETED",
      message: { messageId: "m1", role: "ROLE_AGENT", parts: [{ text: "That is all." }] },
    },
    artifacts: [
      { artifactId: "a1", name: "Outline", parts: [{ text: "1. Tea" }] },
      { artifactId: "a2", name: "Article", parts: [{ text: "Tea is…" }, { raw: base64("x"), filename: "tea.png" }] },
      { artifactId: "a3", parts: [{ raw: base64("y"), filename: "tea.png" }] },
    ],
  };

  it("is its artifacts by name and the last message", () => {
    const losses: Loss[] = [];
    const { body, files } = encodeOutcome(task, losses);
    expect(body).toBe("Outline:\n1. Tea\n\nArticle:\nTea is…\n\nThat is all.");
    expect(files.map(({ name }) => name)).toEqual(["tea.png", "tea-2.png"]);
    expect(losses.map(({ reason }) => ruleOf(reason))).toEqual(["fileName", "artifacts", "statusMessage"]);
  });

  it("is one artifact without its name", () => {
    const { artifacts, status } = task;
    const single = { ...task, artifacts: artifacts?.slice(0, 1) ?? [], status: { state: status.state } };
    expect(encodeOutcome(single, []).body).toBe("1. Tea");
  });

  it("is the answer of a model without its reasoning", () => {
    const parts = [{ text: "", metadata: { [EXTENSIONS.reasoning]: "Hm." } }];
    const reasoning = { artifactId: "reasoning", name: "reasoning", parts, extensions: [EXTENSIONS.reasoning] };
    const own = { text: "Hm.", metadata: { [EXTENSIONS.reasoning]: true } };
    const answer = { artifactId: "answer", name: "answer", parts: [own, { text: "Tea." }] };
    const answered: Task = { ...task, status: { state: "TASK_STATE_COMPLETED" }, artifacts: [reasoning, answer] };
    const losses: Loss[] = [];
    expect(encodeOutcome(answered, losses).body).toBe("Tea.");
    expect(losses.map(({ reason }) => ruleOf(reason))).toEqual(["reasoning", "artifactMembers", "reasoning"]);
  });

  it("is only the question while it has not ended", () => {
    const asking: Task = { ...task, status: { ...task.status, state: "TASK_STATE_INPUT_REQUIRED" } };
    expect(encodeOutcome(asking, [])).toEqual({ body: "That is all.", files: [] });
  });
});

describe("states", () => {
  it("are mapped both ways, but for one", () => {
    for (const state of STATES) {
      expect(toLiteState(toTaskState(state))).toBe(state);
      expect(isTerminalLiteState(state)).toBe(STATE_CLASS[toTaskState(state)] === "terminal");
    }
    const losses: Loss[] = [];
    const changed = TASK_STATES.filter((state) => toTaskState(toLiteState(state, losses)) !== state);
    expect(changed).toEqual(["TASK_STATE_AUTH_REQUIRED"]);
    expect(losses).toEqual([expect.objectContaining({ kind: "bent", path: "status.state" })]);
  });
});

describe("the address of a peer", () => {
  it.each([
    ["a2a-lite:irc/#agents#helper", { network: "irc", room: "#agents", participant: "helper" }],
    ["a2a-lite:irc/%23agents#helper", { network: "irc", room: "#agents", participant: "helper" }],
    [
      "a2a-lite:matrix/!x:example.org#@a:example.org",
      { network: "matrix", room: "!x:example.org", participant: "@a:example.org" },
    ],
    ["a2a-lite:mqtt/team/rooms/1#a%23b", { network: "mqtt", room: "team/rooms/1", participant: "a#b" }],
    ["a2a-lite:irc/100%#helper", { network: "irc", room: "100%", participant: "helper" }],
  ])("is read: %s", (address, expected) => {
    expect(parseChatAddress(address)).toEqual(expected);
  });

  it.each([
    "",
    "a2a-lite:",
    "a2a-lite:irc",
    "a2a-lite:irc/#agents#",
    "a2a-lite:irc/#helper",
    "a2a-lite:/r#p",
    "https://x/y#z",
  ])("is not %j", (address) => {
    expect(parseChatAddress(address)).toBeUndefined();
  });

  it("of any kind is read as it was written", () => {
    const some = fc.string({ minLength: 1, unit: fc.constantFrom("#", "/", "%", "%23", "a", "茶", ":", "@", " ") });
    fc.assert(
      fc.property(some, some, (room, participant) => {
        const address = { network: "irc", room, participant };
        expect(parseChatAddress(formatChatAddress(address))).toEqual(address);
      }),
      { numRuns: cases(1_000) },
    );
  });
});
