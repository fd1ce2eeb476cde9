import { readFileSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { hasErrorCode } from "../../../core/model/errors.ts";
import { type Position, YamlDocument } from "../../../core/yaml/document.ts";
import { ConfigError, type Path, type Problem } from "../../../core/yaml/problems.ts";
import { compileWorkflow, type PositionOptions, type Reading } from "./compile.ts";
import type { Workflow } from "./plan.ts";

const MAX_FILE_BYTES = 1_048_576;

export interface ParseOptions {
  /** Name of the text in messages. */
  readonly source: string;
  /** Files of sub-workflows are relative to it; default: the working directory. */
  readonly folder?: string;
  /** For an object: its place in the file `source`. */
  readonly path?: Path;
  /** For an object: where its values are in the file. */
  readonly position?: (path: Path, options: PositionOptions) => Position;
}

/** Reads a workflow from a file. Throws a ConfigError with all problems, also those of its sub-workflows. */
export async function loadWorkflow(file: string): Promise<Workflow> {
  const files = createFiles();
  const workflow = files.read(resolve(file), file, [], 0);
  if (typeof workflow !== "string") return finish(workflow, files.problems);
  throw new ConfigError([{ source: file, line: undefined, column: undefined, path: "", message: workflow }]);
}

/** Like `loadWorkflow`, for the text of a file or for its content as an object. */
export function parseWorkflow(given: string | object, options: ParseOptions): Workflow {
  const { source, folder = process.cwd(), path = [], position } = options;
  const files = createFiles();
  const reading = { ...files.readingOf(source, folder, [], 0), path, position };
  return finish(typeof given === "string" ? readText(given, reading) : compileWorkflow(given, reading), files.problems);
}

function finish(workflow: Workflow | undefined, problems: readonly Problem[]): Workflow {
  if (problems.length === 0 && workflow !== undefined) return workflow;
  throw new ConfigError([...problems].sort(byPlace));
}

/** Problems of the same file by their position; files in the order in which they were read. */
function byPlace(one: Problem, other: Problem): number {
  if (one.source !== other.source) return 0;
  return (one.line ?? 0) - (other.line ?? 0) || (one.column ?? 0) - (other.column ?? 0);
}

/** The files of a workflow and its sub-workflows. Each is read once. */
function createFiles() {
  const problems: Problem[] = [];
  const loaded = new Map<string, Workflow | undefined>();

  /** `trail` has the files that led here. */
  const readingOf = (source: string, folder: string, trail: readonly string[], depth: number): Reading => ({
    source,
    path: [],
    position: undefined,
    depth,
    problems,
    openFile(given, below) {
      const file = resolve(folder, given);
      const at = trail.indexOf(file);
      if (at >= 0) {
        const chain = [...trail.slice(at), file].map((one) => basename(one)).join(" → ");
        return `workflows call each other: ${chain}`;
      }
      const name = isAbsolute(given) ? given : join(dirname(source), given);
      const workflow = read(file, name, trail, below);
      return typeof workflow === "string" ? `cannot read ${name}: ${workflow}` : workflow;
    },
  });

  /** A text says why the file cannot be read. `name` is what messages call it. */
  function read(file: string, name: string, trail: readonly string[], depth: number): Workflow | string | undefined {
    if (loaded.has(file)) return loaded.get(file);
    const content = readBounded(file);
    if ("problem" in content) return content.problem;
    const workflow = readText(content.text, readingOf(name, dirname(file), [...trail, file], depth));
    loaded.set(file, workflow);
    return workflow;
  }

  return { problems, read, readingOf };
}

function readBounded(file: string): { readonly text: string } | { readonly problem: string } {
  try {
    const stats = statSync(file);
    if (!stats.isFile()) return { problem: "is not a file" };
    if (stats.size > MAX_FILE_BYTES) return { problem: "is larger than 1 MiB" };
    return { text: readFileSync(file, "utf8") };
  } catch (error) {
    if (hasErrorCode(error, "ENOENT")) return { problem: "file not found" };
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

function readText(text: string, reading: Reading): Workflow | undefined {
  const document = new YamlDocument(text, reading.source, {});
  if (document.values !== undefined) {
    return compileWorkflow(document.values, {
      ...reading,
      position: (path, options) => document.position(path, options),
    });
  }
  reading.problems.push(...document.problems);
  return undefined;
}
