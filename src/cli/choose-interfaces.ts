import type { AgentCard, AgentInterface } from "../model/card.ts";
import { ProtocolError } from "../model/errors.ts";
import { CommandError } from "./errors.ts";

export interface InterfaceWishes {
  readonly transport: readonly string[];
  readonly a2aVersion: string | undefined;
}

const BINDINGS: Readonly<Record<string, string>> = {
  JSONRPC: "JSONRPC",
  "JSON-RPC": "JSONRPC",
  "HTTP+JSON": "HTTP+JSON",
  HTTPJSON: "HTTP+JSON",
  REST: "HTTP+JSON",
  GRPC: "GRPC",
};

/** The spelling a card uses for a binding a user may have typed in another. */
export function bindingName(text: string): string {
  return BINDINGS[text.toUpperCase()] ?? text;
}

/**
 * The card's interfaces that may be spoken, in the order to try them: the user's bindings first, the card's own order
 * otherwise. Versions below 1.0 need to be asked for (a2a-cli specification, section 13.2).
 */
export function chooseInterfaces(card: AgentCard, wishes: InterfaceWishes): readonly AgentInterface[] {
  if (card.supportedInterfaces.length === 0) {
    throw new CommandError(
      "A2ACLI_ERR_CARD_INVALID",
      "The card names no interface through which the agent can be called.",
    );
  }
  const spoken = card.supportedInterfaces.filter((entry) => mayBeSpoken(entry.protocolVersion, wishes.a2aVersion));
  if (spoken.length === 0) throw versionError(card, wishes.a2aVersion);
  const wanted = wishes.transport.map(bindingName);
  const rank = (entry: AgentInterface): number => {
    const place = wanted.indexOf(entry.protocolBinding);
    return place === -1 ? wanted.length : place;
  };
  return [...spoken].sort((one, other) => rank(one) - rank(other));
}

function mayBeSpoken(version: string, asked: string | undefined): boolean {
  const [major = "", minor = "0"] = version.split(".");
  return asked === undefined ? Number(major) >= 1 : `${major}.${minor}` === asked;
}

function versionError(card: AgentCard, asked: string | undefined): ProtocolError {
  const offered = [...new Set(card.supportedInterfaces.map((entry) => entry.protocolVersion))];
  const wish = asked === undefined ? "A2A 1.0 or later" : `A2A ${asked}`;
  const advice =
    asked === undefined && offered[0] !== undefined
      ? ` To speak it, say --a2a-version ${shortVersion(offered[0])}.`
      : "";
  return new ProtocolError(
    "VERSION_NOT_SUPPORTED",
    `The agent offers only ${offered.join(", ")}, not ${wish}.${advice}`,
  );
}

function shortVersion(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}
