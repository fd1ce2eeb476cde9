/** `llm` of an agent: which language model answers, and how. */

import { z } from "zod";
import type { AgentKind } from "../../core/extension/contract.ts";
import { formatDuration } from "../../core/model/duration.ts";
import { type Fields, fieldsOf, type JsonObject, listOf, omitUndefined } from "../../core/model/json.ts";
import { checkAgentExists } from "../../core/server/config/problems.ts";
import { membersOf, type ShownValues } from "../../core/server/config/shown-values.ts";
import type { Finding } from "../../core/yaml/problems.ts";
import { count, optional, text, wait } from "../../core/yaml/value-types.ts";
import { WRITER_NAMES, type WriterName } from "../writers/names.ts";
import type { LlmOptions } from "./options.ts";

const BASE_URL_ERROR = "must be an http or https address without query, fragment or login";
const DEFAULT_CONTEXT_TOKENS = 8_000;
/** Beyond this, Node itself gives up on a response. */
const MAX_IDLE_MS = 300_000;

export const llm = z.strictObject({
  baseUrl: z
    .url({ protocol: /^https?$/, error: BASE_URL_ERROR })
    .refine((url) => !/[?#]|\/\/[^/]*@/.test(url), { error: BASE_URL_ERROR })
    .describe("Address of an OpenAI-compatible API, up to and without `/chat/completions`; it may be a private one."),
  model: text.describe("Name of the model, as the API knows it."),
  apiKey: optional(z.string(), "Key for the API, sent as a bearer token; default, and if empty: none."),
  system: optional(text, "Instructions that precede every conversation; default: none."),
  agents: z
    .array(text)
    .default([])
    .describe("Agents of this file that the model may call as tools; each call is a task of its own."),
  maxToolCalls: count.default(16).describe("Calls of agents for one message; after them the model has to answer."),
  maxTokens: optional(
    count,
    "Tokens that the model may write for one message, in all its requests together; default: the model's own limit.",
  ),
  maxContextTokens: count
    .default(DEFAULT_CONTEXT_TOKENS)
    .describe(
      "Tokens of a request, estimated: as much of the earlier conversation is sent with a message as fits. Not more than the context of the model.",
    ),
  images: z
    .boolean()
    .default(false)
    .describe("Whether the model accepts images; otherwise messages with an image are rejected."),
  attempts: count
    .default(4)
    .describe("Tries of a request that fails before anything of the answer was received, the first one included."),
  idleTimeout: wait
    .refine((milliseconds) => milliseconds <= MAX_IDLE_MS, { error: "must not be longer than 5m" })
    .prefault("2m")
    .describe(
      "Longest wait for the next part of the answer, 5m at most; `timeout` of the agent bounds the whole turn.",
    ),
  body: z
    .record(z.string(), z.json())
    .default({})
    .describe(
      "Further members of every request, as the API defines them, such as `temperature` or `reasoning_effort`.",
    ),
});

type LlmConfig = Omit<LlmOptions, "maxResponseBytes">;

function toLlmConfig(parsed: z.output<typeof llm>): LlmConfig {
  const { apiKey, body, idleTimeout, ...rest } = parsed;
  return {
    ...rest,
    // Of JSON, as the schema has checked.
    body: body as JsonObject,
    idleTimeoutMs: idleTimeout,
    ...omitUndefined({ apiKey: apiKey === "" ? undefined : apiKey }),
  };
}

function* llmValues(path: string, { body, idleTimeoutMs, ...config }: LlmConfig): ShownValues {
  yield* membersOf(path, config);
  yield [`${path}.idleTimeout`, formatDuration(idleTimeoutMs)];
  for (const [name, value] of Object.entries(body ?? {})) {
    yield [`${path}.body.${name}`, typeof value === "object" ? JSON.stringify(value) : value];
  }
}

interface LlmSource {
  readonly llm: LlmConfig;
  /** The writer that the model writes for; absent: it answers itself. */
  readonly use?: WriterName;
}

const isWriter = (use: unknown): use is WriterName => WRITER_NAMES.some((name) => name === use);

export const llmKind: AgentKind<LlmSource> = {
  keys: {
    llm: optional(
      llm,
      "A language model behind an OpenAI-compatible API, which answers; or, with `use: outline`, `document` or `summary`, writes for that agent.",
    ),
  },
  accompanies: ({ llm: model, use }) => model !== undefined && isWriter(use),
  check: checkCalledAgents,
  toSource(parsed) {
    const { llm: model, use } = parsed as { readonly llm: z.output<typeof llm>; readonly use?: unknown };
    return { llm: toLlmConfig(model), ...(isWriter(use) && { use }) };
  },
  async build({ llm: config, use }, { limits, log, name: id }) {
    const { createLlmHost } = await import("./host.ts");
    const host = createLlmHost(limits.file ?? limits.part, log);
    const how = { id, ...config, maxResponseBytes: limits.part, host };
    if (use === undefined) return (await import("./index.ts")).createLlmAgent(how);
    return (await import("./writers.ts")).createModelWriter({ use, ...how });
  },
  summary: ({ llm: { model }, use }) => (use === undefined ? `llm: ${model}` : `use: ${use}, llm: ${model}`),
  *shown(path, { llm: config, use }) {
    if (use !== undefined) yield [`${path}.use`, use];
    yield* llmValues(`${path}.llm`, config);
  },
  secrets: ({ llm: { apiKey } }) => (apiKey === undefined ? [] : [apiKey]),
};

/** Those that a language model may call. A writer calls none. */
function checkCalledAgents(name: string, { llm: model, use }: Fields, agents: Fields): readonly Finding[] {
  const path = ["agents", name, "llm", "agents"];
  const called = listOf(fieldsOf(model).agents);
  if (use !== undefined && called.length > 0) return [{ path, message: `has no meaning beside use: ${use}` }];
  return called.flatMap((agent, at) =>
    agent === name
      ? [{ path: [...path, at], message: "an agent cannot call itself" }]
      : checkAgentExists(agent, agents, [...path, at]),
  );
}
