/** Why an answer ended, in the forms of many vendors: only a reason that is known to be a success is one. */

import { fieldsOf, listOf } from "../../core/model/json.ts";
import { statusText } from "../../core/model/status-texts.ts";
import { type ChatFailure, ModelError } from "./model-error.ts";

export type Finish = "stop" | "tool_calls" | "length" | "content_filter";

/** By its name in lower case. */
const FINISHES: ReadonlyMap<string, Finish> = new Map([
  ...["stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "normal"].map((name) => entry(name, "stop")),
  ...["tool_calls", "tool_call", "tool_use", "function_call"].map((name) => entry(name, "tool_calls")),
  ...["length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"].map((name) =>
    entry(name, "length"),
  ),
  ...["content_filter", "sensitive", "safety", "prohibited_content", "recitation", "refusal"].map((name) =>
    entry(name, "content_filter"),
  ),
]);

function entry(name: string, finish: Finish): readonly [string, Finish] {
  return [name, finish];
}

/** Reasons of the server, not of the model: another try may succeed. */
const TEMPORARY = new Set(["insufficient_system_resource", "network_error", "error", "abort", "timeout"]);
const MAX_NAME_LENGTH = 60;

/** Throws a ModelError that names the reason if it is not a success. */
export function decodeFinish(reason: string): Finish {
  const name = reason.toLowerCase();
  // Gemini adds a reason of its own after a colon.
  const finish = FINISHES.get(name.replace(/:.*$/s, "").trim());
  if (finish !== undefined) return finish;
  const shown = reason.replace(/[^\w .:-]+/g, "").slice(0, MAX_NAME_LENGTH);
  throw new ModelError(statusText("modelStopped", shown), { isTemporary: TEMPORARY.has(name) });
}

/** The error that an event or a whole body reports, if any. */
export function decodeFailure(value: unknown): ChatFailure | undefined {
  const { base_resp, choices, error, message, object, x_groq } = fieldsOf(value);
  const { status_code, status_msg } = fieldsOf(base_resp);
  if (typeof status_code === "number" && status_code !== 0) {
    return { reason: describeError(status_msg), status: MINIMAX_STATUSES.get(status_code) };
  }
  const given = error ?? fieldsOf(x_groq).error;
  if (given !== undefined && given !== null) return { reason: describeError(given), status: statusOf(given) };
  const isError = object === "error" || (choices === undefined && typeof message === "string");
  return isError ? { reason: describeError(value), status: statusOf(value) } : undefined;
}

/** Codes of MiniMax, which sends them with status 200. Those that are not here name no HTTP status. */
const MINIMAX_STATUSES: ReadonlyMap<number, number> = new Map([
  [1001, 504],
  [1002, 429],
  [1004, 401],
  [1008, 402],
  [1039, 429],
  [1041, 429],
  [1042, 400],
  [2013, 400],
  [2049, 401],
  [2056, 402],
]);
const MINIMAX_FILTERED: ReadonlySet<unknown> = new Set([1026, 1027]);

export function isFilteredByMiniMax(value: unknown): boolean {
  return MINIMAX_FILTERED.has(fieldsOf(fieldsOf(value).base_resp).status_code);
}

function statusOf(error: unknown): number | undefined {
  const { code, status, status_code } = fieldsOf(error);
  return [code, status_code, status].map(Number).find((given) => given >= 400 && given < 600);
}

/** Levels of an error in an error that are read. */
const MAX_DEPTH = 4;

/** The reason in the body of an error; empty if there is none. */
export function describeError(error: unknown, depth = MAX_DEPTH): string {
  if (typeof error === "string") return error;
  // Gemini sends a list of one error, FastAPI one entry per member of the request that is wrong.
  const first = Array.isArray(error) ? listOf(error)[0] : error;
  const { base_resp, detail, error: inner, message, msg, status_msg } = fieldsOf(first);
  const own = [message, msg, status_msg].find((text) => typeof text === "string");
  if (own !== undefined) return String(own);
  const nested = inner ?? detail ?? base_resp;
  return nested === undefined || nested === null || depth === 0 ? "" : describeError(nested, depth - 1);
}
