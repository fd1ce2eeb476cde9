import type { AgentCard } from "../../model/card.ts";
import { readWire, writeWire } from "./schema.ts";

const texts = new WeakMap<AgentCard, string>();

/** The card as 1.0 JSON, by the presence rules that signing relies on (§8.4.1). Made once for each card object. */
export function toWireCard(card: AgentCard): string {
  let text = texts.get(card);
  if (text === undefined) {
    text = JSON.stringify(writeWire("AgentCard", card));
    texts.set(card, text);
  }
  return text;
}

/** A card someone published. Throws INVALID_AGENT_RESPONSE naming all that is wrong with it. */
export function fromWireCard(json: unknown): AgentCard {
  return readWire("AgentCard", json, { code: "INVALID_AGENT_RESPONSE" });
}
