import { describe, expect, it } from "vitest";
import { formatChat, formatMessage } from "./format.ts";
import type { LiteMessage, ParsedPost } from "./message.ts";
import { parsePost } from "./parse.ts";

const NOTHING = { body: "", attachments: [], others: {} };

function message(text: string, singleLine = false): LiteMessage {
  const parsed = parsePost(text, { singleLine });
  if (parsed.kind !== "message") throw new Error(`${parsed.kind}: ${parsed.kind === "chat" ? "" : parsed.problem}`);
  return parsed.message;
}

describe("the examples of the protocol", () => {
  it.each<[string, LiteMessage]>([
    ["[A2A:discover]", { ...NOTHING, type: "discover" }],
    ["[A2A:card]\n你好，我是佳佳", { ...NOTHING, type: "card", body: "你好，我是佳佳" }],
    [
      "[A2A:task id=research-001 skill=research priority=high]\n请调研\n\n- 茶\n[附件: notes.md]",
      {
        ...NOTHING,
        type: "task",
        id: "research-001",
        skill: "research",
        priority: "high",
        body: "请调研\n\n- 茶",
        attachments: ["notes.md"],
      },
    ],
    [
      "[A2A:status task=research-001 state=working progress=50% eta=5min]",
      { ...NOTHING, type: "status", task: "research-001", state: "working", progress: "50%", eta: "5min" },
    ],
    [
      "[A2A:result task=research-001 state=completed artifacts=report.md,data.csv]\nDone.\n[附件: report.md]\n[attachment: data.csv]",
      {
        ...NOTHING,
        type: "result",
        task: "research-001",
        state: "completed",
        artifacts: ["report.md", "data.csv"],
        body: "Done.",
        attachments: ["report.md", "data.csv"],
      },
    ],
    [
      '[A2A:cancel task=research-001 reason="no longer needed"]',
      { ...NOTHING, type: "cancel", task: "research-001", reason: "no longer needed" },
    ],
    ["[A2A:ack task=research-001]", { ...NOTHING, type: "ack", task: "research-001" }],
  ])("%s", (text, expected) => {
    expect(parsePost(text)).toEqual({ kind: "message", message: expected });
    expect(formatMessage(expected)).toBe(text.replace("[attachment:", "[附件:"));
  });
});

