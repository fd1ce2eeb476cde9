import { readFile, stat } from "node:fs/promises";
import { extname, sep } from "node:path";
import { createJiti } from "jiti";
import type { Agent } from "../engine/agent.ts";

/** A module that could not be used as an agent; the message says why and is meant for whoever wrote it. */
export class AgentModuleError extends Error {
  override readonly name = "AgentModuleError";
}

const EXTENSIONS: readonly string[] = [".ts", ".mts", ".js", ".mjs"];

const jiti = createJiti(import.meta.url);

export interface LoadModuleOptions {
  /**
   * Read the module and what it imports anew, for reloading after a change. What plain JavaScript modules import is
   * kept by Node itself and stays as it was first read.
   */
  readonly fresh?: boolean;
}

/** The agent that a module exports as its default. `file` is an absolute path. */
export async function loadAgentModule(file: string, options: LoadModuleOptions = {}): Promise<Agent> {
  if (!EXTENSIONS.includes(extname(file))) {
    throw new AgentModuleError(`${file} is no agent module: it must end in ${EXTENSIONS.join(", ")}.`);
  }
  const found = await stat(file).catch(() => undefined);
  if (found?.isFile() !== true) throw new AgentModuleError(`There is no agent module ${file}.`);
  let exported: unknown;
  try {
    exported = await (options.fresh === true ? importAnew(file) : jiti.import(file));
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

/** True for what any copy of this package's `defineAgent` returned, where `instanceof` would fail. */
export function isAgent(value: unknown): value is Agent {
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

async function importAnew(file: string): Promise<unknown> {
  forgetModules();
  // Node never forgets a module it loaded by itself, so the text is given to the loader instead of the file's name.
  return jiti.evalModule(await readFile(file, "utf8"), { filename: file, async: true, forceTranspile: true });
}

/** An agent may import files from anywhere, so all are forgotten but installed packages, which do not change. */
function forgetModules(): void {
  for (const key of Object.keys(jiti.cache)) {
    if (!key.includes(`${sep}node_modules${sep}`)) delete jiti.cache[key];
  }
}
