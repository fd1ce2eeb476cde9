/**
 * The `text` form of the a2a-cli specification, section 11.2: one `Label: value` field per line; longer content is a
 * block under a label of its own, closed by a blank line.
 */

// Everything a terminal would act on: C0 without tab and newline, DEL, C1, and the characters that reorder a line.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

function visible(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** What agents say may hold escape sequences; they are shown, not obeyed. */
export function safeText(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(CONTROL, visible);
}

export function safeLine(text: string): string {
  return safeText(text).replaceAll("\n", "\\n");
}

export function field(label: string, value: string | number): string {
  return `${label}: ${safeLine(String(value))}\n`;
}

export function block(label: string, content: string): string {
  return `${label}:\n${ensureNewline(safeText(content))}\n`;
}

export function ensureNewline(text: string): string {
  return text.endsWith("\n") ? text : `${text}\n`;
}

/** Quoted only where a POSIX shell needs it, so that what is printed can be pasted. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Columns padded to their widest cell; the last one is left ragged. */
export function table(rows: readonly (readonly string[])[], indent = ""): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    });
  }
  return rows
    .map((row) => {
      const cells = row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)));
      return `${indent}${cells.join("  ").trimEnd()}\n`;
    })
    .join("");
}
