import { createOutput, type Output, type Sink } from "../output.ts";

export interface Captured {
  readonly output: Output;
  out: string;
  err: string;
}

/** An output whose two sides can be read. */
export function captureOutput(
  options: { readonly isTTY?: boolean; readonly columns?: number; readonly environment?: Record<string, string> } = {},
): Captured {
  const captured = { out: "", err: "" };
  const sink = (side: "out" | "err"): Sink => ({
    isTTY: options.isTTY === true,
    columns: options.columns ?? 0,
    write(text) {
      captured[side] += text;
      return true;
    },
  });
  return Object.assign(captured, { output: createOutput(sink("out"), sink("err"), options.environment ?? {}) });
}
