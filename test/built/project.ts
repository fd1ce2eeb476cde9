/** A throw-away project that has the package installed, as far as Node and the compiler can tell. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import ts from "typescript";
import { ROOT } from "./cli.ts";

export interface Project {
  readonly folder: string;
  /** Writes a file and returns its absolute path. */
  write(path: string, text: string): string;
  remove(): void;
}

/** `installed` is the package's folder; the repository itself unless given. */
export function createProject(installed: string = ROOT): Project {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-project-"));
  const write = (path: string, text: string): string => {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  };
  write("package.json", JSON.stringify({ name: "project", private: true, type: "module" }));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(installed, join(folder, "node_modules", "dragoman"), "dir");
  return { folder, write, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

export interface CheckOptions {
  readonly resolution?: "NodeNext" | "Bundler";
  /** Also look into the declarations of packages. */
  readonly checkLibraries?: boolean;
}

/** What the compiler has to say about some files of a project; nothing, if all is well. */
export function typeErrors(files: readonly string[], options: CheckOptions = {}): string[] {
  const bundler = options.resolution === "Bundler";
  const program = ts.createProgram(files, {
    target: ts.ScriptTarget.ES2023,
    lib: ["lib.es2023.d.ts"],
    module: bundler ? ts.ModuleKind.ESNext : ts.ModuleKind.NodeNext,
    moduleResolution: bundler ? ts.ModuleResolutionKind.Bundler : ts.ModuleResolutionKind.NodeNext,
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: options.checkLibraries !== true,
    noEmit: true,
    types: ["node"],
    typeRoots: [join(ROOT, "node_modules", "@types")],
  });
  return ts.getPreEmitDiagnostics(program).map((diagnostic) => {
    const text = ts.flattenDiagnosticMessageText(diagnostic.messageText, " ");
    const line = diagnostic.file?.getLineAndCharacterOfPosition(diagnostic.start ?? 0).line ?? 0;
    return `${diagnostic.file?.fileName ?? "?"}:${line + 1}: ${text}`;
  });
}
