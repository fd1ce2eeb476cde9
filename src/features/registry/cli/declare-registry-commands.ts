import type { Command } from "commander";
import {
  AGENT_OPTIONS_HEADING,
  addExamples,
  addSettings,
  COMMAND_GROUPS,
  CONFIG_FLAGS,
  collect,
  type RunCommand,
  STREAM_FLAGS,
} from "../../../core/cli/declare-options.ts";
import type { SettingName } from "../../../core/cli/settings/definitions.ts";

const SETTINGS: readonly SettingName[] = [
  "registry",
  "output",
  "bearer",
  "apiKey",
  "svcParam",
  "clientCert",
  "clientKey",
  "caCert",
  "insecure",
  "timeout",
  "debug",
];

export function declareRegistryCommands(program: Command, run: RunCommand): void {
  const registry = program
    .command("registry")
    .description("find agents by what they can do, and register agents for others to find")
    .helpCommand(false)
    .helpGroup(COMMAND_GROUPS.finding);

  const list = addFilters(registry.command("list"))
    .description("list the agents of a registry")
    .option("--all", "all pages")
    .action(run(async () => (await import("./registry.ts")).registryList));
  addRegistryOptions(list, "with -o json: one agent per line");
  addExamples(list, [
    ["dragoman registry list", "the agents of the local server, and those that are registered there"],
    ["dragoman registry list --skill get_forecast --health up -o json", "who has a skill and can be reached"],
  ]);

  const search = addFilters(registry.command("search <text...>"))
    .description("search names, descriptions, skills, tags and examples for words; best match first")
    .option("--local", "do not ask the peers of the registry")
    .action(run(async () => (await import("./registry.ts")).registrySearch));
  addRegistryOptions(search, "with -o json: one agent per line");
  addExamples(search, [
    ["dragoman registry search weather in Rome", "in this registry and its peers"],
    ["dragoman registry search summary --tag writing --registry https://agents.example.com", "at another registry"],
    ["dragoman send -a skill:get_forecast --text Rome", "then send to the agent that was found"],
  ]);

  const add = registry
    .command("add <url|file>")
    .description(
      "register an agent by its URL, the URL of its card, or a file with the card; again with the same card updates it",
    )
    .option(
      "--ttl <duration>",
      "remove it unless it sends heartbeats at least this often, from 1s to 7d (default: it stays)",
    )
    .option("--public", "let everyone find it (default: only you)")
    .option("--probe", "let the registry also send it messages to see whether it answers")
    .action(run(async () => (await import("./registry.ts")).registryAdd));
  addRegistryOptions(add);
  addExamples(add, [
    ["dragoman registry add https://partner.example.com", "the id under which it is registered"],
    ["dragoman registry add ./card.json --public", "a card that is published nowhere"],
    ["dragoman serve --register http://127.0.0.1:4000", "a server that registers its agents itself"],
  ]);

  const remove = registry
    .command("remove <agent>")
    .description("remove an agent that you registered, by its id or name")
    .action(run(async () => (await import("./registry.ts")).registryRemove));
  addRegistryOptions(remove);
  addExamples(remove, [["dragoman registry remove r5cS0mB4zqVx8n1kQhTj2A", "by its id, which list and add show"]]);

  const show = registry
    .command("show <agent>")
    .description("show an agent, by its id or name: its card, what is wrong with it, whether it can be reached")
    .action(run(async () => (await import("./registry.ts")).registryShow));
  addRegistryOptions(show);
  addExamples(show, [
    ["dragoman registry show echo", "by the name that it has at its server"],
    ["dragoman registry show 'Outline writer' -o json", "by the name of its card, with the card"],
  ]);

  const watch = registry
    .command("watch")
    .description("follow what is registered, updated, stale and removed, until Ctrl-C or --timeout")
    .option("--after <number>", "continue after this event")
    .action(run(async () => (await import("./registry.ts")).registryWatch));
  addRegistryOptions(watch, "as always here with -o json: one event per line");
  addExamples(watch, [
    ["dragoman registry watch", "a line for each change"],
    ["dragoman registry watch -o json --after 1794845671002", "continue where an earlier one ended"],
  ]);
}

function addRegistryOptions(command: Command, streamDescription = "with -o json: one JSON object per line"): void {
  command.option(STREAM_FLAGS, streamDescription);
  command.optionsGroup(AGENT_OPTIONS_HEADING);
  addSettings(command, SETTINGS, {
    registry: "the registry, or a server that has one",
    bearer: "bearer token for the registry; visible to other users, prefer the variable",
    apiKey: "API key for the registry, sent as X-API-Key; visible like --bearer, prefer the variable",
  });
  command.option(CONFIG_FLAGS, "settings file to read instead of the nearest .env");
}

function addFilters(command: Command): Command {
  return command
    .option("--skill <id>", "only agents with this skill; may be repeated, then one of them is enough", collect)
    .option("--tag <tag>", "only agents with this tag; may be repeated", collect)
    .option("--dialect <name>", "only agents that are called in this dialect; may be repeated", collect)
    .option("--binding <name>", "only agents with this binding (JSONRPC, HTTP+JSON, GRPC); may be repeated", collect)
    .option("--mode <type>", "only agents that accept or return this media type; may be repeated", collect)
    .option("--health <state>", "only agents in this state (up, unknown, stale, dead); may be repeated", collect)
    .option("--page-size <n>", "agents per page, 1 to 100 (default: the registry's)")
    .option("--page-token <token>", "the page to show, as the page before names it");
}
