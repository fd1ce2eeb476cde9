import type { Command } from "commander";
import {
  addExamples,
  addStoreOptions,
  COMMAND_GROUPS,
  outputOption,
  type RunCommand,
} from "../../../core/cli/declare-options.ts";

export function declareClusterCommands(program: Command, run: RunCommand): void {
  declareTop(program.command("top").helpGroup(COMMAND_GROUPS.serving), run);
  const store = program.commands.find((command) => command.name() === "store");
  if (store !== undefined) declareCopy(store, run);
}

function declareTop(command: Command, run: RunCommand): void {
  command
    .description("show the nodes of a cluster: leases, running tasks, commits, take-overs")
    .option("--interval <duration>", "how often to look", "2s")
    .option("--once", "print one table and end, as where there is no terminal")
    .action(run(async () => (await import("./top.ts")).top));
  addExamples(addStoreOptions(command), [
    ["dragoman top", "the cluster of ./dragoman.yaml, until Ctrl-C"],
    ["dragoman top --store postgres://dragoman@db.example.com/dragoman --once", "one table"],
    ["dragoman top -o json", "for scripts"],
  ]);
}

function declareCopy(store: Command, run: RunCommand): void {
  const copy = store
    .command("copy")
    .description(
      "copy a store into an empty one, with every number, key and webhook; no server may use either. Tasks that were running are taken up by the first server of the copy, as after a crash",
    )
    .requiredOption("--from <store>", "the store to copy: sqlite:<file> or postgres://…")
    .requiredOption("--to <store>", "an empty store: postgres://…")
    .addOption(outputOption())
    .action(run(async () => (await import("./store-copy.ts")).storeCopy));
  addExamples(copy, [
    [
      "dragoman store copy --from sqlite:.dragoman/data.db --to postgres://dragoman@db.example.com/dragoman",
      "to PostgreSQL",
    ],
  ]);
}
