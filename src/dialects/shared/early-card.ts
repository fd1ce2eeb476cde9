/** Agent cards as they were before 0.2: one `url`, and `authentication` as a list of words. */
import type { AgentCard } from "../../model/card.ts";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import type { LossRule } from "../../model/loss.ts";
import { toEarlyModes } from "./early-modes.ts";

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
export interface EarlyCard {
  readonly name: string;
  readonly description: string;
  readonly url: string;
  readonly version: string;
  readonly capabilities: { readonly streaming: boolean; readonly pushNotifications: boolean };
  readonly authentication: { readonly schemes: readonly string[] } | undefined;
  readonly skills: readonly JsonObject[];
}

export function toEarlyCard(card: AgentCard): EarlyCard {
  const { capabilities, description, name, securitySchemes, supportedInterfaces, version } = card;
  const atBase = supportedInterfaces.find(({ protocolBinding }) => protocolBinding === "JSONRPC");
  const schemes = [...new Set(Object.values(securitySchemes ?? {}).flatMap(toWord))];
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
    skills: card.skills.map((skill) => toEarlySkill(skill, card)),
  };
}

/** Some readers insist on modes, so that a skill without any has those of its agent. */
function toEarlySkill(skill: AgentCard["skills"][number], card: AgentCard): JsonObject {
  const { description, examples, id, inputModes, name, outputModes, tags } = skill;
  return {
    id,
    name,
    description,
    tags,
    ...(examples === undefined ? undefined : { examples }),
    inputModes: toEarlyModes(inputModes ?? card.defaultInputModes),
    outputModes: toEarlyModes(outputModes ?? card.defaultOutputModes),
  };
}

function toWord(scheme: JsonObject): string[] {
  if (scheme.apiKeySecurityScheme !== undefined) return ["apiKey"];
  if (scheme.oauth2SecurityScheme !== undefined || scheme.openIdConnectSecurityScheme !== undefined) return ["oauth2"];
  if (scheme.mtlsSecurityScheme !== undefined) return ["mutualTLS"];
  const http = scheme.httpAuthSecurityScheme;
  const name = isObject(http) ? http.scheme : undefined;
  return typeof name === "string" && name !== "" ? [name.toLowerCase()] : [];
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
