/** The messages of the agent card, as tables. */
import type { Row } from "../shared/proto-json.ts";

export const CARD_MESSAGES = {
  // Serialisers leave out empty required text and lists, so that absence of one must not cost us the card.
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
  AgentProvider: [
    ["url", "string", "filled", 1],
    ["organization", "string", "filled", 2],
  ],
  AgentCapabilities: [
    ["streaming", "bool", "optional", 1],
    ["pushNotifications", "bool", "optional", 2],
    ["extensions", "AgentExtension[]", "implicit", 3],
    ["extendedAgentCard", "bool", "optional", 4],
  ],
  AgentExtension: [
    ["uri", "string", "required", 1],
    ["description", "string", "implicit", 2],
    ["required", "bool", "implicit", 3],
    ["params", "struct", "optional", 4],
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
  AgentCardSignature: [
    ["protected", "string", "required", 1],
    ["signature", "string", "required", 2],
    ["header", "struct", "optional", 3],
  ],
  SecurityRequirement: [["schemes", "map<StringList>", "restored", 1]],
  StringList: [["list", "string[]", "restored", 1]],
  // A kind of scheme that is not known here reads as an empty object: it cannot be satisfied, the rest can be used.
  SecurityScheme: [
    ["apiKeySecurityScheme", "APIKeySecurityScheme", "optional", 1],
    ["httpAuthSecurityScheme", "HTTPAuthSecurityScheme", "optional", 2],
    ["oauth2SecurityScheme", "OAuth2SecurityScheme", "optional", 3],
    ["openIdConnectSecurityScheme", "OpenIdConnectSecurityScheme", "optional", 4],
    ["mtlsSecurityScheme", "MutualTlsSecurityScheme", "optional", 5],
  ],
  APIKeySecurityScheme: [
    ["description", "string", "implicit", 1],
    ["location", "string", "required", 2],
    ["name", "string", "required", 3],
  ],
  HTTPAuthSecurityScheme: [
    ["description", "string", "implicit", 1],
    ["scheme", "string", "required", 2],
    ["bearerFormat", "string", "implicit", 3],
  ],
  OAuth2SecurityScheme: [
    ["description", "string", "implicit", 1],
    ["flows", "OAuthFlows", "required", 2],
    ["oauth2MetadataUrl", "string", "implicit", 3],
  ],
  OpenIdConnectSecurityScheme: [
    ["description", "string", "implicit", 1],
    ["openIdConnectUrl", "string", "required", 2],
  ],
  MutualTlsSecurityScheme: [["description", "string", "implicit", 1]],
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
  ClientCredentialsOAuthFlow: [
    ["tokenUrl", "string", "implicit", 1],
    ["refreshUrl", "string", "implicit", 2],
    ["scopes", "map<string>", "filled", 3],
  ],
  ImplicitOAuthFlow: [
    ["authorizationUrl", "string", "implicit", 1],
    ["refreshUrl", "string", "implicit", 2],
    ["scopes", "map<string>", "filled", 3],
  ],
  PasswordOAuthFlow: [
    ["tokenUrl", "string", "implicit", 1],
    ["refreshUrl", "string", "implicit", 2],
    ["scopes", "map<string>", "filled", 3],
  ],
  DeviceCodeOAuthFlow: [
    ["deviceAuthorizationUrl", "string", "implicit", 1],
    ["tokenUrl", "string", "implicit", 2],
    ["refreshUrl", "string", "implicit", 3],
    ["scopes", "map<string>", "filled", 4],
  ],
} as const satisfies Readonly<Record<string, readonly Row[]>>;
