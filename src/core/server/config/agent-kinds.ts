/** The kinds of agent that a configuration may have: those of the core, and what extensions add. */

import { basename, resolve } from "node:path";
import { z } from "zod";
import { createEchoAgent } from "../../agents/builtin.ts";
import { loadAgentModule } from "../../agents/load-module.ts";
import type { AgentKind, BuiltinAgent } from "../../extension/contract.ts";
import { loadedEntries, perInstallation } from "../../extension/installed.ts";
import { type Fields, fieldsOf, isObject } from "../../model/json.ts";
import type { Finding } from "../../yaml/problems.ts";
import { optional, text } from "../../yaml/value-types.ts";
import { isSecretName } from "../logging/redact.ts";
import { describeAbsentKey } from "./problems.ts";
import { membersOf } from "./shown-values.ts";

/** Values of `use:`, by name. */
export const builtinAgents: () => ReadonlyMap<string, BuiltinAgent> = perInstallation(
  () => new Map([["echo", { create: createEchoAgent }], ...loadedEntries("config", "builtinAgents")]),
);

type BuiltinSource = Readonly<Record<string, unknown>> & { readonly use: string };

/** Read when the schema is made, by when all extensions are there. */
const use: AgentKind<BuiltinSource> = {
  get keys() {
    const own = [...builtinAgents().values()].map(({ keys = {} }) => keys);
    return { use: optional(z.enum([...builtinAgents().keys()]), "A built-in agent."), ...mergeKeys(own) };
  },
  toSource(parsed) {
    const name = parsed.use as string;
    const keys = Object.keys(builtinAgents().get(name)?.keys ?? {});
    return { use: name, ...Object.fromEntries(keys.map((key) => [key, parsed[key]])) };
  },
  build: ({ use: name, ...options }) => (builtinAgents().get(name) as BuiltinAgent).create(options),
  summary: ({ use: name }) => `use: ${name}`,
  shown: (path, source) => membersOf(path, source as Record<string, string | boolean>),
};

export interface ModuleSource {
  readonly file: string;
  readonly isolate: boolean;
}

const moduleKind: AgentKind<ModuleSource> = {
  keys: {
    module: optional(
      text,
      "File whose default export is what `defineAgent` returns: `.ts`, `.mts`, `.js` or `.mjs`, relative to this file.",
    ),
    isolate: optional(
      z.boolean(),
      "With `module`: run it in threads of its own, one turn at a time in each, so that an endless loop ends only its thread. `false` is the default.",
    ),
  },
  toSource: ({ isolate = false, module }, folder) => ({
    file: resolve(folder, module as string),
    isolate: isolate as boolean,
  }),
  async build({ file, isolate }, { cancelGraceMs, fresh, log, name, overrides, watchdogMs }) {
    if (!isolate) return loadAgentModule(file, { fresh });
    const { createIsolatedAgent } = await import("../../agents/isolate/index.ts");
    return createIsolatedAgent({ file, id: name, cancelGraceMs, stallMs: watchdogMs, log }, overrides.concurrency);
  },
  summary: ({ file }) => `module: ${file}`,
  *shown(path, { file, isolate }) {
    yield [`${path}.module`, file];
    yield [`${path}.isolate`, isolate];
  },
  files: ({ file }) => [file],
};

export interface ProcessSource {
  readonly command: readonly [string, ...string[]];
  readonly format: "text" | "json";
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stderr: "log" | "caller";
}

