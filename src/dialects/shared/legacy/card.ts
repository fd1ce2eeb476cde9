/** Agent cards as they were before 0.2: one `url`, and `authentication` as a list of words. */

import type { AgentCard, AgentInterface, AgentSkill, SecurityRequirement } from "../../../model/card.ts";
import { isObject, type JsonObject } from "../../../model/json.ts";
import type { CardReader } from "../../contract.ts";

/**
 * Modes of early cards. Some are words for kinds of parts (text, data, file), some are media types, and readers of either
 * look at the same list.
 */

const PART_KINDS = ["text", "data", "file"] as const;
type PartKind = (typeof PART_KINDS)[number];

/** A word for parts of any kind of file says nothing about which. */
const MEDIA_TYPE_OF_PART_KIND: Readonly<Record<PartKind, string>> = {
  text: "text/plain",
  data: "application/json",
  file: "*/*",
};

export function isPartKind(mode: unknown): mode is PartKind {
  return PART_KINDS.some((word) => word === mode);
}

function partKindsFor(mediaType: string): readonly PartKind[] {
  const plain = mediaType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (plain === "*/*") return PART_KINDS;
  if (plain.startsWith("text/")) return ["text"];
  return [plain === "application/json" || plain.endsWith("+json") ? "data" : "file"];
}

/** The words for all of them, then the media types. */
export function toLegacyModes(modes: readonly string[]): string[] {
  return [...new Set([...modes.flatMap((mode) => (isPartKind(mode) ? [mode] : partKindsFor(mode))), ...modes])];
}

/** Media types only: a word counts where no media type of its kind stands beside it. */
export function fromLegacyModes(modes: readonly string[]): string[] {
  const explained = new Set(modes.filter((mode) => !isPartKind(mode)).flatMap(partKindsFor));
  return [
    ...new Set(
      modes.flatMap((mode) => {
        if (!isPartKind(mode)) return [mode];
        return explained.has(mode) ? [] : [MEDIA_TYPE_OF_PART_KIND[mode]];
      }),
    ),
  ];
}

/** Members that mean the same to every reader of such cards have the same value for all of them. */
interface LegacyCard {
  readonly name: string;
  readonly description: string;
  readonly url: string;
  readonly version: string;
  readonly capabilities: { readonly streaming: boolean; readonly pushNotifications: boolean };
  readonly authentication: { readonly schemes: readonly string[] } | undefined;
  readonly skills: readonly JsonObject[];
}

/** The card as the dialect's document, made once for each card. */
export function legacyCardDocument(
  make: (legacy: LegacyCard, card: AgentCard) => JsonObject,
): (card: AgentCard) => JsonObject {
  const documents = new WeakMap<AgentCard, JsonObject>();
  return (card) => {
    let document = documents.get(card);
    if (document === undefined) {
      document = make(toLegacyCard(card), card);
      documents.set(card, document);
    }
    return document;
  };
}

function toLegacyCard(card: AgentCard): LegacyCard {
  const { capabilities, description, name, securitySchemes, supportedInterfaces, version } = card;
  const atBase = supportedInterfaces.find(({ protocolBinding }) => protocolBinding === "JSONRPC");
  const schemes = [...new Set(Object.values(securitySchemes ?? {}).flatMap(schemeNames))];
  return {
    name,
    description,
    url: (atBase ?? supportedInterfaces[0])?.url ?? "",
    version,
    capabilities: {
      streaming: capabilities.streaming === true,
      pushNotifications: capabilities.pushNotifications === true,
    },
    authentication: schemes.length === 0 ? undefined : { schemes },
    skills: card.skills.map((skill) => toLegacySkill(skill, card)),
  };
}

/** Some readers insist on modes, so that a skill without any has those of its agent. */
function toLegacySkill(skill: AgentCard["skills"][number], card: AgentCard): JsonObject {
  const { description, examples, id, inputModes, name, outputModes, tags } = skill;
  return {
    id,
    name,
    description,
    tags,
    ...(examples === undefined ? undefined : { examples }),
    inputModes: toLegacyModes(inputModes ?? card.defaultInputModes),
    outputModes: toLegacyModes(outputModes ?? card.defaultOutputModes),
  };
}

function schemeNames(scheme: JsonObject): string[] {
  if (scheme.apiKeySecurityScheme !== undefined) return ["apiKey"];
  if (scheme.oauth2SecurityScheme !== undefined || scheme.openIdConnectSecurityScheme !== undefined) return ["oauth2"];
  if (scheme.mtlsSecurityScheme !== undefined) return ["mutualTLS"];
  const http = scheme.httpAuthSecurityScheme;
  const name = isObject(http) ? http.scheme : undefined;
  return typeof name === "string" && name !== "" ? [name.toLowerCase()] : [];
}

/** Cards of others: what is unusable in one is left out, so that the rest can be used. */

interface LegacyCardOptions {
  readonly interfaceAt: (url: string) => AgentInterface;
  /** Never certain: nothing in such a card is not in some other card, too. Whether it is one is seen by calling. */
  readonly isLikely: (card: JsonObject) => boolean;
  /** Modes of an agent whose card names none of its own, beside those of its skills. */
  readonly impliedModes: readonly string[];
}

export function legacyCardReader(options: LegacyCardOptions): CardReader {
  return (value, cardUrl) => {
    const card = isObject(value) ? readLegacyCard(value, cardUrl, options) : undefined;
    if (card === undefined) return undefined;
    return { card, confidence: isObject(value) && options.isLikely(value) ? "likely" : "possible" };
  };
}

/** Undefined for a card that does not say where its agent is. */
function readLegacyCard(
  value: JsonObject,
  cardUrl: string | undefined,
  { impliedModes, interfaceAt }: LegacyCardOptions,
): AgentCard | undefined {
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
function addressIn(card: JsonObject, cardUrl: string | undefined): string | undefined {
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
