/** The wire format of OpenAI-compatible chat completions, with the deviations of servers that claim to be compatible. */

import { fieldsOf, isObject, type JsonObject, listOf } from "../../model/json.ts";

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
  readonly finish?: string;
  readonly usage?: TokenUsage;
  /** An error in a response that began with status 200, as llama.cpp and gateways send it. */
  readonly error?: ChatFailure;
}

export interface ChatFailure {
  readonly reason: string;
  /** As an HTTP status; 500 if the server names none. */
  readonly status: number;
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
  const { choices, error, usage } = fieldsOf(value);
  const choice = fieldsOf(listOf(choices)[0]);
  const delta = fieldsOf(choice.delta ?? choice.message);
  const finish = stringOf(choice.finish_reason);
  const counted = decodeUsage(usage);
  const failure = error === undefined || error === null ? undefined : decodeFailure(error);
  return {
    text: textOfContent(delta.content) || stringOf(delta.refusal),
    // DeepSeek, Qwen and llama.cpp use the one name, Ollama, OpenRouter and newer versions of vLLM the other.
    reasoning: stringOf(delta.reasoning_content) || stringOf(delta.reasoning),
    toolCalls: listOf(delta.tool_calls).map(decodeToolCall),
    ...(finish !== "" && { finish }),
    ...(counted && { usage: counted }),
    ...(failure && { error: failure }),
  };
}

function decodeFailure(error: unknown): ChatFailure {
  const { code } = fieldsOf(error);
  const isStatus = typeof code === "number" && code >= 400 && code < 600;
  return { reason: describeError(error), status: isStatus ? code : 500 };
}

/** The reason in the body of an error, in the forms of OpenAI, Ollama, vLLM and FastAPI; empty if there is none. */
export function describeError(error: unknown): string {
  if (typeof error === "string") return error;
  const { detail, error: inner, message } = fieldsOf(error);
  if (typeof message === "string") return message;
  if (inner !== undefined) return describeError(inner);
  return typeof detail === "string" ? detail : "";
}

/** Some servers send text as a list of parts. */
function textOfContent(content: unknown): string {
  if (typeof content === "string") return content;
  return listOf(content)
    .map((part) => stringOf(fieldsOf(part).text))
    .join("");
}

function decodeToolCall(value: unknown): ToolCallDelta {
  const { function: called, id, index } = fieldsOf(value);
  const { arguments: given, name } = fieldsOf(called);
  return {
    index: typeof index === "number" ? index : undefined,
    id: stringOf(id),
    name: stringOf(name),
    // Some servers send an object instead of JSON text.
    arguments: isObject(given) ? JSON.stringify(given) : stringOf(given),
  };
}

function decodeUsage(value: unknown): TokenUsage | undefined {
  if (!isObject(value)) return undefined;
  const { completion_tokens, prompt_tokens } = value;
  const reasoning = countOf(fieldsOf(value.completion_tokens_details).reasoning_tokens);
  const cached = countOf(fieldsOf(value.prompt_tokens_details).cached_tokens);
  return {
    promptTokens: countOf(prompt_tokens),
    completionTokens: countOf(completion_tokens),
    ...(reasoning > 0 && { reasoningTokens: reasoning }),
    ...(cached > 0 && { cachedTokens: cached }),
  };
}

const stringOf = (value: unknown): string => (typeof value === "string" ? value : "");
const countOf = (value: unknown): number => (Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : 0);

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
    add(delta: ToolCallDelta): void {
      const known = find(delta);
      if (known === undefined || (delta.index === undefined && delta.name !== "" && delta.id === "")) {
        calls.push({ ...delta });
        return;
      }
      known.id ||= delta.id;
      known.name ||= delta.name;
      known.arguments += delta.arguments;
    },
    /** Ids are made up where the server sent none. */
    toToolCalls: (): readonly ToolCall[] =>
      calls
        .filter(({ name }) => name !== "")
        .map(({ arguments: given, id, name }, at) => ({ id: id || `call_${at}`, name, arguments: given })),
  };
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
