/** Which of the ways into an agent to take. */
import type { AgentCard } from "../../model/card.ts";
import type { Grant } from "./contract.ts";
import { LoginError } from "./errors.ts";
import { type NamedScheme, type Scheme, type Way, waysInto } from "./scheme.ts";

export interface Wish {
  /** A scheme of the card by its name. */
  readonly scheme?: string | undefined;
  readonly grant?: Grant | undefined;
  /** Kinds for which the caller already holds what they need; among possible ways these come first. */
  readonly prepared?: readonly Scheme["kind"][];
}

/** The schemes to log in for, all of which the agent wants together. */
export function chooseWay(card: AgentCard, wish: Wish = {}): Way {
  const ways = waysInto(card);
  if (ways.length === 0) throw new LoginError("unsupported", "The agent's card asks for no credentials.");
  if (wish.scheme !== undefined) return [namedScheme(card, ways, wish.scheme, wish.grant)];
  const possible = ways.filter((way) => way.every(({ scheme }) => isPossible(scheme, wish.grant)));
  const prepared = possible.find((way) => way.every(({ scheme }) => wish.prepared?.includes(scheme.kind) === true));
  const chosen = prepared ?? possible[0];
  if (chosen !== undefined) return chosen;
  throw new LoginError("unsupported", `There is no way to log in from here: ${whyNot(ways, wish.grant)}.`);
}

/** The schemes among `known` that together satisfy the card; failing that, all of them that the card describes. */
export function chooseKnown(card: AgentCard, known: ReadonlySet<string>): readonly string[] {
  const way = waysInto(card).find((candidate) => candidate.every(({ name }) => known.has(name)));
  if (way !== undefined) return way.map(({ name }) => name);
  return Object.keys(card.securitySchemes ?? {}).filter((name) => known.has(name));
}

function namedScheme(card: AgentCard, ways: readonly Way[], name: string, grant: Grant | undefined): NamedScheme {
  // Required for something, then described at all: a scheme may be for some skills only.
  const described: AgentCard = { ...card, securityRequirements: [] };
  const found =
    ways.flat().find((one) => one.name === name) ??
    waysInto(described)
      .flat()
      .find((one) => one.name === name);
  if (found === undefined) {
    const names = Object.keys(card.securitySchemes ?? {});
    const known = names.length === 0 ? "none" : names.join(", ");
    throw new LoginError("unknown-scheme", `The agent's card has no security scheme ${name}; it has ${known}.`);
  }
  const reason = reasonAgainst(found.scheme, grant);
  if (reason !== undefined) throw new LoginError("unsupported", `The scheme ${name} cannot be used: ${reason}.`);
  return found;
}

function isPossible(scheme: Scheme, grant: Grant | undefined): boolean {
  return reasonAgainst(scheme, grant) === undefined;
}

function reasonAgainst(scheme: Scheme, grant: Grant | undefined): string | undefined {
  if (scheme.kind === "unsupported") return scheme.reason;
  if (grant === undefined || scheme.kind === "openid") return undefined;
  if (scheme.kind !== "oauth2") return "it has no OAuth flow";
  // Where the server describes itself, it may know flows that the card does not mention.
  return scheme.grant === grant || scheme.metadataUrl !== undefined ? undefined : `its flow is ${scheme.grant}`;
}

function whyNot(ways: readonly Way[], grant: Grant | undefined): string {
  const reasons = ways.flat().flatMap(({ name, scheme }) => {
    const reason = reasonAgainst(scheme, grant);
    return reason === undefined ? [] : [`${name}: ${reason}`];
  });
  return [...new Set(reasons)].join("; ");
}
