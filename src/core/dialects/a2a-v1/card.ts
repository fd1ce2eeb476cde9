import { type AgentCard, type AgentInterface, UNNAMED_AGENT } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import { isObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import type { AgentEndpoint, CardReader } from "../contract.ts";
import { objectsIn, oncePerCard, textIn } from "../shared/cards.ts";
import { snakeCase } from "../shared/proto/json-codec.ts";
import { HTTP_PREFIX } from "./http-routes.ts";
import { type ReadOptions, readWire, writeWire } from "./proto/schema.ts";
import { VERSION } from "./service-parameters.ts";

const TOLERANT: ReadOptions = { tolerant: true, code: "INVALID_AGENT_RESPONSE" };

/**
 * Decodes the card of another agent. Only interfaces are required; every other member has a fallback if it is missing or
 * invalid.
 */
export function readCardLeniently(published: unknown): AgentCard | undefined {
  if (!isObject(published)) return undefined;
  const value: JsonObject = unwrapOneofCases(published);
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
  "securitySchemes",
  "securityRequirements",
  "defaultInputModes",
  "defaultOutputModes",
  "signatures",
  "iconUrl",
] as const;

function readMemberwise(value: JsonObject, interfaces: readonly unknown[]): AgentCard {
  const minimal = {
    name: textIn(value.name) ?? UNNAMED_AGENT,
    description: textIn(value.description) ?? "",
    version: textIn(value.version) ?? "unknown",
    capabilities: tryRead(() => readWire("AgentCapabilities", value.capabilities, TOLERANT)) ?? {},
    skills: objectsIn(value.skills).flatMap((skill) => tryRead(() => readWire("AgentSkill", skill, TOLERANT)) ?? []),
    supportedInterfaces: interfaces.flatMap(readInterface),
  };
  let card = readWire("AgentCard", minimal, TOLERANT);
  for (const name of OPTIONAL_MEMBERS) {
    const more = { ...card, [name]: value[name] ?? value[snakeCase(name)] };
    card = tryRead(() => readWire("AgentCard", more, TOLERANT)) ?? card;
  }
  return card;
}

/** An entry without a version belongs to 1.0, the release that introduced such entries. */
function readInterface(entry: unknown): AgentInterface[] {
  if (!isObject(entry)) return [];
  const version = entry.protocolVersion ?? entry.protocol_version;
  const complete = version === undefined || version === "" ? { ...entry, protocolVersion: "1.0" } : entry;
  const read = tryRead(() => readWire("AgentInterface", complete, TOLERANT));
  return read === undefined ? [] : [read];
}

function tryRead<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (ProtocolError.is(error)) return undefined;
    throw error;
  }
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
function unwrapOneofCases(card: JsonObject): JsonObject {
  return isObject(card.securitySchemes) ? { ...card, securitySchemes: unwrapCases(card.securitySchemes) } : card;
}

function unwrapCases(value: JsonValue | undefined): JsonValue | undefined {
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      isObject(member) && typeof member.$case === "string"
        ? [member.$case, unwrapCases(member.value ?? null)]
        : [name, unwrapCases(member)],
    ),
  );
}

/** The card by the presence rules that signing relies on (§8.4.1). */
export const toCardDocument = oncePerCard((card) => writeWire("AgentCard", card) as JsonObject);

/** The same as JSON. */
export const toWireCard = oncePerCard((card) => JSON.stringify(toCardDocument(card)));

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
