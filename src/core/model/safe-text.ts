/**
 * Text from outside that is shown to a person: what would control the terminal, or would make them read something else
 * than is there, is made visible instead. Everything that goes to a terminal or a log passes through here.
 */

/**
 * C0 except tab and newline, DEL and C1; bidirectional controls and marks; separators that some programs take for the
 * end of a line; invisible characters without a use in ordinary text. Joiners remain: scripts and emoji need them.
 */
const MISLEADING =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression matches control characters
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Newlines and tabs remain. */
export function safeText(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(MISLEADING, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
    return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

export function safeLine(text: string): string {
  return safeText(text).replaceAll("\n", "\\n");
}

/** The same value for every reader of JSON. */
export function safeJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(MISLEADING, (character) =>
    // Characters above U+FFFF are two escapes.
    character.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  );
}
