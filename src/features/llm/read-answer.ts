/** The answer to a request, from its server-sent events. */

import { statusText } from "../../core/model/status-texts.ts";
import { readSseEvents } from "../../core/wire/sse.ts";
import {
  createThinkSplitter,
  createToolCallAssembler,
  decodeChunk,
  MAX_CALLS_OF_ANSWER,
  parseJson,
  type TokenUsage,
  type ToolCall,
} from "./chat-codec.ts";
import { decodeFinish, type Finish } from "./decode-end.ts";
import { ModelError, toModelError } from "./model-error.ts";

export interface ChatChunk {
  readonly text: string;
  readonly reasoning: string;
}

export interface ChatResult {
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finish: Finish;
  /** Undefined if the server did not send it. */
  readonly usage: TokenUsage | undefined;
}

interface ReadOptions {
  readonly apiKey?: string;
  /** Bytes of the whole response. */
  readonly maxResponseBytes: number;
}

/** Yields at most once per network read. */
export async function* readAnswer(
  response: Response,
  options: ReadOptions,
  onData: () => void,
): AsyncGenerator<ChatChunk, ChatResult, undefined> {
  const answer = createAnswer(options.apiKey);
  try {
    for await (const batch of readEvents(response, options.maxResponseBytes)) {
      onData();
      const chunk = answer.add(batch);
      if (chunk !== undefined) yield chunk;
      // A server may leave the connection open after the end.
      if (answer.isOver()) break;
    }
  } catch (error) {
    // Only the count of tokens is missing.
    if (!answer.isFinished() || error instanceof ModelError) throw error;
  }
  const rest = answer.end();
  if (rest !== undefined) yield rest;
  return answer.result();
}

/** The data of the events of each read; of a server that does not stream, the one body. */
async function* readEvents(response: Response, maxEventBytes: number): AsyncGenerator<readonly string[]> {
  if (/^application\/json\b/i.test(response.headers.get("content-type") ?? "")) {
    yield [await readText(response, maxEventBytes), END];
    return;
  }
  for await (const batch of readSseEvents(limitBytes(response, maxEventBytes), { maxEventBytes })) {
    yield batch.map(({ data }) => data);
  }
}

/** The data of the last event. */
const END = "[DONE]";

/** Collects an answer from its events. */
function createAnswer(apiKey: string | undefined) {
  const splitter = createThinkSplitter();
  const calls = createToolCallAssembler();
  let text = "";
  let hasText = false;
  let hasReasoning = false;
  let finish = "";
  let usage: TokenUsage | undefined;
  let failure: ModelError | undefined;
  let over = false;
  const toChunk = (chunk: ChatChunk): ChatChunk | undefined => {
    text += chunk.text;
    return chunk.text === "" && chunk.reasoning === "" ? undefined : chunk;
  };
  const addEvent = (data: string): ChatChunk => {
    if (data === END) {
      over = true;
      finish ||= "stop";
      return NOTHING;
    }
    if (data === "") return NOTHING;
    const value = parseJson(data);
    if (value === undefined) {
      failure = new ModelError(statusText("modelUnreadable"), { isTemporary: true });
      return NOTHING;
    }
    const delta = decodeChunk(value);
    if (delta.error !== undefined) failure = toModelError({ ...delta.error, text: data }, apiKey);
    if ((!delta.isWhole || calls.isEmpty) && !delta.toolCalls.every((call) => calls.add(call))) {
      failure = new ModelError(statusText("modelTooManyCalls", MAX_CALLS_OF_ANSWER));
      return NOTHING;
    }
    finish = delta.finish ?? finish;
    usage = delta.usage ?? usage;
    const parts = delta.isWhole && hasText ? NOTHING : splitter.push(delta.text);
    const reasoning = delta.isWhole && hasReasoning ? "" : delta.reasoning;
    hasText ||= delta.text !== "";
    hasReasoning ||= delta.reasoning !== "";
    return { text: parts.text, reasoning: reasoning + parts.reasoning };
  };
  return {
    /** What the events of one read add together, up to the last one or an error. */
    add(events: readonly string[]): ChatChunk | undefined {
      let added: ChatChunk = NOTHING;
      for (const data of events) {
        if (over || failure !== undefined) break;
        const { reasoning, text: more } = addEvent(data);
        added = { text: added.text + more, reasoning: added.reasoning + reasoning };
      }
      return toChunk(added);
    },
    isFinished: () => finish !== "",
    isOver: () => over || failure !== undefined,
    end: () => toChunk(splitter.end()),
    /** Throws if the answer is not complete: a server says why it ended one. */
    result(): ChatResult {
      if (failure !== undefined) throw failure;
      if (finish === "") throw new ModelError(statusText("modelBrokeOff"), { isTemporary: true });
      return { text, toolCalls: calls.toToolCalls(), finish: decodeFinish(finish), usage };
    },
  };
}

const NOTHING: ChatChunk = { text: "", reasoning: "" };

async function* limitBytes(response: Response, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const bytes of response.body ?? []) {
    size += bytes.byteLength;
    if (size > maxBytes) throw new ModelError(statusText("modelAnswerTooLong"));
    yield bytes;
  }
}

export async function readText(response: Response, maxBytes: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const bytes of limitBytes(response, maxBytes)) pieces.push(bytes);
  return Buffer.concat(pieces).toString("utf8");
}
