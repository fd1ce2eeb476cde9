/** The name of a participant in a text. */

import type { Participant } from "../../wire/channel.ts";

/** Ids of some networks begin with `@`, too. */
export function isName(text: string, { id, name }: Participant): boolean {
  const [wanted, ...own] = [text, id, name].map((one) => one.replace(/^@/, "").toLowerCase());
  return own.some((one) => one === wanted);
}

/** Without the name by which the participant was addressed. */
export function withoutMention(text: string, { id, name }: Participant): string {
  for (const called of [`<@${id}>`, `<@!${id}>`, `@${id.replace(/^@/, "")}`, `@${name}`, name]) {
    if (!text.toLowerCase().startsWith(called.toLowerCase())) continue;
    const rest = text.slice(called.length);
    const isWhole = called === name ? /^[:,，：]/.test(rest) : called.endsWith(">") || !/^[\p{L}\p{N}_-]/u.test(rest);
    if (isWhole) return rest.replace(/^[:,，：]?\s*/, "").trim();
  }
  return text.trim();
}
