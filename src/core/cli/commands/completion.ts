import type { Command, Option } from "commander";
import type { Output } from "../output.ts";
import { BINDING_NAMES } from "../session/choose-interfaces.ts";

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;

export function completion(output: Output, program: Command, shell: keyof typeof SCRIPTS): void {
  output.write(SCRIPTS[shell](program));
}

/** One command of the tree with everything that can follow it. */
interface CommandNode {
  /** Command names that lead to it, separated by spaces; empty for the program itself. */
  readonly path: string;
  readonly children: readonly Command[];
  readonly choices: readonly string[];
  readonly options: readonly Option[];
}

function collectNodes(command: Command, path = ""): readonly CommandNode[] {
  const help = command.createHelp();
  const node: CommandNode = {
    path,
    children: help.visibleCommands(command),
    choices: command.registeredArguments.flatMap((argument) => argument.argChoices ?? []),
    options: help.visibleOptions(command),
  };
  return [node, ...command.commands.flatMap((child) => collectNodes(child, `${path} ${child.name()}`.trim()))];
}

function flagsOf(option: Option): readonly string[] {
  return [option.short, option.long].filter((word) => word !== undefined);
}

const FILE_OPTIONS = new Set([
  "--file",
  "--data",
  "--config",
  "--directory",
  "--agent-card",
  "--card-key",
  "--client-cert",
  "--client-key",
  "--ca-cert",
]);

/** The values an option accepts, or `file` if it takes a file name. */
function valuesOf(option: Option): readonly string[] | "file" | undefined {
  if (option.argChoices !== undefined) return option.argChoices;
  if (option.long === "--output") return ["text", "json"];
  if (option.long === "--transport") return BINDING_NAMES;
  return option.long !== undefined && FILE_OPTIONS.has(option.long) ? "file" : undefined;
}

const singleQuote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The parts that bash and zsh have in common: patterns of all paths, and a case for each option with known values. */
function shellParts(
  program: Command,
  complete: (values: readonly string[] | "file") => string,
): { readonly nodes: readonly CommandNode[]; readonly paths: string; readonly valueCases: string } {
  const nodes = collectNodes(program);
  const cases = new Map<string, string>();
  for (const option of nodes.flatMap(({ options }) => options)) {
    const values = valuesOf(option);
    if (values !== undefined) cases.set(flagsOf(option).join("|"), complete(values));
  }
  return {
    nodes,
    paths: nodes.flatMap(({ path }) => (path === "" ? [] : [singleQuote(path)])).join("|"),
    valueCases: [...cases].map(([words, reply]) => `    ${words}) ${reply}; return ;;`).join("\n"),
  };
}

export function bashCompletion(program: Command): string {
  const { nodes, paths, valueCases } = shellParts(program, (values) => {
    const source = values === "file" ? "-f" : `-W ${singleQuote(values.join(" "))}`;
    return `COMPREPLY=($(compgen ${source} -- "$current"))`;
  });
  const cases = nodes.map(({ children, choices, options, path }) => {
    const words = [...children.map((child) => child.name()), ...choices, ...options.flatMap(flagsOf)];
    return `    ${singleQuote(path)}) words=${singleQuote(words.join(" "))} ;;`;
  });
  return `# bash completion for dragoman
_dragoman() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" path='' words='' word
  COMPREPLY=()
  case "$previous" in
${valueCases}
  esac
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
      ${paths}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _dragoman dragoman
`;
}

export function zshCompletion(program: Command): string {
  const { nodes, paths, valueCases } = shellParts(program, (values) =>
    values === "file" ? "_files" : `compadd -- ${values.map(singleQuote).join(" ")}`,
  );
  const cases = nodes.map(({ children, choices, options, path }) => {
    const described = [
      ...children.map((child) => `${child.name()}:${child.description()}`),
      ...choices,
      ...options.flatMap((option) => flagsOf(option).map((word) => `${word}:${option.description}`)),
    ];
    return `    ${singleQuote(path)}) candidates=(${described.map(singleQuote).join(" ")}) ;;`;
  });
  return `#compdef dragoman
_dragoman() {
  local path_so_far='' word
  local -a candidates
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${path_so_far:+$path_so_far }$word" in
      ${paths}) path_so_far="\${path_so_far:+$path_so_far }$word" ;;
    esac
  done
  case "\${words[CURRENT-1]}" in
${valueCases}
  esac
  case "$path_so_far" in
${cases.join("\n")}
  esac
  _describe 'dragoman' candidates
  _files
}
if [ "$funcstack[1]" = "_dragoman" ]; then
  _dragoman "$@"
else
  compdef _dragoman dragoman
fi
`;
}

export function fishCompletion(program: Command): string {
  const lines = ["# fish completion for dragoman", "complete -c dragoman -f"];
  for (const { children, choices, options, path } of collectNodes(program)) {
    const seen = path.split(" ").map((word) => `__fish_seen_subcommand_from ${word}`);
    const condition = path === "" ? "__fish_use_subcommand" : seen.join("; and ");
    const names = children.map((child) => child.name());
    const notYet = path === "" ? condition : `${condition}; and not __fish_seen_subcommand_from ${names.join(" ")}`;
    const add = (when: string, rest: string) => lines.push(`complete -c dragoman -n ${singleQuote(when)} ${rest}`);
    for (const child of children) add(notYet, `-a ${child.name()} -d ${singleQuote(child.description())}`);
    for (const choice of choices) add(condition, `-a ${choice}`);
    for (const option of options) add(condition, fishOption(option));
  }
  return `${lines.join("\n")}\n`;
}

function fishOption(option: Option): string {
  const values = valuesOf(option);
  return [
    ...(option.short === undefined ? [] : [`-s ${option.short.slice(1)}`]),
    ...(option.long === undefined ? [] : [`-l ${option.long.slice(2)}`]),
    ...(option.required ? ["-r"] : []),
    ...(values === "file" ? ["-F"] : values === undefined ? [] : [`-a ${singleQuote(values.join(" "))}`]),
    `-d ${singleQuote(option.description)}`,
  ].join(" ");
}
