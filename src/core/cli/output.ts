import picocolors from "picocolors";
import { safeJson, safeText } from "../model/safe-text.ts";
import { INDENT, truncateToWidth } from "./render/text.ts";

/** The subset of a Node stream in use, so that tests can pass a stub. */
export interface OutputStream {
  write(text: string): boolean;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

/**
 * All output of the CLI: data to stdout, messages to stderr. Much of it was written by others, so control sequences are
 * made visible here, whatever the callers do; those of a terminal are added after that. stdout never carries any, so a
 * pipe receives the same bytes as a terminal; only messages are coloured, and only on a terminal.
 */
export interface Output {
  /** Write to stdout. */
  write(text: string): void;
  /**
   * To stderr: one message, whose further lines are indented so that none reads as a message of its own; or a list of
   * lines.
   */
  info(message: string | readonly string[], style?: "dim"): void;
  warn(message: string): void;
  error(message: string, label?: string): void;
  /**
   * Sets the status at the bottom of the terminal, one line or several; undefined removes it. No effect unless
   * `canShowStatus`.
   */
  status(text: string | undefined): void;
  /** From now on, redact this credential in all messages. */
  addSecret(secret: string): void;
  redact(text: string): string;
  readonly stdoutIsTerminal: boolean;
  readonly stderrIsTerminal: boolean;
  /** stderr is a terminal that can replace a line. */
  readonly canShowStatus: boolean;
  /** How many lines a status may have. */
  readonly maxStatusLines: number;
  /** Columns of the terminal on stdout. */
  readonly columns: number;
}

export function createOutput(
  stdout: OutputStream,
  stderr: OutputStream,
  environment: Readonly<Record<string, string | undefined>>,
): Output {
  const stderrIsTerminal = stderr.isTTY === true;
  const statusIsShown = stderrIsTerminal && environment.TERM !== "dumb";
  const colours = picocolors.createColors(statusIsShown && !environment.NO_COLOR);
  const secrets = new Set<string>();
  const redact = (text: string): string => {
    let rest = text;
    for (const secret of secrets) rest = rest.replaceAll(secret, "[redacted]");
    return rest;
  };
  let statusText: string | undefined;
  let drawnLines = 0;
  /** The data written last did not end its line on this terminal: a status line would be appended to it. */
  let lineIsOpen = false;
  const erase = (): void => {
    if (drawnLines > 0) stderr.write(ERASE_LINE + ERASE_LINE_ABOVE.repeat(drawnLines - 1));
    drawnLines = 0;
  };
  const draw = (): void => {
    if (statusText === undefined || lineIsOpen || !statusIsShown) return;
    // A line as wide as the terminal would wrap, and only its last row could be erased.
    const lines = safeText(redact(statusText))
      .split("\n")
      .slice(0, linesOf(stderr))
      .map((line) => colours.dim(truncateToWidth(line, columnsOf(stderr) - 1)));
    stderr.write(ERASE_LINE + ERASE_LINE_ABOVE.repeat(Math.max(0, drawnLines - 1)) + lines.join("\n"));
    drawnLines = lines.length;
  };
  const talk = (lines: readonly string[], style: (text: string) => string = String, label = ""): void => {
    const text = lines.map((line) => safeText(redact(line)).replaceAll("\n", `\n${INDENT}`)).join("\n");
    erase();
    stderr.write(`${label}${style(text)}\n`);
    draw();
  };
  return {
    write: (data) => {
      const text = safeText(data);
      if (stdout.isTTY !== true || text === "") {
        stdout.write(text);
        return;
      }
      erase();
      stdout.write(text);
      lineIsOpen = !text.endsWith("\n");
      draw();
    },
    info: (message, style) => talk([message].flat(), style && colours[style]),
    status: (text) => {
      statusText = text;
      if (text === undefined) erase();
      else draw();
    },
    canShowStatus: statusIsShown,
    get maxStatusLines() {
      return linesOf(stderr);
    },
    get columns() {
      return columnsOf(stdout);
    },
    warn: (message) => talk([message], undefined, `${colours.yellow("Warning:")} `),
    error: (message, label = "Error:") => talk([message], undefined, `${colours.red(label)} `),
    addSecret: (secret) => {
      if (secret !== "") secrets.add(secret).add(encodeURIComponent(secret));
    },
    redact,
    stdoutIsTerminal: stdout.isTTY === true,
    stderrIsTerminal,
  };
}

const ERASE_LINE = "\r\u001b[K";
const ERASE_LINE_ABOVE = "\u001b[A\u001b[K";

/** A terminal of unknown size reports 0 columns. */
function columnsOf({ columns }: OutputStream): number {
  return columns || 80;
}

/** What has scrolled out of the terminal can no longer be erased. */
function linesOf({ rows }: OutputStream): number {
  return Math.max(1, (rows || 24) - 1);
}

/** The output of this process. A closed pipe (`| head`) ends the program without an error. */
export function processOutput(): Output {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", exitAtOutputError);
  return createOutput(process.stdout, process.stderr, process.env);
}

function exitAtOutputError(error: NodeJS.ErrnoException): void {
  process.exit(error.code === "EPIPE" ? 0 : 1);
}

/** For servers, which continue when the disk that their output goes to is full, or when its reader has ended. */
export function ignoreOutputErrors(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.off("error", exitAtOutputError);
    stream.off("error", ignoreError);
    stream.on("error", ignoreError);
  }
}

function ignoreError(): void {}

/** Wait until all output is flushed; exiting earlier would truncate what a pipe receives. */
export async function flushProcessOutput(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) {
    await new Promise<void>((resolve) => stream.write("", () => resolve()));
  }
}

/** The result of a command in the requested format. */
export function printResult(
  output: Output,
  format: "text" | "json" | undefined,
  value: unknown,
  render: () => string,
): void {
  if (format === "json") printJson(output, value, "document");
  else output.write(render());
}

export function printJson(output: Output, value: unknown, form: "document" | "line"): void {
  output.write(`${safeJson(value, form === "line" ? undefined : 2)}\n`);
}
