export type Path = readonly PropertyKey[];

/** Something wrong with a configuration, and where. */
export interface Problem {
  /** Path of the key, e.g. `server.port`; empty for the file as a whole. */
  readonly path: string;
  readonly message: string;
  /** Name of the file as it was given, or what else the value came from. */
  readonly source: string;
  /** From 1; undefined where the value is not written in a file. */
  readonly line: number | undefined;
  readonly column: number | undefined;
}

/** A configuration that cannot be used, with all that is wrong with it. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[], options?: ErrorOptions) {
    super(problems.map(formatProblem).join("\n"), options);
    this.problems = problems;
  }
}

export function formatProblem({ source, line, column, path, message }: Problem): string {
  const where = line === undefined ? source : `${source}:${line}:${column}`;
  return path === "" ? `${where}: ${message}` : `${where}: ${path}: ${message}`;
}

/** `["agents", "a", "exec", 0]` is `agents.a.exec[0]`. */
export function formatPath(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += text === "" ? String(step) : `.${String(step)}`;
  }
  return text;
}
