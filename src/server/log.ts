import pino, { type DestinationStream, type Logger } from "pino";
import type { Log } from "../model/ports.ts";

export interface LogOptions {
  readonly level: string;
  /** For people: colours and one short line each. Otherwise JSON lines. */
  readonly pretty: boolean;
  /** Where lines go; stderr unless given. */
  readonly destination?: DestinationStream;
}

/** Whatever carries a secret under one of these names is blanked, wherever it stands in the first two levels. */
const SECRET_NAMES = ["authorization", "cookie", "token", "apiKey", "password", "secret", "credentials"];
const REDACTED = SECRET_NAMES.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);

export async function createLog(options: LogOptions): Promise<Log> {
  const destination = options.destination ?? (await standardError(options.pretty));
  const redact = { paths: REDACTED, censor: "[redacted]" };
  return bound(pino({ level: options.level, base: null, redact }, destination));
}

function bound(logger: Logger): Log {
  return {
    debug: logger.debug.bind(logger),
    info: logger.info.bind(logger),
    warn: logger.warn.bind(logger),
    error: logger.error.bind(logger),
  };
}

async function standardError(pretty: boolean): Promise<DestinationStream> {
  return pretty ? prettyStandardError() : pino.destination({ dest: 2, sync: false });
}

/** Loaded only for people: starting without it is faster. */
async function prettyStandardError(): Promise<DestinationStream> {
  const { default: pretty } = await import("pino-pretty");
  return pretty({ destination: 2, ignore: "pid,hostname", translateTime: "SYS:HH:MM:ss.l", singleLine: true });
}
