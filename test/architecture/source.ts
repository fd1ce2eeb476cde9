import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import ts from "typescript";

/** A file below `src`; the path has forward slashes and does not begin with `src`. */
export interface Source {
  readonly path: string;
  readonly text: string;
}

export interface Import {
  readonly specifier: string;
  /** Path of the file meant, for imports from within `src`; undefined for packages and Node's own modules. */
  readonly target: string | undefined;
  /** Erased before anything runs. */
  readonly typeOnly: boolean;
}

export interface Parsed extends Source {
  readonly imports: readonly Import[];
  /** Every text of the program that is not a comment: literals and the pieces of templates. */
  readonly literals: readonly string[];
  /** Names of the world that the file reaches for: `Date.now`, `new Date()`, `Math.random`, `randomUUID`, `console`. */
  readonly ambient: ReadonlySet<string>;
}

export function readSources(root: string): Source[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => {
      const file = join(entry.parentPath, entry.name);
      return { path: relative(root, file).split(sep).join("/"), text: readFileSync(file, "utf8") };
    })
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}

/** Read through the compiler's own parser, so that strings and comments that look like imports are not taken for them. */
export function parse(source: Source): Parsed {
  const tree = ts.createSourceFile(source.path, source.text, ts.ScriptTarget.Latest, true);
  const imports: Import[] = [];
  const literals: string[] = [];
  const ambient = new Set<string>();
  const add = (specifier: ts.Node | undefined, typeOnly: boolean): void => {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return;
    imports.push({ specifier: specifier.text, target: resolveTarget(source.path, specifier.text), typeOnly });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) add(node.moduleSpecifier, isTypeImport(node.importClause));
    else if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, isTypeExport(node));
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, true);
    else if (ts.isCallExpression(node) && isModuleCall(node.expression)) add(node.arguments[0], false);
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      literals.push(node.text);
    }
    const reached = ambientName(node);
    if (reached !== undefined) ambient.add(reached);
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return { ...source, imports, literals, ambient };
}

function isTypeImport(clause: ts.ImportClause | undefined): boolean {
  if (clause === undefined) return false;
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  const bindings = clause.namedBindings;
  if (clause.name !== undefined || bindings === undefined || !ts.isNamedImports(bindings)) return false;
  return bindings.elements.length > 0 && bindings.elements.every((element) => element.isTypeOnly);
}

function isTypeExport({ isTypeOnly, exportClause }: ts.ExportDeclaration): boolean {
  if (isTypeOnly) return true;
  if (exportClause === undefined || !ts.isNamedExports(exportClause)) return false;
  return exportClause.elements.length > 0 && exportClause.elements.every((element) => element.isTypeOnly);
}

/** `import("x")` and `require("x")`. */
function isModuleCall(called: ts.Expression): boolean {
  return called.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(called) && called.text === "require");
}

function ambientName(node: ts.Node): string | undefined {
  if (ts.isNewExpression(node) && isNamed(node.expression, "Date") && (node.arguments ?? []).length === 0) {
    return "new Date()";
  }
  if (ts.isIdentifier(node) && node.text === "randomUUID") return "randomUUID";
  if (!ts.isPropertyAccessExpression(node)) return undefined;
  if (isNamed(node.expression, "Date") && node.name.text === "now") return "Date.now";
  if (isNamed(node.expression, "Math") && node.name.text === "random") return "Math.random";
  return isNamed(node.expression, "console") ? "console" : undefined;
}

function isNamed(node: ts.Node, name: string): boolean {
  return ts.isIdentifier(node) && node.text === name;
}

function resolveTarget(from: string, specifier: string): string | undefined {
  if (!specifier.startsWith(".")) return undefined;
  const steps = from.split("/").slice(0, -1);
  for (const step of specifier.split("/")) {
    if (step === "..") steps.pop();
    else if (step !== ".") steps.push(step);
  }
  return steps.join("/");
}
