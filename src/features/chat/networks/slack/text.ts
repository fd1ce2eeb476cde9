/** Text as Slack writes it: three characters are escaped, and what is between `<` and `>` has a meaning. */

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

export function escapeText(text: string): string {
  return text.replaceAll(/[&<>]/g, (character) => ESCAPES[character] ?? character);
}

const UNESCAPES: Readonly<Record<string, string>> = { "&amp;": "&", "&lt;": "<", "&gt;": ">" };

/** As a person reads it; mentions of users stay as they are. */
export function unescapeText(text: string): string {
  return text
    .replaceAll(/<([^<>]*)>/g, (written, inner: string) => readReference(inner) ?? written)
    .replaceAll(/&(?:amp|lt|gt);/g, (entity) => UNESCAPES[entity] ?? entity);
}

/** Undefined: it is shown as it is written. */
function readReference(inner: string): string | undefined {
  const [target = "", label] = inner.split("|", 2);
  if (target.startsWith("@")) return undefined;
  if (target.startsWith("#")) return `#${label || target.slice(1)}`;
  if (target.startsWith("!")) return label || `@${target.slice(1)}`;
  const address = target.replace(/^mailto:/, "");
  // Slack makes links of addresses that somebody wrote as text: the label is what they wrote.
  if (label === undefined || target.endsWith(label)) return label ?? address;
  return `${label} (${address})`;
}

export function findMentions(text: string): string[] {
  return [...new Set([...text.matchAll(/<@([A-Z0-9]+)(?:\|[^>]*)?>/g)].map(([, id = ""]) => id))];
}
