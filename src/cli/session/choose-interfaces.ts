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

interface InterfaceChoice {
  /** In the order to try them. */
  readonly interfaces: readonly AgentInterface[];
  /** The card offers nothing of 1.0 or later, and the user did not ask for an older version. */
  readonly isOlder: boolean;
}

/**
 * The card's interfaces that may be used: the user's bindings first, otherwise in the card's order. Versions below 1.0
 * are used on request (a2a-cli specification, section 13.2), and when the card offers nothing else.
 */
export function chooseInterfaces(card: AgentCard, wishes: InterfacePreferences): InterfaceChoice {
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
    if (asked.length === 0) throw versionError(card, a2aVersion);
    return { interfaces: sortByPreference(asked, wishes), isOlder: false };
  }
  const current = dialect === undefined ? offered.filter(isCurrent) : offered;
  const isOlder = current.length === 0;
  return { interfaces: sortByPreference(isOlder ? offered : current, wishes), isOlder };
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
  return Object.hasOwn(BINDING_ALIASES, protocolBinding.toUpperCase()) && Number(protocolVersion.split(".")[0]) >= 1;
}

function versionError(card: AgentCard, asked: string): ProtocolError {
  const offered = [...new Set(card.supportedInterfaces.map(({ protocolVersion }) => shortVersion(protocolVersion)))];
  return new ProtocolError(
    "VERSION_NOT_SUPPORTED",
    `The agent offers only ${offered.join(", ")}, not A2A ${asked}. Without --a2a-version, what it offers is used.`,
  );
}

function shortVersion(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}
