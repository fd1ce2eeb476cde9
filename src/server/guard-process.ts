import type { Log } from "../model/ports.ts";

/**
 * An agent's forgotten `await` must not take the other agents' tasks down with it: a rejection that nobody handles is
 * logged and survived. After an exception that nobody caught nothing can be relied on, so the server is closed in order.
 * Returns what takes the guard away again.
 */
export function guardProcess(log: Log, close: () => Promise<void>): () => void {
  const onRejection = (error: unknown) => {
    log.error({ err: error }, "A promise was rejected and nobody handles it; probably an agent forgot an await.");
  };
  const onException = (error: unknown) => {
    log.error({ err: error }, "An exception was not caught by anyone; the server is shut down.");
    process.exitCode = 1;
    close().then(
      () => process.exit(1),
      () => process.exit(1),
    );
  };
  process.on("unhandledRejection", onRejection);
  process.on("uncaughtException", onException);
  return () => {
    process.off("unhandledRejection", onRejection);
    process.off("uncaughtException", onException);
  };
}
