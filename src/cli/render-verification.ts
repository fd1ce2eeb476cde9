import type { CardVerification } from "../auth/card-verifying.ts";
import { field } from "./text-form.ts";

/** The outcome in a few words. */
export function describeVerification(verification: CardVerification): string {
  switch (verification.status) {
    case "verified":
      return `verified (key ${verification.kid}, ${verification.alg})${exceptions(verification.uncovered)}`;
    case "absent":
      return "absent";
    case "unverifiable":
    case "invalid":
      return `${verification.status} (${verification.reason})`;
  }
}

const MOST_NAMED = 12;

/** What a signature says nothing of. */
function exceptions(uncovered: readonly string[]): string {
  if (uncovered.length === 0) return "";
  const more = uncovered.length > MOST_NAMED ? ` and ${uncovered.length - MOST_NAMED} more` : "";
  return `, but not ${uncovered.slice(0, MOST_NAMED).join(", ")}${more}`;
}

export function verificationFields(verification: CardVerification): string {
  return field("Signature", describeVerification(verification));
}
