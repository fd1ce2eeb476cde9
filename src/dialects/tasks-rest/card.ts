import type { AgentCard } from "../../model/card.ts";
import { isObject, type JsonObject } from "../../model/json.ts";
import type { CardReader } from "../contract.ts";
import { isPartKind, toLegacyCard } from "../shared/legacy/card.ts";
import { type LegacyCardOptions, readLegacyCard } from "../shared/legacy/read-card.ts";

const OPTIONS: LegacyCardOptions = {
  interfaceAt: (url) => ({ url, protocolBinding: BINDING, protocolVersion: VERSION }),
  impliedModes: [],
};

export const readCard: CardReader = (value, cardUrl) => {
  const card = readLegacyCard(value, cardUrl, OPTIONS);
  return card === undefined ? undefined : { card, confidence: looksLikeTasksRest(value) ? "likely" : "possible" };
};

/** Only here are all modes words for kinds of parts; elsewhere they are media types, or both. */
export function looksLikeTasksRest(value: unknown): boolean {
  if (!isObject(value) || !isObject(value.authentication)) return false;
  const { skills } = value;
  return Array.isArray(skills) && skills.length > 0 && skills.every(hasPartKindsForModes);
}

function hasPartKindsForModes(skill: unknown): boolean {
  return isObject(skill) && [skill.inputModes, skill.outputModes].every(arePartKinds);
}

function arePartKinds(modes: unknown): boolean {
  return Array.isArray(modes) && modes.length > 0 && modes.every(isPartKind);
}

/** This dialect never named one. */
export const VERSION = "1";
export const DIALECT_NAME = "tasks-rest";
/** Its name in lists of interfaces; no other document has one for it. */
export const BINDING = "urn:dragoman:binding:tasks-rest";

export const CARD_PATH = "/.well-known/agent.json";

const documents = new WeakMap<AgentCard, JsonObject>();

/** The card in the form of this dialect. Made once for each card object. */
export function toCardDocument(card: AgentCard): JsonObject {
  let document = documents.get(card);
  if (document === undefined) {
    const { authentication, capabilities, description, name, skills, url, version } = toLegacyCard(card);
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
