/** The name of a participant in a text. */

import type { Participant } from "../../../core/wire/channel.ts";

/** Ids of some networks begin with `@`, too. */
export function isName(text: string, { id, name }: Participant): boolean {
  const [wanted, ...own] = [text, id, name].map((one) => one.replace(/^@/, "").toLowerCase());
  return own.some((one) => one === wanted);
}

/**
 * Without the name by which the participant was addressed. Of an id such as `@helper:example.org` the first part is
 * enough.
 */
export function withoutMention(text: string, { id, name }: Participant): string {
  const [local = ""] = id.replace(/^@/, "").split(":", 1);
  const names = [id.replace(/^@/, ""), name.replace(/^@/, ""), local].filter((one) => one !== "");
  for (const called of [`<@${id}>`, `<@!${id}>`, ...names.map((one) => `@${one}`), ...names]) {
    if (!text.toLowerCase().startsWith(called.toLowerCase())) continue;
    const rest = text.slice(called.length);
    const isWhole = /^[@<]/.test(called)
      ? called.endsWith(">") || !NAME_CONTINUES.test(rest)
      : /^\s?[:,，：]/.test(rest);
    if (isWhole) return rest.replace(/^\s?[:,，：]?\s*/, "").trim();
  }
  return text.trim();
}

/** After a name in Latin letters, a text in Chinese may begin at once. */
const NAME_CONTINUES = /^[A-Za-z0-9_\u00c0-\u024f-]/;
