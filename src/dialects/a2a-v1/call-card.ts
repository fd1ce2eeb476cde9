/** Other people's cards: whatever is unusable in one is left out, so that the rest can be used. */
import type { AgentCard, AgentInterface } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { CardReader } from "../contract.ts";
import { isRecord } from "../shared/proto-json-reading.ts";
import { withOpenCases } from "./open-cases.ts";
import { type ReadOptions, readWire } from "./schema.ts";

const TOLERANT: ReadOptions = { tolerant: true, code: "INVALID_AGENT_RESPONSE" };

/** Only interfaces make a card; everything else has a sensible reading when it is missing or wrong. */
export function readCalledCard(published: unknown): AgentCard | undefined {
  if (!isRecord(published)) return undefined;
  const value = withOpenCases(published);
  const perfect = attempt(() => readWire("AgentCard", value, TOLERANT));
  if (perfect !== undefined) return perfect;
  const interfaces = value.supportedInterfaces ?? value.supported_interfaces;
  const isCard = typeof value.name === "string" || Array.isArray(interfaces);
  if (!isCard) return undefined;
  return readPiecemeal(value, Array.isArray(interfaces) ? interfaces : []);
}

/** Optional members, each of which is better missing than in the way. */
const OPTIONAL_MEMBERS = [
  "provider",
  "documentationUrl",
  "documentation_url",
  "securitySchemes",
  "security_schemes",
  "securityRequirements",
  "security_requirements",
  "defaultInputModes",
  "default_input_modes",
  "defaultOutputModes",
  "default_output_modes",
  "signatures",
  "iconUrl",
  "icon_url",
] as const;

function readPiecemeal(value: Readonly<Record<string, unknown>>, interfaces: readonly unknown[]): AgentCard {
  const minimal = {
    name: textOr(value.name, "unnamed agent"),
    description: textOr(value.description, ""),
    version: textOr(value.version, "unknown"),
    capabilities: attempt(() => readWire("AgentCapabilities", value.capabilities, TOLERANT)) ?? {},
    skills: readable(value.skills, (skill) => readWire("AgentSkill", skill, TOLERANT)),
    supportedInterfaces: interfaces.flatMap(readInterface),
  };
  let card = readWire("AgentCard", minimal, TOLERANT);
  for (const name of OPTIONAL_MEMBERS) {
    if (value[name] === undefined) continue;
    const more = { ...card, ...withoutSpelling(card, name), [name]: value[name] };
    card = attempt(() => readWire("AgentCard", more, TOLERANT)) ?? card;
  }
  return card;
}

/** Lists that the first reading filled in would count as given in both spellings. */
function withoutSpelling(card: AgentCard, name: string): Partial<AgentCard> {
  if (!name.includes("_")) return {};
  const camelCase = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return camelCase in card ? { [camelCase]: null } : {};
}

/** An entry without a version is of the release that introduced such entries. */
function readInterface(entry: unknown): AgentInterface[] {
  if (!isRecord(entry)) return [];
  const version = entry.protocolVersion ?? entry.protocol_version;
  const complete = version === undefined || version === "" ? { ...entry, protocolVersion: "1.0" } : entry;
  const read = attempt(() => readWire("AgentInterface", complete, TOLERANT));
  return read === undefined ? [] : [read];
}

function readable<T>(list: unknown, read: (item: unknown) => T): T[] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((item) => attempt(() => read(item)) ?? []);
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (ProtocolError.is(error)) return undefined;
    throw error;
  }
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" && value !== "" ? value : otherwise;
}

/** Whatever lists interfaces in this form is a 1.0 card, also if it is an older one besides. */
export const readCard: CardReader = (value) => {
  if (!isRecord(value) || !hasInterfaces(value)) return undefined;
  const card = readCalledCard(value);
  return card === undefined ? undefined : { card, confidence: "certain" };
};

function hasInterfaces(value: Readonly<Record<string, unknown>>): boolean {
  const interfaces = value.supportedInterfaces ?? value.supported_interfaces;
  return Array.isArray(interfaces) && interfaces.length > 0;
}
