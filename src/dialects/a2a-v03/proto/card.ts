/** The card as a proto message, and back. Security schemes have the model's form, minus what 0.3 lacks. */

import type { AgentCapabilities, AgentCard, AgentInterface, AgentSkill } from "../../../model/card.ts";
import { isObject, type JsonObject, type Writable } from "../../../model/json.ts";
import { type Loss, type Lossy, toLoss } from "../../../model/loss.ts";
import { LOSSES } from "../losses.ts";
import { VERSION } from "../service-parameters.ts";
import type { ProtoTypes } from "./schema.ts";

type ProtoCard = ProtoTypes["AgentCard"];
type ProtoSkill = ProtoTypes["AgentSkill"];

const PROTOCOL_VERSION = "0.3.0";
const DEFAULT_TRANSPORT = "JSONRPC";

const cards = new WeakMap<AgentCard, Lossy<ProtoCard>>();

/** Built once per card object. */
export function toProtoCard(card: AgentCard): Lossy<ProtoCard> {
  let made = cards.get(card);
  if (made === undefined) {
    const losses: Loss[] = [];
    made = { value: toCard(card, losses), losses };
    cards.set(card, made);
  }
  return made;
}

function toCard(card: AgentCard, losses: Loss[]): ProtoCard {
  const encoded: Writable<ProtoCard> = { ...cardMembers(card, losses), skills: card.skills.map(toProtoSkill) };
  if (card.securitySchemes !== undefined) encoded.securitySchemes = toProtoSchemes(card.securitySchemes, losses);
  if (card.securityRequirements !== undefined) encoded.security = card.securityRequirements;
  return encoded;
}

/** What is the same in this version's JSON: everything except the form of security. */
export function cardMembers(card: AgentCard, losses: Loss[]): Omit<ProtoCard, "skills"> {
  if (card.signatures !== undefined) losses.push(toLoss(LOSSES.signaturesSent, "card.signatures"));
  const interfaces = toProtoInterfaces(card.supportedInterfaces, losses);
  const [first] = card.supportedInterfaces;
  const preferred = interfaces[0] ?? (first && { url: first.url, transport: first.protocolBinding });
  const { extendedAgentCard, ...capabilities } = card.capabilities;
  const encoded: Writable<Omit<ProtoCard, "skills">> = {
    protocolVersion: PROTOCOL_VERSION,
    name: card.name,
    description: card.description,
    url: preferred?.url ?? "",
    preferredTransport: preferred?.transport ?? DEFAULT_TRANSPORT,
    additionalInterfaces: interfaces,
    version: card.version,
    capabilities,
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
  };
  if (card.provider !== undefined) encoded.provider = card.provider;
  if (card.documentationUrl !== undefined) encoded.documentationUrl = card.documentationUrl;
  if (card.iconUrl !== undefined) encoded.iconUrl = card.iconUrl;
  if (extendedAgentCard !== undefined) encoded.supportsAuthenticatedExtendedCard = extendedAgentCard;
  return encoded;
}

/** Interfaces of other versions are published in other documents. */
function toProtoInterfaces(interfaces: readonly AgentInterface[], losses: Loss[]): ProtoTypes["AgentInterface"][] {
  return interfaces.flatMap(({ url, protocolBinding, protocolVersion, tenant }, index) => {
    if (protocolVersion !== VERSION && !protocolVersion.startsWith(`${VERSION}.`)) return [];
    if (tenant !== undefined) losses.push(toLoss(LOSSES.interfaceTenant, `card.supportedInterfaces[${index}].tenant`));
    return [{ url, transport: protocolBinding }];
  });
}

function toProtoSkill({ securityRequirements, ...skill }: AgentSkill): ProtoSkill {
  return securityRequirements === undefined ? skill : { ...skill, security: securityRequirements };
}

const SCHEME_KINDS = [
  "apiKeySecurityScheme",
  "httpAuthSecurityScheme",
  "oauth2SecurityScheme",
  "openIdConnectSecurityScheme",
  "mtlsSecurityScheme",
];

type Schemes = Readonly<Record<string, JsonObject>>;

