import type { Agent } from "../../core/engine/agent.ts";
import type { JsonObject } from "../../core/model/json.ts";
import { type CodeAgentOptions, declareAgent } from "../../core/server/config/code-agents.ts";
import { generalKeys } from "../../core/server/config/schema.ts";
import { llm as llmSchema } from "./config.ts";

export interface LlmAgentOptions extends CodeAgentOptions {
  /** Address of an OpenAI-compatible API, up to and without `/chat/completions`. */
  readonly baseUrl: string;
  /** Name of the model, as the API knows it. */
  readonly model: string;
  /** Key for the API, sent as a bearer token. */
  readonly apiKey?: string;
  /** Instructions that precede every conversation. */
  readonly system?: string;
  /** Names of agents of the same server that the model may call as tools. */
  readonly agents?: readonly string[];
  /** Calls of agents for one message. Default: 16. */
  readonly maxToolCalls?: number;
  /** Tokens that the model may write for one message. Default: the model's own limit. */
  readonly maxTokens?: number;
  /** Tokens of a request, estimated; as much of the conversation is sent as fits. Default: 8,000. */
  readonly maxContextTokens?: number;
  /** Whether the model accepts images. Default: false. */
  readonly images?: boolean;
  /** Tries of a request that fails before anything was received. Default: 4. */
  readonly attempts?: number;
  /** Longest wait for the next part of the answer, such as `30s`. Default: `2m`. */
  readonly idleTimeout?: string;
  /** Further members of every request, such as `temperature`. */
  readonly body?: JsonObject;
}

/** An agent that answers with a language model, behind any API that is compatible with OpenAI's chat completions. */
export function llm(options: LlmAgentOptions): Agent {
  return declareAgent(
    "llm",
    llmSchema.extend(generalKeys.shape),
    options,
    ({ name, description, skills, inputModes, ...parsed }) => {
      const { concurrency, onCrash, repeatTextInStatus, timeout, ...model } = parsed;
      return { name, description, skills, inputModes, concurrency, onCrash, repeatTextInStatus, timeout, llm: model };
    },
  );
}
