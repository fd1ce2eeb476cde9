/** Where a redirect may lead, and what may be taken along. */
import { GuardedFetchError } from "./guarded-fetch-error.ts";
import type { TargetPolicy } from "./target-policy.ts";

export interface Outgoing {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

export const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Header names that say nothing of the caller. Everything else, keys under any name among it, stays with the origin. */
const HARMLESS = new Set(["accept", "accept-encoding", "accept-language", "a2a-version", "user-agent"]);

/** Throws for what must not be followed: a target that is forbidden, less secure, or gets a body meant for another. */
export function nextRequest(from: Outgoing, status: number, location: string, policy: TargetPolicy): Outgoing {
  if (!URL.canParse(location, from.url.href)) throw new GuardedFetchError("bad-redirect");
  const url = policy.check(new URL(location, from.url));
  if (from.url.protocol === "https:" && url.protocol !== "https:") throw new GuardedFetchError("bad-redirect");
  const isRead = from.method === "GET" || from.method === "HEAD";
  const becomesGet = !isRead && (status === 303 || (from.method === "POST" && (status === 301 || status === 302)));
  const sameOrigin = url.origin === from.url.origin;
  if (!sameOrigin && !isRead) throw new GuardedFetchError("bad-redirect");
  if (sameOrigin && !becomesGet) return { ...from, url };
  const headers = Object.entries(from.headers).filter(([name]) =>
    sameOrigin ? !isAboutBody(name) : HARMLESS.has(name),
  );
  return { url, method: becomesGet ? "GET" : from.method, headers: Object.fromEntries(headers) };
}

function isAboutBody(name: string): boolean {
  return name.startsWith("content-");
}
