import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../built/cli.ts";

/**
 * A fenced block. The word after its language says how it is checked: `agent` is compiled and served, `client` is compiled
 * and run against a server, `config` is read, `run` is run line by line, `banner` is compared with what the server
 * says, `setup` is what the reader has done before, `install` is done by the test of the packed package.
 */
export interface Block {
  readonly page: string;
  /** Of the line after the opening fence, counted from 1. */
  readonly line: number;
  readonly language: string;
  readonly kind: string;
  readonly text: string;
}

const FENCE = /^```(\S*)[ \t]*(\S*)[ \t]*\n([\s\S]*?)^```[ \t]*$/gm;

export function blocksOf(page: string): Block[] {
  return parseBlocks(page, readFileSync(join(ROOT, page), "utf8"));
}

export function parseBlocks(page: string, markdown: string): Block[] {
  return [...markdown.matchAll(FENCE)].map((match) => {
    const [, language = "", kind = "", text = ""] = match;
    return { page, line: markdown.slice(0, match.index).split("\n").length + 1, language, kind, text };
  });
}

/** The commands of a shell block; a backslash at the end of a line continues it. */
export function commandsOf(text: string): string[] {
  return text
    .replace(/\\\n\s*/g, "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
}
