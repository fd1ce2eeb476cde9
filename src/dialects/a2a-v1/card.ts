import type { AgentCard, AgentInterface } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import { isObject, type JsonObject } from "../../model/json.ts";
import type { AgentEndpoint, CardReader } from "../contract.ts";
import { HTTP_PREFIX } from "./http-routes.ts";
import { type ReadOptions, readWire, writeWire } from "./proto/schema.ts";
import { VERSION } from "./service-parameters.ts";

/** Decodes cards of other agents: invalid members are dropped, so that the rest can be used. */

const TOLERANT: ReadOptions = { tolerant: true, code: "INVALID_AGENT_RESPONSE" };

/** Only interfaces are required; every other member has a sensible fallback when it is missing or invalid. */
export function readCardLeniently(published: unknown): AgentCard | undefined {
  if (!isObject(published)) return undefined;
  const value = unwrapOneofCases(published);
  const perfect = tryRead(() => readWire("AgentCard", value, TOLERANT));
  if (perfect !== undefined) return perfect;
  const interfaces = value.supportedInterfaces ?? value.supported_interfaces;
  const isCard = typeof value.name === "string" || Array.isArray(interfaces);
  if (!isCard) return undefined;
  return readMemberwise(value, Array.isArray(interfaces) ? interfaces : []);
}

/** Optional members; an invalid one is dropped. */
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

function readMemberwise(value: Readonly<Record<string, unknown>>, interfaces: readonly unknown[]): AgentCard {
  const minimal = {
    name: textOr(value.name, "unnamed agent"),
    description: textOr(value.description, ""),
    version: textOr(value.version, "unknown"),
    capabilities: tryRead(() => readWire("AgentCapabilities", value.capabilities, TOLERANT)) ?? {},
    skills: readItems(value.skills, (skill) => readWire("AgentSkill", skill, TOLERANT)),
    supportedInterfaces: interfaces.flatMap(readInterface),
  };
  let card = readWire("AgentCard", minimal, TOLERANT);
  for (const name of OPTIONAL_MEMBERS) {
    if (value[name] === undefined) continue;
    const more = { ...card, ...withoutSpelling(card, name), [name]: value[name] };
    card = tryRead(() => readWire("AgentCard", more, TOLERANT)) ?? card;
  }
  return card;
}

/** Lists that the first pass filled in would count as present in both spellings. */
function withoutSpelling(card: AgentCard, name: string): Partial<AgentCard> {
  if (!name.includes("_")) return {};
  const camelCase = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return camelCase in card ? { [camelCase]: null } : {};
}

/** An entry without a version belongs to 1.0, the release that introduced such entries. */
function readInterface(entry: unknown): AgentInterface[] {
  if (!isObject(entry)) return [];
  const version = entry.protocolVersion ?? entry.protocol_version;
  const complete = version === undefined || version === "" ? { ...entry, protocolVersion: "1.0" } : entry;
  const read = tryRead(() => readWire("AgentInterface", complete, TOLERANT));
  return read === undefined ? [] : [read];
}

function readItems<T>(list: unknown, read: (item: unknown) => T): T[] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((item) => tryRead(() => read(item)) ?? []);
}

function tryRead<T>(read: () => T): T | undefined {
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

/** A document that lists interfaces in this form is a 1.0 card, even if it is also a card of an older version. */
export const readCard: CardReader = (value) => {
  if (!isObject(value) || !hasInterfaces(value)) return undefined;
  const card = readCardLeniently(value);
  return card === undefined ? undefined : { card, confidence: "certain" };
};

function hasInterfaces(value: Readonly<Record<string, unknown>>): boolean {
  const interfaces = value.supportedInterfaces ?? value.supported_interfaces;
  return Array.isArray(interfaces) && interfaces.length > 0;
}

/**
 * Some servers publish security schemes in the in-memory form of their generated code, `{ scheme: { $case, value } }`,
 * where A2A's JSON has the member that `$case` names. Converted to that form.
 */
function unwrapOneofCases(card: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return isObject(card.securitySchemes) ? { ...card, securitySchemes: unwrapCases(card.securitySchemes) } : card;
}

function unwrapCases(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      isObject(member) && typeof member.$case === "string"
        ? [member.$case, unwrapCases(member.value)]
        : [name, unwrapCases(member)],
    ),
  );
}

const documents = new WeakMap<AgentCard, JsonObject>();
const texts = new WeakMap<AgentCard, string>();

/** The card by the presence rules that signing relies on (§8.4.1). Built once per card object. */
export function toCardDocument(card: AgentCard): JsonObject {
  let document = documents.get(card);
  if (document === undefined) {
    document = writeWire("AgentCard", card) as JsonObject;
    documents.set(card, document);
  }
  return document;
}

/** The same as JSON. */
export function toWireCard(card: AgentCard): string {
  let text = texts.get(card);
  if (text === undefined) {
    text = JSON.stringify(toCardDocument(card));
    texts.set(card, text);
  }
  return text;
}

/** Agents share the gRPC endpoint; the tenant selects one. The default agent needs none. */
export function interfaces({ base, rpc, name, isDefault }: AgentEndpoint): readonly AgentInterface[] {
  const overHttp: readonly AgentInterface[] = [
    { url: base, protocolBinding: "JSONRPC", protocolVersion: VERSION },
    { url: `${base}/${HTTP_PREFIX}`, protocolBinding: "HTTP+JSON", protocolVersion: VERSION },
  ];
  if (rpc === undefined) return overHttp;
  const grpc = { url: rpc, protocolBinding: "GRPC", protocolVersion: VERSION };
  return [...overHttp, isDefault ? grpc : { ...grpc, tenant: name }];
}
