/** Tables of the agent card messages that are the same in the protos of 0.3 and 1.0. */
import type { FieldRow } from "./json-codec.ts";

export const COMMON_CARD_MESSAGES = {
  AgentProvider: [
    ["url", "string", "filled", 1],
    ["organization", "string", "filled", 2],
  ],
  AgentExtension: [
    ["uri", "string", "required", 1],
    ["description", "string", "implicit", 2],
    ["required", "bool", "implicit", 3],
    ["params", "struct", "optional", 4],
  ],
  AgentCardSignature: [
    ["protected", "string", "required", 1],
    ["signature", "string", "required", 2],
    ["header", "struct", "optional", 3],
  ],
  StringList: [["list", "string[]", "restored", 1]],
  // An unknown kind of scheme is decoded as an empty object: it cannot be satisfied, the rest remains usable.
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
} as const satisfies Readonly<Record<string, readonly FieldRow[]>>;