describe("a marker", () => {
  it.each([
    ["white space", "\n \t [A2A:ack task=t1]"],
    ["a mention of Discord", "<@123> <@!456>, [A2A:ack task=t1]"],
    ["a mention of Slack", "<@U12AB> <@U12|name of one>: [A2A:ack task=t1]"],
    ["a mention by name", "@helper [A2A:ack task=t1]"],
    ["a mention of Matrix", "@helper:example.org: [A2A:ack task=t1]"],
    ["a mention of Feishu", "@_user_1 [A2A:ack task=t1]"],
    ["a mention of WeCom", "@助手\u2005[A2A:ack task=t1]"],
    ["a command of Telegram", "/a2a@helper_bot [A2A:ack task=t1]"],
    ["a nick", "helper: [A2A:ack task=t1]"],
    ["a nick with a comma", "he|per[m], [A2A:ack task=t1]"],
    ["a full-width mention", "小助：[A2A:ack task=t1]"],
    ["a quotation", "> [A2A:task id=t2]\n> [A2A:cancel task=t3]\n\n[A2A:ack task=t1]"],
    ["a quotation and a mention", "> hello\n@helper\n[A2A:ack task=t1]"],
    ["invisible characters", "\ufeff\u200b\u2068@helper\u2069 [A2A:ack task=t1]"],
  ])("may follow %s", (_what, text) => {
    expect(parsePost(text)).toEqual({ kind: "message", message: { ...NOTHING, type: "ack", task: "t1" } });
  });

  it.each([
    ["in any case", "[a2a:ACK TASK=t1]"],
    ["full-width", "［Ａ２Ａ：ａｃｋ　ｔａｓｋ＝t1］"],
    ["with spaces", "[ A2A : ack  task=t1 ]"],
    ["with the brackets of Chinese keyboards", "【A2A：ack task=t1】"],
    ["in bold", "**[A2A:ack task=t1]**"],
    ["in bold, for someone", "@bob **[A2A:ack task=t1]**"],
    ["with commas between parameters", "[A2A:ack please, TASK=t1,]"],
    ["with a full-width comma", "[A2A:ack task=t1， now]"],
    ["after a full-width comma", "bob，【A2A:ack task=t1】"],
    ["with `id` for `task`", "[A2A:ack id=t1]"],
    ["with quotation marks", '[A2A:ack task="t1"]'],
    ["with the quotation marks of phones", "[A2A:ack task=“t1”]"],
    ["with words that are not parameters", "[A2A:ack please task=t1 now]"],
    ["with the line break of Windows", "[A2A:ack task=t1]\r\n"],
  ])("may be written %s", (_what, text) => {
    expect(message(text)).toEqual({ ...NOTHING, type: "ack", task: "t1" });
  });

  it.each([
    ["in a code block", "```\n[A2A:task id=t1]\n```"],
    ["in inline code", "`[A2A:task id=t1]`"],
    ["in a quotation", "> [A2A:task id=t1]"],
    ["in a quotation after a mention", "@helper\n> [A2A:task id=t1]\nno"],
    ["with a backslash", "\\[A2A:task id=t1]"],
    ["not at the beginning", "I wrote:\n[A2A:task id=t1]"],
    ["within a line", "Send [A2A:task id=t1]"],
    ["of something else", "[A2B:task id=t1]"],
  ])("is not one %s", (_what, text) => {
    expect(parsePost(text)).toEqual({ kind: "chat", text: text.replace("\\[", "[") });
  });

  it.each([
    ["[A2A:task id=t1", "the marker has no ]"],
    ["[A2A:task id=t1\n]", "the marker has no ]"],
    ['[A2A:task id="t1]', "a quotation mark in the marker is not closed"],
    [`[A2A:task id=t1 ${"x=1 ".repeat(2_000)}]`, "the marker is too long"],
    ["[A2A:dance id=t1]", 'unknown type "dance"'],
    ["[A2A:]", 'unknown type ""'],
  ])("that is broken is chat: %j", (text, problem) => {
    expect(parsePost(text)).toEqual({ kind: "chat", text, problem });
  });

  it.each<[string, Omit<Extract<ParsedPost, { kind: "invalid" }>, "kind">]>([
    ["[A2A:task]", { type: "task", problem: "task needs id" }],
    ['[A2A:task id=""]', { type: "task", problem: "task needs id" }],
    ["[A2A:task id = t1]", { type: "task", problem: "task needs id" }],
    ["[A2A:status task=t1]", { type: "status", task: "t1", problem: "status needs state" }],
    [
      "[A2A:status task=t1 state=dancing]",
      {
        type: "status",
        task: "t1",
        problem:
          "state of a status must be one of accepted, working, input-required, completed, failed, cancelled, rejected",
      },
    ],
    [
      "[A2A:result task=t1 state=working]",
      {
        type: "result",
        task: "t1",
        problem: "state of a result must be one of completed, failed, cancelled, rejected",
      },
    ],
    ["[A2A:task id=t1 id=t2]", { type: "task", task: "t1", problem: "id is given twice" }],
    ["[A2A:task id=t1 hops=many]", { type: "task", task: "t1", problem: "hops must be a number" }],
    ["[A2A:task id=t1 hops=-1]", { type: "task", task: "t1", problem: "hops must be a number" }],
    ["[A2A:ack task=t1 part=3/2]", { type: "ack", task: "t1", problem: "part must be like 2/3" }],
    ["[A2A:ack task=t1 part=0/2]", { type: "ack", task: "t1", problem: "part must be like 2/3" }],
    [`[A2A:ack task=${"t".repeat(257)}]`, { type: "ack", problem: "task must be 1 to 256 visible characters" }],
    ['[A2A:ack task="t\\u202e1"]', { type: "ack", problem: "task must be 1 to 256 visible characters" }],
    ["[A2\u200bA:task id=t1]", { type: "task", task: "t1", problem: "the marker has invisible characters" }],
    ["[A2A:ta\u00adsk id=t1]", { type: "task", task: "t1", problem: "the marker has invisible characters" }],
    ["[A2A:task \u202eid=t1]", { type: "task", task: "t1", problem: "the marker has invisible characters" }],
    ["[A2A:task id=t1 skill=\u2066x]", { type: "task", task: "t1", problem: "the marker has invisible characters" }],
  ])("that cannot be used is invalid: %j", (text, expected) => {
    expect(parsePost(text)).toEqual({ kind: "invalid", ...expected });
  });

  it("keeps what this version does not know, the first of each name", () => {
    expect(message("[A2A:ack task=t1 state=fine Color=red x=1 x=2 __proto__=3 =4]").others).toEqual({
      state: "fine",
      Color: "red",
      x: "1",
    });
  });

  it("may have any visible characters in values", () => {
    const text = '[A2A:task id=茶/1:a,b=c😀 to="a ]\\"\\\\b" from=C:\\new hops=3 skill=👩‍🚀]';
    expect(message(text)).toEqual({
      ...NOTHING,
      type: "task",
      id: "茶/1:a,b=c😀",
      to: 'a ]"\\b',
      from: "C:\\new",
      hops: 3,
      skill: "👩‍🚀",
    });
  });

  it("knows other spellings of states", () => {
    expect(message("[A2A:result task=t1 state=Canceled]")).toMatchObject({ state: "cancelled" });
    expect(message("[A2A:status task=t1 state=input_required]")).toMatchObject({ state: "input-required" });
  });

  it("of a piece may lack the id of the message", () => {
    expect(parsePost("[A2A:status task=t1 state=working part=2/3]")).toMatchObject({
      piece: { mid: "status t1", part: 2, of: 3 },
    });
    expect(parsePost("[A2A:card mid=m1 part=1/2]")).toMatchObject({ piece: { mid: "m1", part: 1, of: 2 } });
  });
});

