import picocolors from "picocolors";
import { truncateToWidth } from "./render/text.ts";

/** The part of a Node stream that is needed; tests give something smaller than a terminal. */
export interface OutputStream {
  write(text: string): boolean;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

type Style = (text: string) => string;

/**
 * Where everything the command line says goes: data to stdout, talk to stderr. stdout never carries control sequences,
 * so what a pipe sees is what a person sees; only talk is coloured, and only on a terminal.
 */
export interface Output {
  /** Write to stdout as it is. */
  write(text: string): void;
  /** One line to stderr. */
  info(line: string): void;
  warn(line: string): void;
  /** The last line of the terminal, replaced in place; undefined removes it. Only where `statusIsShown`. */
  status(line: string | undefined): void;
  /** From now on this credential is kept out of all talk, whoever repeats it. */
  addSecret(secret: string): void;
  redact(text: string): string;
  readonly stdoutIsTerminal: boolean;
  readonly stderrIsTerminal: boolean;
  /** Talk is on a terminal that can replace a line. */
  readonly canShowStatus: boolean;
  /** Columns of the terminal that data goes to. */
  readonly columns: number;
  readonly dim: Style;
  readonly bold: Style;
  readonly red: Style;
}

export function createOutput(
  stdout: OutputStream,
  stderr: OutputStream,
  environment: Readonly<Record<string, string | undefined>>,
): Output {
  const talkIsTerminal = stderr.isTTY === true;
  const statusIsShown = talkIsTerminal && environment.TERM !== "dumb";
  const colours = picocolors.createColors(statusIsShown && !environment.NO_COLOR);
  const secrets = new Set<string>();
  const redact = (text: string): string => {
    let rest = text;
    for (const secret of secrets) rest = rest.replaceAll(secret, "[redacted]");
    return rest;
  };
  let statusLine: string | undefined;
  let isDrawn = false;
  /** Data ended in the middle of a line of this terminal: a status would be written into it. */
  let lineIsOpen = false;
  const erase = (): void => {
    if (isDrawn) stderr.write(ERASE_LINE);
    isDrawn = false;
  };
  const draw = (): void => {
    if (statusLine === undefined || lineIsOpen || !statusIsShown) return;
    // A line as wide as the terminal would wrap, and only its last row could be erased.
    const line = truncateToWidth(redact(statusLine), columnsOf(stderr) - 1);
    stderr.write(`${ERASE_LINE}${colours.dim(line)}`);
    isDrawn = true;
  };
  const talk = (line: string): void => {
    erase();
    stderr.write(`${redact(line)}\n`);
    draw();
  };
  return {
    write: (text) => {
      if (stdout.isTTY !== true || text === "") {
        stdout.write(text);
        return;
      }
      erase();
      stdout.write(text);
      lineIsOpen = !text.endsWith("\n");
      draw();
    },
    info: talk,
    status: (line) => {
      statusLine = line;
      if (line === undefined) erase();
      else draw();
    },
    canShowStatus: statusIsShown,
    get columns() {
      return columnsOf(stdout);
    },
    warn: (line) => talk(`${colours.yellow("Warning:")} ${line}`),
    addSecret: (secret) => {
      if (secret !== "") secrets.add(secret).add(encodeURIComponent(secret));
    },
    redact,
    stdoutIsTerminal: stdout.isTTY === true,
    stderrIsTerminal: talkIsTerminal,
    dim: colours.dim,
    bold: colours.bold,
    red: colours.red,
  };
}

const ERASE_LINE = "\r\u001b[K";

/** A terminal that does not tell its size says 0. */
function columnsOf({ columns }: OutputStream): number {
  return columns || 80;
}

/** The output of this process. A reader that went away (`| head`) ends the program quietly. */
export function processOutput(): Output {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      process.exit(error.code === "EPIPE" ? 0 : 1);
    });
  }
  return createOutput(process.stdout, process.stderr, process.env);
}

/** Wait until what was written has left the process; ending it earlier would cut a pipe short. */
export async function flushProcessOutput(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) {
    await new Promise<void>((resolve) => stream.write("", () => resolve()));
  }
}

export function printJson(output: Output, value: unknown, form: "document" | "line"): void {
  output.write(`${form === "line" ? JSON.stringify(value) : JSON.stringify(value, undefined, 2)}\n`);
}
