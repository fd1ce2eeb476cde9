import type { Command, Option } from "commander";
import type { Output } from "../output.ts";
import { BINDING_NAMES } from "../session/choose-interfaces.ts";

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;

export function completion(output: Output, program: Command, shell: keyof typeof SCRIPTS): void {
  output.write(SCRIPTS[shell](program));
}

/** One command of the tree with everything that can follow it. */
interface CommandNode {
  /** Command names that lead to it; empty for the program itself. */
  readonly path: readonly string[];
  readonly children: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly Option[];
}

function collectNodes(command: Command, path: readonly string[] = []): readonly CommandNode[] {
  const visible = command.createHelp().visibleCommands(command);
  const node: CommandNode = {
    path,
    children: visible.map((child) => ({ name: child.name(), description: child.description() })),
    options: command.createHelp().visibleOptions(command),
  };
  return [node, ...command.commands.flatMap((child) => collectNodes(child, [...path, child.name()]))];
}

function flagsOf(option: Option): readonly string[] {
  return [option.short, option.long].filter((word) => word !== undefined);
}

const FILE_OPTIONS = new Set(["--file", "--data", "--config", "--directory", "--agent-card"]);

/** The values an option accepts, or `file` if it takes a file name. */
function valuesOf(option: Option): readonly string[] | "file" | undefined {
  if (option.argChoices !== undefined) return option.argChoices;
  if (option.long === "--output") return ["text", "json"];
  if (option.long === "--transport") return BINDING_NAMES;
  return option.long !== undefined && FILE_OPTIONS.has(option.long) ? "file" : undefined;
}

function argumentChoices(program: Command, path: readonly string[]): readonly string[] {
  let command: Command | undefined = program;
  for (const word of path) command = command?.commands.find((child) => child.name() === word);
  return command?.registeredArguments.flatMap((argument) => argument.argChoices ?? []) ?? [];
}

const singleQuote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export function bashCompletion(program: Command): string {
  const nodes = collectNodes(program);
  const paths = nodes.filter(({ path }) => path.length > 0).map(({ path }) => singleQuote(path.join(" ")));
  const cases = nodes.map(({ children, options, path }) => {
    const words = [...children.map(({ name }) => name), ...argumentChoices(program, path), ...options.flatMap(flagsOf)];
    return `    ${singleQuote(path.join(" "))}) words=${singleQuote(words.join(" "))} ;;`;
  });
  return `# bash completion for dragoman
_dragoman() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" path='' words='' word
  COMPREPLY=()
  case "$previous" in
${bashValueCases(nodes)}
  esac
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
      ${paths.join("|")}) path="\${path:+$path }$word" ;;
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

function bashValueCases(nodes: readonly CommandNode[]): string {
  const cases = new Map<string, string>();
  for (const option of nodes.flatMap(({ options }) => options)) {
    const values = valuesOf(option);
    if (values === undefined) continue;
    const reply =
      values === "file"
        ? '$(compgen -f -- "$current")'
        : `$(compgen -W ${singleQuote(values.join(" "))} -- "$current")`;
    cases.set(flagsOf(option).join("|"), reply);
  }
  return [...cases].map(([words, reply]) => `    ${words}) COMPREPLY=(${reply}); return ;;`).join("\n");
}

export function zshCompletion(program: Command): string {
  const cases = collectNodes(program).map(({ children, options, path }) => {
    const described = [
      ...children.map(({ description, name }) => `${name}:${description}`),
      ...argumentChoices(program, path),
      ...options.flatMap((option) => flagsOf(option).map((word) => `${word}:${option.description}`)),
    ];
    return `    ${singleQuote(path.join(" "))}) candidates=(${described.map(singleQuote).join(" ")}) ;;`;
  });
  const paths = collectNodes(program)
    .filter(({ path }) => path.length > 0)
    .map(({ path }) => singleQuote(path.join(" ")));
  return `#compdef dragoman
_dragoman() {
  local path_so_far='' word
  local -a candidates
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${path_so_far:+$path_so_far }$word" in
      ${paths.join("|")}) path_so_far="\${path_so_far:+$path_so_far }$word" ;;
    esac
  done
  case "\${words[CURRENT-1]}" in
${zshValueCases(collectNodes(program))}
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

function zshValueCases(nodes: readonly CommandNode[]): string {
  const cases = new Map<string, string>();
  for (const option of nodes.flatMap(({ options }) => options)) {
    const values = valuesOf(option);
    if (values === undefined) continue;
    cases.set(
      flagsOf(option).join("|"),
      values === "file" ? "_files" : `compadd -- ${values.map(singleQuote).join(" ")}`,
    );
  }
  return [...cases].map(([words, reply]) => `    ${words}) ${reply}; return ;;`).join("\n");
}

export function fishCompletion(program: Command): string {
  const lines = ["# fish completion for dragoman", "complete -c dragoman -f"];
  for (const { children, options, path } of collectNodes(program)) {
    const seen = path.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and ");
    const condition = path.length === 0 ? "__fish_use_subcommand" : seen;
    const names = children.map(({ name }) => name);
    const notYet =
      path.length === 0 ? condition : `${condition}; and not __fish_seen_subcommand_from ${names.join(" ")}`;
    for (const { description, name } of children) {
      lines.push(`complete -c dragoman -n ${singleQuote(notYet)} -a ${name} -d ${singleQuote(description)}`);
    }
    for (const choice of argumentChoices(program, path))
      lines.push(`complete -c dragoman -n ${singleQuote(condition)} -a ${choice}`);
    for (const option of options) lines.push(fishOption(condition, option));
  }
  return `${lines.join("\n")}\n`;
}

function fishOption(condition: string, option: Option): string {
  const values = valuesOf(option);
  const words = [
    ...(option.short === undefined ? [] : [`-s ${option.short.slice(1)}`]),
    ...(option.long === undefined ? [] : [`-l ${option.long.slice(2)}`]),
    ...(option.required ? ["-r"] : []),
    ...(values === "file" ? ["-F"] : values === undefined ? [] : [`-a ${singleQuote(values.join(" "))}`]),
  ];
  return `complete -c dragoman -n ${singleQuote(condition)} ${words.join(" ")} -d ${singleQuote(option.description)}`;
}
