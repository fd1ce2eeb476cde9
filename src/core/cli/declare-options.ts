import { type Command, InvalidArgumentError, Option } from "commander";
import type { Output } from "./output.ts";
import type { PartFlag } from "./session/message-parts.ts";
import {
  isSwitch,
  longFlag,
  SETTINGS,
  type SettingDefinition,
  type SettingName,
  variableName,
} from "./settings/definitions.ts";

type Example = readonly [command: string, purpose: string];

const EXAMPLES = new WeakMap<Command, readonly Example[]>();

/** Every command has examples; they appear in its help and in the documentation. */
export function addExamples(command: Command, examples: readonly Example[]): void {
  EXAMPLES.set(command, examples);
  const lines = examples.map(([line, purpose]) => `  $ ${line}\n      ${purpose}`);
  command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}

export function examplesOf(command: Command): readonly Example[] {
  return EXAMPLES.get(command) ?? [];
}

export function collect(value: string, earlier: readonly string[] | undefined): readonly string[] {
  return [...(earlier ?? []), value];
}

/** Makes the action of a command from a function that loads it: with all of them loaded, even help would be slow. */
export type RunCommand = ReturnType<typeof createRunner>;

export function createRunner(output: Output) {
  return (load: () => Promise<(output: Output, ...given: never[]) => unknown>) =>
    async (...given: unknown[]): Promise<void> => {
      // The last argument of commander is the command itself.
      await (await load())(output, ...(given.slice(0, -1) as never[]));
    };
}

/** Of commands that call no agent. */
export function outputOption(): Option {
  return new Option("-o, --output <format>", "text or json").choices(["text", "json"]).default("text");
}

/** Defaults are documented, not set in commander: environment and files take precedence over them. */
function createSettingOption(name: SettingName, description?: string): Option {
  const definition: SettingDefinition = SETTINGS[name];
  const standard = definition.fallback === undefined ? "" : ` (default: ${definition.fallback})`;
  const variable = definition.secret === true ? ` [${variableName(name)}]` : "";
  const option = new Option(definition.flags, `${description ?? definition.description}${standard}${variable}`);
  if (definition.list !== undefined) option.argParser(collect);
  return option;
}

export function addSettings(
  command: Command,
  names: readonly SettingName[],
  own: Partial<Record<SettingName, string>> = {},
): void {
  for (const name of names) {
    command.addOption(createSettingOption(name, own[name]));
    // A flag can negate what the environment enables. `--wait` and `--async` negate each other.
    if (isSwitch(SETTINGS[name].flags) && name !== "wait" && name !== "async") {
      command.addOption(new Option(`--no-${longFlag(SETTINGS[name].flags)}`).hideHelp());
    }
  }
}

const AGENT_SETTINGS: readonly SettingName[] = [
  "agentCard",
  "registry",
  "output",
  "transport",
  "a2aVersion",
  "dialect",
  "bearer",
  "apiKey",
  "accessKey",
  "secretKey",
  "authCode",
  "svcParam",
  "credentialOrigin",
  "clientCert",
  "clientKey",
  "caCert",
  "signatures",
  "cardKey",
  "jkuOrigin",
  "insecure",
  "timeout",
  "pollInterval",
  "verbose",
  "debug",
];

export const CONFIG_FLAGS = "--config <path>";
export const STREAM_FLAGS = "--stream";

export const AGENT_OPTIONS_HEADING = "Agent options (also as A2ACLI_… variables or in a .env file):";

/** Options shared by all commands that call an agent. */
export function addAgentOptions(command: Command, streamDescription = "with -o json: one JSON object per line"): void {
  command.option(STREAM_FLAGS, `${streamDescription}; only ever by this flag`);
  command.optionsGroup(AGENT_OPTIONS_HEADING);
  addSettings(command, AGENT_SETTINGS);
  command.option(CONFIG_FLAGS, "settings file to read instead of the nearest .env");
}

/** Headings of the help. */
export const COMMAND_GROUPS = {
  calling: "Talking to agents:",
  finding: "Finding agents:",
  serving: "Serving agents:",
} as const;

/** For commands that read a store. */
export function addStoreOptions(command: Command): Command {
  return command
    .option("--store <spec>", "the store, e.g. sqlite:.dragoman/data.db")
    .option("--config <file>", "take the store from this configuration (default: ./dragoman.yaml)")
    .addOption(outputOption());
}

export const EXAMPLE_AGENT = "http://127.0.0.1:4000/agents/echo/";

/** All part flags append to one list, which preserves their order across kinds. */
export function addPartOptions(command: Command): void {
  const parts: PartFlag[] = [];
  const add =
    (kind: PartFlag["kind"]) =>
    (value: string): readonly PartFlag[] => {
      parts.push({ kind, value });
      command.setOptionValue("parts", parts);
      return parts;
    };
  const setMediaType = (value: string): string => {
    const last = parts.at(-1);
    if (last === undefined)
      throw new InvalidArgumentError("It must follow the --text, --file or --data that it describes.");
    last.mediaType = value;
    return value;
  };
  command
    .addOption(new Option("--text <string>", "add a text part; may be repeated").argParser(add("text")))
    .addOption(
      new Option(
        "--file <path|url>",
        "add a file: a local one is sent along, a URL is passed on; may be repeated",
      ).argParser(add("file")),
    )
    .addOption(
      new Option(
        "--data <path|->",
        "add a JSON part from a file, standard input (-) or inline; may be repeated",
      ).argParser(add("data")),
    )
    .addOption(
      new Option("--media-type <type>", "media type of the part before it (default: from the file name)").argParser(
        setMediaType,
      ),
    );
}
