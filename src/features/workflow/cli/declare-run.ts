import { type Command, Option } from "commander";
import {
  addExamples,
  addPartOptions,
  COMMAND_GROUPS,
  outputOption,
  type RunCommand,
} from "../../../core/cli/declare-options.ts";

export function declareRun(program: Command, run: RunCommand): void {
  const command = program.command("run <workflow> [message...]").helpGroup(COMMAND_GROUPS.calling);
  command.description("run a workflow with the agents of a configuration, or show what it would do");
  addPartOptions(command);
  command
    .option("--config <file>", "configuration that has the agents (default: ./dragoman.yaml)")
    .option(
      "--registry <url>",
      "registry in which skills that the configuration does not have are looked up (default: that of the server in ./dragoman.yaml, else http://127.0.0.1:4000) [A2ACLI_REGISTRY]",
    )
    .option("--dry-run", "print the steps and what each name stands for, and run nothing")
    .addOption(
      new Option("--graph <format>", "print the steps as a graph, and run nothing").choices(["mermaid", "dot"]),
    )
    .addOption(outputOption())
    .action(run(async () => (await import("./run.ts")).runWorkflow));
  addExamples(command, [
    ['dragoman run workflows/article.yaml --text "City bees"', "with the agents of ./dragoman.yaml"],
    ["dragoman run workflows/article.yaml --dry-run", "check the file, and see which agents it calls"],
    ["dragoman run workflows/article.yaml --graph dot | dot -Tsvg > article.svg", "a picture of it"],
  ]);
}
