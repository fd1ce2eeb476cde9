/** Mentions in networks that have none of their own: `@name` anywhere and, where people write so, `name:` at the beginning. */

const TOKEN = /(?<![\p{L}\p{N}_.@])@([\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*)/gu;

/** Whether this name is mentioned; it may have characters that would end a mention elsewhere. */
export function mentionsName(text: string, name: string, { leading }: { readonly leading: boolean }): boolean {
  const escaped = name.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  const forms = [
    `(?<![\\p{L}\\p{N}_.@])@${escaped}(?![\\p{L}\\p{N}_-])`,
    // Names have no commas here: otherwise a list of them could be divided in exponentially many ways.
    ...(leading ? [`^(?:[^\\s,]+,+ ?)*${escaped}[:,](?=\\s|$)`] : []),
  ];
  return new RegExp(forms.join("|"), "iu").test(text);
}

/** The own name if it is mentioned in any form, and what else follows an `@`. */
export function findMentions(text: string, own: string, options: { readonly leading: boolean }): string[] {
  const tokens = [...text.matchAll(TOKEN)].flatMap(([, name]) => name ?? []);
  const others = tokens.filter((name) => name.toLowerCase() !== own.toLowerCase());
  return mentionsName(text, own, options) ? [own, ...others] : others;
}
