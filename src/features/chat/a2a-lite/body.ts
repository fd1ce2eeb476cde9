/**
 * The text below a marker. Lines that announce a file are not part of the body. A line of the body that looks like one,
 * or like a marker, is written with a backslash before its bracket, as Markdown does it; one that has backslashes there
 * already gets one more.
 */

import { isInvisible, isJoiner, isLineBreak, isSpace } from "./characters.ts";
import { formatValue, markerAt, parseQuoted } from "./marker.ts";

export interface Body {
  readonly body: string;
  readonly attachments: readonly string[];
}

export function readBody(text: string): Body {
  if (!mayHaveSpecialLines(text)) return { body: text, attachments: [] };
  const attachments: string[] = [];
  const lines: string[] = [];
  for (const { line, special } of specialLines(text)) {
    if (special === undefined) lines.push(line);
    else if (special.escapes > 0) lines.push(line.slice(0, special.at) + line.slice(special.at + 1));
    else if (special.attachment === undefined) lines.push(line);
    else attachments.push(special.attachment);
  }
  return { body: lines.join("\n"), attachments };
}

export function formatBody({ attachments, body }: Body): string {
  const lines = body === "" && attachments.length > 0 ? [] : [escapeBody(body)];
  for (const name of attachments) lines.push(`[附件: ${needsQuoting(name) ? formatValue(name) : name}]`);
  return lines.join("\n");
}

function escapeBody(body: string): string {
  if (!mayHaveSpecialLines(body)) return body;
  const lines: string[] = [];
  for (const { line, special } of specialLines(body)) {
    lines.push(special === undefined ? line : `${line.slice(0, special.at)}\\${line.slice(special.at)}`);
  }
  return lines.join("\n");
}

/** The same for plain chat, anywhere in it: what a post begins with is not certain before the network has it. */
export function escapeChat(text: string): string {
  return replaceMarkers(text, (written) => `\\${written}`);
}

export function unescapeChat(text: string): string {
  return replaceMarkers(text, (written) => (written.startsWith("\\") ? written.slice(1) : written));
}

/** `replace` gets the bracket of each marker, with the backslashes before it. */
function replaceMarkers(text: string, replace: (written: string) => string): string {
  let replaced = "";
  let done = 0;
  for (const { index } of text.matchAll(OPEN)) {
    let start = index;
    while (start > done && text[start - 1] === "\\") start--;
    if (markerAt(text, start) === undefined) continue;
    replaced += text.slice(done, start) + replace(text.slice(start, index + 1));
    done = index + 1;
  }
  return replaced + text.slice(done);
}

const OPEN = /[[［【]/g;

function mayHaveSpecialLines(text: string): boolean {
  return text.search(OPEN) !== -1;
}

interface SpecialLine {
  /** Position of the first backslash, or else of the bracket. */
  readonly at: number;
  readonly escapes: number;
  /** The name, if it announces a file. */
  readonly attachment?: string;
}

/** Lines in code blocks are never special. */
function* specialLines(text: string): Iterable<{ readonly line: string; readonly special: SpecialLine | undefined }> {
  const lines = text.split("\n");
  const blocks = codeBlocks(lines);
  let next = 0;
  for (const [index, line] of lines.entries()) {
    if (index > (blocks[next]?.last ?? lines.length)) next++;
    const isCode = index >= (blocks[next]?.first ?? lines.length);
    yield { line, special: isCode ? undefined : specialLine(line) };
  }
}

/** A fenced code block: numbers of the lines with its fences. */
interface CodeBlock {
  readonly first: number;
  readonly last: number;
  /** In lower case; empty if it names none. */
  readonly language: string;
}

/** A block that is not closed is not a code block. */
export function codeBlocks(lines: readonly string[]): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open: { readonly first: number; readonly fence: string } | undefined;
  for (const [index, line] of lines.entries()) {
    const fence = FENCE.exec(line)?.[1];
    if (fence === undefined) continue;
    if (open === undefined) open = { first: index, fence };
    else if (open.fence === fence) {
      const language = LANGUAGE.exec(lines[open.first] ?? "")?.[0] ?? "";
      blocks.push({ first: open.first, last: index, language: language.toLowerCase() });
      open = undefined;
    }
  }
  return blocks;
}

const FENCE = /^ {0,3}(`{3}|~{3})/;
const LANGUAGE = /(?<=^ {0,3}[`~]{3} ?)\w+/;

function specialLine(line: string): SpecialLine | undefined {
  let at = 0;
  for (; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (!isSpace(code) && !isInvisible(code)) break;
  }
  const marker = markerAt(line, at);
  if (marker !== undefined) return marker;
  let bracket = at;
  while (line[bracket] === "\\") bracket++;
  const attachment = attachmentAt(line, bracket);
  return attachment === undefined ? undefined : { at, escapes: bracket - at, attachment };
}

const ANNOUNCEMENT = /^[[［][ \u3000]?(?:附件|attachment)[ \u3000]?[:：]/i;

function attachmentAt(line: string, bracket: number): string | undefined {
  const start = ANNOUNCEMENT.exec(line.slice(bracket, bracket + 20))?.[0].length;
  if (start === undefined) return undefined;
  const rest = line.slice(bracket + start).trim();
  if (!rest.endsWith("]") && !rest.endsWith("］")) return undefined;
  const name = rest.slice(0, -1).trim();
  return name === "" ? undefined : (parseQuoted(name) ?? name);
}

function needsQuoting(name: string): boolean {
  if (name.trim() !== name || name === "" || parseQuoted(name) !== undefined) return true;
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at);
    if (isLineBreak(code) || (isInvisible(code) && !isJoiner(code))) return true;
  }
  return false;
}

const ESCAPED_IN_LINE: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r" };
const UNESCAPED_IN_LINE: Readonly<Record<string, string>> = { "\\\\": "\\", "\\n": "\n", "\\r": "\r" };

/** Escapes a text for networks whose posts are one line. */
export function toLine(text: string): string {
  return text.replaceAll(/[\\\n\r]/g, (character) => ESCAPED_IN_LINE[character] ?? character);
}

export function fromLine(text: string): string {
  return text.replaceAll(/\\[\\nr]/g, (pair) => UNESCAPED_IN_LINE[pair] ?? pair);
}
