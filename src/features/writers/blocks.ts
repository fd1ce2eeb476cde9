import { isSalutation } from "./phrases.ts";
import { columns, endsSentence } from "./plain-text.ts";

/** A range of the source: offsets of its content without list marker, heading marks or quote sign. */
export interface Block {
  /** A row is the first cell of a table row. */
  readonly kind: "heading" | "paragraph" | "item" | "row";
  /** 1 to 6 for headings, 0 otherwise. */
  readonly level: number;
  /** Blocks of the same paragraph or list share a number; it increases along the text. */
  readonly group: number;
  readonly start: number;
  readonly end: number;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const MARKER = /^(?:[-*+•●▪]\s+|\d{1,3}[.)]\s+|\d{1,3}[、．]\s*|[（(]\d{1,3}[)）]\s*)/;
const RULE = /^(?:[-*_=]\s*){3,}$/;
const HEADING_COLUMNS = 80;
/** Lines at least this wide were probably wrapped by an editor, not by the author. */
const WRAPPED_COLUMNS = 45;
const MAX_SHORT_LINE = 200;

/** Numbered headings in plain text, highest level first; the index gives the level. */
const NUMBERED_HEADINGS = [
  /^(?:第[一二三四五六七八九十百\d]{1,4}[章篇部编]|(?:chapter|part)\s+(?:\d{1,3}|[ivxlc]{1,6})\b)/i,
  /^(?:[一二三四五六七八九十]{1,3}、|第[一二三四五六七八九十百\d]{1,4}[节条])/,
  /^(?:[（(][一二三四五六七八九十]{1,3}[）)]|\d{1,2}\.\d{1,2}\.?\s)/,
] as const;
const HEADING_NUMBER =
  /^(?:第[一二三四五六七八九十百\d]{1,4}[章篇部编节条][\s:：、.]*|(?:chapter|part)\s+(?:\d{1,3}|[ivxlc]{1,6})\b[\s:：.—-]*|[一二三四五六七八九十]{1,3}、\s*|[（(][一二三四五六七八九十\d]{1,3}[）)]\s*|\d{1,3}(?:\.\d{1,3})*[.、．]?\s+|\d{1,3}[.、．]\s*)/i;

/** "2.1 Results" → "Results"; a title that consists only of its number is unchanged. */
export function stripHeadingNumber(title: string): string {
  const rest = title.replace(HEADING_NUMBER, "");
  return rest === "" || /^[\p{P}\s]/u.test(rest) ? title : rest;
}

/**
 * One pass over the lines. Code is skipped and tables contribute their first column only: neither contains sentences.
 */
