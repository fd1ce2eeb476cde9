import type { CardVerification } from "../auth/card-verifying.ts";
import { field } from "./text-form.ts";

/** The outcome in a few words. */
export function describeVerification(verification: CardVerification): string {
  switch (verification.status) {
    case "verified":
      return `verified (key ${verification.kid}, ${verification.alg})`;
    case "absent":
      return "absent";
    case "unverifiable":
    case "invalid":
      return `${verification.status} (${verification.reason})`;
  }
}

export function verificationFields(verification: CardVerification): string {
  return field("Signature", describeVerification(verification));
}
