import type { Command } from "commander";
import { CONFIG_FLAGS, STREAM_FLAGS } from "./setting-options.ts";
import { longFlag, SETTING_NAMES, SETTINGS } from "./settings.ts";

const GLOBAL_FLAGS = [...SETTING_NAMES.map((name) => SETTINGS[name].flags as string), CONFIG_FLAGS, STREAM_FLAGS];

/**
 * The command line in the form the tree expects: options that every agent-facing command has may also stand before
 * the command, and `help a b` is `a b --help`.
 */
export function arrangeArguments(program: Command, given: readonly string[]): readonly string[] {
  const leading: string[] = [];
  let rest = [...given];
  for (let option = globalOption(rest[0]); option !== undefined; option = globalOption(rest[0])) {
    const length = option.takesValue && !option.hasValue ? 2 : 1;
    leading.push(...rest.slice(0, length));
    rest = rest.slice(length);
  }
  if (rest[0] === "help" && rest.length > 1) return [...rest.slice(1), "--help"];
  const depth = commandDepth(program, rest);
  return [...rest.slice(0, depth), ...leading, ...rest.slice(depth)];
}

function globalOption(
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
