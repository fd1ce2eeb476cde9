/** What people type to name an agent, as places where its card may be. */
import { statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { fileURLToPath } from "node:url";
import { ConnectionError } from "./errors.ts";

export const CARD_PATH = "/.well-known/agent-card.json";
/** Where cards were before A2A 0.3. */
const OLD_CARD_PATH = "/.well-known/agent.json";

export type CardPlace =
  | { readonly kind: "file"; readonly path: string }
  /** Tried in order; the next one only if the one before does not exist. `address` is what was typed, as a URL. */
  | { readonly kind: "web"; readonly urls: readonly [string, ...string[]]; readonly address: string };

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;
const HOST = /^(?:\[[0-9a-f:.]+\]|[^\s/:?#@]+)(?::\d+)?(?:[/?]|$)/i;
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?(?:[/?]|$)/i;

export function findCardPlace(target: string): CardPlace {
  if (/^https?:\/\//i.test(target)) return onWeb(target);
  if (/^file:/i.test(target)) return { kind: "file", path: pathOfFileUrl(target) };
  if (SCHEME.test(target)) throw notATarget(target);
  if (target.startsWith(".") || isAbsolute(target) || isFile(target)) return { kind: "file", path: target };
  if (!HOST.test(target)) throw notATarget(target);
  // Whoever means a remote host without TLS writes http:// explicitly.
  return onWeb(`${LOOPBACK.test(target) ? "http" : "https"}://${target}`);
}

function onWeb(address: string): CardPlace {
  return { kind: "web", urls: cardUrls(address), address };
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function cardUrls(target: string): readonly [string, ...string[]] {
  if (!URL.canParse(target)) throw notATarget(target);
  const url = new URL(target);
  url.hash = "";
  if (url.pathname.endsWith(".json")) return [url.href];
  const itself = url.href;
  const base = url.pathname.replace(/\/+$/, "");
  url.pathname = `${base}${CARD_PATH}`;
  const usual = url.href;
  url.pathname = `${base}${OLD_CARD_PATH}`;
  // A card may live at any address; but the card of the whole host would be that of another agent.
  return base === "" ? [usual, url.href] : [usual, url.href, itself];
}

function pathOfFileUrl(target: string): string {
  try {
    return fileURLToPath(target);
  } catch {
    throw notATarget(target);
  }
}

function notATarget(target: string): ConnectionError {
  const shown = SCHEME.test(target) ? `A URL with the scheme "${target.split(":", 1)[0]}"` : `"${target}"`;
  return new ConnectionError(
    "bad-card",
    `${shown} does not name an agent. Give a host, an http(s) URL of an agent or of its card, or a file.`,
    { permanent: true },
  );
}
