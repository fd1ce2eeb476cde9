import pino, { type DestinationStream, type Logger } from "pino";
import type { Log } from "../../model/ports.ts";
import { markAsRedacting, Redactor } from "./redact.ts";

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
  return markAsRedacting(toLog(logger, redactor));
}

function toLog(logger: Logger, redactor: Redactor): Log {
  const at =
    (level: keyof Log) =>
    (fields: object, message: string): void => {
      if (logger.isLevelEnabled(level)) logger[level](fields, redactor.text(message));
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

async function openStderr(pretty: boolean): Promise<DestinationStream> {
  return pretty ? openPrettyStderr() : pino.destination({ dest: 2, sync: false });
}

/** Loaded on demand: starting without it is faster. */
async function openPrettyStderr(): Promise<DestinationStream> {
  const { default: pretty } = await import("pino-pretty");
  return pretty({ destination: 2, ignore: "pid,hostname", translateTime: "SYS:HH:MM:ss.l", singleLine: true });
}
