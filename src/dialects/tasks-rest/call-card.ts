import type { CardReader } from "../contract.ts";
import { type EarlyCardOptions, readEarlyCard } from "../shared/early-card-reading.ts";
import { isWord } from "../shared/early-modes.ts";
import { isRecord } from "../shared/proto-json-reading.ts";
import { BINDING, VERSION } from "./version.ts";

const OPTIONS: EarlyCardOptions = {
  interfaceAt: (url) => ({ url, protocolBinding: BINDING, protocolVersion: VERSION }),
  impliedModes: [],
};

export const readCard: CardReader = (value, cardUrl) => {
  const card = readEarlyCard(value, cardUrl, OPTIONS);
  return card === undefined ? undefined : { card, confidence: looksLikeTasksRest(value) ? "likely" : "possible" };
};

/** Only here are all modes words for kinds of parts; elsewhere they are media types, or both. */
export function looksLikeTasksRest(value: unknown): boolean {
  if (!isRecord(value) || !isRecord(value.authentication)) return false;
  const { skills } = value;
  return Array.isArray(skills) && skills.length > 0 && skills.every(hasWordsForModes);
}

function hasWordsForModes(skill: unknown): boolean {
  return isRecord(skill) && [skill.inputModes, skill.outputModes].every(areWords);
}

function areWords(modes: unknown): boolean {
  return Array.isArray(modes) && modes.length > 0 && modes.every(isWord);
}
