import type { Command } from "commander";
import { bashCompletion, fishCompletion, zshCompletion } from "../completion-scripts.ts";
import type { Output } from "../output.ts";

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;

export function completion(output: Output, program: Command, shell: keyof typeof SCRIPTS): void {
  output.data(SCRIPTS[shell](program));
}
