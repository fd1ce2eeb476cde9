import type { AgentCard } from "../../model/card.ts";
import { isObject, type JsonObject } from "../../model/json.ts";
import type { CardReader } from "../contract.ts";
import { toLegacyCard } from "../shared/legacy/card.ts";
import { type LegacyCardOptions, readLegacyCard } from "../shared/legacy/read-card.ts";

const OPTIONS: LegacyCardOptions = {
  interfaceAt: (url) => ({ url, protocolBinding: "JSONRPC", protocolVersion: VERSION }),
  impliedModes: ["text/plain"],
};

/** Never certain: nothing in a card of 0.1 is not in some other card, too. Whether it is one is seen by calling. */
export const readCard: CardReader = (value, cardUrl) => {
  const card = readLegacyCard(value, cardUrl, OPTIONS);
  return card === undefined ? undefined : { card, confidence: looksLikeV01(value) ? "likely" : "possible" };
};

/** Later versions say how to log in by other members, and which version they are. */
function looksLikeV01(value: unknown): boolean {
  return isObject(value) && isObject(value.authentication) && value.protocolVersion === undefined;
}

export const VERSION = "0.1";

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
  const { authentication, capabilities, description, name, skills, url, version } = toLegacyCard(card);
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
