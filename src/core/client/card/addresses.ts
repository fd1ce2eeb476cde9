/** Resolves what a user types to name an agent into the URLs where its card may be. */

import { statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { fileURLToPath } from "node:url";
import { canParseUrl, parseUrl } from "../../model/url.ts";
import { isLoopback } from "../../wire/loopback.ts";
import { ConnectionError } from "../errors.ts";

export const CARD_PATH = "/.well-known/agent-card.json";
/** Location of cards before A2A 0.3. */
const LEGACY_CARD_PATH = "/.well-known/agent.json";

type CardLocation =
  | { readonly kind: "file"; readonly path: string }
  /** Tried in order; the next one only if the previous one does not exist. `address` is the input, as a URL. */
  | { readonly kind: "web"; readonly urls: readonly [string, ...string[]]; readonly address: string };

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;
const HOST = /^(?:\[[0-9a-f:.]+\]|[^\s/:?#@]+)(?::\d+)?(?:[/?]|$)/i;

export function locateCard(target: string): CardLocation {
  if (/^https?:\/\//i.test(target)) return webLocation(target);
  if (/^file:/i.test(target)) return { kind: "file", path: pathOfFileUrl(target) };
  if (SCHEME.test(target)) throw invalidTargetError(target);
  if (target.startsWith(".") || isAbsolute(target) || isFile(target)) return { kind: "file", path: target };
  if (!HOST.test(target)) throw invalidTargetError(target);
  // Remote hosts without TLS require an explicit http://.
  return webLocation(`${isLoopback(hostOf(target)) ? "http" : "https"}://${target}`);
}

function hostOf(target: string): string {
  return parseUrl(`http://${target}`)?.hostname ?? "";
}

function webLocation(address: string): CardLocation {
  return { kind: "web", urls: cardUrls(address), address };
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function cardUrls(target: string): readonly [string, ...string[]] {
  if (!canParseUrl(target)) throw invalidTargetError(target);
  const url = new URL(target);
  url.hash = "";
  if (url.pathname.endsWith(".json")) return [url.href];
  const itself = url.href;
  const base = url.pathname.replace(/\/+$/, "");
  url.pathname = `${base}${CARD_PATH}`;
  const usual = url.href;
  url.pathname = `${base}${LEGACY_CARD_PATH}`;
  // A card may be at any URL; but the card of the whole host would be that of another agent.
  return base === "" ? [usual, url.href] : [usual, url.href, itself];
}

function pathOfFileUrl(target: string): string {
  try {
    return fileURLToPath(target);
  } catch {
    throw invalidTargetError(target);
  }
}

function invalidTargetError(target: string): ConnectionError {
  const shown = SCHEME.test(target) ? `A URL with the scheme "${target.split(":", 1)[0]}"` : `"${target}"`;
  return new ConnectionError(
    "bad-card",
    `${shown} does not name an agent. Give a host, an http(s) URL of an agent or of its card, or a file.`,
    { permanent: true },
  );
}
