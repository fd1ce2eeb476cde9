import type { AgentCard } from "../../model/card.ts";
import type { JsonObject } from "../../model/json.ts";
import { toEarlyCard } from "../shared/early-card.ts";

export const CARD_PATH = "/.well-known/agent.json";

const documents = new WeakMap<AgentCard, JsonObject>();

/** The card in the form of 0.1. Made once for each card object. */
export function toCardDocument(card: AgentCard): JsonObject {
  let document = documents.get(card);
  if (document === undefined) {
    document = makeDocument(card);
    documents.set(card, document);
  }
  return document;
}

function makeDocument(card: AgentCard): JsonObject {
  const { authentication, capabilities, description, name, skills, url, version } = toEarlyCard(card);
  const { defaultInputModes, defaultOutputModes, documentationUrl, provider } = card;
  return {
    name,
    description,
    url,
    ...(provider === undefined ? undefined : { provider: { organization: provider.organization, url: provider.url } }),
    version,
    ...(documentationUrl === undefined ? undefined : { documentationUrl }),
    capabilities,
    ...(authentication === undefined ? undefined : { authentication }),
    defaultInputModes,
    defaultOutputModes,
    skills,
  };
}