export function splitBlocks(text: string): Block[] {
  const blocks: Mutable<Block>[] = [];
  let group = 0;
  let fence: string | undefined;
  let fencesLeft = true;
  let openLine: Mutable<Block> | undefined;

  for (let lineStart = 0; lineStart <= text.length; ) {
    const newline = text.indexOf("\n", lineStart);
    const lineEnd = newline === -1 ? text.length : newline;
    let [start, end] = trimRange(text, lineStart, lineEnd);
    const indented = start > lineStart;
    lineStart = lineEnd + 1;
    // Only short lines can be markup; matching a prefix keeps a line of a megabyte cheap.
    let head = text.slice(start, Math.min(end, start + MAX_SHORT_LINE));

    if (fence !== undefined) {
      if (head.startsWith(fence)) fence = undefined;
      continue;
    }
    const fenceMark = head.startsWith("```") ? "```" : head.startsWith("~~~") ? "~~~" : undefined;
    if (fenceMark !== undefined && fencesLeft) {
      fencesLeft = text.includes(`\n${fenceMark}`, lineEnd);
      if (fencesLeft) {
        fence = fenceMark;
        openLine = undefined;
        group += 1;
        continue;
      }
    }
    while (head.startsWith(">") && start < end) {
      [start, end] = trimRange(text, start + 1, end);
      head = text.slice(start, Math.min(end, start + MAX_SHORT_LINE));
    }
    if (start >= end) {
      openLine = undefined;
      group += 1;
      continue;
    }
    const short = end - start < MAX_SHORT_LINE;
    if (short && RULE.test(head)) {
      // A rule directly below a single line is that line's underline (setext heading).
      if (
        openLine?.kind === "paragraph" &&
        (head.startsWith("=") || head.startsWith("-")) &&
        isOneLine(text, openLine)
      ) {
        openLine.kind = "heading";
        openLine.level = head.startsWith("=") ? 1 : 2;
      }
      openLine = undefined;
      group += 1;
      continue;
    }
    if (head.startsWith("|") && (!short || head.endsWith("|"))) {
      openLine = undefined;
      // A line of dashes makes the row above it the table header.
      if (/^[|:\-\s]+$/.test(head)) {
        if (blocks.at(-1)?.kind === "row") blocks.pop();
        continue;
      }
      const bar = head.indexOf("|", 1);
      const [cellStart, cellEnd] = trimRange(text, start + 1, bar === -1 ? end : start + bar);
      if (cellStart < cellEnd) blocks.push({ kind: "row", level: 0, group, start: cellStart, end: cellEnd });
      continue;
    }
    const hashes = /^(#{1,6})\s+/.exec(head);
    const level = hashes?.[1]?.length ?? (short ? plainHeadingLevel(head) : 0);
    if (level > 0) {
      group += 1;
      const contentStart = start + (hashes?.[0].length ?? 0);
      blocks.push({ kind: "heading", level, group, start: contentStart, end });
      group += 1;
      openLine = undefined;
      continue;
    }
    const marker = MARKER.exec(head);
    if (marker !== null && start + marker[0].length < end) {
      openLine = { kind: "item", level: 0, group, start: start + marker[0].length, end };
      blocks.push(openLine);
      continue;
    }
    if (openLine !== undefined && (openLine.kind === "item" ? indented : isWrapped(text, openLine, head))) {
      openLine.end = end;
      continue;
    }
    if (openLine?.kind === "item") group += 1;
    openLine = { kind: "paragraph", level: 0, group, start, end };
    blocks.push(openLine);
  }
  return promoteTitles(text, blocks);
}

export function trimRange(text: string, start: number, end: number): [number, number] {
  let from = start;
  let to = end;
  while (from < to && /\s/.test(text.charAt(from))) from += 1;
  while (to > from && /\s/.test(text.charAt(to - 1))) to -= 1;
  return [from, to];
}

function plainHeadingLevel(line: string): number {
  if (columns(line, HEADING_COLUMNS) >= HEADING_COLUMNS || endsSentence(line)) return 0;
  const index = NUMBERED_HEADINGS.findIndex((pattern) => pattern.test(line));
  if (index !== -1) return index + 1;
  return /^\*\*[^*]{1,80}\*\*[:：]?$/.test(line) ? 6 : 0;
}

/** Whether `next` continues the sentence of the previous line. */
function isWrapped(text: string, open: Block, next: string): boolean {
  const lineStart = Math.max(open.start, text.lastIndexOf("\n", open.end - 1) + 1, open.end - MAX_SHORT_LINE);
  const line = text.slice(lineStart, open.end);
  return columns(line, WRAPPED_COLUMNS) >= WRAPPED_COLUMNS || /[,;，、；—-]$/.test(line) || /^\p{Ll}/u.test(next);
}

function isOneLine(text: string, block: Block): boolean {
  return block.end - block.start < MAX_SHORT_LINE && !text.slice(block.start, block.end).includes("\n");
}

/** A heading in plain text: a short line without a full stop, on its own above a paragraph. */
function promoteTitles(text: string, blocks: Mutable<Block>[]): Block[] {
  const hasHeadings = blocks.some((block) => block.kind === "heading");
  blocks.forEach((block, index) => {
    const next = blocks[index + 1];
    if (block.kind !== "paragraph" || next === undefined || !isOneLine(text, block)) return;
    const first = index === 0 && blocks.length > 2;
    if (!first && (hasHeadings || block.group === next.group || blocks[index - 1]?.group === block.group)) return;
    const line = text.slice(block.start, block.end);
    if (
      columns(line, HEADING_COLUMNS) >= HEADING_COLUMNS ||
      endsSentence(line) ||
      !/^["“‘《「]?[\p{Lu}\p{Lo}\p{N}]/u.test(line)
    )
      return;
    if (/[,;，、；]$/.test(line) || isSalutation(line)) return;
    const body = text.slice(next.start, Math.min(next.end, next.start + 10_000));
    const bodyIsProse = next.kind === "paragraph" && body.length >= 2 * line.length && /[.!?。！？؟।]/.test(body);
    if (!first && !bodyIsProse) return;
    block.kind = "heading";
    block.level = index === 0 ? 1 : 2;
  });
  return blocks;
}
