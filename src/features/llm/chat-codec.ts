/** The wire format of OpenAI-compatible chat completions, with the deviations of servers that claim to be compatible. */

import { fieldsOf, isObject, type JsonObject, listOf } from "../../core/model/json.ts";
import { decodeFailure, isFilteredByMiniMax } from "./decode-end.ts";
import type { ChatFailure } from "./model-error.ts";

export type ToolCall = {
  readonly id: string;
  readonly name: string;
  /** JSON text, as the model wrote it. */
  readonly arguments: string;
};

export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } };

export type ChatMessage =
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user"; readonly content: string | readonly ContentPart[] }
  | { readonly role: "assistant"; readonly content: string; readonly toolCalls?: readonly ToolCall[] }
  | { readonly role: "tool"; readonly callId: string; readonly content: string };

export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  /** A JSON Schema. */
  readonly parameters: JsonObject;
}

export interface TokenUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens?: number;
  readonly cachedTokens?: number;
}

/** What one event of a stream adds. */
export interface ChatDelta {
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCallDelta[];
  /** As the server names it. */
  readonly finish?: string;
  readonly usage?: TokenUsage;
  readonly error?: ChatFailure;
  /** The event has the whole answer, which in a stream repeats what came before: MiniMax ends with such a one. */
  readonly isWhole: boolean;
}

