import type { AgentCard } from "../../model/card.ts";
import type { JsonObject } from "../../model/json.ts";
import { toEarlyCard } from "../shared/early-card.ts";

export const CARD_PATH = "/.well-known/agent.json";

const documents = new WeakMap<AgentCard, JsonObject>();

/** The card in the form of this dialect. Made once for each card object. */
export function toCardDocument(card: AgentCard): JsonObject {
  let document = documents.get(card);
  if (document === undefined) {
    const { authentication, capabilities, description, name, skills, url, version } = toEarlyCard(card);
    document = {
      name,
      description,
      url,
      version,
      skills,
      capabilities,
      ...(authentication === undefined ? undefined : { authentication }),
    };
    documents.set(card, document);
  }
  return document;
}
