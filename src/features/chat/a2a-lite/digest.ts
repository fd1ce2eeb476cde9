import { hash } from "node:crypto";

/** The same for the same values; never longer than ids may be. */
export function digest(...values: readonly (string | undefined)[]): string {
  return hash("sha256", JSON.stringify(values), "base64url").slice(0, 32);
}