interface ToolCallDelta {
  readonly index: number | undefined;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

export function encodeMessage(message: ChatMessage): JsonObject {
  if (message.role === "tool") return { role: "tool", tool_call_id: message.callId, content: message.content };
  if (message.role !== "assistant" || message.toolCalls === undefined) {
    return { role: message.role, content: message.content };
  }
  const calls = message.toolCalls.map(({ id, name, arguments: given }) => ({
    id,
    type: "function",
    function: { name, arguments: given },
  }));
  // An empty text beside calls is refused by some servers, null by none.
  return { role: "assistant", content: message.content === "" ? null : message.content, tool_calls: calls };
}

export function encodeTool({ name, description, parameters }: ToolDefinition): JsonObject {
  return { type: "function", function: { name, description, parameters } };
}

/** Reads an event of a stream, or a whole response of a server that did not stream. */
export function decodeChunk(value: unknown): ChatDelta {
  const { choices, object, usage, x_groq } = fieldsOf(value);
  const choice = fieldsOf(listOf(choices)[0]);
  const isWhole = !isObject(choice.delta) && isObject(choice.message) && object !== "chat.completion.chunk";
  const delta = fieldsOf(choice.delta ?? choice.message);
  const finish = isFilteredByMiniMax(value) ? "content_filter" : nameOf(choice.finish_reason);
  const failure = isFilteredByMiniMax(value) ? undefined : decodeFailure(value);
  // Moonshot has the counts in the choice, Groq in a member of its own.
  const counted = decodeUsage(usage) ?? decodeUsage(choice.usage) ?? decodeUsage(fieldsOf(x_groq).usage);
  const { reasoning, text } = decodeContent(delta.content);
  return {
    text: text || stringOf(delta.refusal),
    // DeepSeek, Qwen and llama.cpp use the one name, Ollama, OpenRouter and newer versions of vLLM the other.
    reasoning: stringOf(delta.reasoning_content) || stringOf(delta.reasoning) || reasoning,
    toolCalls: listOf(delta.tool_calls).map(decodeToolCall),
    isWhole,
    finish: finish !== "" ? finish : undefined,
    usage: counted,
    error: failure,
  };
}

/** Some servers send a list of parts; Mistral has reasoning among them. */
function decodeContent(content: unknown): { readonly text: string; readonly reasoning: string } {
  if (typeof content === "string") return { text: content, reasoning: "" };
  const parts = listOf(content).map(fieldsOf);
  const textOf = (all: readonly { readonly text?: unknown }[]) => all.map(({ text }) => stringOf(text)).join("");
  const thoughts = parts.flatMap(({ thinking }) => listOf(thinking).map(fieldsOf));
  return { text: textOf(parts), reasoning: textOf(thoughts) };
}

function decodeToolCall(value: unknown): ToolCallDelta {
  const { function: called, id, index } = fieldsOf(value);
  const { arguments: given, name } = fieldsOf(called);
  return {
    index: typeof index === "number" ? index : undefined,
    id: nameOf(id),
    name: stringOf(name),
    // Some servers send an object instead of JSON text.
    arguments: isObject(given) ? JSON.stringify(given) : stringOf(given),
  };
}

function decodeUsage(value: unknown): TokenUsage | undefined {
  const { completion_tokens_details, prompt_tokens_details } = fieldsOf(value);
  const promptTokens = countOf(fieldsOf(value).prompt_tokens);
  const completionTokens = countOf(fieldsOf(value).completion_tokens);
  // MiniMax has counts of zero in every event but the last.
  if (promptTokens === 0 && completionTokens === 0) return undefined;
  const reasoning = countOf(fieldsOf(completion_tokens_details).reasoning_tokens);
  const cached = countOf(fieldsOf(prompt_tokens_details).cached_tokens);
  return {
    promptTokens,
    completionTokens,
    reasoningTokens: reasoning > 0 ? reasoning : undefined,
    cachedTokens: cached > 0 ? cached : undefined,
  };
}

const stringOf = (value: unknown): string => (typeof value === "string" ? value : "");
/** Some servers send the text "null" where they have none. */
const nameOf = (value: unknown): string => (value === "null" ? "" : stringOf(value));
const countOf = (value: unknown): number => (Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : 0);

/** Without an id, a name tells: without an index at once, and with one, as with Gemini, once the call is complete. */
function startsAnother(known: ToolCall & { readonly index: number | undefined }, delta: ToolCallDelta): boolean {
  if (delta.name === "" || delta.id !== "") return false;
  return delta.index === undefined || (known.arguments.endsWith("}") && parseJson(known.arguments) !== undefined);
}

/** Of one answer: more than models make by far, and few enough to look through for each delta. */
export const MAX_CALLS_OF_ANSWER = 128;

/** Assembles tool calls from deltas. */
export function createToolCallAssembler() {
  const calls: { index: number | undefined; id: string; name: string; arguments: string }[] = [];
  /** Ollama gives several calls the same index, or none: there, each delta with another id is a call of its own. */
  const find = ({ id, index }: ToolCallDelta) => {
    const known = index === undefined ? calls.at(-1) : calls.findLast((call) => call.index === index);
    const isSame = known !== undefined && (id === "" || known.id === "" || known.id === id);
    return isSame ? known : undefined;
  };
  return {
    get isEmpty(): boolean {
      return calls.length === 0;
    },
    /** False if there are too many. */
    add(delta: ToolCallDelta): boolean {
      const known = find(delta);
      if (known === undefined || startsAnother(known, delta)) {
        if (calls.length === MAX_CALLS_OF_ANSWER) return false;
        calls.push({ ...delta });
        return true;
      }
      known.id ||= delta.id;
      known.name ||= delta.name;
      known.arguments += delta.arguments;
      return true;
    },
    /** Ids are made up where the server sent none. */
    toToolCalls: (): readonly ToolCall[] =>
      calls
        .filter(({ name }) => name !== "")
        .map(({ arguments: given, id, name }, at) => ({ id: id || `call_${at}`, name, arguments: given })),
  };
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const THINK_START = "<think>";
const THINK_END = "</think>";

/**
 * Separates reasoning that a server left in the text: what is between `<think>` at its very start and `</think>`. A part
 * of a tag at the end of a chunk is held back until it is complete.
 */
export function createThinkSplitter() {
  let state: "start" | "thinking" | "gap" | "answer" = "start";
  let held = "";
  const split = (chunk: string, isEnd: boolean): { readonly text: string; readonly reasoning: string } => {
    const text = held + chunk;
    held = "";
    switch (state) {
      case "answer":
        return { text, reasoning: "" };
      case "gap": {
        const answer = text.trimStart();
        if (answer !== "") state = "answer";
        return { text: answer, reasoning: "" };
      }
      case "start": {
        const begun = text.trimStart();
        if (!isEnd && begun.length < THINK_START.length && THINK_START.startsWith(begun)) {
          held = text;
          return NOTHING;
        }
        state = begun.startsWith(THINK_START) ? "thinking" : "answer";
        return split(state === "thinking" ? begun.slice(THINK_START.length) : text, isEnd);
      }
      case "thinking": {
        const end = text.indexOf(THINK_END);
        if (end >= 0) {
          state = "gap";
          return { ...split(text.slice(end + THINK_END.length), isEnd), reasoning: text.slice(0, end) };
        }
        const partial = isEnd ? 0 : partialSuffix(text, THINK_END);
        held = text.slice(text.length - partial);
        return { text: "", reasoning: text.slice(0, text.length - partial) };
      }
    }
  };
  return { push: (chunk: string) => split(chunk, false), end: () => split("", true) };
}

const NOTHING = { text: "", reasoning: "" } as const;

/** How many characters at the end of the text could begin the tag. */
function partialSuffix(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--) {
    if (tag.startsWith(text.slice(-length))) return length;
  }
  return 0;
}
