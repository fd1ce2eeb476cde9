import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { createThinkSplitter, createToolCallAssembler, decodeChunk, MAX_CALLS_OF_ANSWER } from "./chat-codec.ts";
import { describeError } from "./decode-end.ts";

describe("decodeChunk", () => {
  const choice = (delta: unknown, finish: unknown = null) => ({
    choices: [{ index: 0, delta, finish_reason: finish }],
  });

  it.each([
    [choice({ content: "Hi" }), { text: "Hi" }],
    [choice({ content: null, reasoning_content: "Hm" }), { text: "", reasoning: "Hm" }],
    [choice({ content: "", reasoning: "Hm" }), { text: "", reasoning: "Hm" }],
    [
      choice({
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      }),
      { text: "ab" },
    ],
    [choice({ refusal: "No." }), { text: "No." }],
    [choice({}, "length"), { finish: "length" }],
    [{ choices: [{ message: { content: "whole" }, finish_reason: "stop" }] }, { text: "whole", finish: "stop" }],
    [
      {
        choices: [],
        usage: { prompt_tokens: 3, completion_tokens: 4, completion_tokens_details: { reasoning_tokens: 2 } },
      },
      { usage: { promptTokens: 3, completionTokens: 4, reasoningTokens: 2 } },
    ],
    [{ error: { message: "too long", code: 400 } }, { error: { reason: "too long", status: 400 } }],
    [{ error: "overloaded" }, { error: { reason: "overloaded", status: undefined } }],
  ])("reads %j", (value, expected) => {
    expect(decodeChunk(value)).toMatchObject(expected);
  });

  test("anything is read without an error", () => {
    fc.assert(fc.property(fc.anything(), (value) => void decodeChunk(value)));
    fc.assert(fc.property(fc.jsonValue(), (value) => void decodeChunk({ choices: [{ delta: value }], usage: value })));
  });
});

it.each([
  [{ error: { message: "a" } }, "a"],
  [{ error: "b" }, "b"],
  [{ message: "c" }, "c"],
  [{ detail: "d" }, "d"],
  [{ detail: [{ msg: "e" }] }, "e"],
  [[{ error: { message: "f" } }], "f"],
  [{ base_resp: { status_code: 1, status_msg: "g" } }, "g"],
  [undefined, ""],
])("the reason of %j is %j", (body, reason) => {
  expect(describeError(body)).toBe(reason);
});

describe("tool calls", () => {
  const assemble = (...calls: readonly Record<string, unknown>[]) => {
    const assembler = createToolCallAssembler();
    for (const call of calls) {
      for (const one of decodeChunk({ choices: [{ delta: { tool_calls: [call] } }] }).toolCalls) assembler.add(one);
    }
    return assembler.toToolCalls();
  };
  const first = { id: "a", name: "echo", arguments: '{"text":"1"}' };
  const second = { id: "b", name: "echo", arguments: '{"text":"2"}' };

  it("are refused above a number that no model needs", () => {
    const assembler = createToolCallAssembler();
    const toDelta = (index: number) => ({ index, id: `${index}`, name: "echo", arguments: "{}" });
    for (let index = 0; index < MAX_CALLS_OF_ANSWER; index++) expect(assembler.add(toDelta(index))).toBe(true);
    expect(assembler.add(toDelta(MAX_CALLS_OF_ANSWER))).toBe(false);
    expect(assembler.add(toDelta(0))).toBe(true);
    expect(assembler.toToolCalls()).toHaveLength(MAX_CALLS_OF_ANSWER);
  });

  it("are joined by their index, however their pieces are mixed", () => {
    const calls = assemble(
      { index: 0, id: "a", function: { name: "echo", arguments: '{"te' } },
      { index: 1, id: "b", function: { name: "echo", arguments: "" } },
      { index: 0, function: { arguments: 'xt":"1"}' } },
      { index: 1, function: { arguments: '{"text":"2"}' } },
    );
    expect(calls).toEqual([first, second]);
  });

  it("are told apart by their ids where all have the same index or none, as with Ollama", () => {
    const whole = ({ arguments: given, id, name }: typeof first) => ({ id, function: { name, arguments: given } });
    expect(assemble({ index: 0, ...whole(first) }, { index: 0, ...whole(second) })).toEqual([first, second]);
    expect(assemble(whole(first), whole(second))).toEqual([first, second]);
    const { id: _, ...unnamed } = whole(second);
    expect(assemble(whole(first), unnamed)).toEqual([first, { ...second, id: "call_1" }]);
  });

  it("may have arguments that are not text", () => {
    expect(assemble({ index: 0, id: "a", function: { name: "echo", arguments: { text: "1" } } })).toEqual([first]);
  });
});

describe("reasoning inside the text", () => {
  const split = (chunks: readonly string[]) => {
    const splitter = createThinkSplitter();
    const parts = [...chunks.map((chunk) => splitter.push(chunk)), splitter.end()];
    return {
      text: parts.map(({ text }) => text).join(""),
      reasoning: parts.map(({ reasoning }) => reasoning).join(""),
    };
  };

  it.each([
    ["<think>Hm, 1 < 2.</think>\n\nYes.", "Yes.", "Hm, 1 < 2."],
    ["\n<think>\nHm.\n</think>Yes.", "Yes.", "\nHm.\n"],
    ["<think>never ended", "", "never ended"],
    ["Tags such as <think> are text here.</think>", "Tags such as <think> are text here.</think>", ""],
    ["<thin", "<thin", ""],
    ["", "", ""],
  ])("%j", (all, text, reasoning) => {
    expect(split([all])).toEqual({ text, reasoning });
  });

  test("is found however the text is cut", () => {
    const text = fc.constantFrom(
      "<think>Hm </ think></think>\n\n Yes <b>.",
      "<think>",
      "plain <think>x</think>",
      " <th ink>",
    );
    fc.assert(
      fc.property(text, fc.array(fc.nat(40)), (all, cuts) => {
        const ends = [...cuts, all.length].filter((cut) => cut <= all.length).sort((a, b) => a - b);
        const chunks = ends.map((end, at) => all.slice(ends[at - 1] ?? 0, end));
        expect(split(chunks)).toEqual(split([all]));
      }),
    );
  });
});
