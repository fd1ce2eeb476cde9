/** The messages of the agent card, as tables. */
import { COMMON_CARD_MESSAGES } from "../../shared/proto/card-messages.ts";
import type { FieldRow } from "../../shared/proto/json-codec.ts";

export const CARD_MESSAGES = {
  // Serialisers omit empty required strings and lists, so a missing one must not make the card invalid.
  AgentCard: [
    ["name", "string", "required", 1],
    ["description", "string", "filled", 2],
    ["supportedInterfaces", "AgentInterface[]", "required", 3],
    ["provider", "AgentProvider", "optional", 4],
    ["version", "string", "required", 5],
    ["documentationUrl", "string", "optional", 6],
    ["capabilities", "AgentCapabilities", "required", 7],
    ["securitySchemes", "map<SecurityScheme>", "implicit", 8],
    ["securityRequirements", "SecurityRequirement[]", "implicit", 9],
    ["defaultInputModes", "string[]", "filled", 10],
    ["defaultOutputModes", "string[]", "filled", 11],
    ["skills", "AgentSkill[]", "filled", 12],
    ["signatures", "AgentCardSignature[]", "implicit", 13],
    ["iconUrl", "string", "optional", 14],
  ],
  AgentInterface: [
    ["url", "string", "required", 1],
    ["protocolBinding", "string", "required", 2],
    ["tenant", "string", "implicit", 3],
    ["protocolVersion", "string", "required", 4],
  ],
  AgentCapabilities: [
    ["streaming", "bool", "optional", 1],
    ["pushNotifications", "bool", "optional", 2],
    ["extensions", "AgentExtension[]", "implicit", 3],
    ["extendedAgentCard", "bool", "optional", 4],
  ],
  AgentSkill: [
    ["id", "string", "required", 1],
    ["name", "string", "required", 2],
    ["description", "string", "filled", 3],
    ["tags", "string[]", "filled", 4],
    ["examples", "string[]", "implicit", 5],
    ["inputModes", "string[]", "implicit", 6],
    ["outputModes", "string[]", "implicit", 7],
    ["securityRequirements", "SecurityRequirement[]", "implicit", 8],
  ],
  SecurityRequirement: [["schemes", "map<StringList>", "restored", 1]],
  OAuthFlows: [
    ["authorizationCode", "AuthorizationCodeOAuthFlow", "optional", 1],
    ["clientCredentials", "ClientCredentialsOAuthFlow", "optional", 2],
    ["implicit", "ImplicitOAuthFlow", "optional", 3],
    ["password", "PasswordOAuthFlow", "optional", 4],
    ["deviceCode", "DeviceCodeOAuthFlow", "optional", 5],
  ],
  AuthorizationCodeOAuthFlow: [
    ["authorizationUrl", "string", "implicit", 1],
    ["tokenUrl", "string", "implicit", 2],
    ["refreshUrl", "string", "implicit", 3],
    ["scopes", "map<string>", "filled", 4],
    ["pkceRequired", "bool", "implicit", 5],
  ],
  DeviceCodeOAuthFlow: [
    ["deviceAuthorizationUrl", "string", "implicit", 1],
    ["tokenUrl", "string", "implicit", 2],
    ["refreshUrl", "string", "implicit", 3],
    ["scopes", "map<string>", "filled", 4],
  ],
  ...COMMON_CARD_MESSAGES,
} as const satisfies Readonly<Record<string, readonly FieldRow[]>>;
