import type { TokenKind } from "../../core/agents/directory.ts";
import { EXTENSIONS } from "../../core/model/extensions.ts";
import type { JsonObject } from "../../core/model/json.ts";
import type { ChatMessage } from "./chat-codec.ts";
import { estimateMessageTokens, estimateTokens } from "./message-content.ts";
import type { ChatResult } from "./read-answer.ts";

/** Tokens of all requests of a turn. */
export type Usage = {
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens?: number;
  readonly cachedTokens?: number;
  /** Some counts are estimates, because the server sent none. */
  readonly estimated?: true;
};

export type TokenCount = ReturnType<typeof createTokenCount>;

const NONE: Usage = { requests: 0, promptTokens: 0, completionTokens: 0 };

export function createTokenCount(
  model: string,
  earlier: Usage = NONE,
  count: (kind: TokenKind, tokens: number) => void = () => {},
) {
  let total = earlier;
  return {
    get completion(): number {
      return total.completionTokens;
    },
    add({ text, toolCalls, usage }: ChatResult, messages: readonly ChatMessage[]): void {
      const counted = usage ?? {
        promptTokens: messages.reduce((sum, message) => sum + estimateMessageTokens(message), 0),
        completionTokens: estimateTokens(text + toolCalls.map((call) => call.arguments).join("")),
      };
      count("prompt", counted.promptTokens);
      count("completion", counted.completionTokens);
      const reasoningTokens = (total.reasoningTokens ?? 0) + (counted.reasoningTokens ?? 0);
      const cachedTokens = (total.cachedTokens ?? 0) + (counted.cachedTokens ?? 0);
      total = {
        requests: total.requests + 1,
        promptTokens: total.promptTokens + counted.promptTokens,
        completionTokens: total.completionTokens + counted.completionTokens,
        reasoningTokens: reasoningTokens > 0 ? reasoningTokens : undefined,
        cachedTokens: cachedTokens > 0 ? cachedTokens : undefined,
        estimated: usage === undefined || total.estimated ? true : undefined,
      };
    },
    usage: (): Usage => total,
    /** For the status that ends a turn; nothing before the first answer. */
    toMetadata(): { readonly metadata?: JsonObject } {
      if (total.requests === 0) return {};
      const totalTokens = total.promptTokens + total.completionTokens;
      return { metadata: { [EXTENSIONS.usage]: { model, ...total, totalTokens } } };
    },
  };
}
