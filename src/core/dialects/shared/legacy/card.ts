/** Agent cards before 0.2: one `url`, and `authentication` as a list of scheme names. */

import {
  type AgentCard,
  type AgentInterface,
  type AgentSkill,
  type SecurityRequirement,
  UNNAMED_AGENT,
} from "../../../model/card.ts";
import { isObject, type JsonObject } from "../../../model/json.ts";
import { canParseUrl } from "../../../model/url.ts";
import type { CardReader } from "../../contract.ts";
import { objectsIn, oncePerCard, textIn, textsIn } from "../cards.ts";

/** Modes of legacy cards are kinds of parts or media types, in the same list. */
const PART_KINDS = ["text", "data", "file"] as const;
type PartKind = (typeof PART_KINDS)[number];

/** `file` does not specify a media type. */
const MEDIA_TYPE_OF_PART_KIND: Readonly<Record<PartKind, string>> = {
  text: "text/plain",
  data: "application/json",
  file: "*/*",
};

export function isPartKind(mode: unknown): mode is PartKind {
  return PART_KINDS.some((kind) => kind === mode);
}

function partKindsFor(mediaType: string): readonly PartKind[] {
  const plain = mediaType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (plain === "*/*") return PART_KINDS;
  if (plain.startsWith("text/")) return ["text"];
  return [plain === "application/json" || plain.endsWith("+json") ? "data" : "file"];
}

/** The kinds of parts for all modes, then the modes themselves. */
export function toLegacyModes(modes: readonly string[]): string[] {
  return [...new Set([...modes.flatMap((mode) => (isPartKind(mode) ? [mode] : partKindsFor(mode))), ...modes])];
}

