import { readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { usageError } from "../errors.ts";

export interface SettingFile {
  readonly path: string;
  readonly values: Readonly<Record<string, string | undefined>>;
  /** The file contains a credential and other users can read it. */
  readonly exposed: boolean;
}

const CREDENTIAL_VARIABLES = ["A2ACLI_BEARER", "A2ACLI_API_KEY", "A2ACLI_SECRET_KEY", "A2ACLI_SVC_PARAM"];

/** The files that contain settings, nearest first; a file named by `--config` replaces the local one. */
export function findSettingFiles(
  explicit = process.env.A2ACLI_CONFIG,
  workingDirectory = process.cwd(),
  home = homedir(),
): readonly SettingFile[] {
  const local =
    explicit === undefined ? findLocalFile(workingDirectory) : requireFile(resolve(workingDirectory, explicit));
  const global = readSettingFile(join(home, ".config", "a2a-cli", ".env"));
  return [local, global?.path === local?.path ? undefined : global].filter((file) => file !== undefined);
}

function requireFile(path: string): SettingFile {
  const file = readSettingFile(path);
  if (file === undefined) throw usageError(`--config: cannot read ${path}.`);
  return file;
}

/** Like git: the nearest file, searching upwards. Files without our settings belong to other tools and are skipped. */
function findLocalFile(from: string): SettingFile | undefined {
  for (let directory = resolve(from); ; directory = dirname(directory)) {
    const file = readSettingFile(join(directory, ".env"));
    if (file !== undefined && Object.keys(file.values).length > 0) return file;
    if (dirname(directory) === directory) return undefined;
  }
}

function readSettingFile(path: string): SettingFile | undefined {
  let content: string;
  let mode: number;
  try {
    content = readFileSync(path, "utf8");
    mode = statSync(path).mode;
  } catch {
    return undefined;
  }
  const values = Object.fromEntries(Object.entries(parseEnv(content)).filter(([name]) => name.startsWith("A2ACLI_")));
  const othersMayRead = process.platform !== "win32" && (mode & 0o004) !== 0;
  return { path, values, exposed: othersMayRead && CREDENTIAL_VARIABLES.some((name) => values[name]) };
}
