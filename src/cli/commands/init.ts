import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { CommandError } from "../errors.ts";
import { scaffold } from "../init-templates.ts";
import type { Output } from "../output.ts";
import { shellWord } from "../text-form.ts";
import { packageDependency } from "../version.ts";

export interface InitFlags {
  readonly js?: boolean;
  readonly force?: boolean;
}

/** A folder with an agent that runs. Nothing that exists is touched unless that is asked for. */
export async function init(output: Output, directory: string, flags: InitFlags): Promise<void> {
  const root = resolve(directory);
  const dependency = packageDependency(root);
  const files = scaffold({
    name: packageName(basename(root)),
    language: flags.js === true ? "js" : "ts",
    dependency,
  });
  const inTheWay = Object.keys(files).filter((path) => existsSync(join(root, path)));
  if (inTheWay.length > 0 && flags.force !== true) {
    throw new CommandError(
      "DRAGOMAN_ERR_FILE_EXISTS",
      `In ${root} there is already ${inTheWay.join(", ")}. Nothing was written.`,
      "Choose another folder, or replace these files with --force.",
    );
  }
  for (const [path, content] of Object.entries(files)) {
    const file = join(root, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content, { flag: flags.force === true ? "w" : "wx" });
    output.data(`Created: ${relative(".", file) || file}\n`);
  }
  sayNextSteps(output, relative(".", root));
  if (dependency.startsWith("file:"))
    output.talk(
      `\npackage.json takes dragoman from this machine (${dependency}): nothing shows that it was installed from a registry.`,
    );
}

function sayNextSteps(output: Output, folder: string): void {
  const steps = [
    ...(folder === "" ? [] : [`cd ${shellWord(folder)}`]),
    "npm install",
    "npm start",
    "npx dragoman send -a http://127.0.0.1:4000/agents/hello --text Ada   # in another terminal",
  ];
  output.talk(`\nNext:\n${steps.map((step) => `  ${step}`).join("\n")}`);
}

/** A name npm accepts, made of the folder's. */
export function packageName(folder: string): string {
  const plain = folder
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[._-]+|[-]+$/g, "");
  return plain === "" ? "my-agent" : plain;
}