/** Media types only: a kind of part is converted if the list has no media type of that kind. */
function fromLegacyModes(modes: readonly string[]): string[] {
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

/** Members that have the same meaning, and so the same value, for all readers of such cards. */
interface LegacyCard {
  readonly name: string;
  readonly description: string;
  readonly url: string;
  readonly version: string;
  readonly capabilities: { readonly streaming: boolean; readonly pushNotifications: boolean };
  readonly authentication: { readonly schemes: readonly string[] } | undefined;
  readonly skills: readonly JsonObject[];
}

/** The card as the dialect's document. */
export function legacyCardDocument(
  make: (legacy: LegacyCard, card: AgentCard) => JsonObject,
): (card: AgentCard) => JsonObject {
  return oncePerCard((card) => make(toLegacyCard(card), card));
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

/** Some readers require modes, so a skill without any gets those of its agent. */
function toLegacySkill(skill: AgentCard["skills"][number], card: AgentCard): JsonObject {
  const { description, examples, id, inputModes, name, outputModes, tags } = skill;
  return {
    id,
    name,
    description,
    tags,
    examples,
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

interface LegacyCardOptions {
  readonly interfaceAt: (url: string) => AgentInterface;
  /** Never certain: such a card has no member that other cards lack. Only calling the agent shows whether it is one. */
  readonly isLikely: (card: JsonObject) => boolean;
  /** Default modes of an agent whose card has none, in addition to those of its skills. */
  readonly impliedModes: readonly string[];
}

/** Decodes cards of other agents: invalid members are dropped, so that the rest can be used. */
export function legacyCardReader(options: LegacyCardOptions): CardReader {
  return (value, cardUrl) => {
    const card = isObject(value) ? readLegacyCard(value, cardUrl, options) : undefined;
    if (card === undefined) return undefined;
    return { card, confidence: isObject(value) && options.isLikely(value) ? "likely" : "possible" };
  };
}

/** Undefined for a card without the agent's address. */
function readLegacyCard(
  value: JsonObject,
  cardUrl: string | undefined,
  { impliedModes, interfaceAt }: LegacyCardOptions,
): AgentCard | undefined {
  const url = addressIn(value, cardUrl);
  if (url === undefined) return undefined;
  const skills = objectsIn(value.skills).flatMap((skill) => readSkill(skill) ?? []);
  const { provider } = value;
  const organization = isObject(provider) ? textIn(provider.organization) : undefined;
  return {
    name: textIn(value.name) ?? UNNAMED_AGENT,
    description: textIn(value.description) ?? "",
    supportedInterfaces: [interfaceAt(url)],
    provider: isObject(provider) && organization ? { url: textIn(provider.url) ?? "", organization } : undefined,
    version: textIn(value.version) ?? "unknown",
    documentationUrl: textIn(value.documentationUrl),
    capabilities: capabilitiesIn(value.capabilities),
    ...securityIn(value.authentication),
    defaultInputModes: modesIn(value.defaultInputModes, skills, "inputModes", impliedModes),
    defaultOutputModes: modesIn(value.defaultOutputModes, skills, "outputModes", impliedModes),
    skills,
  };
}

const WELL_KNOWN = "/.well-known/";

/** The card is served below the address of its agent, which is the default if the card has no `url`. */
function addressIn(card: JsonObject, cardUrl: string | undefined): string | undefined {
  const url = textIn(card.url) ?? listedAddress(card.supportedInterfaces);
  if (url !== undefined) {
    if (canParseUrl(url)) return url;
    return cardUrl !== undefined && canParseUrl(url, cardUrl) ? new URL(url, cardUrl).href : undefined;
  }
  if (textIn(card.name) === undefined || cardUrl === undefined || !canParseUrl(cardUrl)) return undefined;
  const end = cardUrl.indexOf(WELL_KNOWN);
  return end === -1 ? undefined : cardUrl.slice(0, end);
}

/** For a newer card, if the caller explicitly selects the older dialect. */
function listedAddress(interfaces: unknown): string | undefined {
  const isRpc = (entry: JsonObject) => String(entry.protocolBinding).toUpperCase() === "JSONRPC";
  return textIn(objectsIn(interfaces).find(isRpc)?.url);
}

function capabilitiesIn(value: unknown): AgentCard["capabilities"] {
  const { streaming, pushNotifications } = isObject(value) ? value : {};
  return { streaming: streaming === true, pushNotifications: pushNotifications === true };
}

/** Any one of the schemes suffices. */
function securityIn(value: unknown): Pick<AgentCard, "securitySchemes" | "securityRequirements"> | undefined {
  const names = isObject(value) ? textsIn(value.schemes) : undefined;
  if (names === undefined) return undefined;
  const securitySchemes: Record<string, JsonObject> = {};
  const securityRequirements: SecurityRequirement[] = [];
  for (const name of new Set(names)) {
    if (name === "__proto__") continue;
    securitySchemes[name] = toScheme(name);
    securityRequirements.push({ schemes: { [name]: { list: [] } } });
  }
  return { securitySchemes, securityRequirements };
}

function toScheme(name: string): JsonObject {
  switch (name.toLowerCase().replaceAll(/[^a-z0-9]/g, "")) {
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
      return { httpAuthSecurityScheme: { scheme: name } };
  }
}

/** Undefined without an id or a name. */
export function readSkill(value: JsonObject): AgentSkill | undefined {
  const id = textIn(value.id) ?? textIn(value.name);
  if (id === undefined) return undefined;
  return {
    id,
    name: textIn(value.name) ?? id,
    description: textIn(value.description) ?? "",
    tags: textsIn(value.tags) ?? [],
    examples: textsIn(value.examples),
    inputModes: readModes(value.inputModes),
    outputModes: readModes(value.outputModes),
  };
}

/** Undefined if there are none. */
export function readModes(value: unknown): readonly string[] | undefined {
  const modes = textsIn(value);
  return modes?.some(isPartKind) === true ? fromLegacyModes(modes) : modes;
}

/** The modes of the card, else the implied ones and those of its skills. */
function modesIn(
  value: unknown,
  skills: readonly AgentSkill[],
  name: "inputModes" | "outputModes",
  implied: readonly string[],
): readonly string[] {
  const own = readModes(value);
  if (own !== undefined) return own;
  const all = [...new Set([...implied, ...skills.flatMap((skill) => skill[name] ?? [])])];
  return all.length > 0 ? all : ["text/plain"];
}
