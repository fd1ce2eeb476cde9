/** Objects that name a member twice: readers disagree about which one counts, so that no signature can cover them. */

const QUOTE = '"';

/** Whether any object in a valid JSON text has two members of one name, however they are spelled. */
export function hasRepeatedMembers(text: string): boolean {
  /** The names seen in each open object; undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case "{":
        open.push(new Set());
        break;
      case "[":
        open.push(undefined);
        break;
      case "}":
      case "]":
        open.pop();
        break;
      case QUOTE: {
        const end = endOfText(text, at);
        const names = open.at(-1);
        if (names !== undefined && isFollowedByColon(text, end)) {
          const name: unknown = JSON.parse(text.slice(at, end));
          if (names.has(String(name))) return true;
          names.add(String(name));
        }
        at = end - 1;
        break;
      }
    }
  }
  return false;
}

/** Just after the closing quote. */
function endOfText(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== QUOTE) at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

function isFollowedByColon(text: string, start: number): boolean {
  let at = start;
  while (/\s/.test(text[at] ?? "")) at++;
  return text[at] === ":";
}
