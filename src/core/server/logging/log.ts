import { write, writeSync } from "node:fs";
import { Writable } from "node:stream";
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
  stderr ??= createFileWriter(2);
  if (!isPretty) return stderr;
  const { default: pretty } = await import("pino-pretty");
  const lines = stderr;
  const destination = new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      lines.write(line);
      done();
    },
  });
  return pretty({ destination, ignore: "pid,hostname", translateTime: "SYS:HH:MM:ss.l", singleLine: true });
}

let stderr: DestinationStream | undefined;

/** Characters that wait for a disk that is full, or for a reader that is slow. What comes then is lost. */
const MAX_WAITING = 1024 * 1024;
const RETRY_MS = 500;

/**
 * Writes in the background, all that waits at once. A log that cannot be written must not end what it reports on: what
 * waits is written once that is possible again. Streams are of no use for that, as they end with their first error.
 */
function createFileWriter(fd: number): DestinationStream {
  let waiting = "";
  let pending: Buffer | undefined;
  let isWriting = false;

  function flush(): void {
    if (isWriting) return;
    if (pending === undefined) {
      if (waiting === "") return;
      pending = Buffer.from(waiting);
      waiting = "";
    }
    isWriting = true;
    write(fd, pending, (error, written) => {
      isWriting = false;
      if (error !== null) {
        setTimeout(flush, RETRY_MS).unref();
        return;
      }
      take(written);
      flush();
    });
  }

  function take(written: number): void {
    pending = pending === undefined || written >= pending.length ? undefined : pending.subarray(written);
  }

  process.once("exit", () => {
    try {
      while (pending !== undefined) take(writeSync(fd, pending));
      if (waiting !== "") writeSync(fd, waiting);
    } catch {
      // The disk is full, or no one reads any more.
    }
  });
  return {
    write(line) {
      if (waiting.length + line.length > MAX_WAITING) return;
      waiting += line;
      flush();
    },
  };
}
