import { writeSync } from "node:fs";
import type { Log, LogFields } from "../../model/ports.ts";

/**
 * For servers in programs of others, which have no log of their own: warnings and errors as plain lines, so that an
 * agent's bug is seen. The redactor has removed secrets and what controls a terminal, and made errors plain objects.
 */
export const STDERR_LOG: Log = {
  debug() {},
  info() {},
  warn: (fields, message) => write("warning", fields, message),
  error: (fields, message) => write("error", fields, message),
};

function write(level: string, { err, ...fields }: LogFields, message: string): void {
  const about = Object.entries(fields).map(([name, value]) => ` ${name}=${shown(value)}`);
  const lines = [`dragoman: ${level}: ${message}${about.join("")}`, ...describeError(err)];
  try {
    writeSync(2, `${lines.join("\n")}\n`);
  } catch {
    // A full disk or a closed pipe must not stop the server.
  }
}

const shown = (value: unknown) => (typeof value === "string" && !/[\s"]/.test(value) ? value : JSON.stringify(value));

function describeError(error: unknown): readonly string[] {
  if (error === undefined) return [];
  if (typeof error !== "object" || error === null) return [String(error)];
  const { cause, message, stack } = error as { readonly [name: string]: unknown };
  const causes = describeError(cause).map((line, at) => (at === 0 ? `Caused by: ${line}` : line));
  return [String(stack ?? message ?? JSON.stringify(error)), ...causes];
}
