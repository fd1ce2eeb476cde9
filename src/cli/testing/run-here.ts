import { run } from "../run.ts";
import { captureOutput } from "./capture.ts";
import type { Finished } from "./run-cli.ts";

/** A command line in this process: as `runCli`, for what needs neither signals nor standard input. */
export async function runHere(...words: readonly string[]): Promise<Finished> {
  const captured = captureOutput();
  const code = await run(words, captured.output);
  return { code, stdout: captured.out, stderr: captured.err };
}
