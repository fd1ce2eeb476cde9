import { CommanderError } from "commander";
import { arrangeArguments, formatFromArguments } from "./arguments.ts";
import { errorEnvelope, type Failure, toFailure, usage } from "./errors.ts";
import { Ended, EXIT, type ExitCode } from "./exit-codes.ts";
import { type Output, printJson } from "./output.ts";
import { createProgram } from "./program.ts";
import { describeSource, resolveSetting, SETTING_NAMES, showValue } from "./settings.ts";
import { findSettingFiles } from "./settings-files.ts";

/** Run one command line and say how it ended. */
export async function run(given: readonly string[], output: Output): Promise<ExitCode> {
  const program = createProgram({ output, inEffect });
  const words = arrangeArguments(program, given);
  try {
    await program.parseAsync([...words], { from: "user" });
    return EXIT.done;
  } catch (error) {
    if (error instanceof CommanderError && isAnswered(error)) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    if (error instanceof Ended) return error.exit;
    const failure = toFailure(error instanceof CommanderError ? usageError(error) : error);
    report(output, words, failure);
    // Something nobody foresaw: whoever asked for details gets to see where.
    if (failure.code === "A2ACLI_ERR_INTERNAL" && words.includes("--debug") && error instanceof Error) {
      output.talk(output.dim(error.stack ?? ""));
    }
    return failure.exit;
  }
}

/** Help and version have been printed; there is nothing to add. */
function isAnswered(error: CommanderError): boolean {
  return ["commander.help", "commander.helpDisplayed", "commander.version"].includes(error.code);
}

function usageError(error: CommanderError): Error {
  return usage(error.message.replace(/^error: /, ""), "dragoman <command> --help shows what is possible.");
}

function report(output: Output, words: readonly string[], failure: Failure): void {
  if (wantsJson(words)) {
    const envelope = errorEnvelope({ ...failure, message: output.redact(failure.message) });
    // A phone's screens are a line each, as events of a stream are.
    const inLines = words.includes("--stream") || words[0] === "simulate";
    printJson(output, envelope, inLines ? "line" : "document");
    output.talk(`${output.red("Error:")} ${failure.message}`);
    return;
  }
  output.talk(`${output.red("Error:")} ${failure.message}`);
  output.talk(`Code: ${failure.code}`);
  if (failure.hint !== null) output.talk(`Hint: ${failure.hint}`);
}

function wantsJson(words: readonly string[]): boolean {
  return (formatFromArguments(words) ?? inEffectFormat()) === "json";
}

function inEffectFormat(): unknown {
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
function inEffect(attribute: string): string | undefined {
  const name = SETTING_NAMES.find((candidate) => candidate === attribute);
  if (name === undefined) return undefined;
  try {
    const found = resolveSetting(name, {}, process.env, settingFiles());
    return found === undefined ? undefined : `${showValue(name, found.value)}, ${describeSource(found.source)}`;
  } catch {
    return undefined;
  }
}
