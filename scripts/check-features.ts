/**
 * Proves that every feature can be deleted: in a temporary copy, removes its folder, those of the features that require
 * it, and their lines, and then checks the types and builds. The core's tests run once, where no feature is left.
 *
 *     npm run check:features -- [--quick] [--tests] [feature…]
 *
 * `--quick` runs no tests, `--tests` runs them for every feature.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { installedExtensions } from "../src/core/extension/installed.ts";
import "../src/features.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Features and what requires them, directly or not. */
function withDependents(names: readonly string[]): readonly string[] {
  const more = installedExtensions()
    .filter(({ name, requires = [] }) => !names.includes(name) && requires.some((one) => names.includes(one)))
    .map(({ name }) => name);
  return more.length === 0 ? names : withDependents([...names, ...more]);
}

/** A copy of what is or could be committed, with the packages that are installed here. */
function copyTree(): string {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-without-"));
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const listed = execFileSync("git", args, { cwd: ROOT, encoding: "utf8", maxBuffer: 2 ** 26 });
  const deleted = execFileSync("git", ["ls-files", "-z", "--deleted"], { cwd: ROOT, encoding: "utf8" }).split("\0");
  for (const file of new Set(listed.split("\0"))) {
    if (file !== "" && !deleted.includes(file)) cpSync(join(ROOT, file), join(folder, file));
  }
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "tsconfig.product.json"), JSON.stringify(PRODUCT));
  // It says which tests of features are left out.
  const config = join(folder, "vitest.config.ts");
  writeFileSync(config, readFileSync(config, "utf8").replace(/^ *globalSetup: .*\n/m, ""));
  return folder;
}

/** Tests of one feature may use another. */
const PRODUCT = {
  extends: "./tsconfig.json",
  include: ["src"],
  exclude: ["src/**/*.test.ts", "src/**/testing", "src/**/fixtures", "src/**/suite", "src/**/*contract-suite.ts"],
};

function removeFeature(folder: string, name: string): void {
  rmSync(join(folder, "src/features", name), { recursive: true });
  const top = readdirSync(join(folder, "src")).filter((file) => file.endsWith(".ts"));
  for (const file of [...top.map((one) => `src/${one}`), "tsdown.config.ts"]) {
    const path = join(folder, file);
    writeFileSync(path, withoutFeature(readFileSync(path, "utf8"), name));
  }
}

/** Without statements that import or export its files, what these imported, and lines that name its folder. */
function withoutFeature(source: string, name: string): string {
  const statement = new RegExp(`^(?:import|export) ([^;]*?) ?from "\\./features/${name}/[^"]*";\n`, "gm");
  const imported = [...source.matchAll(statement)]
    .filter(([text]) => text.startsWith("import"))
    .flatMap(([, names = ""]) => names.match(/\w+/g) ?? [])
    .filter((word) => word !== "type");
  const withoutLines = source
    .replaceAll(statement, "")
    .replaceAll(new RegExp(`^.*src/features/${name}/.*\n`, "gm"), "");
  return imported
    .reduce((text, word) => text.replaceAll(new RegExp(`\\b${word}\\b(?:, | & )?`, "g"), ""), withoutLines)
    .replaceAll(/, \]/g, "]")
    .replaceAll(/ & ;/g, ";")
    .replaceAll(/ = ;/g, " = object;");
}

/** Runs one program of a package; says what it printed if it fails. */
function step(folder: string, what: string, command: readonly string[]): boolean {
  const started = performance.now();
  const { status, stdout, stderr } = spawnSync("npx", ["--no-install", ...command], { cwd: folder, encoding: "utf8" });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(`  ${status === 0 ? "ok    " : "FAILED"} ${what} (${seconds} s)\n`);
  if (status !== 0) process.stdout.write(`${`${stdout}${stderr}`.trimEnd().split("\n").slice(-80).join("\n")}\n`);
  return status === 0;
}

function checkWithout(names: readonly string[], withTests: boolean): boolean {
  process.stdout.write(`without ${names.join(", ")}\n`);
  const folder = copyTree();
  try {
    for (const name of names) removeFeature(folder, name);
    return (
      step(folder, "types", ["tsc", "--project", "tsconfig.product.json"]) &&
      step(folder, "build", ["tsdown", "--logLevel", "error", "--no-dts"]) &&
      (!withTests || step(folder, "tests of the core", ["vitest", "run", "src/core", "--reporter=dot"]))
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const { values, positionals } = parseArgs({
  options: { quick: { type: "boolean" }, tests: { type: "boolean" } },
  allowPositionals: true,
});
const features = readdirSync(join(ROOT, "src/features"));
const unknown = positionals.filter((name) => !features.includes(name));
if (unknown.length > 0) throw new Error(`There is no feature ${unknown.join(", ")}; there are ${features.join(", ")}.`);

const results = (positionals.length > 0 ? positionals : features).map((name) =>
  checkWithout(withDependents([name]), values.tests === true),
);
if (positionals.length === 0) results.push(checkWithout(features, values.quick !== true));
if (results.includes(false)) process.exitCode = 1;
