/**
 * Measures the tree: `tsx scripts/measure-tree.ts [revision]`, of the working tree by default. Without tests and what
 * supports them.
 */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { type Parsed, parse, readSources } from "../test/architecture/source.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SUPPORT = /(?:^|\/)(?:testing|fixtures|suite)\/|(?:\.test|contract-suite|crash-child)\.ts$/;

interface Measured extends Parsed {
  readonly lines: number;
  readonly classes: number;
  readonly conditionalSpreads: number;
  readonly exports: readonly string[];
  /** Keys of the section `limits`, if the file has its schema. */
  readonly limits: number;
}

function measure(file: Parsed): Measured {
  const tree = ts.createSourceFile(file.path, file.text, ts.ScriptTarget.Latest, true);
  const counts = { classes: 0, conditionalSpreads: 0, limits: 0 };
  const visit = (node: ts.Node): void => {
    if (ts.isClassLike(node)) counts.classes++;
    if (isConditionalSpread(node) || isCallOf(node, "omitUndefined")) counts.conditionalSpreads++;
    if (isLimitsSchema(node, file.path)) counts.limits += node.properties.length;
    ts.forEachChild(node, visit);
  };
  visit(tree);
  const lines = file.text.split("\n").length - (file.text.endsWith("\n") ? 1 : 0);
  return { ...file, ...counts, lines, exports: tree.statements.flatMap(exportedNames) };
}

function isConditionalSpread(node: ts.Node): boolean {
  if (!ts.isSpreadAssignment(node)) return false;
  const value = ts.isParenthesizedExpression(node.expression) ? node.expression.expression : node.expression;
  if (ts.isBinaryExpression(value)) return value.operatorToken.kind === ts.SyntaxKind.AmpersandAmpersandToken;
  return ts.isConditionalExpression(value) && [value.whenTrue, value.whenFalse].some(isEmptyObject);
}

const isEmptyObject = (node: ts.Node) => ts.isObjectLiteralExpression(node) && node.properties.length === 0;

const isCallOf = (node: ts.Node, name: string) => ts.isCallExpression(node) && node.expression.getText() === name;

/** The members of `const limits = z.strictObject({ … })`. */
function isLimitsSchema(node: ts.Node, path: string): node is ts.ObjectLiteralExpression {
  if (!/server\/config\/(?:schema|schema-limits|limits)\.ts$/.test(path)) return false;
  if (!ts.isObjectLiteralExpression(node) || !ts.isCallExpression(node.parent)) return false;
  const declared = node.parent.parent;
  return ts.isVariableDeclaration(declared) && declared.name.getText() === "limits";
}

function exportedNames(statement: ts.Statement): readonly string[] {
  if (ts.isExportDeclaration(statement)) {
    const clause = statement.exportClause;
    return clause !== undefined && ts.isNamedExports(clause) ? clause.elements.map(({ name }) => name.text) : [];
  }
  const isExported =
    ts.canHaveModifiers(statement) &&
    ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
  if (isExported !== true) return [];
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.flatMap(({ name }) => (ts.isIdentifier(name) ? name.text : []));
  }
  return "name" in statement ? [(statement.name as ts.Identifier).text] : [];
}

/** Of all exports that other files use, those that only one uses, in per cent. */
function usedOnce(files: readonly Measured[], all: readonly Measured[]): number {
  const importers = new Map(files.map(({ path }) => [path, all.filter((one) => imports(one, path))]));
  const uses = files.flatMap(({ exports, path }) =>
    exports.map(
      (name) => importers.get(path)?.filter(({ text }) => new RegExp(`\\b${name}\\b`).test(text)).length ?? 0,
    ),
  );
  const used = uses.filter((count) => count > 0);
  return (100 * used.filter((count) => count === 1).length) / used.length;
}

const imports = (file: Parsed, path: string) => file.imports.some(({ target }) => target === path);

/** Files of which each leads back to itself by imports, those of types included. */
function inCycles(files: readonly Measured[]): ReadonlySet<string> {
  const targets = new Map(files.map((file) => [file.path, file.imports.flatMap(({ target }) => target ?? [])]));
  const reaches = (from: string): boolean => {
    const seen = new Set<string>();
    const open = [...(targets.get(from) ?? [])];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (next === from) return true;
      if (!seen.has(next)) open.push(...(targets.get(next) ?? []));
      seen.add(next);
    }
    return false;
  };
  return new Set([...targets.keys()].filter(reaches));
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

function row(name: string, files: readonly Measured[], all: readonly Measured[], cycles: ReadonlySet<string>): string {
  const lines = files.map((file) => file.lines).sort((one, other) => one - other);
  const at = (share: number) => lines[Math.min(lines.length - 1, Math.floor(lines.length * share))];
  const cells = [
    name,
    files.length,
    sum(lines),
    `${at(0.5)} / ${at(0.9)} / ${lines.at(-1)}`,
    `${usedOnce(files, all).toFixed(0)} %`,
    files.filter(({ path }) => cycles.has(path)).length,
    sum(files.map(({ classes }) => classes)),
    sum(files.map(({ conditionalSpreads }) => conditionalSpreads)),
  ];
  return `| ${cells.join(" | ")} |`;
}

/** `core/engine`, `features/chat`, or the first folder where there are none of these. */
function partOf(path: string): string {
  const [top = "", second = "", ...more] = path.split("/");
  if (second === "") return "(entries)";
  return (top === "core" || top === "features") && more.length > 0 ? `${top}/${second}` : top;
}

function report(folder: string): string {
  const all = readSources(folder)
    .filter(({ path }) => !SUPPORT.test(path))
    .map((source) => measure(parse(source)));
  const cycles = inCycles(all);
  const inCore = all.filter(({ path }) => path.startsWith("core/"));
  const leaving = sum(
    inCore.map((file) => file.imports.filter(({ target }) => target?.startsWith("features/")).length),
  );
  const parts = [...new Set(all.map(({ path }) => partOf(path)))].sort();
  const rows = parts.map((part) =>
    row(
      part,
      all.filter(({ path }) => partOf(path) === part),
      all,
      cycles,
    ),
  );
  return [
    "| part | files | lines | median / p90 / longest | exports used by one file | in type cycles | classes | conditional spreads |",
    "|---|---|---|---|---|---|---|---|",
    ...(inCore.length > 0 ? [row("**core**", inCore, all, cycles)] : []),
    row("**all**", all, all, cycles),
    ...rows,
    "",
    `Imports from core into features: ${inCore.length > 0 ? leaving : "not parted"}. Limits: ${sum(all.map(({ limits }) => limits))}.`,
    "",
  ].join("\n");
}

const [revision] = process.argv.slice(2);
if (revision === undefined) process.stdout.write(report(join(ROOT, "src")));
else {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-tree-"));
  try {
    const archive = execFileSync("git", ["archive", revision, "src"], { cwd: ROOT, maxBuffer: 2 ** 28 });
    execFileSync("tar", ["-x", "-C", folder], { input: archive });
    process.stdout.write(report(join(folder, "src")));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
