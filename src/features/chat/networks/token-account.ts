import { createHash } from "node:crypto";

/** Names the account of a token: by the part of it that is public, so that a new token is the same account, else by its hash. */
export function tokenAccount(token: string, publicPart?: RegExp): string {
  return publicPart?.exec(token)?.[0] ?? createHash("sha256").update(token).digest("hex").slice(0, 16);
}
