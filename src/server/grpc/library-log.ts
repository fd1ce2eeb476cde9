import type { Log } from "../../model/ports.ts";

const UNREADABLE_ENTRY = /^Failed to add metadata entry ([^:]*): /;

/**
 * Where the library puts what it has to say; it would print to stderr. It says so for the whole process, so the last
 * endpoint opened gets it. What it says of metadata contains the value, which may be a secret.
 */
export function libraryLog(log: Log): Partial<Console> {
  const tell = (message: unknown) => {
    const text = String(message);
    const name = UNREADABLE_ENTRY.exec(text)?.[1];
    if (name !== undefined) log.debug({ name }, "A metadata entry was not printable ASCII and was left out.");
    else log.debug({ text }, "gRPC says something.");
  };
  return { error: tell, info: tell, debug: tell };
}
