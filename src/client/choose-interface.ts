/** Which of a card's interfaces to use: the first one that this client speaks, in the card's order. */

import type { ExchangeCalling } from "../dialects/contract.ts";
import type { AgentCard, AgentInterface } from "../model/card.ts";
import { CALLINGS, findCalling, sameBinding } from "./dialects.ts";
import { ConnectionError } from "./errors.ts";
import type { ChosenInterface } from "./options.ts";

export interface Choice {
  readonly calling: ExchangeCalling;
  readonly interface: ChosenInterface;
  /** Entries the card prefers that could not be used, in words. */
  readonly passedOver: readonly string[];
}

export interface ChooseOptions {
  readonly binding?: string | undefined;
  /** Where the card was found: careless cards have relative URLs. */
  readonly cardUrl?: string | undefined;
}

export function chooseInterface(card: AgentCard, options: ChooseOptions = {}): Choice {
  const passedOver: string[] = [];
  for (const entry of card.supportedInterfaces) {
    if (options.binding !== undefined && !sameBinding(entry.protocolBinding, options.binding)) continue;
    const calling = findCalling(entry.protocolBinding, entry.protocolVersion);
    const url = calling === undefined ? undefined : absoluteUrl(entry.url, options.cardUrl);
    if (calling === undefined || url === undefined) {
      passedOver.push(inWords(entry));
      continue;
    }
    return {
      calling,
      interface: {
        url,
        binding: calling.binding,
        version: calling.version,
        ...(entry.tenant === undefined || entry.tenant === "" ? {} : { tenant: entry.tenant }),
      },
      passedOver,
    };
  }
  throw noInterface(card, options.binding);
}

function absoluteUrl(url: string, base: string | undefined): string | undefined {
  if (!URL.canParse(url, base)) return undefined;
  const { href, protocol } = new URL(url, base);
  if (protocol !== "http:" && protocol !== "https:") return undefined;
  // A URL as the card spells it, not as it would be normalised: servers may be picky about a trailing slash.
  return URL.canParse(url) ? url : href;
}

function inWords(entry: AgentInterface): string {
  return `${entry.protocolBinding} ${entry.protocolVersion}`;
}

function noInterface(card: AgentCard, binding: string | undefined): ConnectionError {
  const offered = card.supportedInterfaces.map(inWords).join(", ");
  const spoken = CALLINGS.map((calling) => `${calling.binding} ${calling.version}`).join(", ");
  const wish = binding === undefined ? "" : ` with the binding ${binding}`;
  const advice =
    binding === undefined
      ? "Ask whoever runs the agent to offer one of these, or put a bridge in front of it."
      : "Leave the choice to the card by not naming a binding.";
  return new ConnectionError(
    "no-interface",
    `The agent "${card.name}" offers ${offered === "" ? "no interface of A2A 1.0" : offered}; this client speaks ${spoken}, and nothing fits${wish}. ${advice}`,
    { permanent: true },
  );
}
