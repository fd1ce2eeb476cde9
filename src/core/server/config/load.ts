import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parseEnv } from "node:util";
import type { AgentInFile } from "../../extension/contract.ts";
import { loadExtensions } from "../../extension/installed.ts";
import { hasErrorCode } from "../../model/errors.ts";
import { type Environment, YamlDocument } from "../../yaml/document.ts";
import {
  ConfigError,
  formatPath,
  isContainer,
  type Path,
  type Problem,
  toFindings,
  valueAt,
} from "../../yaml/problems.ts";
import { agentKinds, kindsOf } from "./agent-kinds.ts";
import { type DragomanConfig, type Origin, toConfig } from "./config.ts";
import { describeAbsentKey } from "./problems.ts";
import { checkRules } from "./rules.ts";
import { configSchema, type ParsedConfig } from "./schema.ts";

/** Command line options that override the file. */
export interface ConfigOverrides {
  readonly host?: string;
  readonly port?: number;
  readonly grpc?: boolean;
  readonly grpcPort?: number;
  readonly publicUrl?: string;
  readonly store?: string;
  readonly logLevel?: string;
  /** In addition to those of the file. */
  readonly registerWith?: readonly string[];
}

export interface ParseOptions {
  /** Name of the text in messages. */
  readonly source: string;
  /** Absolute; relative paths are resolved against it. */
  readonly folder: string;
  readonly environment: Environment;
  readonly overrides?: ConfigOverrides;
}

const OVERRIDE_PATHS = {
  host: ["server", "host"],
  port: ["server", "port"],
  grpc: ["server", "grpc"],
  grpcPort: ["server", "grpcPort"],
  publicUrl: ["server", "publicUrl"],
  store: ["store"],
  logLevel: ["log", "level"],
} as const satisfies Record<Exclude<keyof ConfigOverrides, "registerWith">, readonly string[]>;

const COMMAND_LINE = "command line";

/**
 * Reads a configuration file, with the environment variables of this process and of a `.env` file beside it. Throws a
 * ConfigError with all problems found.
 */
export async function loadConfig(
  file: string,
  environment?: Environment,
  overrides: ConfigOverrides = {},
): Promise<DragomanConfig> {
  await loadExtensions("config", "calling");
  const text = await readText(file);
  return parseConfig(text, {
    source: file,
    folder: dirname(resolve(file)),
    environment: environment ?? (await environmentFor(file)),
    overrides,
  });
}

/** The environment variables of this process, completed by the `.env` file beside the configuration. */
export async function environmentFor(file: string): Promise<Environment> {
  const beside = join(dirname(file), ".env");
  const text = await readText(beside).catch((error: unknown) => {
    if (error instanceof ConfigError && hasErrorCode(error.cause, "ENOENT")) return "";
    throw error;
  });
  return { ...parseEnv(text), ...process.env };
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const problem = { source: file, line: undefined, column: undefined, path: "", message: describeReadError(cause) };
    throw new ConfigError([problem], { cause });
  }
}

/** Like `loadConfig`, for a text in memory. */
export function parseConfig(text: string, options: ParseOptions): DragomanConfig {
  const parseDocument = () => new YamlDocument(text, options.source, { ...options, isVerbatim });
  let parsedDocument: YamlDocument | undefined;
  const findDocument = () => {
    parsedDocument ??= parseDocument();
    return parsedDocument;
  };
  const written = readJson(text) ?? findDocument().values;
  if (written === undefined) throw new ConfigError(findDocument().problems);
  const overridden = new Set<string>();
  const values = withOverrides(written, options.overrides ?? {}, overridden);
  const { parsed, findings } = validate(values, findDocument);
  const problems = [...(parsedDocument?.problems ?? [])];
  for (const { path, message, atKey } of findings) {
    const document = findDocument();
    if (document.isFaulty(path)) continue;
    const name = formatPath(path);
    const place = overridden.has(name)
      ? { source: COMMAND_LINE, line: undefined, column: undefined }
      : { source: options.source, ...document.position(path, { atKey: atKey === true }) };
    problems.push({ ...place, path: name, message });
  }
  problems.push(...agentProblems(parsed, findDocument, options));
  if (problems.length > 0 || parsed === undefined) throw new ConfigError(problems.sort(byPlace));
  // Few ask for origins, so the text is kept and parsed again, not its many times larger tree.
  const findOrigins = () => originsOf(values, parseDocument(), options.source, overridden);
  return toConfig(parsed, options.folder, findOrigins);
}

/** A string in JSON, and the colon if it is a key. */
const JSON_STRING = /"(?:[^"\\]|\\.)*"(\s*:)?/g;

/**
 * The values of a text that is JSON, as programs write it that list thousands of agents: read as YAML, which it is as
 * well, it takes a hundred times as long. That is left for finding the places of problems. Undefined if there may be
 * some that JSON does not show: variables, and keys that are repeated, of which it takes the last.
 */
