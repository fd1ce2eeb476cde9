/** Every relative link of every page leads somewhere, anchors included. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../built/cli.ts";

const SKIPPED = new Set(["node_modules", "dist", ".git", ".dragoman"]);

function pagesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (SKIPPED.has(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return pagesBelow(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

/** As code hosts make anchors of headings. */
function anchorsOf(markdown: string): Set<string> {
  const headings = [...withoutCode(markdown).matchAll(/^#+ +(.*?) *$/gm)].map(([, heading = ""]) => heading);
  return new Set(headings.map(toAnchor));
}

function toAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Number}\s_-]/gu, "")
    .replace(/\s/g, "-");
}

function withoutCode(markdown: string): string {
  return markdown.replace(/^```[\s\S]*?^```/gm, "");
}

function brokenLinks(page: string, markdown: string): string[] {
  const links = [...withoutCode(markdown).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
  return links.filter((link) => !/^[a-z]+:/.test(link) && !leadsSomewhere(page, link));
}

function leadsSomewhere(page: string, link: string): boolean {
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? page : resolve(dirname(page), path);
  if (!existsSync(target)) return false;
  if (anchor === undefined || !target.endsWith(".md")) return true;
  return anchorsOf(readFileSync(target, "utf8")).has(anchor);
}

describe("links", () => {
  const pages = pagesBelow(ROOT);

  it("are looked for in the pages there are", () => {
    expect(pages.map((page) => relative(ROOT, page))).toEqual(
      expect.arrayContaining(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", join("docs", "agents.md")]),
    );
  });

  it.each(pages.map((page) => [relative(ROOT, page), page]))("of %s lead somewhere", (_, page) => {
    expect(brokenLinks(page, readFileSync(page, "utf8"))).toEqual([]);
  });

  it("that lead nowhere are noticed", () => {
    const text = "[a](missing.md) [b](README.md#no-such-heading) [c](README.md#write-an-agent) [d](https://x.example)";
    expect(brokenLinks(join(ROOT, "page.md"), text)).toEqual(["missing.md", "README.md#no-such-heading"]);
  });
});
