/** Agent card documents of 0.3 and 0.2. */

import type { AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill } from "../../../model/card.ts";
import { isObject, type JsonObject } from "../../../model/json.ts";
import { type Loss, type Lossy, toLoss } from "../../../model/loss.ts";
import type { AgentEndpoint, CardReader } from "../../contract.ts";
import { fromLegacyModes, isPartKind, toLegacyModes } from "../../shared/legacy/card.ts";
import { LOSSES } from "../losses.ts";
import { cardMembers } from "../proto/card.ts";
import { VERSION } from "../service-parameters.ts";
import {
  fromWireSchemes,
  fromWireSecurity,
  omitUndefined,
  type ReadSchemes,
  type ReportLoss,
  toWireSchemes,
  toWireSecurity,
} from "./security.ts";

/** Decodes cards of 0.3 and 0.2: invalid members are dropped, so that the rest can be used. */

type Members = Readonly<Record<string, unknown>>;

export const readCard: CardReader = (value, cardUrl) => {
  const read = fromWireCard(value, cardUrl);
  return read === undefined ? undefined : { card: read.value, confidence: isCertain(value) ? "certain" : "possible" };
};

const OWN_VERSION = /^0\.[23](?:\.|$)/;

/** 0.1 has none of these members; 1.0 has no `url`, which is required here. */
function isCertain(value: unknown): boolean {
  if (!isObject(value)) return false;
  if (typeof value.protocolVersion === "string") return OWN_VERSION.test(value.protocolVersion);
  return [value.preferredTransport, value.additionalInterfaces, value.securitySchemes].some(
    (member) => member !== undefined && member !== null,
  );
}

/** Undefined without a URL. Only the URL is required; every other member has a sensible fallback. */
export function fromWireCard(value: unknown, cardUrl: string | undefined): Lossy<AgentCard> | undefined {
  if (!isObject(value)) return undefined;
  const supportedInterfaces = interfacesIn(value, cardUrl);
  if (supportedInterfaces.length === 0) return undefined;
  const losses: Loss[] = [];
  const lose: ReportLoss = (rule, path) => losses.push(toLoss(rule, path));
  if (Array.isArray(value.signatures) && value.signatures.length > 0)
    lose(LOSSES.signaturesReceived, "card.signatures");
  const security = fromWireSchemes(value.securitySchemes, lose);
  const securityRequirements = fromWireSecurity(value.security, security);
  const provider = isObject(value.provider) ? value.provider : undefined;
  const card: AgentCard = {
    name: textOf(value.name) ?? "unnamed agent",
    description: textOf(value.description) ?? "",
    supportedInterfaces,
    ...(provider && {
      provider: { url: textOf(provider.url) ?? "", organization: textOf(provider.organization) ?? "" },
    }),
    version: textOf(value.version) ?? "unknown",
    ...optionalMember("documentationUrl", textOf(value.documentationUrl)),
    capabilities: capabilitiesIn(value, lose),
    ...optionalMember("securitySchemes", security.schemes),
    ...optionalMember("securityRequirements", securityRequirements),
    defaultInputModes: modesOf(value.defaultInputModes) ?? [],
    defaultOutputModes: modesOf(value.defaultOutputModes) ?? [],
    skills: listOf(value.skills).flatMap((skill) => skillIn(skill, security)),
    ...optionalMember("iconUrl", textOf(value.iconUrl)),
  };
  return { value: card, losses };
}

/** The preferred one first. Without a transport it is JSON-RPC, the only one before 0.2.4. */
function interfacesIn(value: Members, cardUrl: string | undefined): readonly AgentInterface[] {
  const preferred = { url: value.url, transport: value.preferredTransport ?? "JSONRPC" };
  const found = new Map<string, AgentInterface>();
  for (const entry of [preferred, ...listOf(value.additionalInterfaces)]) {
    const given = textOf(entry.url);
    const protocolBinding = textOf(entry.transport);
    if (given === undefined || protocolBinding === undefined) continue;
    const url = resolveUrl(given, cardUrl);
    const key = `${protocolBinding.toUpperCase()} ${url.replace(/\/+$/, "")}`;
    if (!found.has(key)) found.set(key, { url, protocolBinding, protocolVersion: VERSION });
  }
  return [...found.values()];
}

/** A relative URL is resolved against the card's URL. A gRPC address has neither scheme nor path and is left as is. */
function resolveUrl(url: string, cardUrl: string | undefined): string {
  if (cardUrl === undefined || !/^[./]/.test(url)) return url;
  return URL.canParse(url, cardUrl) ? new URL(url, cardUrl).href : url;
}

