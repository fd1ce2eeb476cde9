/** Requests to a language model: one chat completion, streamed, tried again as long as nothing of it was shown. */

import { backoffDelay, sleep } from "../../core/model/backoff.ts";
import type { JsonObject } from "../../core/model/json.ts";
import type { Clock, Log } from "../../core/model/ports.ts";
import { statusText } from "../../core/model/status-texts.ts";
import { SseLimitError } from "../../core/wire/sse.ts";
import { type ChatMessage, encodeMessage, encodeTool, parseJson, type ToolDefinition } from "./chat-codec.ts";
import { describeError } from "./decode-end.ts";
import { ModelError, readRetryAfter, toModelError } from "./model-error.ts";
import { type ChatChunk, type ChatResult, readAnswer, readText } from "./read-answer.ts";

export interface ChatModelOptions {
  /** Everything before `/chat/completions`. */
  readonly baseUrl: string;
  readonly model: string;
  readonly apiKey?: string;
  /** Further members of every request, such as `temperature`. */
  readonly body?: JsonObject;
  /** Longest wait for the next data of a response. */
  readonly idleTimeoutMs: number;
  /** Tries of one request, the first one included. */
  readonly attempts: number;
  /** Bytes of one response. */
  readonly maxResponseBytes: number;
}

export interface ChatModelTools {
  readonly fetch: typeof globalThis.fetch;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly ToolDefinition[];
  /** The tools are only named because earlier messages used them. */
  readonly answersOnly?: boolean;
  readonly maxTokens?: number | undefined;
  readonly signal: AbortSignal;
}

export interface ChatModel {
  readonly name: string;
  /** Yields at most once per network read. Throws a ModelError, or the reason of the signal. */
  stream(request: ChatRequest): AsyncGenerator<ChatChunk, ChatResult, undefined>;
}

const BASE_DELAY_MS = 500;
const MAX_DELAY_MS = 20_000;
/** A server that asks for a longer pause gets no further try: the caller reads how long it is. */
const MAX_RETRY_AFTER_MS = 60_000;
/** Bytes of an error's body that are read. */
const MAX_ERROR_BYTES = 64 * 1024;

export function createChatModel(options: ChatModelOptions, tools: ChatModelTools): ChatModel {
  const { clock, log, random } = tools;
  /** Members that this server turned out not to accept. */
  const refused: RefusedMembers = { maxTokens: false, streamOptions: false };

  async function* stream(request: ChatRequest): AsyncGenerator<ChatChunk, ChatResult, undefined> {
    for (let attempt = 1; ; attempt++) {
      let isShown = false;
      try {
        const chunks = requestOnce(request, options, tools, refused);
        for (;;) {
          const step = await chunks.next();
          if (step.done === true) return step.value;
          isShown = true;
          yield step.value;
        }
      } catch (error) {
        request.signal.throwIfAborted();
        if (!(error instanceof ModelError)) throw error;
        log.warn({ model: options.model, attempt, err: error.cause ?? error }, error.message);
        const { retryAfterMs = backoffDelay(attempt, BASE_DELAY_MS, MAX_DELAY_MS, random()) } = error;
        if (isShown || !error.isTemporary || attempt >= options.attempts || retryAfterMs > MAX_RETRY_AFTER_MS)
          throw error;
        await sleep(clock, retryAfterMs, request.signal);
      }
    }
  }
  return { name: options.model, stream };
}

interface RefusedMembers {
  /** Newer models of OpenAI accept only the newer name of the limit. */
  maxTokens: boolean;
  streamOptions: boolean;
}

async function* requestOnce(
  request: ChatRequest,
  options: ChatModelOptions,
  tools: ChatModelTools,
  refused: RefusedMembers,
): AsyncGenerator<ChatChunk, ChatResult, undefined> {
  const idle = createIdleTimer(options.idleTimeoutMs, tools.clock, request.signal);
  try {
    const response = await open(request, options, tools, refused, idle.signal);
    return yield* readAnswer(response, options, idle.restart);
  } catch (error) {
    request.signal.throwIfAborted();
    if (error instanceof ModelError) throw error;
    if (idle.signal.aborted) {
      throw new ModelError(statusText("modelSilent", Math.ceil(options.idleTimeoutMs / 1000)), { isTemporary: true });
    }
    if (error instanceof SseLimitError) throw new ModelError(statusText("modelAnswerTooLong"), { cause: error });
    throw new ModelError(statusText("modelUnreachable"), { cause: error, isTemporary: true });
  } finally {
    // Also ends a response that is not read to its end, so that the model stops generating.
    idle.stop();
  }
}

async function open(
  request: ChatRequest,
  options: ChatModelOptions,
  tools: ChatModelTools,
  refused: RefusedMembers,
  signal: AbortSignal,
): Promise<Response> {
  for (;;) {
    const body = encodeRequest(request, options, refused);
    const response = await tools.fetch(`${options.baseUrl.replace(/\/+$/, "")}/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "text/event-stream",
        ...(options.apiKey !== undefined && { authorization: `Bearer ${options.apiKey}` }),
      },
      body: JSON.stringify(body),
      // A redirect would send messages, and on the same host the key, somewhere the configuration does not name.
      redirect: "manual",
      signal,
    });
    if (response.status === 200) return response;
    const text = await readText(response, MAX_ERROR_BYTES);
    if (adaptTo(text, response.status, body, refused)) continue;
    const { headers, status } = response;
    const retryAfterMs = readRetryAfter(headers, tools.clock.now());
    throw toModelError({ status, text, retryAfterMs, reason: describeError(parseJson(text)) }, options.apiKey);
  }
}

function encodeRequest(request: ChatRequest, options: ChatModelOptions, refused: RefusedMembers): JsonObject {
  const { answersOnly, maxTokens, messages, tools = [] } = request;
  return {
    ...options.body,
    model: options.model,
    messages: messages.map(encodeMessage),
    stream: true,
    ...(!refused.streamOptions && { stream_options: { include_usage: true } }),
    ...(maxTokens !== undefined && { [refused.maxTokens ? "max_completion_tokens" : "max_tokens"]: maxTokens }),
    ...(tools.length > 0 && { tools: tools.map(encodeTool), ...(answersOnly === true && { tool_choice: "none" }) }),
  };
}

/** Whether the server refused only a member that can be left out or renamed, and the request is worth another try. */
function adaptTo(text: string, status: number, body: JsonObject, refused: RefusedMembers): boolean {
  if (status !== 400 && status !== 422) return false;
  if (!refused.maxTokens && body.max_tokens !== undefined && text.includes("max_completion_tokens")) {
    refused.maxTokens = true;
    return true;
  }
  if (!refused.streamOptions && text.includes("stream_options")) {
    refused.streamOptions = true;
    return true;
  }
  return false;
}

/** A signal that is aborted with the caller's, when the timer ends, and when it is stopped. */
function createIdleTimer(milliseconds: number, clock: Clock, caller: AbortSignal) {
  const controller = new AbortController();
  const abort = () => controller.abort(caller.reason);
  caller.addEventListener("abort", abort, { once: true });
  if (caller.aborted) abort();
  let cancel = clock.after(milliseconds, () => controller.abort());
  return {
    signal: controller.signal,
    restart() {
      cancel();
      cancel = clock.after(milliseconds, () => controller.abort());
    },
    stop() {
      cancel();
      caller.removeEventListener("abort", abort);
      controller.abort();
    },
  };
}
