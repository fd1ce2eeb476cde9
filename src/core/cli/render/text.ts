/**
 * The `text` format of the a2a-cli specification, section 11.2: one `Label: value` field per line; longer content is a
 * block under its own label, closed by a blank line. The content is indented, so that no text of an agent reads as a
 * field or as the end of its block.
 */
import { safeLine, safeText } from "../../model/safe-text.ts";

export function field(label: string, value: string | number): string {
  return `${label}: ${safeLine(String(value))}\n`;
}

export function block(label: string, content: string): string {
  return `${label}:\n${indent(content)}\n`;
}

export const INDENT = "  ";

/** Whole lines of what an agent wrote, empty ones included. */
export function indent(content: string): string {
  return safeText(content).replace(/\n$/, "").replace(/^/gm, INDENT).concat("\n");
}

/** Quoted only where a POSIX shell requires it, so that printed commands can be pasted. */
export function quoteForShell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Pads each column to its widest cell, except the last one. A row is a line, whatever is in its cells. */
export function table(cells: readonly (readonly string[])[], indent = ""): string {
  const rows = cells.map((row) => row.map(safeLine));
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, displayWidth(cell));
    });
  }
  return rows
    .map((row) => {
      const cells = row.map((cell, column) =>
        column === row.length - 1 ? cell : `${cell}${" ".repeat((widths[column] ?? 0) - displayWidth(cell))}`,
      );
      return `${indent}${cells.join("  ").trimEnd()}\n`;
    })
    .join("");
}

const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const WIDE =
  /^[\p{Emoji_Presentation}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\p{Script=Tangut}\u2e80-\u303e\u3200-\u33ff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]$/u;
/** All before it take one column each: ASCII and the control characters above it. */
const FIRST_UNUSUAL = "\u00a0";
const EMOJI_SELECTOR = "\ufe0f";

/** Columns of one character. Where terminals differ (half-width forms, joined emoji), the larger width. */
function characterWidth(character: string): number {
  if (character < FIRST_UNUSUAL) return 1;
  // It turns the preceding character into an emoji, which takes two columns.
  if (character === EMOJI_SELECTOR) return 1;
  if (ZERO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

const PLAIN = /^[ -~]*$/;

/** Columns that a line takes on a terminal; Chinese, Japanese and Korean characters take two each. */
export function displayWidth(line: string): number {
  if (PLAIN.test(line)) return line.length;
  let width = 0;
  for (const character of line) width += characterWidth(character);
  return width;
}

/** Made when it is needed: it takes longer than the rest of this file. */
let graphemes: Intl.Segmenter | undefined;

/** Truncates a line to fit, with an ellipsis; grapheme clusters are not split. */
export function truncateToWidth(line: string, columns: number): string {
  if (displayWidth(line) <= columns) return line;
  let kept = "";
  let width = 0;
  graphemes ??= new Intl.Segmenter();
  for (const { segment } of graphemes.segment(line)) {
    width += displayWidth(segment);
    if (width >= columns) break;
    kept += segment;
  }
  return columns < 1 ? "" : `${kept.trimEnd()}…`;
}

/** `12s`, `3m05s`, `2h10m`, `4d3h`: the two largest units. */
export function formatElapsed(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3600), Math.floor(seconds / 86_400)];
  if (days > 0) return `${days}d${hours % 24}h`;
  if (hours > 0) return `${hours}h${twoDigits(minutes % 60)}m`;
  return minutes > 0 ? `${minutes}m${twoDigits(seconds % 60)}s` : `${seconds}s`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}
