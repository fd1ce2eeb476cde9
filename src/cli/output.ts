import picocolors from "picocolors";

/** The part of a Node stream that is needed; tests give something smaller than a terminal. */
export interface Sink {
  write(text: string): boolean;
  readonly isTTY?: boolean;
}

type Paint = (text: string) => string;

/**
 * Where everything the command line says goes: data to stdout, talk to stderr. stdout never carries control sequences,
 * so what a pipe sees is what a person sees; only talk is coloured, and only on a terminal.
 */
export interface Output {
  /** Write to stdout as it is. */
  data(text: string): void;
  /** One line to stderr. */
  talk(line: string): void;
  warn(line: string): void;
  /** From now on this credential is kept out of all talk, whoever repeats it. */
  hide(secret: string): void;
  redact(text: string): string;
  readonly dataIsTerminal: boolean;
  readonly talkIsTerminal: boolean;
  readonly dim: Paint;
  readonly bold: Paint;
  readonly red: Paint;
}

export function createOutput(
  stdout: Sink,
  stderr: Sink,
  environment: Readonly<Record<string, string | undefined>>,
): Output {
  const talkIsTerminal = stderr.isTTY === true;
  const colours = picocolors.createColors(talkIsTerminal && !environment.NO_COLOR && environment.TERM !== "dumb");
  const secrets = new Set<string>();
  const redact = (text: string): string => {
    let rest = text;
    for (const secret of secrets) rest = rest.replaceAll(secret, "[redacted]");
    return rest;
  };
  const talk = (line: string): void => {
    stderr.write(`${redact(line)}\n`);
  };
  return {
    data: (text) => {
      stdout.write(text);
    },
    talk,
    warn: (line) => talk(`${colours.yellow("Warning:")} ${line}`),
    hide: (secret) => {
      if (secret !== "") secrets.add(secret).add(encodeURIComponent(secret));
    },
    redact,
    dataIsTerminal: stdout.isTTY === true,
    talkIsTerminal,
    dim: colours.dim,
    bold: colours.bold,
    red: colours.red,
  };
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
  output.data(`${form === "line" ? JSON.stringify(value) : JSON.stringify(value, undefined, 2)}\n`);
}
