/**
 * What servers of chat completions send, in the form that each documents: written by hand, one entry for each way in
 * which a vendor differs from the others.
 */

interface Sent {
  readonly status?: number;
  /** Events of a stream; text is sent as it is. */
  readonly events?: readonly (Json | string)[];
  /** A whole body, as JSON. */
  readonly body?: unknown;
}

interface Expected {
  readonly text?: string;
  readonly reasoning?: string;
  /** Names and arguments of the tools that are called. */
  readonly calls?: readonly (readonly [string, string])[];
  readonly usage?: Json;
  /** The reason of a failed task. */
  readonly failure?: RegExp;
}

export type Json = Readonly<Record<string, unknown>>;
export type Exchange = readonly [vendor: string, what: string, sent: Sent, expected: Expected];

export const DONE = "data: [DONE]";
export const chunk = (delta: Json, finish: string | null = null, more: Json = {}): Json => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_755_153_113,
  model: "m",
  choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  ...more,
});
export const counts = (prompt: number, completion: number) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
});
export const tool = (fields: Json): Json => ({ tool_calls: [fields] });
export const named = (name: string, given: string) => ({ type: "function", function: { name, arguments: given } });
export const whole = (message: Json, finish: string, more: Json = {}): Json => ({
  id: "1",
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: finish }],
  ...more,
});

export const ROME = '{"text":"Rome"}';
export const OSLO = '{"text":"Oslo"}';
export const ONE_CALL = [["weather", ROME]] as const;
export const TWO_CALLS = [...ONE_CALL, ["weather", OSLO]] as const;
export const FILTERED = /content filter/;
export const COUNTED = { promptTokens: 10, completionTokens: 2 };
