/** The card as a proto message, and back. Security schemes have the model's form, minus what 0.3 lacks. */

import type { AgentCard, AgentInterface, AgentSkill } from "../../../model/card.ts";
import { type Loss, type Lossy, toLoss } from "../../../model/loss.ts";
import { oncePerCard } from "../../shared/cards.ts";
import { encodeSchemes } from "../json/security.ts";
import { LOSSES } from "../losses.ts";
import { VERSION } from "../service-parameters.ts";
import type { ProtoTypes } from "./schema.ts";

type ProtoCard = ProtoTypes["AgentCard"];

const PROTOCOL_VERSION = "0.3.0";
const DEFAULT_TRANSPORT = "JSONRPC";

export const toProtoCard = oncePerCard((card): Lossy<object> => {
  const losses: Loss[] = [];
  const { securitySchemes, securityRequirements } = card;
  const value = {
    ...cardMembers(card, losses),
    skills: card.skills.map(({ securityRequirements: security, ...skill }) => ({ ...skill, security })),
    securitySchemes: securitySchemes && encodeSchemes(securitySchemes, losses, toProtoScheme),
    security: securityRequirements,
  };
  return { value, losses };
});

const toProtoScheme: Parameters<typeof encodeSchemes>[2] = ({ member }, scheme, flows) => ({
  [member]: flows === undefined ? scheme : { ...scheme, flows },
});

/** What is the same in this version's JSON: everything except the form of security. */
export function cardMembers(card: AgentCard, losses: Loss[]): object {
  if (card.signatures !== undefined) losses.push(toLoss(LOSSES.signaturesSent, "card.signatures"));
  const interfaces = toProtoInterfaces(card.supportedInterfaces, losses);
  const [first] = card.supportedInterfaces;
  const preferred = interfaces[0] ?? (first && { url: first.url, transport: first.protocolBinding });
  const { extendedAgentCard, ...capabilities } = card.capabilities;
  return {
    protocolVersion: PROTOCOL_VERSION,
    name: card.name,
    description: card.description,
    url: preferred?.url ?? "",
    preferredTransport: preferred?.transport ?? DEFAULT_TRANSPORT,
    additionalInterfaces: interfaces,
    provider: card.provider,
    version: card.version,
    documentationUrl: card.documentationUrl,
    capabilities,
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
    supportsAuthenticatedExtendedCard: extendedAgentCard,
    iconUrl: card.iconUrl,
  };
}

/** Interfaces of other versions are published in other documents. */
function toProtoInterfaces(interfaces: readonly AgentInterface[], losses: Loss[]): ProtoTypes["AgentInterface"][] {
  return interfaces.flatMap(({ url, protocolBinding, protocolVersion, tenant }, index) => {
    if (protocolVersion !== VERSION && !protocolVersion.startsWith(`${VERSION}.`)) return [];
    if (tenant !== undefined) losses.push(toLoss(LOSSES.interfaceTenant, `card.supportedInterfaces[${index}].tenant`));
    return [{ url, transport: protocolBinding }];
  });
}

/** For a validated card. Each of its interfaces is called as 0.3, whichever release the card names. */
export function fromProtoCard(card: ProtoCard, losses: Loss[]): AgentCard {
  const { supportsAuthenticatedExtendedCard: extendedAgentCard, securitySchemes, signatures } = card;
  reportUnknownSchemes(securitySchemes ?? {}, losses);
  if (signatures !== undefined) losses.push(toLoss(LOSSES.signaturesReceived, "card.signatures"));
  return {
    name: card.name,
    description: card.description,
    supportedInterfaces: fromProtoInterfaces(card),
    provider: card.provider,
    version: card.version,
    documentationUrl: card.documentationUrl,
    capabilities: { ...card.capabilities, extendedAgentCard },
    securitySchemes,
    securityRequirements: card.security,
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
    skills: card.skills.map(fromProtoSkill),
    iconUrl: card.iconUrl,
  };
}

function fromProtoInterfaces({ url, preferredTransport, additionalInterfaces = [] }: ProtoCard): AgentInterface[] {
  const primary = { url, transport: preferredTransport ?? DEFAULT_TRANSPORT };
  const others = additionalInterfaces.filter(
    (other) => other.url !== primary.url || other.transport !== primary.transport,
  );
  const all = url === "" ? others : [primary, ...others];
  return all.map((one) => ({ url: one.url, protocolBinding: one.transport, protocolVersion: VERSION }));
}

function fromProtoSkill({ security, ...skill }: ProtoTypes["AgentSkill"]): AgentSkill {
  return security === undefined ? skill : { ...skill, securityRequirements: security };
}

/** Schemes of an unknown kind were decoded as empty: they cannot be satisfied, the others remain usable. */
function reportUnknownSchemes(schemes: object, losses: Loss[]): void {
  for (const [name, scheme] of Object.entries(schemes)) {
    if (Object.keys(scheme).length > 0) continue;
    losses.push(toLoss(LOSSES.unknownSchemeReceived, `card.securitySchemes.${name}`));
  }
}
