import type { Command } from "commander";

export type Example = readonly [command: string, purpose: string];

const EXAMPLES = new WeakMap<Command, readonly Example[]>();

/** Examples belong to every command: they are shown in its help and in the documentation. */
export function addExamples(command: Command, examples: readonly Example[]): void {
  EXAMPLES.set(command, examples);
  const lines = examples.map(([line, purpose]) => `  $ ${line}\n      ${purpose}`);
  command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}

export function examplesOf(command: Command): readonly Example[] {
  return EXAMPLES.get(command) ?? [];
}
