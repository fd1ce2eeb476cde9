/** Decides whether a card may be used, from its signatures and the caller's policy. */

import { createKeySource, type KeySource } from "../../auth/signatures/keys.ts";
import type { CardVerification } from "../../auth/signatures/verify-card.ts";
import type { AgentCard } from "../../model/card.ts";
import { toSignedForm } from "../dialects.ts";
import { ConnectionError } from "../errors.ts";
import type { CardOptions, SignaturePolicy } from "../options.ts";

type TrustOptions = Pick<CardOptions, "signatures" | "cardKeys" | "jkuOrigins">;

const MAX_KEY_SET_BYTES = 256 * 1024;
const KEY_SET_TIMEOUT_MS = 10_000;

function signaturePolicy({ signatures, cardKeys = [], jkuOrigins = [] }: TrustOptions): SignaturePolicy {
  return signatures ?? (cardKeys.length + jkuOrigins.length > 0 ? "prefer" : "ignore");
}

/** Verifies the signatures of a card, given the card as received. */
export async function verifyCardSignatures(raw: string, options: TrustOptions): Promise<CardVerification> {
  const { verifyCard } = await import("../../auth/signatures/verify-card.ts");
  return verifyCard(raw, { keys: await keySourceOf(options), normalise: toSignedForm });
}

async function keySourceOf({ cardKeys = [], jkuOrigins = [] }: TrustOptions): Promise<KeySource> {
  if (jkuOrigins.length === 0) return createKeySource({ keys: cardKeys });
  const { createGuardedFetch } = await import("../../auth/guarded-fetch/guarded-fetch.ts");
  const fetch = createGuardedFetch({
    // Origins that the caller lists are trusted, even at private addresses.
    allow: jkuOrigins.map((origin) => new URL(origin).hostname),
    maxBytes: MAX_KEY_SET_BYTES,
    timeoutMs: KEY_SET_TIMEOUT_MS,
    maxRedirects: 0,
  });
  return createKeySource({ keys: cardKeys, jkuOrigins, fetch });
}

/** Throws for a card that must not be used; `where` is for the error message. */
export async function requireTrustedCard(
  raw: string,
  where: string,
  options: TrustOptions,
): Promise<CardVerification | undefined> {
  const policy = signaturePolicy(options);
  if (policy === "ignore") return undefined;
  const verification = await verifyCardSignatures(raw, options);
  const { status } = verification;
  if (status === "verified" || (policy === "prefer" && status !== "invalid")) return verification;
  throw new ConnectionError("bad-card", `The card at ${where} is refused. ${describeVerification(verification)}`, {
    permanent: true,
  });
}

export function describeVerification(verification: CardVerification): string {
  switch (verification.status) {
    case "verified":
      return `Its signature by the key ${verification.kid} (${verification.alg}) is verified.`;
    case "absent":
      return "It is not signed.";
    case "unverifiable":
      return `Its signature cannot be verified: ${verification.reason}`;
    case "invalid":
      return `Its signature is not valid: ${verification.reason}`;
  }
}

/** For a verified card, decodes only the signed document: members outside of it could come from anyone. */
export function readVerifiedCard(
  card: AgentCard,
  verification: CardVerification | undefined,
  read: (document: unknown) => AgentCard,
): AgentCard {
  if (verification?.status !== "verified") return card;
  const { signatures } = card;
  return { ...read(verification.document), signatures };
}
