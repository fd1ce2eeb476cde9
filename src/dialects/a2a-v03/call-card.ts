/** Cards of 0.3 and 0.2: whatever is unusable in one is left out, so that the rest can be used. */
import type { AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill } from "../../model/card.ts";
import type { JsonObject } from "../../model/json.ts";
import { type Loss, type Lossy, lossBy } from "../../model/loss.ts";
import type { CardReader } from "../contract.ts";
import { fromEarlyModes, isWord } from "../shared/early-modes.ts";
import { isRecord } from "../shared/proto-json-reading.ts";
import { LOSSES } from "./losses.ts";
import { fromWireSchemes, fromWireSecurity, type Lose, type ReadSchemes } from "./security.ts";
import { VERSION } from "./service-parameters.ts";

type Members = Readonly<Record<string, unknown>>;

export const readCard: CardReader = (value, cardUrl) => {
  const read = fromWireCard(value, cardUrl);
  return read === undefined ? undefined : { card: read.value, confidence: isCertain(value) ? "certain" : "possible" };
};

const OWN_VERSION = /^0\.[23](?:\.|$)/;

/** 0.1 has none of these; 1.0 has no `url`, without which there is no card here. */
function isCertain(value: unknown): boolean {
  if (!isRecord(value)) return false;
  if (typeof value.protocolVersion === "string") return OWN_VERSION.test(value.protocolVersion);
  return [value.preferredTransport, value.additionalInterfaces, value.securitySchemes].some(
    (member) => member !== undefined && member !== null,
  );
}

/** Undefined for what names no address: only an address makes a card, all else has a sensible reading when missing. */
export function fromWireCard(value: unknown, cardUrl: string | undefined): Lossy<AgentCard> | undefined {
  if (!isRecord(value)) return undefined;
  const supportedInterfaces = interfacesIn(value, cardUrl);
  if (supportedInterfaces.length === 0) return undefined;
  const losses: Loss[] = [];
  const lose: Lose = (rule, path) => losses.push(lossBy(rule, path));
  if (Array.isArray(value.signatures) && value.signatures.length > 0) lose(LOSSES.signaturesHeard, "card.signatures");
  const security = fromWireSchemes(value.securitySchemes, lose);
  const securityRequirements = fromWireSecurity(value.security, security);
  const provider = isRecord(value.provider) ? value.provider : undefined;
  const card: AgentCard = {
    name: textOf(value.name) ?? "unnamed agent",
    description: textOf(value.description) ?? "",
    supportedInterfaces,
    ...(provider && {
      provider: { url: textOf(provider.url) ?? "", organization: textOf(provider.organization) ?? "" },
    }),
    version: textOf(value.version) ?? "unknown",
    ...member("documentationUrl", textOf(value.documentationUrl)),
    capabilities: capabilitiesIn(value, lose),
    ...member("securitySchemes", security.schemes),
    ...member("securityRequirements", securityRequirements),
    defaultInputModes: modesOf(value.defaultInputModes) ?? [],
    defaultOutputModes: modesOf(value.defaultOutputModes) ?? [],
    skills: listOf(value.skills).flatMap((skill) => skillIn(skill, security)),
    ...member("iconUrl", textOf(value.iconUrl)),
  };
  return { value: card, losses };
}

/** The preferred one first; without a transport it is JSON-RPC, as before 0.2.4 there was no other. */
function interfacesIn(value: Members, cardUrl: string | undefined): readonly AgentInterface[] {
  const preferred = { url: value.url, transport: value.preferredTransport ?? "JSONRPC" };
  const found = new Map<string, AgentInterface>();
  for (const entry of [preferred, ...listOf(value.additionalInterfaces)]) {
    const given = textOf(entry.url);
    const protocolBinding = textOf(entry.transport);
    if (given === undefined || protocolBinding === undefined) continue;
    const url = resolved(given, cardUrl);
    const key = `${protocolBinding.toUpperCase()} ${url.replace(/\/+$/, "")}`;
    if (!found.has(key)) found.set(key, { url, protocolBinding, protocolVersion: VERSION });
  }
  return [...found.values()];
}

/** A path counts from where the card was found. A gRPC address has neither scheme nor path and stays as it is. */
function resolved(url: string, cardUrl: string | undefined): string {
  if (cardUrl === undefined || !/^[./]/.test(url)) return url;
  return URL.canParse(url, cardUrl) ? new URL(url, cardUrl).href : url;
}

function capabilitiesIn(value: Members, lose: Lose): AgentCapabilities {
  const given = isRecord(value.capabilities) ? value.capabilities : {};
  if (given.stateTransitionHistory === true) {
    lose(LOSSES.stateTransitionHistory, "card.capabilities.stateTransitionHistory");
  }
  const extensions = listOf(given.extensions).flatMap(extensionIn);
  return {
    ...member("streaming", flagOf(given.streaming)),
    ...member("pushNotifications", flagOf(given.pushNotifications)),
    ...member("extendedAgentCard", flagOf(value.supportsAuthenticatedExtendedCard)),
    ...(extensions.length > 0 && { extensions }),
  };
}

function extensionIn({ uri, description, required, params }: Members): AgentExtension[] {
  if (typeof uri !== "string" || uri === "") return [];
  return [
    {
      uri,
      ...member("description", textOf(description)),
      ...(required === true && { required }),
      // Parsed from JSON: an object is one all the way down.
      ...(isRecord(params) && { params: params as JsonObject }),
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
      ...member("examples", textsOf(skill.examples)),
      ...member("inputModes", modesOf(skill.inputModes)),
      ...member("outputModes", modesOf(skill.outputModes)),
      ...member("securityRequirements", fromWireSecurity(skill.security, security)),
    },
  ];
}

function member<Name extends string, T>(name: Name, value: T | undefined): { readonly [K in Name]?: T } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [K in Name]?: T };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function flagOf(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

/** Undefined where there are none. */
function textsOf(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const texts = value.filter((item) => typeof item === "string");
  return texts.length === 0 ? undefined : texts;
}

/** Some cards of 0.2 still name kinds of parts instead of media types, or both. */
function modesOf(value: unknown): readonly string[] | undefined {
  const modes = textsOf(value);
  return modes?.some(isWord) === true ? fromEarlyModes(modes) : modes;
}

function listOf(value: unknown): readonly Members[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
