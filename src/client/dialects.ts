/** Everything this client can speak. The one place of the client that names a dialect. */
import { A2A_V1_CALLING } from "../dialects/a2a-v1/call-bindings.ts";
import { readCalledCard } from "../dialects/a2a-v1/call-card.ts";
import type { ExchangeCalling } from "../dialects/contract.ts";
import type { AgentCard } from "../model/card.ts";

/** In order of preference where a card leaves the choice. */
export const CALLINGS: readonly ExchangeCalling[] = [...A2A_V1_CALLING];

/** A card in any form one of the dialects can read; `undefined` for anything else. */
export function readCard(value: unknown): AgentCard | undefined {
  return readCalledCard(value);
}

/** Patch numbers say nothing on the wire: `1.0.1` is spoken as `1.0`. */
export function findCalling(binding: string, version: string): ExchangeCalling | undefined {
  const spoken = version.split(".").slice(0, 2).join(".");
  return CALLINGS.find((calling) => calling.version === spoken && sameBinding(calling.binding, binding));
}

export function sameBinding(one: string, other: string): boolean {
  return one.toUpperCase() === other.toUpperCase();
}
