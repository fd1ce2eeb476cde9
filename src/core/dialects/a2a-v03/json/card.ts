/** Agent card documents of 0.3 and 0.2. */

import {
  type AgentCapabilities,
  type AgentCard,
  type AgentExtension,
  type AgentInterface,
  type AgentSkill,
  UNNAMED_AGENT,
} from "../../../model/card.ts";
import { isObject, type JsonObject } from "../../../model/json.ts";
import { type Loss, type Lossy, toLoss } from "../../../model/loss.ts";
import { parseUrl } from "../../../model/url.ts";
import type { AgentEndpoint, CardReader } from "../../contract.ts";
import { objectsIn, textIn } from "../../shared/cards.ts";
import { readModes, readSkill, toLegacyModes } from "../../shared/legacy/card.ts";
import { LOSSES } from "../losses.ts";
import { cardMembers } from "../proto/card.ts";
import { VERSION } from "../service-parameters.ts";
import { fromWireSchemes, fromWireSecurity, type ReadSchemes, toWireSchemes, toWireSecurity } from "./security.ts";

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
  if (Array.isArray(value.signatures) && value.signatures.length > 0) {
    losses.push(toLoss(LOSSES.signaturesReceived, "card.signatures"));
  }
  const security = fromWireSchemes(value.securitySchemes, losses);
  const { provider } = value;
  const card = {
    name: textIn(value.name) ?? UNNAMED_AGENT,
    description: textIn(value.description) ?? "",
    supportedInterfaces,
    provider: isObject(provider)
      ? { url: textIn(provider.url) ?? "", organization: textIn(provider.organization) ?? "" }
      : undefined,
    version: textIn(value.version) ?? "unknown",
    documentationUrl: textIn(value.documentationUrl),
    capabilities: capabilitiesIn(value, losses),
    securitySchemes: security.schemes,
    securityRequirements: fromWireSecurity(value.security, security),
    defaultInputModes: readModes(value.defaultInputModes) ?? [],
    defaultOutputModes: readModes(value.defaultOutputModes) ?? [],
    skills: objectsIn(value.skills).flatMap((skill) => skillIn(skill, security)),
    iconUrl: textIn(value.iconUrl),
  };
  return { value: card, losses };
}

/** The preferred one first. Without a transport it is JSON-RPC, the only one before 0.2.4. */
function interfacesIn(value: JsonObject, cardUrl: string | undefined): readonly AgentInterface[] {
  const preferred = { url: value.url, transport: value.preferredTransport ?? "JSONRPC" };
  const found = new Map<string, AgentInterface>();
  for (const entry of [preferred, ...objectsIn(value.additionalInterfaces)]) {
    const given = textIn(entry.url);
    const protocolBinding = textIn(entry.transport);
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
  return parseUrl(url, cardUrl)?.href ?? url;
}

function capabilitiesIn(value: JsonObject, losses: Loss[]): AgentCapabilities {
  const given = isObject(value.capabilities) ? value.capabilities : {};
  if (given.stateTransitionHistory === true) {
    losses.push(toLoss(LOSSES.stateTransitionHistory, "card.capabilities.stateTransitionHistory"));
  }
  const extensions = objectsIn(given.extensions).flatMap(extensionIn);
  return {
    streaming: flagOf(given.streaming),
    pushNotifications: flagOf(given.pushNotifications),
    extendedAgentCard: flagOf(value.supportsAuthenticatedExtendedCard),
    extensions: extensions.length > 0 ? extensions : undefined,
  };
}

function extensionIn({ uri, description, required, params }: JsonObject): AgentExtension[] {
  if (typeof uri !== "string" || uri === "") return [];
  return [
    {
      uri,
      description: textIn(description),
      required: required === true || undefined,
      params: isObject(params) ? params : undefined,
    },
  ];
}

function skillIn(value: JsonObject, security: ReadSchemes): AgentSkill[] {
  const skill = readSkill(value);
  if (skill === undefined) return [];
  const securityRequirements = fromWireSecurity(value.security, security);
  return [securityRequirements === undefined ? skill : { ...skill, securityRequirements }];
}

function flagOf(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
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
  const value = {
    ...cardMembers(card, losses),
    securitySchemes: toWireSchemes(card.securitySchemes, losses),
    security: toWireSecurity(card.securityRequirements),
    skills: card.skills.map(toWireSkill),
  } as object;
  // It is JSON, but an interface is not assignable to the JSON type.
  return { value: value as JsonObject, losses };
}

function toWireSkill(skill: AgentSkill): object {
  const { id, name, description, tags, examples, inputModes, outputModes, securityRequirements } = skill;
  const security = toWireSecurity(securityRequirements);
  return { id, name, description, tags, examples, inputModes, outputModes, security };
}
