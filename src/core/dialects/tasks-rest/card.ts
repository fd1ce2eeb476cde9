import { isObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import { isPartKind, legacyCardDocument, legacyCardReader } from "../shared/legacy/card.ts";

/** The dialect defines no version. */
export const VERSION = "1";
/** Its name in lists of interfaces; no other document defines one. */
export const BINDING = "urn:dragoman:binding:tasks-rest";

export const CARD_PATH = "/.well-known/agent.json";

export const readCard = legacyCardReader({
  interfaceAt: (url) => ({ url, protocolBinding: BINDING, protocolVersion: VERSION }),
  impliedModes: [],
  isLikely: looksLikeTasksRest,
});

/** Only in this dialect are all modes kinds of parts; elsewhere they are media types, or both. */
function looksLikeTasksRest({ authentication, skills }: JsonObject): boolean {
  return isObject(authentication) && Array.isArray(skills) && skills.length > 0 && skills.every(hasPartKindsForModes);
}

function hasPartKindsForModes(skill: JsonValue): boolean {
  return isObject(skill) && [skill.inputModes, skill.outputModes].every(arePartKinds);
}

function arePartKinds(modes: JsonValue | undefined): boolean {
  return Array.isArray(modes) && modes.length > 0 && modes.every(isPartKind);
}

export const toCardDocument = legacyCardDocument(
  ({ authentication, capabilities, description, name, skills, url, version }) => ({
    name,
    description,
    url,
    version,
    skills,
    capabilities,
    authentication,
  }),
);
