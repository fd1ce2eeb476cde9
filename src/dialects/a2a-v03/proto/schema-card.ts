/** The messages of the agent card, as tables. */
import type { AgentCardSignature, AgentExtension, AgentProvider, SecurityRequirement } from "../../../model/card.ts";
import type { JsonObject } from "../../../model/json.ts";
import { COMMON_CARD_MESSAGES, type CommonCardTypes } from "../../shared/proto/card-messages.ts";
import type { FieldRow } from "../../shared/proto/json-codec.ts";

export interface ProtoInterface {
  readonly url: string;
  readonly transport: string;
}

export interface ProtoSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly examples?: readonly string[];
  readonly inputModes?: readonly string[];
  readonly outputModes?: readonly string[];
  readonly security?: readonly SecurityRequirement[];
}

export interface ProtoCapabilities {
  readonly streaming?: boolean;
  readonly pushNotifications?: boolean;
  readonly extensions?: readonly AgentExtension[];
}

export interface ProtoCard {
  readonly protocolVersion?: string;
  readonly name: string;
  readonly description: string;
  readonly url: string;
  readonly preferredTransport?: string;
  readonly additionalInterfaces?: readonly ProtoInterface[];
  readonly provider?: AgentProvider;
  readonly version: string;
  readonly documentationUrl?: string;
  readonly capabilities?: ProtoCapabilities;
  readonly securitySchemes?: Readonly<Record<string, JsonObject>>;
  readonly security?: readonly SecurityRequirement[];
  readonly defaultInputModes: readonly string[];
  readonly defaultOutputModes: readonly string[];
  readonly skills: readonly ProtoSkill[];
  readonly supportsAuthenticatedExtendedCard?: boolean;
  readonly signatures?: readonly AgentCardSignature[];
  readonly iconUrl?: string;
}

export interface ProtoCardTypes extends CommonCardTypes {
  AgentCard: ProtoCard;
  AgentInterface: ProtoInterface;
  AgentCapabilities: ProtoCapabilities;
  AgentSkill: ProtoSkill;
  Security: SecurityRequirement;
  OAuthFlows: JsonObject;
  AuthorizationCodeOAuthFlow: JsonObject;
}

export const PROTO_CARD_MESSAGES = {
  // Serialisers omit empty values, so only members without which a card is useless are required.
  AgentCard: [
    ["protocolVersion", "string", "implicit", 16],
    ["name", "string", "required", 1],
    ["description", "string", "filled", 2],
    ["url", "string", "filled", 3],
    ["preferredTransport", "string", "implicit", 14],
    ["additionalInterfaces", "AgentInterface[]", "implicit", 15],
    ["provider", "AgentProvider", "optional", 4],
    ["version", "string", "filled", 5],
    ["documentationUrl", "string", "optional", 6],
    ["capabilities", "AgentCapabilities", "optional", 7],
    ["securitySchemes", "map<SecurityScheme>", "implicit", 8],
    ["security", "Security[]", "implicit", 9],
    ["defaultInputModes", "string[]", "filled", 10],
    ["defaultOutputModes", "string[]", "filled", 11],
    ["skills", "AgentSkill[]", "filled", 12],
    ["supportsAuthenticatedExtendedCard", "bool", "optional", 13],
    ["signatures", "AgentCardSignature[]", "implicit", 17],
    ["iconUrl", "string", "optional", 18],
  ],
  AgentInterface: [
    ["url", "string", "required", 1],
    ["transport", "string", "required", 2],
  ],
  AgentCapabilities: [
    ["streaming", "bool", "optional", 1],
    ["pushNotifications", "bool", "optional", 2],
    ["extensions", "AgentExtension[]", "implicit", 3],
  ],
  AgentSkill: [
    ["id", "string", "required", 1],
    ["name", "string", "required", 2],
    ["description", "string", "filled", 3],
    ["tags", "string[]", "filled", 4],
    ["examples", "string[]", "implicit", 5],
    ["inputModes", "string[]", "implicit", 6],
    ["outputModes", "string[]", "implicit", 7],
    ["security", "Security[]", "implicit", 8],
  ],
  Security: [["schemes", "map<StringList>", "restored", 1]],
  OAuthFlows: [
    ["authorizationCode", "AuthorizationCodeOAuthFlow", "optional", 1],
    ["clientCredentials", "ClientCredentialsOAuthFlow", "optional", 2],
    ["implicit", "ImplicitOAuthFlow", "optional", 3],
    ["password", "PasswordOAuthFlow", "optional", 4],
  ],
  AuthorizationCodeOAuthFlow: [
    ["authorizationUrl", "string", "implicit", 1],
    ["tokenUrl", "string", "implicit", 2],
    ["refreshUrl", "string", "implicit", 3],
    ["scopes", "map<string>", "filled", 4],
  ],
  ...COMMON_CARD_MESSAGES,
} as const satisfies Readonly<Record<string, readonly FieldRow[]>>;
