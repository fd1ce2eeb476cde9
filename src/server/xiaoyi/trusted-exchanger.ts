/** Addresses that the operator wrote down. */
import type { Exchanger } from "../../wire/exchange.ts";
import { createFetchExchanger } from "../../wire/fetch-exchange.ts";
import { isLoopback } from "../access/loopback.ts";

/** They may not send us elsewhere: credentials would go along. */
export function createTrustedExchanger(
  maxBodyBytes: number,
  fetch: typeof globalThis.fetch = globalThis.fetch,
): Exchanger {
  return createFetchExchanger((input, init) => fetch(input, { ...init, redirect: "error" }), { maxBodyBytes });
}

export function isOnThisMachine(url: string): boolean {
  return URL.canParse(url) && isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, ""));
}

/** Without encryption only where nobody stands in between. */
export function isSafeUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol } = new URL(url);
  return protocol === "https:" || (protocol === "http:" && isOnThisMachine(url));
}
