/** Mentions that are only text: `@name` anywhere, and `name:` or `name,` at the beginning, full-width as well. */

const TOKEN = /(?<![\p{L}\p{N}_.@])@([\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*)/gu;

/** Whether this name is mentioned; it may have characters that would end a mention elsewhere. */
export function mentionsName(text: string, name: string): boolean {
  const escaped = name.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  // Chinese and Japanese have no spaces between words: after a name in Latin letters such a text begins.
  const end = /[A-Za-z0-9]$/.test(name) ? "(?![A-Za-z0-9_\\u00c0-\\u024f-])" : "(?![\\p{L}\\p{N}_-])";
  const forms = [
    `(?<![\\p{L}\\p{N}_.@])@${escaped}${end}`,
    // Names have no commas here: otherwise a list of them could be divided in exponentially many ways.
    `^\\s*(?:[^\\s,，、]+[,，、]+ ?)*${escaped}(?:[:,](?=\\s|$)|\\s?[：，])`,
  ];
  return new RegExp(forms.join("|"), "iu").test(text);
}

/** The own name if it is mentioned in any form, and what else follows an `@`. */
export function findMentions(text: string, own: string): string[] {
  const tokens = [...text.matchAll(TOKEN)].flatMap(([, name]) => name ?? []);
  const others = tokens.filter((name) => name.toLowerCase() !== own.toLowerCase());
  return mentionsName(text, own) ? [own, ...others] : others;
}

/** Adds the own id to what the network itself knows as mentions: people also write a name as text. */
export function addTextMention(mentions: readonly string[], text: string, id: string, ...names: string[]): string[] {
  const isNamed = !mentions.includes(id) && names.some((name) => name !== "" && mentionsName(text, name));
  return isNamed ? [...mentions, id] : [...mentions];
}
