import { Worker } from "node:worker_threads";
import type { OutputUnit } from "@cfworker/json-schema";
import type { JsonObject, JsonValue } from "../../../core/model/json.ts";

type CheckResult =
  | { readonly errors: readonly OutputUnit[] }
  | { readonly failure: "time" | "size" }
  | { readonly failure: "other"; readonly message: string };

interface Check {
  /** JSON: an object would be copied value by value before it could be sent. */
  readonly request: string;
  resolve(result: CheckResult): void;
}

/** A pattern may backtrack, and a schema that refers to itself may branch, for longer than anyone waits. */
const MAX_CHECK_MS = 1_000;
/** Checks at the same time: one that takes its time keeps others waiting, and each thread takes up memory. */
const MAX_THREADS = 2;
const MAX_HEAP_MIB = 256;

/** Given as text, so that it is the same before and after the build. The problems after the first ones are not shown. */
const SOURCE = `import("node:worker_threads").then(async ({ parentPort, workerData }) => {
  const { dereference, validate } = await import(workerData);
  parentPort.on("message", (request) => {
    try {
      const { schema, value, isLarge } = JSON.parse(request);
      const { errors } = validate(value, schema, "2020-12", dereference(schema), isLarge);
      parentPort.postMessage({ errors: errors.slice(0, 1000) });
    } catch (error) {
      if (error instanceof RangeError) parentPort.postMessage({ failure: "size" });
      else parentPort.postMessage({ failure: "other", message: String(error) });
    }
  });
  parentPort.postMessage("ready");
});`;

const idle: Worker[] = [];
const waiting: Check[] = [];
let threads = 0;

/**
 * Checks a value against a schema beside everything else that this process does. The data comes from agents, and checks
 * of some schemas take as long as the data wants: a check that takes too long is ended together with its thread.
 */
export function checkOnThread(schema: JsonObject, value: JsonValue, isLarge: boolean): Promise<CheckResult> {
  const request = JSON.stringify({ schema, value, isLarge });
  return new Promise((resolve) => {
    waiting.push({ request, resolve });
    runNext();
  });
}

function runNext(): void {
  if (waiting.length === 0) return;
  const thread = idle.pop();
  if (thread !== undefined) run(thread, waiting.shift() as Check);
  else if (threads < MAX_THREADS) {
    threads++;
    start(waiting.shift() as Check);
  }
}

function start(check: Check): void {
  const thread = new Worker(SOURCE, {
    eval: true,
    name: "output schemas",
    workerData: import.meta.resolve("@cfworker/json-schema"),
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
  });
  const fail = (error: Error) => end(thread, check, { failure: "other", message: error.message });
  thread.once("error", fail);
  thread.once("message", () => {
    thread.off("error", fail);
    run(thread, check);
  });
}

function run(thread: Worker, check: Check): void {
  const settle = () => {
    clearTimeout(timer);
    thread.off("error", onError);
    thread.off("message", onMessage);
  };
  const onError = () => {
    settle();
    end(thread, check, { failure: "size" });
  };
  const onMessage = (result: CheckResult) => {
    settle();
    // While idle it keeps no process alive.
    thread.unref();
    idle.push(thread);
    check.resolve(result);
    runNext();
  };
  const timer = setTimeout(() => {
    settle();
    end(thread, check, { failure: "time" });
  }, MAX_CHECK_MS);
  thread.ref();
  thread.on("error", onError);
  thread.on("message", onMessage);
  thread.postMessage(check.request);
}

/** The next check gets another thread. */
function end(thread: Worker, check: Check, result: CheckResult): void {
  thread.on("error", () => {});
  thread.terminate().finally(() => {
    threads--;
    check.resolve(result);
    runNext();
  });
}