function capabilitiesIn(value: Members, lose: ReportLoss): AgentCapabilities {
  const given = isObject(value.capabilities) ? value.capabilities : {};
  if (given.stateTransitionHistory === true) {
    lose(LOSSES.stateTransitionHistory, "card.capabilities.stateTransitionHistory");
  }
  const extensions = listOf(given.extensions).flatMap(extensionIn);
  return {
    ...optionalMember("streaming", flagOf(given.streaming)),
    ...optionalMember("pushNotifications", flagOf(given.pushNotifications)),
    ...optionalMember("extendedAgentCard", flagOf(value.supportsAuthenticatedExtendedCard)),
    ...(extensions.length > 0 && { extensions }),
  };
}

function extensionIn({ uri, description, required, params }: Members): AgentExtension[] {
  if (typeof uri !== "string" || uri === "") return [];
  return [
    {
      uri,
      ...optionalMember("description", textOf(description)),
      ...(required === true && { required }),
      ...(isObject(params) && { params }),
    },
  ];
}

function skillIn(skill: Members, security: ReadSchemes): AgentSkill[] {
  const id = textOf(skill.id) ?? textOf(skill.name);
  if (id === undefined) return [];
  return [
    {
      id,
      name: textOf(skill.name) ?? id,
      description: textOf(skill.description) ?? "",
      tags: textsOf(skill.tags) ?? [],
      ...optionalMember("examples", textsOf(skill.examples)),
      ...optionalMember("inputModes", modesOf(skill.inputModes)),
      ...optionalMember("outputModes", modesOf(skill.outputModes)),
      ...optionalMember("securityRequirements", fromWireSecurity(skill.security, security)),
    },
  ];
}

function optionalMember<Name extends string, T>(name: Name, value: T | undefined): { readonly [K in Name]?: T } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [K in Name]?: T };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function flagOf(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

/** Undefined if there are none. */
function textsOf(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const texts = value.filter((item) => typeof item === "string");
  return texts.length === 0 ? undefined : texts;
}

/** Some 0.2 cards still list kinds of parts instead of media types, or both. */
function modesOf(value: unknown): readonly string[] | undefined {
  const modes = textsOf(value);
  return modes?.some(isPartKind) === true ? fromLegacyModes(modes) : modes;
}

function listOf(value: unknown): readonly Members[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

const LEGACY_DOCUMENT_VERSION = "0.2.6";

/** 0.3 over gRPC has no field for an agent's name, so only the default agent is listed with it. */
export function interfaces({ base, rpc, isDefault }: AgentEndpoint): readonly AgentInterface[] {
  const overHttp: readonly AgentInterface[] = [
    { url: base, protocolBinding: "JSONRPC", protocolVersion: VERSION },
    { url: `${base}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: VERSION },
  ];
  if (rpc === undefined || !isDefault) return overHttp;
  return [...overHttp, { url: rpc, protocolBinding: "GRPC", protocolVersion: VERSION }];
}

/** For `agent-card.json`. `losses.ts` lists what it has no member for. */
export function toCardDocument(card: AgentCard): JsonObject {
  return toWireCard(card).value;
}

/**
 * For `agent.json`. The modes of its skills are media types, and also the kinds of parts that readers older than 0.2
 * expect.
 */
export function toLegacyCardDocument(card: AgentCard): JsonObject {
  const { defaultInputModes, defaultOutputModes } = card;
  const skills = card.skills.map((skill) => ({
    ...skill,
    inputModes: toLegacyModes(skill.inputModes ?? defaultInputModes),
    outputModes: toLegacyModes(skill.outputModes ?? defaultOutputModes),
  }));
  return { ...toWireCard({ ...card, skills }).value, protocolVersion: LEGACY_DOCUMENT_VERSION };
}

export function toWireCard(card: AgentCard): Lossy<JsonObject> {
  const losses: Loss[] = [];
  const lose: ReportLoss = (rule, path) => losses.push(toLoss(rule, path));
  // They are JSON, but an interface is not assignable to the JSON type.
  const members: unknown = cardMembers(card, losses);
  const value = omitUndefined({
    ...(isObject(members) && members),
    securitySchemes: toWireSchemes(card.securitySchemes, lose),
    security: toWireSecurity(card.securityRequirements),
    skills: card.skills.map(toWireSkill),
  });
  return { value, losses };
}

function toWireSkill(skill: AgentSkill): JsonObject {
  const { id, name, description, tags, examples, inputModes, outputModes, securityRequirements } = skill;
  const security = toWireSecurity(securityRequirements);
  return omitUndefined({ id, name, description, tags, examples, inputModes, outputModes, security });
}
