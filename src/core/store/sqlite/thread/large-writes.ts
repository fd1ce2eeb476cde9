import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import type { Log } from "../../../model/ports.ts";
import type { Write, WriteResult } from "../../contract.ts";
import { type EncodedWrite, encodeAll, encodeWrites, type Segment } from "../../encode-writes.ts";
import { StoreError } from "../../errors.ts";
import type { Connection } from "../connection.ts";
import { isDamage } from "../damage.ts";
import type { RecordedStatement } from "../driver.ts";
import type { Writer } from "../writer.ts";
import type { WriteThreadData, WriteThreadReply, WriteThreadRequest } from "./write-thread.ts";

/** Starts a worker thread with a module of this package, named by its path below `src` without extension. */
export type StartThread = (module: string, options: { readonly name: string; workerData: object }) => Worker;

export interface ThreadOptions {
  readonly start: StartThread;
  /** Texts of this many characters are large. Default: 256 Ki. */
  readonly above?: number;
}

interface LargeWriteParts {
  readonly file: string;
  readonly connection: Connection;
  readonly writer: Writer;
  readonly log: Log;
  readonly thread: ThreadOptions;
}

/**
 * Makes writes, the large ones on a thread: to put a megabyte into SQLite takes ten times as long as to parse it. What a
 * write changes is decided here, in a transaction that is taken back; the thread then does the same, with the large
 * texts, in one that it commits. While a promise is pending nothing else may be written.
 */
export class LargeWrites {
  readonly #parts: LargeWriteParts;
  #thread: Promise<Worker | undefined> | undefined;
  #isUnavailable = false;

  constructor(parts: LargeWriteParts) {
    this.#parts = parts;
  }

  write(writes: readonly Write[]): WriteResult[] | Promise<WriteResult[]> {
    const encoding = encodeWrites(writes, this.#parts.thread.above);
    const first = encoding.next();
    if (first.done === true) return this.#parts.writer.write(first.value);
    if (this.#isUnavailable) return this.#parts.writer.write(encodeAll(encoding));
    return this.#writeOnThread(writes, encoding, first);
  }

  async stop(): Promise<void> {
    const worker = await this.#thread;
    if (worker === undefined) return;
    // While idle it keeps no process alive; this wait must.
    worker.ref();
    const exit = once(worker, "exit");
    worker.postMessage({ kind: "close" } satisfies WriteThreadRequest);
    await exit;
  }

  /** One large text in each turn of the event loop, so that others have theirs. */
  async #writeOnThread(
    writes: readonly Write[],
    encoding: ReturnType<typeof encodeWrites>,
    first: IteratorResult<Segment, EncodedWrite[]>,
  ): Promise<WriteResult[]> {
    let step = first;
    while (step.done !== true) {
      step.value.body = toBytes(step.value.body as string);
      await nextTurn();
      step = encoding.next();
    }
    const results = await this.#tryOnThread(step.value);
    // The texts of these were given away.
    return results ?? this.#parts.writer.write(encodeAll(encodeWrites(writes)));
  }

  /** Undefined if nothing was written and it has to be done without the thread. */
  async #tryOnThread(writes: readonly EncodedWrite[]): Promise<WriteResult[] | undefined> {
    this.#thread ??= this.#start();
    const worker = await this.#thread;
    if (worker === undefined) return undefined;
    const { connection, writer } = this.#parts;
    let planned: ReturnType<typeof writer.plan> | undefined;
    try {
      planned = writer.plan(writes);
      const reply = await this.#commit(worker, planned.statements);
      if (reply.kind === "changed") return undefined;
      if (reply.kind === "failed") throw Object.assign(new Error(reply.message), { rawCode: reply.code });
      planned.settle();
      return planned.result;
    } catch (cause) {
      planned?.abandon();
      // Without the thread, what is damaged is left out.
      if (isDamage(cause)) return undefined;
      throw connection.recordFailure(cause);
    }
  }

  async #commit(worker: Worker, statements: readonly RecordedStatement[]): Promise<WriteThreadReply> {
    const texts = statements.flatMap(({ values }) => values.filter((value) => value instanceof Uint8Array));
    worker.ref();
    const reply = nextReply(worker);
    worker.postMessage(
      { kind: "commit", statements } satisfies WriteThreadRequest,
      texts.map(({ buffer }) => buffer as ArrayBuffer),
    );
    try {
      return await reply;
    } catch (cause) {
      throw new StoreError("io", `The thread that writes to ${this.#parts.file} ended.`, { cause });
    } finally {
      worker.unref();
    }
  }

  /** Undefined if there cannot be one: then all is written without it. */
  async #start(): Promise<Worker | undefined> {
    const { file, log, thread } = this.#parts;
    try {
      const workerData: WriteThreadData = { file };
      const worker = thread.start("core/store/sqlite/thread/write-thread", { name: "large writes", workerData });
      await nextReply(worker);
      // Also when it has nothing to do; the next write starts another.
      worker.on("error", (error) => log.warn({ err: error, file }, "The thread for large writes failed."));
      worker.once("exit", () => {
        this.#thread = undefined;
      });
      worker.unref();
      return worker;
    } catch (error) {
      this.#isUnavailable = true;
      log.warn({ err: error, file }, "Large messages are stored without a thread and hold up other callers.");
      return undefined;
    }
  }
}

/** In memory of its own, which can be given away. */
function toBytes(text: string): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** Rejects if the thread ends instead. */
function nextReply(worker: Worker): Promise<WriteThreadReply> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void) => {
      worker.off("message", onMessage).off("error", onError).off("exit", onExit);
      act();
    };
    const onMessage = (reply: WriteThreadReply) => settle(() => resolve(reply));
    const onError = (error: Error) => settle(() => reject(error));
    const onExit = (code: number) => settle(() => reject(new Error(`exit code ${code}`)));
    worker.on("message", onMessage).on("error", onError).on("exit", onExit);
  });
}
