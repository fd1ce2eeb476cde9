/** What was said before in a conversation, kept durably beside the tasks, by agent, owner and context. */

import { fieldsOf, listOf } from "../../core/model/json.ts";
import type { Records } from "../../core/model/records.ts";
import type { ChatMessage } from "./chat-codec.ts";
import { estimateMessageTokens, truncateToTokens } from "./message-content.ts";

export interface ConversationKey {
  readonly agent: string;
  readonly owner: string;
  readonly contextId: string;
}

/** One message and its answer. */
export interface Exchange {
  /** Id of the message: a run that is repeated after a crash replaces what it remembered. */
  readonly id: string;
  readonly user: string;
  readonly assistant: string;
}

/** Conversations of one owner with one agent; the oldest are forgotten. */
const MAX_CONVERSATIONS = 1_000;
const CONVERSATION_TTL_MS = 30 * 24 * 60 * 60 * 1000;

/** The newest exchanges that fit, as messages, oldest first. */
export async function recallConversation(
  records: Records,
  key: ConversationKey,
  maxTokens: number,
): Promise<readonly ChatMessage[]> {
  const stored = await records.record(spaceOf(key), key.contextId);
  return fitExchanges(parseExchanges(stored), maxTokens).flatMap(toMessages);
}

export async function rememberExchange(
  records: Records,
  key: ConversationKey,
  exchange: Exchange,
  maxTokens: number,
): Promise<void> {
  const record = {
    space: spaceOf(key),
    key: key.contextId,
    ttlMs: CONVERSATION_TTL_MS,
    keep: MAX_CONVERSATIONS,
  };
  // A long message is remembered by its beginning, or it would push out everything else.
  const half = Math.floor(maxTokens / 2);
  const short: Exchange = {
    id: exchange.id,
    user: truncateToTokens(exchange.user, half),
    assistant: truncateToTokens(exchange.assistant, half),
  };
  await records.update(record, (before) => {
    const others = parseExchanges(before).filter(({ id }) => id !== exchange.id);
    return JSON.stringify(fitExchanges([...others, short], maxTokens));
  });
}

/** The same context id of two owners, or of two agents, is not the same conversation. */
function spaceOf({ agent, owner }: ConversationKey): string {
  return `llm:${JSON.stringify([agent, owner])}`;
}

function toMessages({ assistant, user }: Exchange): readonly ChatMessage[] {
  return [
    { role: "user", content: user },
    { role: "assistant", content: assistant },
  ];
}

function fitExchanges(exchanges: readonly Exchange[], maxTokens: number): readonly Exchange[] {
  let tokens = 0;
  const first = exchanges.findLastIndex((exchange) => {
    tokens += toMessages(exchange).reduce((sum, message) => sum + estimateMessageTokens(message), 0);
    return tokens > maxTokens;
  });
  return exchanges.slice(first + 1);
}

/** Empty for a record that is absent or damaged. */
function parseExchanges(stored: string | undefined): readonly Exchange[] {
  if (stored === undefined) return [];
  try {
    return listOf(JSON.parse(stored)).flatMap((item) => {
      const { assistant, id, user } = fieldsOf(item);
      const isValid = typeof id === "string" && typeof user === "string" && typeof assistant === "string";
      return isValid ? [{ id, user, assistant }] : [];
    });
  } catch {
    return [];
  }
}