export const processKind: AgentKind<ProcessSource> = {
  keys: {
    exec: optional(
      z.array(z.string()).min(1, { error: "must name a program" }),
      "Program and arguments, started once per turn without a shell.",
    ),
    format: optional(
      z.enum(["text", "json"]),
      "With `exec`: stdin gets the text of the message (`text`, the default) or one object `{message, history, task}` (`json`).",
    ),
    cwd: optional(text, "With `exec`: working directory, relative to this file; default: the folder of this file."),
    env: optional(z.record(z.string(), z.string()), "With `exec`: variables added to the environment of the server."),
    stderr: optional(
      z.enum(["log", "caller"]),
      "With `exec`: who reads what the program writes to stderr: only the log (`log`, the default), or also the caller of a run that fails (`caller`).",
    ),
  },
  toSource(parsed, folder) {
    const {
      exec,
      format = "text",
      cwd = ".",
      env = {},
      stderr = "log",
    } = parsed as {
      readonly exec: readonly [string, ...string[]];
    } & Partial<ProcessSource>;
    return { command: exec, format, cwd: resolve(folder, cwd), env, stderr };
  },
  async build(source, { cancelGraceMs, limits, log, name, overrides }) {
    const { createProcessAgent } = await import("../../agents/process/index.ts");
    return createProcessAgent({
      name: overrides.name ?? name,
      // Callers must not see the path of the program.
      description: overrides.description ?? `Runs ${basename(source.command[0])}.`,
      cancelGraceMs,
      maxOutput: limits.part,
      id: name,
      log,
      ...source,
    });
  },
  summary: ({ command: [program] }) => `exec: ${basename(program)}`,
  *shown(path, { command, env, ...how }) {
    yield [`${path}.exec`, command];
    yield* membersOf(path, how);
    // Arguments and environments of programs may contain secrets under any name and in any form.
    for (const name of Object.keys(env)) yield [`${path}.env.${name}`, "***"];
  },
  secrets: ({ env }) => Object.entries(env).flatMap(([name, value]) => (isSecretName(name) ? [value] : [])),
};

export const agentKinds: () => ReadonlyMap<string, AgentKind> = perInstallation(
  () =>
    new Map<string, AgentKind>([
      ["use", use],
      ["module", moduleKind],
      ["exec", processKind],
      ...loadedEntries("config", "agentKinds"),
    ]),
);

/** The keys of all kinds. */
export const agentKindKeys = perInstallation(() => mergeKeys([...agentKinds().values()].map(({ keys }) => keys)));

/** One that two have is described by both. */
function mergeKeys(all: readonly Readonly<Record<string, z.ZodType>>[]): Readonly<Record<string, z.ZodType>> {
  const merged: Record<string, z.ZodType> = {};
  for (const [key, type] of all.flatMap((keys) => Object.entries(keys))) {
    const known = merged[key];
    merged[key] = known === undefined ? type : known.describe(`${known.description} ${type.description}`);
  }
  return merged;
}

/** The kind of an agent, of values that may not be valid. More than one is a mistake. */
export function kindsOf(agent: Fields): readonly (readonly [string, AgentKind])[] {
  const given = [...agentKinds()].filter(([key]) => agent[key] !== undefined);
  const accompanying = given.find(([, { accompanies }]) => accompanies?.(agent) === true);
  return accompanying === undefined ? given : [accompanying];
}

/** An agent is of exactly one kind, and has only keys that mean something there. */
function checkAgentKind(name: string, value: unknown): readonly Finding[] {
  if (!isObject(value)) return [];
  const path = ["agents", name];
  const given = kindsOf(value);
  if (given.length > 1) {
    return [{ path, message: `has ${given.map(([key]) => key).join(" and ")}; an agent is only one of them` }];
  }
  const [kind] = given;
  if (kind === undefined) {
    const isExplained = Object.keys(value).some((key) => describeAbsentKey([...path, key]) !== undefined);
    return isExplained ? [] : [{ path, message: `needs one of ${[...agentKinds().keys()].join(", ")}` }];
  }
  const meaningful = new Set(keysBeside(value));
  return Object.keys(agentKindKeys())
    .filter((key) => value[key] !== undefined && !meaningful.has(key))
    .map((key) => ({ path: [...path, key], message: `has a meaning only beside ${ownersOf(key).join(" or ")}` }));
}

function keysBeside(agent: Fields): readonly string[] {
  const keys = [...agentKinds()].flatMap(([key, kind]) =>
    agent[key] === undefined || key === "use" ? [] : Object.keys(kind.keys),
  );
  const builtin = typeof agent.use === "string" ? builtinAgents().get(agent.use) : undefined;
  return ["use", ...keys, ...Object.keys(builtin?.keys ?? {})];
}

function ownersOf(key: string): readonly string[] {
  const kinds = [...agentKinds()].filter(([name, { keys }]) => name !== "use" && Object.hasOwn(keys, key));
  const builtins = [...builtinAgents()].filter(([, { keys = {} }]) => Object.hasOwn(keys, key));
  return [...kinds.map(([name]) => name), ...builtins.map(([name]) => `use: ${name}`)];
}

/** Those between the keys of one agent. */
export function checkAgentRules(name: string, agent: unknown, agents: Fields): readonly Finding[] {
  const fields = fieldsOf(agent);
  return [
    ...checkAgentKind(name, agent),
    ...kindsOf(fields).flatMap(([, { check }]) => check?.(name, fields, agents) ?? []),
  ];
}
