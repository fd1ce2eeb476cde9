import type { Command } from "commander";
import {
  addExamples,
  COMMAND_GROUPS,
  collect,
  outputOption,
  type RunCommand,
} from "../../../core/cli/declare-options.ts";

export function declareChannels(program: Command, run: RunCommand): void {
  const channels = program
    .command("channels")
    .description("chat networks that agents take part in: how to set one up, and whether it works")
    .helpCommand(false)
    .helpGroup(COMMAND_GROUPS.serving);
  const list = addConfigOption(channels.command("list"))
    .description("list the networks: what each can do, whether its package is installed, and what is configured")
    .action(run(async () => (await import("./channels.ts")).channelsList));
  addExamples(list, [
    ["dragoman channels list", "all networks, and the entries of ./dragoman.yaml"],
    ["dragoman channels list -o json", "for scripts"],
  ]);

  const show = channels
    .command("show <network>")
    .description("show how to set up a network, step by step, and what to write into dragoman.yaml")
    .addOption(outputOption())
    .action(run(async () => (await import("./channels.ts")).channelsShow));
  addExamples(show, [
    ["dragoman channels show telegram", "where the token comes from, and what to switch on"],
    ["dragoman channels show irc", "no account needed"],
  ]);

  const test = addConfigOption(channels.command("test <name>"))
    .description(
      "connect as configured, post to the rooms and read it back, each step in plain words; posts are visible to everyone there. Exit 1 if a step fails, 3 if the network cannot be reached, 4 if it refuses the credentials, 5 if it does not answer in time",
    )
    .option("--room <room>", "post here instead of in the configured rooms; may be repeated", collect)
    .option("--peer <id>", "also ask this participant what it can do, and print its card")
    .option("--listen <duration>", "then show what others post for this long, with their ids for allowPeers")
    .option("--timeout <duration>", "how long one step may take", "30s")
    .action(run(async () => (await import("./channels-test.ts")).channelsTest));
  addExamples(test, [
    ["dragoman channels test irc", "the entry of that network; stop a server that uses the same account first"],
    ["dragoman channels test 1 --listen 1m", "the second entry, then who posts what"],
    ["dragoman channels test irc --room '#agents' --peer helper", "whether another agent answers"],
  ]);
}

function addConfigOption(command: Command): Command {
  return command.option("--config <file>", "the configuration (default: ./dragoman.yaml)").addOption(outputOption());
}
