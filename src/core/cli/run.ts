import { type Command, CommanderError } from "commander";
import { COMMAND_OWNERS, describeMissing } from "../extension/missing.ts";
import { CONFIG_FLAGS, STREAM_FLAGS } from "./declare-options.ts";
import { CommandExit, EXIT, type ExitCode, errorEnvelope, type Failure, toFailure, usageError } from "./errors.ts";
import { type Output, printJson } from "./output.ts";
import { createProgram } from "./program.ts";
import {
  formatValue,
  longFlag,
  type ResolvedSetting,
  resolveSetting,
  SETTING_NAMES,
  SETTINGS,
  type SettingName,
} from "./settings/definitions.ts";
import { findSettingFiles } from "./settings/files.ts";

const GLOBAL_FLAGS = [...SETTING_NAMES.map((name) => SETTINGS[name].flags as string), CONFIG_FLAGS, STREAM_FLAGS];

/**
 * Rewrites the command line to what the command tree expects: options that all agent-facing commands share may also
 * precede the command, and `help a b` means `a b --help`.
 */
export function normalizeArguments(program: Command, given: readonly string[]): readonly string[] {
  const { leading, rest } = splitGlobalOptions(given);
  if (rest[0] === "help" && rest.length > 1) return [...rest.slice(1), "--help"];
  const depth = commandDepth(program, rest);
  return [...rest.slice(0, depth), ...leading, ...rest.slice(depth)];
}

/** Those that precede the command, and the command. */
function splitGlobalOptions(given: readonly string[]) {
  let at = 0;
  for (let length = globalOptionLength(given[at]); length > 0; length = globalOptionLength(given[at])) at += length;
  return { leading: given.slice(0, at), rest: given.slice(at) };
}

/** How many arguments a global option takes, itself included; 0 if it is something else. */
function globalOptionLength(arg = ""): number {
  const [name] = arg.split("=", 1);
  const flags = GLOBAL_FLAGS.find(
    (candidate) => `--${longFlag(candidate)}` === name || candidate.startsWith(`${name},`),
  );
  if (flags === undefined || !arg.startsWith("-")) return 0;
  return flags.includes("<") && !arg.includes("=") ? 2 : 1;
}

function commandDepth(program: Command, args: readonly string[]): number {
  let command: Command | undefined = program;
  for (const [depth, arg] of args.entries()) {
    command = command.commands.find((candidate) => candidate.name() === arg);
    if (command === undefined) return depth;
  }
  return args.length;
}

/** The requested output format, read leniently from a command line that may be invalid elsewhere. */
export function formatFromArguments(args: readonly string[]): string | undefined {
  let found: string | undefined;
  for (const [index, arg] of args.entries()) {
    if (arg === "--") break;
    if (arg === "-o" || arg === "--output") found = args[index + 1];
    else if (arg.startsWith("--output=")) found = arg.slice("--output=".length);
    else if (/^-o./.test(arg)) found = arg.slice(2);
  }
  return found;
}

/** Runs one command line and returns its exit code. */
export async function run(given: readonly string[], output: Output): Promise<ExitCode> {
  const program = createProgram({ output, inEffect: describeEffectiveSetting });
  const args = normalizeArguments(program, given);
  try {
    await program.parseAsync([...args], { from: "user" });
    return EXIT.done;
  } catch (error) {
    if (error instanceof CommanderError && isHelpOrVersion(error)) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    if (error instanceof CommandExit) return error.exit;
    const failure = toFailure(
      error instanceof CommanderError ? toUsageError(error, describeMissingCommand(program, given)) : error,
    );
    reportFailure(output, args, failure);
    // An unexpected error: `--debug` shows where it came from.
    if (failure.code === "A2ACLI_ERR_INTERNAL" && args.includes("--debug") && error instanceof Error) {
      output.info(error.stack ?? "", "dim");
    }
    return failure.exit;
  }
}

/** Commander has already printed help or version. */
function isHelpOrVersion(error: CommanderError): boolean {
  return ["commander.help", "commander.helpDisplayed", "commander.version"].includes(error.code);
}

function toUsageError(error: CommanderError, missing: string | undefined): Error {
  return usageError(missing ?? error.message.replace(/^error: /, ""), "Run dragoman <command> --help for usage.");
}

/** Of a command that an extension would have. */
function describeMissingCommand(program: Command, given: readonly string[]): string | undefined {
  const { rest } = splitGlobalOptions(given);
  const command = rest.slice(0, commandDepth(program, rest) + 1).join(" ");
  const reason = commandDepth(program, rest) < rest.length ? describeMissing(COMMAND_OWNERS, command) : undefined;
  return reason && `The command ${command} ${reason}.`;
}

function reportFailure(output: Output, args: readonly string[], failure: Failure): void {
  if (wantsJson(args)) {
    const envelope = errorEnvelope({ ...failure, message: output.redact(failure.message) });
    // `simulate` prints one line per screen, like the events of a stream.
    const inLines = args.includes("--stream") || args[0] === "simulate";
    printJson(output, envelope, inLines ? "line" : "document");
    output.error(failure.message);
    return;
  }
  output.error(failure.message);
  output.info(`Code: ${failure.code}`);
  if (failure.hint !== null) output.info(`Hint: ${failure.hint}`);
}

function wantsJson(args: readonly string[]): boolean {
  return (formatFromArguments(args) ?? findSetting("output")?.value) === "json";
}

/** A setting from the environment or a file; undefined if they are invalid, which the command reports. */
function findSetting(name: SettingName): ResolvedSetting | undefined {
  try {
    return resolveSetting(name, {}, process.env, findSettingFiles());
  } catch {
    return undefined;
  }
}

/** For the help: the value of a setting that overrides its default, and where it comes from. */
function describeEffectiveSetting(attribute: string): string | undefined {
  const name = SETTING_NAMES.find((candidate) => candidate === attribute);
  const found = name === undefined ? undefined : findSetting(name);
  return name === undefined || found === undefined ? undefined : `${formatValue(name, found.value)}, ${found.source}`;
}
