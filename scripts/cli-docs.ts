import type { Argument, Command, Option } from "commander";
import { AGENT_OPTIONS_HEADING, examplesOf } from "../src/core/cli/declare-options.ts";
import { EXIT } from "../src/core/cli/errors.ts";
import { createOutput } from "../src/core/cli/output.ts";
import { createProgram } from "../src/core/cli/program.ts";
import { longFlag, SETTING_NAMES, SETTINGS, variableName } from "../src/core/cli/settings/definitions.ts";

/** The CLI page, generated from the commands so that it cannot become outdated. */
export function cliPage(): string {
  const nothing = { write: () => true };
  const program = createProgram({ output: createOutput(nothing, nothing, {}) });
  const leaves = collectCommands(program);
  const pages = [INTRODUCTION, contents(leaves), conventions(), agentOptions(leaves), ...leaves.map(section)];
  return `${pages.join("\n\n")}\n`;
}

interface DocumentedCommand {
  readonly command: Command;
  readonly name: string;
}

function collectCommands(command: Command, path: readonly string[] = []): readonly DocumentedCommand[] {
  if (command.commands.length === 0) return [{ command, name: path.join(" ") }];
  return command.commands.flatMap((child) => collectCommands(child, [...path, child.name()]));
}

const INTRODUCTION = `# The command line

This page is generated from the commands; \`dragoman help <command>\` prints the same. The commands that talk to agents
follow the public a2a-cli specification, version 0.2; the [report](a2a-cli-report.md) has every requirement with its tests.`;

function contents(leaves: readonly DocumentedCommand[]): string {
  const rows = leaves.map(
    ({ command, name }) => `| [\`${name}\`](#${anchor(name)}) | ${cell(command.description())} |`,
  );
  return ["| command | what it does |", "|---|---|", ...rows].join("\n");
}

function conventions(): string {
  const variables = SETTING_NAMES.map(
    (name) => `| \`--${longFlag(SETTINGS[name].flags)}\` | \`${variableName(name)}\` |`,
  );
  return `## Conventions

- Data goes to stdout, messages to stderr. stdout has no control sequences; \`NO_COLOR\` turns off colours on stderr too.
  Control characters in what agents, registries and servers send are shown as \`\\x1b\`, in JSON as \`\\u001b\`; so are those
  that change the direction of writing or are invisible.
- \`-o text\` prints one \`Label: value\` per line; longer content follows its label, each line
  indented by two spaces, and ends with a blank line. Only lines that are not indented are fields.
  \`task list\` prints a table on a terminal (id, state, agent, time since the state changed, first line of the message) unless a format,
  \`--verbose\`, \`--history\` or \`--include-artifacts\` is given.
- While a command waits, the last line of stderr on a terminal shows the newest status and the elapsed time; after 5 s one line
  says what it waits for. Failed connections are retried and counted, not listed.
- \`-o json\` prints one document in the protocol's own types; with \`--stream\`, one JSON object per line.
- An error with \`-o json\` is one object \`{"error":{"code","message","hint","a2aCode"}}\` on stdout. \`code\` is the name A2A
  gives the error, an \`A2ACLI_ERR_…\` code of the specification, or a \`DRAGOMAN_ERR_…\` code where neither has one.
- Only logins are remembered between runs: every answer includes its task, context and state, and the command to continue with.
- \`auth login\` stores credentials in \`$XDG_STATE_HOME/dragoman/credentials\` (\`~/.local/state/…\`), readable only by their owner. Every
  command with \`-a\` uses them, renews them in time and sends them only to the origin of the card; \`--bearer\` and \`--api-key\` take
  precedence. A login is for one agent, by the URL of its card: others of the same host do not get it, unless \`auth login --share\`
  was given and their cards name the same authorization server. Logins that an earlier version stored for a whole host are used only
  for the agent at its root and for its registry.
- Ctrl-C stops waiting, not the task; a second Ctrl-C exits immediately.

| exit code | meaning |
|--:|---|
| ${EXIT.done} | success; the outcome of the task itself is its state |
| ${EXIT.failure} | failure |
| ${EXIT.usage} | invalid usage |
| ${EXIT.unreachable} | the agent or its card could not be reached |
| ${EXIT.authentication} | credentials are missing or were refused |
| ${EXIT.timeout} | \`--timeout\` exceeded |
| ${EXIT.stalled} | \`serve\`: an agent blocked the process, and the watchdog ended it |
| ${EXIT.interrupted} | interrupted with Ctrl-C |

Precedence, highest first: flag, environment variable, the nearest \`.env\` file (or the one named by \`--config\`),
\`~/.config/a2a-cli/.env\`, default. \`dragoman config show\` shows which one applies. \`--stream\` can only be a flag.
Options that all of these commands have may also precede the command.

| flag | variable |
|---|---|
${variables.join("\n")}`;
}

/** Identical for all commands that have them, so documented once. */
function agentOptions(leaves: readonly DocumentedCommand[]): string {
  const options = leaves
    .map(({ command }) =>
      command.options.filter((option) => option.helpGroupHeading === AGENT_OPTIONS_HEADING && !option.hidden),
    )
    .find((found) => found.length > 0);
  return `## Agent options\n\n${optionTable("Option", options ?? [])}`;
}

function section({ command, name }: DocumentedCommand): string {
  const help = command.createHelp();
  const parts = [`## ${name}`, sentence(command.description()), `\`\`\`\n${help.commandUsage(command)}\n\`\`\``];
  const described = command.registeredArguments.filter(
    (argument) => argument.description !== "" || argument.argChoices,
  );
  if (described.length > 0) parts.push(described.map(argumentLine).join("\n"));
  const groups = new Map<string, Option[]>();
  for (const option of help.visibleOptions(command)) {
    const heading = (option.helpGroupHeading ?? "Options:").replace(/:$/, "");
    groups.set(heading, [...(groups.get(heading) ?? []), option]);
  }
  for (const [heading, options] of groups) {
    const common = `${heading}:` === AGENT_OPTIONS_HEADING;
    parts.push(common ? "Also the [agent options](#agent-options)." : optionTable(heading, options));
  }
  const examples = examplesOf(command);
  if (examples.length > 0) {
    const lines = examples.flatMap(([line, purpose]) => [`# ${purpose}`, line]);
    parts.push(`\`\`\`sh\n${lines.join("\n")}\n\`\`\``);
  }
  return parts.join("\n\n");
}

function argumentLine(argument: Argument): string {
  const choices = argument.argChoices === undefined ? "" : `: ${argument.argChoices.join(", ")}`;
  return `- \`${argument.name()}\`: ${argument.description}${choices}`;
}

function optionTable(heading: string, options: readonly Option[]): string {
  const rows = options.map(
    (option) => `| \`${option.flags.replaceAll("|", "\\|")}\` | ${cell(option.description)}${choices(option)} |`,
  );
  return [`| ${heading} | |`, "|---|---|", ...rows].join("\n");
}

function choices(option: Option): string {
  return option.argChoices === undefined ? "" : ` (${option.argChoices.join(", ")})`;
}

function anchor(name: string): string {
  return name.replaceAll(" ", "-");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;");
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
