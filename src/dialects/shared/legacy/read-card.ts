/** Other people's early cards: whatever is unusable in one is left out, so that the rest can be used. */

import type { AgentCard, AgentInterface, AgentSkill, SecurityRequirement } from "../../../model/card.ts";
import { isObject, type JsonObject } from "../../../model/json.ts";
import { fromLegacyModes } from "./card.ts";

type Members = Readonly<Record<string, unknown>>;

export interface LegacyCardOptions {
  readonly interfaceAt: (url: string) => AgentInterface;
  /** Modes of an agent whose card names none of its own, beside those of its skills. */
  readonly impliedModes: readonly string[];
}

/** Undefined for what is no card, or does not say where its agent is. */
export function readLegacyCard(
  value: unknown,
  cardUrl: string | undefined,
  { impliedModes, interfaceAt }: LegacyCardOptions,
): AgentCard | undefined {
  if (!isObject(value)) return undefined;
  const url = addressIn(value, cardUrl);
  if (url === undefined) return undefined;
  const skills = listIn(value.skills).flatMap(readSkill);
  return {
    name: textOr(value.name, "unnamed agent"),
    description: textOr(value.description, ""),
    supportedInterfaces: [interfaceAt(url)],
    ...providerIn(value.provider),
    version: textOr(value.version, "unknown"),
    ...(isText(value.documentationUrl) ? { documentationUrl: value.documentationUrl } : undefined),
    capabilities: capabilitiesIn(value.capabilities),
    ...securityIn(value.authentication),
    defaultInputModes: modesIn(value.defaultInputModes, skills, "inputModes", impliedModes),
    defaultOutputModes: modesIn(value.defaultOutputModes, skills, "outputModes", impliedModes),
    skills,
  };
}

const WELL_KNOWN = "/.well-known/";

/** A card is served below the address of its agent, which serves where the card does not name one. */
function addressIn(card: Members, cardUrl: string | undefined): string | undefined {
  const { name } = card;
  const url = isText(card.url) ? card.url : listedAddress(card.supportedInterfaces);
  if (isText(url)) {
    if (URL.canParse(url)) return url;
    return cardUrl !== undefined && URL.canParse(url, cardUrl) ? new URL(url, cardUrl).href : undefined;
  }
  if (!isText(name) || cardUrl === undefined || !URL.canParse(cardUrl)) return undefined;
  const end = cardUrl.indexOf(WELL_KNOWN);
  return end === -1 ? undefined : cardUrl.slice(0, end);
}

/** Of a newer card, for those who insist on speaking to its agent as it was spoken to earlier. */
function listedAddress(interfaces: unknown): unknown {
  const isRpc = (entry: unknown) => isObject(entry) && String(entry.protocolBinding).toUpperCase() === "JSONRPC";
  return listIn(interfaces).filter(isObject).find(isRpc)?.url;
}

function providerIn(value: unknown): Pick<AgentCard, "provider"> | undefined {
  if (!isObject(value) || !isText(value.organization)) return undefined;
  return { provider: { url: textOr(value.url, ""), organization: value.organization } };
}

function capabilitiesIn(value: unknown): AgentCard["capabilities"] {
  const { streaming, pushNotifications } = isObject(value) ? value : {};
  return { streaming: streaming === true, pushNotifications: pushNotifications === true };
}

/** Each scheme alone will do. */
function securityIn(value: unknown): Pick<AgentCard, "securitySchemes" | "securityRequirements"> | undefined {
  const words = isObject(value) ? listIn(value.schemes).filter(isText) : [];
  if (words.length === 0) return undefined;
  const securitySchemes: Record<string, JsonObject> = {};
  const securityRequirements: SecurityRequirement[] = [];
  for (const word of new Set(words)) {
    if (word === "__proto__") continue;
    securitySchemes[word] = toScheme(word);
    securityRequirements.push({ schemes: { [word]: { list: [] } } });
  }
  return { securitySchemes, securityRequirements };
}

function toScheme(word: string): JsonObject {
  switch (word.toLowerCase().replaceAll(/[^a-z0-9]/g, "")) {
    case "apikey":
      return { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } };
    case "mutualtls":
    case "mtls":
      return { mtlsSecurityScheme: {} };
    case "basic":
      return { httpAuthSecurityScheme: { scheme: "Basic" } };
    case "bearer":
    case "jwt":
    case "oauth2":
    case "openidconnect":
      return { httpAuthSecurityScheme: { scheme: "Bearer" } };
    default:
      return { httpAuthSecurityScheme: { scheme: word } };
  }
}

function readSkill(value: unknown): AgentSkill[] {
  if (!isObject(value)) return [];
  const { description, examples, inputModes, outputModes, tags } = value;
  const id = isText(value.id) ? value.id : value.name;
  if (!isText(id)) return [];
  return [
    {
      id,
      name: textOr(value.name, id),
      description: textOr(description, ""),
      tags: listIn(tags).filter(isText),
      ...textsAs("examples", listIn(examples).filter(isText)),
      ...textsAs("inputModes", fromLegacyModes(listIn(inputModes).filter(isText))),
      ...textsAs("outputModes", fromLegacyModes(listIn(outputModes).filter(isText))),
    },
  ];
}

function textsAs<Name extends "examples" | "inputModes" | "outputModes">(
  name: Name,
  texts: readonly string[],
): Partial<Record<Name, readonly string[]>> | undefined {
  if (texts.length === 0) return undefined;
  const named: Partial<Record<Name, readonly string[]>> = {};
  named[name] = texts;
  return named;
}

/** What the card says, else all that is implied or that its skills say. */
function modesIn(
  value: unknown,
  skills: readonly AgentSkill[],
  name: "inputModes" | "outputModes",
  implied: readonly string[],
): readonly string[] {
  const own = fromLegacyModes(listIn(value).filter(isText));
  if (own.length > 0) return own;
  const all = [...new Set([...implied, ...skills.flatMap((skill) => skill[name] ?? [])])];
  return all.length > 0 ? all : ["text/plain"];
}

function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function textOr(value: unknown, otherwise: string): string {
  return isText(value) ? value : otherwise;
}
