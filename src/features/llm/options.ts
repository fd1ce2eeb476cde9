import type { Clock, Log } from "../../core/model/ports.ts";
import type { ChatModelOptions } from "./chat-model.ts";
import type { ContentOptions } from "./message-content.ts";

/** Settings of `llm:` in a configuration. */
export interface LlmOptions extends ChatModelOptions {
  readonly system?: string;
  /** Names of agents that the model may call. */
  readonly agents: readonly string[];
  /** Calls of agents for one message. */
  readonly maxToolCalls: number;
  /** Tokens that the model may write for one message, in all requests together. */
  readonly maxTokens?: number;
  /** Tokens of a request: what does not fit of the earlier conversation is left out. */
  readonly maxContextTokens: number;
  readonly images: boolean;
}

/** What these agents need of the process they run in. */
export interface LlmHost {
  readonly fetch: typeof globalThis.fetch;
  /** Absent: files that are referenced by URL are refused. */
  readonly readFile?: ContentOptions["readFile"];
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}