function toProtoSchemes(schemes: Schemes, losses: Loss[]): Schemes {
  const encoded: Record<string, JsonObject> = {};
  for (const [name, scheme] of Object.entries(schemes)) {
    const path = `card.securitySchemes.${name}`;
    if (SCHEME_KINDS.some((kind) => isObject(scheme[kind]))) encoded[name] = toProtoScheme(scheme, path, losses);
    else losses.push(toLoss(LOSSES.unknownScheme, path));
  }
  return encoded;
}

function toProtoScheme(scheme: JsonObject, path: string, losses: Loss[]): JsonObject {
  const oauth2 = objectIn(scheme, "oauth2SecurityScheme");
  const flows = oauth2 === undefined ? undefined : objectIn(oauth2, "flows");
  if (oauth2 === undefined || flows === undefined) return scheme;
  const where = `${path}.oauth2SecurityScheme.flows`;
  const { deviceCode, authorizationCode, ...others } = flows;
  if (deviceCode !== undefined) losses.push(toLoss(LOSSES.deviceCode, `${where}.deviceCode`));
  const encoded: Writable<JsonObject> = others;
  const flow = objectIn(flows, "authorizationCode");
  if (flow !== undefined) {
    const { pkceRequired, ...rest } = flow;
    if (pkceRequired === true) losses.push(toLoss(LOSSES.pkceRequired, `${where}.authorizationCode.pkceRequired`));
    encoded.authorizationCode = rest;
  }
  return { oauth2SecurityScheme: { ...oauth2, flows: encoded } };
}

function objectIn(object: JsonObject, name: string): JsonObject | undefined {
  const member = object[name];
  return isObject(member) ? member : undefined;
}

/** For a validated card. Each of its interfaces is called as 0.3, whichever release the card names. */
export function fromProtoCard(card: ProtoCard, losses: Loss[]): AgentCard {
  const read: Writable<AgentCard> = {
    name: card.name,
    description: card.description,
    supportedInterfaces: fromProtoInterfaces(card),
    version: card.version,
    capabilities: fromProtoCapabilities(card.capabilities ?? {}, card.supportsAuthenticatedExtendedCard),
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
    skills: card.skills.map(fromProtoSkill),
  };
  if (card.provider !== undefined) read.provider = card.provider;
  if (card.documentationUrl !== undefined) read.documentationUrl = card.documentationUrl;
  if (card.iconUrl !== undefined) read.iconUrl = card.iconUrl;
  if (card.securitySchemes !== undefined) {
    reportUnknownSchemes(card.securitySchemes, losses);
    read.securitySchemes = card.securitySchemes;
  }
  if (card.security !== undefined) read.securityRequirements = card.security;
  if (card.signatures !== undefined) losses.push(toLoss(LOSSES.signaturesReceived, "card.signatures"));
  return read;
}

function fromProtoInterfaces({ url, preferredTransport, additionalInterfaces = [] }: ProtoCard): AgentInterface[] {
  const primary = { url, transport: preferredTransport ?? DEFAULT_TRANSPORT };
  const others = additionalInterfaces.filter(
    (other) => other.url !== primary.url || other.transport !== primary.transport,
  );
  const all = url === "" ? others : [primary, ...others];
  return all.map((one) => ({ url: one.url, protocolBinding: one.transport, protocolVersion: VERSION }));
}

function fromProtoCapabilities(
  capabilities: ProtoTypes["AgentCapabilities"],
  extended: boolean | undefined,
): AgentCapabilities {
  return extended === undefined ? capabilities : { ...capabilities, extendedAgentCard: extended };
}

function fromProtoSkill({ security, ...skill }: ProtoSkill): AgentSkill {
  return security === undefined ? skill : { ...skill, securityRequirements: security };
}

/** Schemes of an unknown kind were decoded as empty: they cannot be satisfied, the others remain usable. */
function reportUnknownSchemes(schemes: Schemes, losses: Loss[]): void {
  for (const [name, scheme] of Object.entries(schemes)) {
    if (Object.keys(scheme).length > 0) continue;
    losses.push(toLoss(LOSSES.unknownSchemeReceived, `card.securitySchemes.${name}`));
  }
}
