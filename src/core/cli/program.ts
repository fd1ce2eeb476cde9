import { Command, Help, type Option } from "commander";
import { installedExtensions } from "../extension/installed.ts";
import { declareAgentCommands } from "./declare-agent-commands.ts";
import { addExamples, createRunner } from "./declare-options.ts";
import { declareServerCommands } from "./declare-server-commands.ts";
import type { Output } from "./output.ts";
import { packageVersion } from "./version.ts";

interface ProgramOptions {
  readonly output: Output;
  /** The effective value of a setting without flags, shown in the help. Absent: only built-in defaults are shown. */
  readonly inEffect?: (attribute: string) => string | undefined;
}

/** The command tree. Commands are loaded when they run, not when they are declared. */
export function createProgram({ inEffect, output }: ProgramOptions): Command {
  const program = new Command("dragoman");
  program
    .description("Write an agent once; every agent network can call it, and no task is lost.")
    .version(packageVersion(), "-v, --version", "print the version and exit")
    .helpOption("-h, --help", "show usage and exit")
    .addHelpCommand(
      new Command("help")
        .arguments("[command...]")
        .description("show usage of the tool or of a command")
        .helpGroup("Shell:"),
    )
    .showSuggestionAfterError(true)
    .exitOverride()
    .configureOutput({
      writeOut: output.write,
      writeErr: (text) => output.info(text.trimEnd().split("\n")),
      outputError: () => {},
    })
    .configureHelp({
      helpWidth: 110,
      optionDescription(option: Option): string {
        const text = Help.prototype.optionDescription.call(this, option);
        const effective = inEffect?.(option.attributeName());
        return effective === undefined ? text : `${text} (now: ${effective})`;
      },
    });
  const run = createRunner(output);
  declareAgentCommands(program, run);
  declareServerCommands(program, run, output);
  for (const { commands } of installedExtensions()) commands?.(program, run);
  addExamples(program, [
    ["dragoman demo-server", "agents to experiment with, at http://127.0.0.1:4000"],
    ["dragoman send -a http://127.0.0.1:4000 --text hello", "one message and its answer"],
    ["dragoman init my-agent", "an agent of your own"],
    ["dragoman help task get", "usage of one command"],
  ]);
  return program;
}
