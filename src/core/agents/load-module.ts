import { readFile, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { extname, sep } from "node:path";
import type { Jiti } from "jiti";
import type { Agent } from "../engine/agent.ts";
import { ownModule } from "./own-files.ts";

/** A module that cannot be used as an agent; the message gives the reason. */
export class AgentModuleError extends Error {
  override readonly name = "AgentModuleError";
}

export const MODULE_EXTENSIONS: readonly string[] = [".ts", ".mts", ".js", ".mjs"];

/** Entry points of this package that a module may import, relative to this file. */
const OWN_ENTRIES = {
  "dragoman/client": "client",
  "dragoman/express": "express",
  dragoman: "index",
};

const loaders = new Map<boolean, Promise<Jiti>>();

/** The loader is imported on first use, since most servers load no modules. */
function loaderFor(file: string): Promise<Jiti> {
  const installed = findsThisPackage(file);
  let loader = loaders.get(installed);
  if (loader === undefined) {
    const options = installed ? {} : { alias: ownEntries() };
    loader = import("jiti").then(({ createJiti }) => createJiti(import.meta.url, options));
    loaders.set(installed, loader);
  }
  return loader;
}

/** If the package is not installed next to the module, the running copy is used. */
function findsThisPackage(file: string): boolean {
  try {
    createRequire(file).resolve("dragoman");
    return true;
  } catch {
    return false;
  }
}

function ownEntries(): Record<string, string> {
  return Object.fromEntries(Object.entries(OWN_ENTRIES).map(([name, path]) => [name, ownModule(path)]));
}

interface LoadModuleOptions {
  /**
   * Reload the module and its imports after a change. Imports of plain JavaScript modules are cached by Node itself and
   * are not reloaded.
   */
  readonly fresh?: boolean;
}

/** Loads the agent that a module exports as its default. `file` is an absolute path. */
export async function loadAgentModule(file: string, options: LoadModuleOptions = {}): Promise<Agent> {
  if (!MODULE_EXTENSIONS.includes(extname(file))) {
    throw new AgentModuleError(`${file} is not an agent module: it must end in ${MODULE_EXTENSIONS.join(", ")}.`);
  }
  const found = await stat(file).catch(() => undefined);
  if (found?.isFile() !== true) throw new AgentModuleError(`There is no agent module ${file}.`);
  let exported: unknown;
  try {
    const jiti = await loaderFor(file);
    exported = await (options.fresh === true ? importFresh(jiti, file) : jiti.import(file));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new AgentModuleError(`${file} could not be loaded: ${reason}`, { cause });
  }
  const agent = defaultExportOf(exported);
  if (agent === undefined) {
    throw new AgentModuleError(`${file} has no default export; write "export default defineAgent({ … })".`);
  }
  if (!isAgent(agent)) {
    throw new AgentModuleError(`The default export of ${file} is not what defineAgent returns.`);
  }
  return agent;
}

/** Also true for the result of `defineAgent` of another copy of this package, where `instanceof` would fail. */
function isAgent(value: unknown): value is Agent {
  if (!isObject(value) || typeof value.run !== "function" || !isObject(value.profile)) return false;
  const { name, description, version, skills } = value.profile;
  return (
    typeof name === "string" &&
    typeof description === "string" &&
    typeof version === "string" &&
    Array.isArray(skills) &&
    (value.onCrash === "fail" || value.onCrash === "resume") &&
    typeof value.concurrency === "number"
  );
}

function defaultExportOf(exported: unknown): unknown {
  return isObject(exported) && "default" in exported ? exported.default : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

async function importFresh(jiti: Jiti, file: string): Promise<unknown> {
  forgetModules(jiti);
  // Node caches the modules that it loads forever, so the loader gets the source instead of the file name.
  return jiti.evalModule(await readFile(file, "utf8"), { filename: file, async: true, forceTranspile: true });
}

/** An agent may import files from anywhere, so all are dropped except installed packages, which do not change. */
function forgetModules(jiti: Jiti): void {
  for (const key of Object.keys(jiti.cache)) {
    if (!key.includes(`${sep}node_modules${sep}`)) delete jiti.cache[key];
  }
}