export function readJson(text: string): unknown {
  if (!/^\s*\{/.test(text) || text.includes("${")) return undefined;
  let values: unknown;
  try {
    values = JSON.parse(text);
  } catch {
    return undefined;
  }
  let keys = 0;
  for (const [, colon] of text.matchAll(JSON_STRING)) if (colon !== undefined) keys++;
  return countKeys(values) === keys ? values : undefined;
}

function countKeys(value: unknown): number {
  if (!isContainer(value)) return 0;
  let keys = Array.isArray(value) ? 0 : Object.keys(value).length;
  for (const member of Object.values(value)) keys += countKeys(member);
  return keys;
}

/** Inside an agent of a kind with a language of its own, `${…}` is not a variable. */
function isVerbatim([section, _name, key, ...inside]: Path): boolean {
  return section === "agents" && inside.length > 0 && agentKinds().get(String(key))?.verbatim === true;
}

/** What only the kinds of agents know. */
function agentProblems(
  parsed: ParsedConfig | undefined,
  findDocument: () => YamlDocument,
  { source, folder }: ParseOptions,
): readonly Problem[] {
  const agents = Object.entries(parsed?.agents ?? {});
  const names = agents.map(([name]) => name);
  const position: AgentInFile["position"] = (path, how) => findDocument().position(path, how);
  return agents.flatMap(([name, agent]) =>
    kindsOf(agent).flatMap(
      ([, { problems }]) => problems?.(agent, { name, agents: names, source, folder, position }) ?? [],
    ),
  );
}

/** The schema is used once or twice: compiling it costs more than it saves. */
const PARSE_PARAMS = { jitless: true };

function validate(values: unknown, findDocument: () => YamlDocument) {
  let result = configSchema().safeParse(values, PARSE_PARAMS);
  let coerced = false;
  for (const issue of result.error?.issues ?? []) {
    // Variables are strings: they are converted where a number or boolean is expected.
    if (issue.code !== "invalid_type" || findDocument().variables(issue.path).length === 0) continue;
    coerced = coerce(values, issue.path, issue.expected) || coerced;
  }
  if (coerced) result = configSchema().safeParse(values, PARSE_PARAMS);
  const issues =
    result.error?.issues.flatMap((issue) => toFindings(issue, configSchema(), values, describeAbsentKey)) ?? [];
  return { parsed: result.data as ParsedConfig | undefined, findings: [...issues, ...checkRules(values)] };
}

function coerce(values: unknown, path: Path, expected: string): boolean {
  const key = path.at(-1);
  const holder = valueAt(values, path.slice(0, -1));
  if (!isContainer(holder) || key === undefined) return false;
  const text: unknown = Reflect.get(holder, key);
  if (typeof text !== "string") return false;
  if (expected === "boolean" && (text === "true" || text === "false")) return Reflect.set(holder, key, text === "true");
  const isNumber = (expected === "number" || expected === "int") && /^-?\d+(?:\.\d+)?$/.test(text);
  return isNumber && Reflect.set(holder, key, Number(text));
}

function withOverrides(values: unknown, overrides: ConfigOverrides, overridden: Set<string>): unknown {
  if (!isContainer(values) || Array.isArray(values)) return values;
  for (const [name, path] of Object.entries(OVERRIDE_PATHS)) {
    const value = overrides[name as keyof typeof OVERRIDE_PATHS];
    if (value === undefined) continue;
    overridden.add(path.join("."));
    const [section, key] = path;
    if (key === undefined) Reflect.set(values, section, value);
    else {
      const held: unknown = Reflect.get(values, section);
      Reflect.set(values, section, { ...(isContainer(held) && held), [key]: value });
    }
  }
  addRegistries(values, overrides.registerWith ?? []);
  return values;
}

/** Those of the command line come after those of the file, each in its place there. */
function addRegistries(values: object, added: readonly string[]): void {
  const registry: unknown = Reflect.get(values, "registry") ?? {};
  if (added.length === 0 || !isContainer(registry)) return;
  const written: unknown = Reflect.get(registry, "registerWith") ?? [];
  if (Array.isArray(written)) Reflect.set(values, "registry", { ...registry, registerWith: [...written, ...added] });
}

function originsOf(
  values: unknown,
  document: YamlDocument,
  source: string,
  overridden: ReadonlySet<string>,
): ReadonlyMap<string, Origin> {
  const origins = new Map<string, Origin>();
  const walk = (value: unknown, path: Path): void => {
    const name = formatPath(path);
    if (overridden.has(name)) origins.set(name, { place: COMMAND_LINE, variables: [] });
    else {
      const found = document.origin(path);
      if (found !== undefined) {
        origins.set(name, { place: `${source}:${found.line}:${found.column}`, variables: found.variables });
      }
    }
    if (Array.isArray(value)) for (const [index, item] of value.entries()) walk(item, [...path, index]);
    else if (isContainer(value)) for (const [key, item] of Object.entries(value)) walk(item, [...path, key]);
  };
  walk(values, []);
  return origins;
}

function byPlace(one: Problem, other: Problem): number {
  return (one.line ?? 0) - (other.line ?? 0) || (one.column ?? 0) - (other.column ?? 0);
}

function describeReadError(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT") return "file not found";
  if (code === "EISDIR") return "is a folder, not a file";
  return error instanceof Error ? error.message : String(error);
}
