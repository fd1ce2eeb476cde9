/** The product uses the words of its field: the worst of its former private language is kept out. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { isTestSupport } from "./architecture/rules.ts";
import { ROOT } from "./built/cli.ts";

interface Rule {
  readonly word: RegExp;
  readonly instead: string;
}

/** Wrong in prose and in what a user reads. */
const PHRASES: readonly Rule[] = [
  { word: /\bwhoever\b/i, instead: "a caller that …, anyone who …" },
  { word: /\bnobody\b/i, instead: "no one, or the passive" },
  { word: /\banew\b/i, instead: "again" },
  { word: /\bgo(?:es)? on\b/i, instead: "continue" },
  { word: /\blet in\b/i, instead: "authorised, admitted" },
  { word: /\bunless given\b/i, instead: "default: …" },
  { word: /(?<!\bthere )\b(?:is|are) no (?!longer|more|less|one)/i, instead: "is not a …" },
  { word: /\bthere is no such\b/i, instead: "… not found" },
  { word: /\bnothing listens\b/i, instead: "Connection refused: …" },
  { word: /\bspoken\b/i, instead: "supported" },
  { word: /\bheard\b/i, instead: "received, decoded" },
  { word: /\btold\b/i, instead: "notified, sent, reported" },
  { word: /\bno words? for\b|\bin the words of\b/i, instead: "cannot express; in the format of" },
  { word: /\btime given with\b/i, instead: "Timed out after …" },
  { word: /\blist of texts\b|\| needed \|/i, instead: "list of strings; required" },
];

const MORE_PHRASES: readonly Rule[] = [
  { word: /\b(?:any|some|every)body\b/i, instead: "anyone, a caller that …" },
  { word: /\bstrangers?\b/i, instead: "unauthenticated callers" },
  { word: /\b(?:is|are) judged\b|\bjudges\b/i, instead: "checked, verified" },
  { word: /\b(?:is|are) not to\b/i, instead: "must not" },
  { word: /\bin words for people\b|\bon the way (?:can|could)\b/i, instead: "description; on the network path" },
  { word: /\bno way to log in from here\b|\bsay in auth\b/i, instead: "not supported; configure auth" },
];

const ALL_PHRASES = [...PHRASES, ...MORE_PHRASES];

/** Wrong as names in code. */
const NAMES: readonly Rule[] = [
  { word: /\b(?:MOST|LONGEST|LARGEST)_[A-Z]/, instead: "MAX_…" },
  { word: /\b(?:heard|said|told|spoken)(?:[A-Z]\w*)?\b/, instead: "decode…, encode…, notify…, supported…" },
  { word: /\w(?:Heard|Said|Told|Spoken)\b/, instead: "received, sent, notified, supported" },
];

/** Lines that have to be as they are, because others rely on them. */
const PROMISED: ReadonlySet<string> = new Set([
  // A word list of English.
  "needs neither never new next no nobody none nor not nothing now number of off often on once one only onto or other others",
  // Names of conformance checks, and of a file of earlier versions.
  'check("extended-card-for-nobody", "CARD-EXT-001", async (context) => {',
  'check("version-not-spoken", "VER-SERVER-002", async (context) => {',
  '["kinds-told", "V03-KIND-001", ["JSONRPC"]],',
  '["final-told", "V03-FINAL-001", ["JSONRPC"]],',
  '["told", () => Promise.resolve()],',
]);

/** Folders of `src` whose names, comments and READMEs are held to it as well. */
const CLEAN: readonly string[] = [
  ...["agents", "auth", "cli", "client", "dialects", "engine", "model", "server", "store", "wire", "yaml"].map(
    (part) => `core/${part}`,
  ),
  ...["chat/a2a-lite", "chat/runtime", "conformance", "cluster", "gateway", "llm", "workflow", "writers", "xiaoyi"].map(
    (part) => `features/${part}`,
  ),
];

const PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "test/README.md"];

function filesBelow(folder: string, ending: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(ending))
    .map((path) => `${folder}/${path}`);
}

const sourceFiles = filesBelow("src", ".ts").filter((path) => !isTestSupport(path));

function offences(place: string, text: string, rules: readonly Rule[]): string[] {
  return text
    .split("\n")
    .flatMap((line, at) =>
      PROMISED.has(line.trim())
        ? []
        : rules
            .filter(({ word }) => word.test(line))
            .map(({ instead, word }) => `${place}:${at + 1}: ${word.exec(line)?.[0]} → ${instead}`),
    );
}

/** The source with everything blanked but what `keep` chooses, so that lines keep their numbers. */
function only(path: string, keep: (node: ts.Node) => boolean): string {
  const source = readFileSync(join(ROOT, path), "utf8");
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest);
  const kept: [from: number, to: number][] = [];
  const visit = (node: ts.Node): void => {
    if (keep(node)) kept.push([node.getStart(file), node.getEnd()]);
    else ts.forEachChild(node, visit);
  };
  visit(file);
  let text = "";
  let at = 0;
  for (const [from, to] of kept) {
    text += source.slice(at, from).replaceAll(/[^\n]/g, " ") + source.slice(from, to);
    at = to;
  }
  return text;
}

/** Prose, not a key or a value: it has words with a space between them. */
const isMessage = (node: ts.Node): boolean =>
  (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateLiteralToken(node)) &&
  node.text.includes(" ");

describe("the words of the field", () => {
  it("are used in the documentation", () => {
    const pages = [...PAGES, ...filesBelow("docs", ".md")];
    expect(pages.flatMap((path) => offences(path, readFileSync(join(ROOT, path), "utf8"), ALL_PHRASES))).toEqual([]);
  });

  it("are used in messages", () => {
    expect(sourceFiles.flatMap((path) => offences(path, only(path, isMessage), ALL_PHRASES))).toEqual([]);
  });

  it.each(CLEAN)("are used in names, comments and READMEs of src/%s", (folder) => {
    const files = sourceFiles.filter((path) => path.startsWith(`src/${folder}/`));
    const readmes = filesBelow(`src/${folder}`, "README.md");
    expect([
      ...files.flatMap((path) => offences(path, only(path, ts.isIdentifier), NAMES)),
      ...[...files, ...readmes].flatMap((path) => offences(path, readFileSync(join(ROOT, path), "utf8"), ALL_PHRASES)),
    ]).toEqual([]);
  });
});
