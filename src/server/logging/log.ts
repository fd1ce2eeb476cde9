import pino, { type DestinationStream } from "pino";
import type { Log } from "../../model/ports.ts";
import { safeLine } from "../../model/safe-text.ts";
import { createRedactingLog, Redactor } from "./redact.ts";

interface LogOptions {
  readonly level: string;
  /** Human-readable: colours and one short line each. Otherwise JSON lines. */
  readonly pretty: boolean;
  /** Default: stderr. */
  readonly destination?: DestinationStream;
  /** Redacted wherever they occur, in addition to secrets recognised by name or form. */
  readonly secrets?: readonly string[];
}

/** Redacts secrets in every line; no option disables it. */
export async function createLog(options: LogOptions): Promise<Log> {
  const destination = options.destination ?? (await openStderr(options.pretty));
  const redactor = new Redactor(options.secrets);
  const logger = pino(
    {
      level: options.level,
      base: null,
      formatters: { log: (fields) => redactor.fields(fields) },
      // The redactor has already converted errors to plain objects.
      serializers: { err: (value: unknown) => value },
    },
    destination,
  );
  return createRedactingLog((level, fields, message) => {
    if (logger.isLevelEnabled(level)) logger[level](fields, safeLine(redactor.text(message)));
  });
}

/** The human-readable form is loaded on demand: starting without it is faster. */
async function openStderr(isPretty: boolean): Promise<DestinationStream> {
  if (!isPretty) return pino.destination({ dest: 2, sync: false });
  const { default: pretty } = await import("pino-pretty");
  return pretty({ destination: 2, ignore: "pid,hostname", translateTime: "SYS:HH:MM:ss.l", singleLine: true });
}
