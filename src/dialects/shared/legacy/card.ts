/** Agent cards as they were before 0.2: one `url`, and `authentication` as a list of words. */

import type { AgentCard } from "../../../model/card.ts";
import { isObject, type JsonObject } from "../../../model/json.ts";
import type { LossRule } from "../../../model/loss.ts";

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

export const CARD_LOSSES = {
  cardSecurity: {
    kind: "bent",
    what: "card.securitySchemes",
    reason: "Schemes are words (apiKey, bearer, basic, oauth2), without header names, flows or scopes.",
    direction: "said",
  },
  cardMembers: {
    kind: "dropped",
    what: "card.securityRequirements, card.signatures, card.iconUrl, card.capabilities.extensions",
    reason: "The card has no such members.",
    direction: "said",
  },
  cardAuthentication: {
    kind: "bent",
    what: "card.authentication",
    reason: "A word does not say where a key goes: X-API-Key is assumed, and a bearer token for oauth2.",
    direction: "heard",
  },
} as const satisfies Record<string, LossRule>;

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

export function toLegacyCard(card: AgentCard): LegacyCard {
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
