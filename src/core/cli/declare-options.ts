import { type Command, Option } from "commander";
import type { Output } from "./output.ts";
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
