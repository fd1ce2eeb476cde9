/** What docs/channels.md shows is read: configurations, posts and commands. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseConfig } from "../../src/core/server/config/load.ts";
import { parsePost } from "../../src/features/chat/a2a-lite/parse.ts";
import { channelsOf } from "../../src/features/chat/server/config.ts";
import { ROOT } from "../built/cli.ts";
import { blocksOf } from "./blocks.ts";

const PAGE = "docs/channels.md";
const TRANSLATED = "docs/channels.zh.md";
const blocks = blocksOf(PAGE);
const ofKind = (kind: string) =>
  blocks.filter((block) => block.kind === kind).map((block) => [`${PAGE}:${block.line}`, block.text] as const);

describe(PAGE, () => {
  it("has blocks of known kinds", () => {
    expect([...new Set(blocks.map(({ kind }) => kind))].sort()).toEqual(["chat", "config", "grammar", "post"]);
  });

  it.each(ofKind("config"))("%s is a valid configuration", (source, text) => {
    const variables = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = ""]) => [
      name,
      randomBytes(16).toString("hex"),
    ]);
    const config = parseConfig(text, { source, folder: ROOT, environment: Object.fromEntries(variables) });
    expect(channelsOf(config).length).toBeGreaterThan(0);
  });

  it.each(ofKind("post"))("%s is a post with a marker", (_, text) => {
    expect(parsePost(text).kind).toBe("message");
  });

  it.each(ofKind("chat"))("%s is plain language", (_, text) => {
    expect(parsePost(text).kind).toBe("chat");
  });

  it("shows a marker in forms that are all the same", () => {
    const [line = ""] = /^ *`\[A2A:ack task=t1\]` · .*$/m.exec(readFileSync(join(ROOT, PAGE), "utf8")) ?? [];
    const forms = [...line.matchAll(/`([^`]+)`/g)].map(([, form = ""]) => parsePost(form));
    expect(forms.length).toBeGreaterThan(3);
    expect(new Set(forms.map((form) => JSON.stringify(form))).size).toBe(1);
  });

  it("shows every type of message", () => {
    const types = ofKind("post").map(([, text]) => /^\[A2A:(\w+)/.exec(text)?.[1]);
    const inline = [...readFileSync(join(ROOT, PAGE), "utf8").matchAll(/`\[A2A:(\w+) [^`]*\]`/g)].map(
      ([, type]) => type,
    );
    expect(new Set([...types, ...inline])).toEqual(new Set(["discover", "ack", "task", "status", "result", "cancel"]));
  });

  it(`has the blocks of ${TRANSLATED}, under as many headings`, () => {
    const shown = (page: string) => blocksOf(page).map(({ kind, language, text }) => ({ kind, language, text }));
    expect(shown(TRANSLATED)).toEqual(shown(PAGE));
    const headings = (page: string) =>
      readFileSync(join(ROOT, page), "utf8")
        .replace(/^```[\s\S]*?^```/gm, "")
        .match(/^#+(?= )/gm);
    expect(headings(TRANSLATED)).toEqual(headings(PAGE));
  });
});
