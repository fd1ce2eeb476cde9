import type { AgentCard, AgentInterface } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import { CommandError } from "../errors.ts";

interface InterfacePreferences {
  readonly transport: readonly string[];
  readonly a2aVersion: string | undefined;
  readonly dialect?: string | undefined;
}

const BINDING_ALIASES: Readonly<Record<string, string>> = {
  JSONRPC: "JSONRPC",
  "JSON-RPC": "JSONRPC",
  "HTTP+JSON": "HTTP+JSON",
  HTTPJSON: "HTTP+JSON",
  REST: "HTTP+JSON",
  GRPC: "GRPC",
};

/** The canonical names, as used in cards. */
export const BINDING_NAMES: readonly string[] = [...new Set(Object.values(BINDING_ALIASES))];

/** Maps an alternative spelling of a binding to the one used in cards. */
export function canonicalBinding(text: string): string {
  return BINDING_ALIASES[text.toUpperCase()] ?? text;
}

/**
 * The card's interfaces that may be used, in the order to try them: the user's bindings first, otherwise in the card's
 * order. Versions below 1.0 and other dialects are used on request only (a2a-cli specification, section 13.2).
 */
export function chooseInterfaces(card: AgentCard, wishes: InterfacePreferences): readonly AgentInterface[] {
  const offered = card.supportedInterfaces;
  if (offered.length === 0) {
    throw new CommandError(
      "A2ACLI_ERR_CARD_INVALID",
      "The card names no interface through which the agent can be called.",
    );
  }
  const { a2aVersion, dialect } = wishes;
  if (a2aVersion !== undefined) {
    const asked = offered.filter(({ protocolVersion }) => shortVersion(protocolVersion) === a2aVersion);
    if (asked.length === 0) throw versionError(card, `not A2A ${a2aVersion}`);
    return sortByPreference(asked, wishes);
  }
  const current = dialect === undefined ? offered.filter(isCurrent) : offered;
  if (current.length > 0) return sortByPreference(current, wishes);
  if (flagsForOlder(card).length > 0) throw versionError(card, "nothing of A2A 1.0 or later");
  // Bindings that no flag selects: the client reports which ones it supports.
  return offered;
}

const OWN_BINDING = "urn:dragoman:binding:";

/** The flags that select what a card offers besides A2A 1.0 and later; the best one first. */
export function flagsForOlder({ supportedInterfaces }: AgentCard): readonly string[] {
  const flags = supportedInterfaces.filter((entry) => !isCurrent(entry)).flatMap(flagFor);
  return [...new Set(flags)];
}

function flagFor({ protocolBinding, protocolVersion }: AgentInterface): readonly string[] {
  if (isStandardBinding(protocolBinding)) return [`--a2a-version ${shortVersion(protocolVersion)}`];
  return protocolBinding.startsWith(OWN_BINDING) ? [`--dialect ${protocolBinding.slice(OWN_BINDING.length)}`] : [];
}

function sortByPreference(
  entries: readonly AgentInterface[],
  { transport }: InterfacePreferences,
): readonly AgentInterface[] {
  const wanted = transport.map(canonicalBinding);
  const rank = (entry: AgentInterface): number => {
    const place = wanted.indexOf(canonicalBinding(entry.protocolBinding));
    return place === -1 ? wanted.length : place;
  };
  return [...entries].sort((one, other) => rank(one) - rank(other));
}

/** Whether the interfaces include any of the bindings that the user prefers. */
export function offersBinding(transport: readonly string[], interfaces: readonly AgentInterface[]): boolean {
  const offered = interfaces.map(({ protocolBinding }) => canonicalBinding(protocolBinding));
  return transport.some((wanted) => offered.includes(canonicalBinding(wanted)));
}

/** Custom bindings have their own version numbers. */
function isCurrent({ protocolBinding, protocolVersion }: AgentInterface): boolean {
  return isStandardBinding(protocolBinding) && Number(protocolVersion.split(".")[0]) >= 1;
}

function isStandardBinding(binding: string): boolean {
  return Object.hasOwn(BINDING_ALIASES, binding.toUpperCase());
}

function versionError(card: AgentCard, missing: string): ProtocolError {
  const standard = card.supportedInterfaces.filter(({ protocolBinding }) => isStandardBinding(protocolBinding));
  const versions = [...new Set(standard.map(({ protocolVersion }) => shortVersion(protocolVersion)))];
  const offered = versions.length === 0 ? "other protocols" : versions.join(", ");
  const ways = flagsForOlder(card);
  const advice = card.supportedInterfaces.some(isCurrent)
    ? "Without --a2a-version, what it offers is used."
    : `What is older is used on request only: add ${ways.join(" or ")}.`;
  return new ProtocolError("VERSION_NOT_SUPPORTED", `The agent offers only ${offered}, ${missing}. ${advice}`);
}

function shortVersion(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}
