import { type Command, CommanderError } from "commander";
import { CONFIG_FLAGS, STREAM_FLAGS } from "./declare-options.ts";
import { CommandExit, EXIT, type ExitCode, errorEnvelope, type Failure, toFailure, usageError } from "./errors.ts";
import { type Output, printJson } from "./output.ts";
import { createProgram } from "./program.ts";
import {
  describeSource,
  formatValue,
  longFlag,
  resolveSetting,
  SETTING_NAMES,
  SETTINGS,
} from "./settings/definitions.ts";
import { findSettingFiles } from "./settings/files.ts";

const GLOBAL_FLAGS = [...SETTING_NAMES.map((name) => SETTINGS[name].flags as string), CONFIG_FLAGS, STREAM_FLAGS];

/**
 * The command line in the form the tree expects: options that every agent-facing command has may also stand before
 * the command, and `help a b` is `a b --help`.
 */
export function normalizeArguments(program: Command, given: readonly string[]): readonly string[] {
  const leading: string[] = [];
  let rest = [...given];
  for (let option = parseGlobalOption(rest[0]); option !== undefined; option = parseGlobalOption(rest[0])) {
    const length = option.takesValue && !option.hasValue ? 2 : 1;
    leading.push(...rest.slice(0, length));
    rest = rest.slice(length);
  }
  if (rest[0] === "help" && rest.length > 1) return [...rest.slice(1), "--help"];
  const depth = commandDepth(program, rest);
  return [...rest.slice(0, depth), ...leading, ...rest.slice(depth)];
}

function parseGlobalOption(
  word: string | undefined,
): { readonly takesValue: boolean; readonly hasValue: boolean } | undefined {
  if (word === undefined || !word.startsWith("-")) return undefined;
  const [name] = word.split("=", 1);
  const flags = GLOBAL_FLAGS.find(
    (candidate) => `--${longFlag(candidate)}` === name || candidate.startsWith(`${name},`),
  );
  return flags === undefined ? undefined : { takesValue: flags.includes("<"), hasValue: word.includes("=") };
}

function commandDepth(program: Command, words: readonly string[]): number {
  let command: Command | undefined = program;
  for (const [depth, word] of words.entries()) {
    command = command.commands.find((candidate) => candidate.name() === word);
    if (command === undefined) return depth;
  }
  return words.length;
}

/** The format the user wants, as far as it can be told from a command line that may be wrong elsewhere. */
export function formatFromArguments(words: readonly string[]): string | undefined {
  let found: string | undefined;
  for (const [index, word] of words.entries()) {
    if (word === "--") break;
    if (word === "-o" || word === "--output") found = words[index + 1];
    else if (word.startsWith("--output=")) found = word.slice("--output=".length);
    else if (/^-o./.test(word)) found = word.slice(2);
  }
  return found;
}

/** Run one command line and say how it ended. */
export async function run(given: readonly string[], output: Output): Promise<ExitCode> {
  const program = createProgram({ output, inEffect: describeEffectiveSetting });
  const words = normalizeArguments(program, given);
  try {
    await program.parseAsync([...words], { from: "user" });
    return EXIT.done;
  } catch (error) {
    if (error instanceof CommanderError && isHelpOrVersion(error)) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    if (error instanceof CommandExit) return error.exit;
    const failure = toFailure(error instanceof CommanderError ? toUsageError(error) : error);
    reportFailure(output, words, failure);
    // Something nobody foresaw: whoever asked for details gets to see where.
    if (failure.code === "A2ACLI_ERR_INTERNAL" && words.includes("--debug") && error instanceof Error) {
      output.info(output.dim(error.stack ?? ""));
    }
    return failure.exit;
  }
}

/** Help and version have been printed; there is nothing to add. */
function isHelpOrVersion(error: CommanderError): boolean {
  return ["commander.help", "commander.helpDisplayed", "commander.version"].includes(error.code);
}

function toUsageError(error: CommanderError): Error {
  return usageError(error.message.replace(/^error: /, ""), "dragoman <command> --help shows what is possible.");
}

function reportFailure(output: Output, words: readonly string[], failure: Failure): void {
  if (wantsJson(words)) {
    const envelope = errorEnvelope({ ...failure, message: output.redact(failure.message) });
    // A phone's screens are a line each, as events of a stream are.
    const inLines = words.includes("--stream") || words[0] === "simulate";
    printJson(output, envelope, inLines ? "line" : "document");
    output.info(`${output.red("Error:")} ${failure.message}`);
    return;
  }
  output.info(`${output.red("Error:")} ${failure.message}`);
  output.info(`Code: ${failure.code}`);
  if (failure.hint !== null) output.info(`Hint: ${failure.hint}`);
}

function wantsJson(words: readonly string[]): boolean {
  return (formatFromArguments(words) ?? effectiveFormat()) === "json";
}

function effectiveFormat(): unknown {
  try {
    return resolveSetting("output", {}, process.env, settingFiles())?.value;
  } catch {
    return undefined;
  }
}

function settingFiles() {
  return findSettingFiles({ explicit: process.env.A2ACLI_CONFIG, workingDirectory: process.cwd() });
}

/** For the help: a setting that does not have its built-in value, and who says so. */
function describeEffectiveSetting(attribute: string): string | undefined {
  const name = SETTING_NAMES.find((candidate) => candidate === attribute);
  if (name === undefined) return undefined;
  try {
    const found = resolveSetting(name, {}, process.env, settingFiles());
    return found === undefined ? undefined : `${formatValue(name, found.value)}, ${describeSource(found.source)}`;
  } catch {
    return undefined;
  }
}
