import { accessSync, constants } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";

interface ProgramLocation {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Why the program cannot be started, checked without starting it; undefined if it can. */
export function findMissingProgram({ command: [program], cwd, env }: ProgramLocation): string | undefined {
  const isPath = isAbsolute(program) || program.includes("/");
  const folders = (env.PATH ?? process.env.PATH ?? "").split(delimiter);
  const candidates = isPath ? [resolve(cwd, program)] : folders.map((folder) => join(folder, program));
  // Windows also looks for programs with other extensions.
  if (process.platform === "win32" || candidates.some(isExecutable)) return undefined;
  return isPath ? `${program} is not a program that can be started` : `${program} is not in the PATH`;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