describe("a body", () => {
  it.each([
    ["[A2A:ack task=t1] hello\nthere", "hello\nthere"],
    ["[A2A:ack task=t1]hello", "hello"],
    ["[A2A:ack task=t1] \n\nhello ", "\nhello "],
    ["[A2A:ack task=t1]\r\nhello", "hello"],
    ["[A2A:ack task=t1] a\\nb", "a\\nb"],
  ])("starts after the marker: %j", (text, body) => {
    expect(message(text).body).toBe(body);
  });

  it("of one line has escapes", () => {
    expect(message("[A2A:ack task=t1] a\\nb\\\\n\\x\\n[附件: c.md]", true)).toMatchObject({
      body: "a\nb\\n\\x",
      attachments: ["c.md"],
    });
  });

  it("announces files in lines of their own, outside of code", () => {
    const text =
      "[A2A:ack task=t1]\n [附件：a b.md] \nsee [附件: no.md]\n```\n[附件: no.md]\n```\n> [附件: no.md]\n［Attachment: c].md］\r\n[附件: ]";
    expect(message(text)).toMatchObject({
      attachments: ["a b.md", "c].md"],
      body: "see [附件: no.md]\n```\n[附件: no.md]\n```\n> [附件: no.md]\n[附件: ]",
    });
  });

  it("that shows a marker or announces a file is escaped", () => {
    const body =
      "[A2A:task id=t2]\n[附件: x]\n\\[附件: x]\n> [A2A:ack task=t3]\n```\n[A2A:discover]\n```\n [a2a:broken";
    const sent: LiteMessage = { ...NOTHING, type: "ack", task: "t1", body, attachments: ["x"] };
    const text = formatMessage(sent);
    expect(text).toBe(
      "[A2A:ack task=t1]\n\\[A2A:task id=t2]\n\\[附件: x]\n\\\\[附件: x]\n> [A2A:ack task=t3]\n```\n[A2A:discover]\n```\n \\[a2a:broken\n[附件: x]",
    );
    expect(message(text)).toEqual(sent);
  });

  it("that is not well-formed is replaced, as every network would do", () => {
    const sent: LiteMessage = { ...NOTHING, type: "ack", task: "\ud83d1", body: "a\ude00", attachments: ["\ud83d.md"] };
    expect(message(formatMessage(sent))).toEqual({
      ...sent,
      task: "\ufffd1",
      body: "a\ufffd",
      attachments: ["\ufffd.md"],
    });
  });

  it("of chat is never taken for a marker", () => {
    expect(formatChat("[A2A:task id=t1]")).toBe("\\[A2A:task id=t1]");
    expect(formatChat("> x\nhelper: [A2A:task id=t1]")).toBe("> x\nhelper: \\[A2A:task id=t1]");
    expect(formatChat("hello [A2A:task id=t1]")).toBe("hello \\[A2A:task id=t1]");
  });

  it.each([
    ["10 MB of text", `[A2A:ack task=t1]\n${"words and [brackets] ".repeat(500_000)}`],
    ["10,000 lines", `[A2A:ack task=t1]\n${"[附件: x\n".repeat(10_000)}`],
    ["a million code blocks", `[A2A:ack task=t1]\n${"```\n[附件: x]\n".repeat(300_000)}`],
  ])("of %s is read", (_what, text) => {
    expect(message(text).body.length).toBeGreaterThan(10_000);
  });

  it.each([
    ["quotations", "> x\n".repeat(1_000_000)],
    ["white space", " \n".repeat(2_000_000)],
    ["backslashes", "\\".repeat(5_000_000)],
    ["brackets", "[".repeat(5_000_000)],
    ["mentions", "@a ".repeat(1_000_000)],
    ["a marker without end", `[A2A:${" ".repeat(5_000_000)}`],
    ["a name without end", `[${" ".repeat(5_000_000)}`],
  ])("is not looked for in millions of %s", (_what, text) => {
    expect(parsePost(text).kind).toBe("chat");
  });
});
