import { signCard } from "../auth/card-signing.ts";
import type { SigningKey } from "../auth/signing-key.ts";
import { toCardDocument } from "../dialects/a2a-v1/card.ts";
import type { AgentCard } from "../model/card.ts";
import { JWKS_PATH } from "./jwks.ts";

/** Adds its signatures to a card. */
export type CardSigner = (card: AgentCard) => AgentCard;

/** What is signed is the card as A2A 1.0 writes it; documents that have more in them carry the same signatures. */
export function createCardSigner(key: SigningKey, baseUrl: () => string): CardSigner {
  return (card) => {
    const { signatures: _, ...unsigned } = card;
    return { ...unsigned, signatures: signCard(toCardDocument(unsigned), { ...key, ...jkuOf(key, baseUrl()) }) };
  };
}

/** The key set that is served here is worth naming where verifiers would fetch it: they take nothing unencrypted. */
function jkuOf({ jku }: SigningKey, baseUrl: string): { readonly jku?: string } {
  if (jku !== undefined) return { jku };
  return baseUrl.startsWith("https://") ? { jku: `${baseUrl}${JWKS_PATH}` } : {};
}
