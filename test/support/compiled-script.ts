import { join } from "node:path";
import { build } from "esbuild";
import { ROOT } from "../built/cli.ts";
import { createFolder } from "./lifecycle.ts";

/**
 * A TypeScript file of the tests with what it imports beside it, as plain JavaScript that imports the built package. For
 * processes that are started again and again: a loader that compiles TypeScript takes longer than all the rest of a start.
 */
export async function compileScript(source: string): Promise<string> {
  // Inside the repository, where packages are found.
  const outfile = join(createFolder(join(ROOT, "node_modules")), "script.mjs");
  await build({
    entryPoints: [source],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "external",
    external: ["dragoman"],
  });
  return outfile;
}
