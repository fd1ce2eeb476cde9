import { createOutput, type Output, type OutputStream } from "../output.ts";
import { run } from "../run.ts";
import type { Finished } from "./run-cli.ts";

interface CapturedOutput {
  readonly output: Output;
  out: string;
  err: string;
}

/** An output that captures stdout and stderr. */
export function captureOutput(
  options: { readonly isTTY?: boolean; readonly columns?: number; readonly environment?: Record<string, string> } = {},
): CapturedOutput {
  const captured = { out: "", err: "" };
  const sink = (side: "out" | "err"): OutputStream => ({
    isTTY: options.isTTY === true,
    columns: options.columns ?? 0,
    write(text) {
      captured[side] += text;
      return true;
    },
  });
  return Object.assign(captured, { output: createOutput(sink("out"), sink("err"), options.environment ?? {}) });
}

/** Like `runCli`, but in this process, for commands that need neither signals nor standard input. */
export async function runInProcess(...args: readonly string[]): Promise<Finished> {
  const captured = captureOutput();
  const code = await run(args, captured.output);
  return { code, stdout: captured.out, stderr: captured.err };
}
