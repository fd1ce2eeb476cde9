import type { CardVerification } from "../../auth/signatures/verify-card.ts";
import type { AgentCard, AgentInterface } from "../../model/card.ts";
import type { JsonObject } from "../../model/json.ts";
import { field } from "./text.ts";

/** `selected` is the interface that would be used, `signature` the outcome of the verification. */
export function renderCard(card: AgentCard, selected: string, signature: string, verbose: boolean): string {
  const lines = [
    field("Name", card.name),
    field("Description", card.description),
    field("Version", card.version),
    optional("Provider", card.provider && `${card.provider.organization} (${card.provider.url})`),
    optional("Documentation", card.documentationUrl),
    field("Streaming", yesNo(card.capabilities.streaming)),
    field("Push Notifications", yesNo(card.capabilities.pushNotifications)),
    field("Extended Card", yesNo(card.capabilities.extendedAgentCard)),
    ...(card.capabilities.extensions ?? []).map((extension) =>
      field("Extension", `${extension.uri}${extension.required === true ? " (required)" : ""}`),
    ),
    ...card.supportedInterfaces.map((entry) => field("Interface", describeInterface(entry))),
    field("Selected Interface", selected),
    ...Object.entries(card.securitySchemes ?? {}).map(([name, scheme]) =>
      field("Security Scheme", `${name}: ${describeScheme(scheme)}`),
    ),
    ...(card.securityRequirements ?? []).map((requirement) =>
      field("Security Requirement", Object.keys(requirement.schemes).join(" and ") || "none"),
    ),
    field("Signature", signature),
    field("Input Modes", card.defaultInputModes.join(", ")),
    field("Output Modes", card.defaultOutputModes.join(", ")),
    ...card.skills.map((skill) => field("Skill", `${skill.id}: ${skill.name}. ${skill.description}`)),
  ];
  if (verbose) {
    for (const skill of card.skills) {
      if (skill.tags.length > 0) lines.push(field("Skill Tags", `${skill.id}: ${skill.tags.join(", ")}`));
      for (const example of skill.examples ?? []) lines.push(field("Skill Example", `${skill.id}: ${example}`));
    }
  }
  return lines.join("");
}

export function describeInterface(entry: AgentInterface): string {
  const tenant = entry.tenant === undefined || entry.tenant === "" ? "" : ` (tenant ${entry.tenant})`;
  return `${entry.protocolBinding} ${entry.protocolVersion} ${entry.url}${tenant}`;
}

/** A scheme is an object with a single member, whose name is the kind. */
function describeScheme(scheme: JsonObject): string {
  for (const [kind, details] of Object.entries(scheme)) {
    const read = (name: string): string => {
      const value =
        typeof details === "object" && details !== null && !Array.isArray(details)
          ? (details as JsonObject)[name]
          : undefined;
      return typeof value === "string" ? value : "";
    };
    switch (kind) {
      case "apiKeySecurityScheme":
        return `API key in ${read("location")} ${read("name")}`;
      case "httpAuthSecurityScheme":
        return `HTTP ${read("scheme")}`;
      case "oauth2SecurityScheme":
        return "OAuth 2";
      case "openIdConnectSecurityScheme":
        return `OpenID Connect ${read("openIdConnectUrl")}`;
      case "mtlsSecurityScheme":
        return "mutual TLS";
    }
  }
  return "unknown";
}

function yesNo(value: boolean | undefined): string {
  return value === true ? "yes" : "no";
}

function optional(label: string, value: string | undefined): string {
  return value === undefined ? "" : field(label, value);
}

export function describeVerification(verification: CardVerification): string {
  switch (verification.status) {
    case "verified":
      return `verified (key ${verification.kid}, ${verification.alg})${describeUncovered(verification.uncovered)}`;
    case "absent":
      return "absent";
    case "unverifiable":
    case "invalid":
      return `${verification.status} (${verification.reason})`;
  }
}

const MAX_NAMED = 12;

function describeUncovered(uncovered: readonly string[]): string {
  if (uncovered.length === 0) return "";
  const more = uncovered.length > MAX_NAMED ? ` and ${uncovered.length - MAX_NAMED} more` : "";
  return `, but not ${uncovered.slice(0, MAX_NAMED).join(", ")}${more}`;
}
