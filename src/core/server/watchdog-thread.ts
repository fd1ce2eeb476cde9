/** The thread of the watchdog. Must not rely on the main thread, which may never run again. */
import { writeSync } from "node:fs";
import { type Debugger, Session } from "node:inspector";
import { isAbsolute, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { workerData } from "node:worker_threads";
import { CODE_FOLDER } from "../agents/own-files.ts";
import { createStallDetector, threadCpuMs } from "../agents/threads.ts";
import { CELL, NOTE_OFFSET, type WatchdogData } from "./watchdog.ts";

const CHECK_MS = 250;
/** Time for the main thread to pause, and then to exit in order. */
const DEBUGGER_TIMEOUT_MS = 1_500;
const MAX_FRAMES = 20;
const FATAL = 60;
const WARN = 40;
/**
 * Multiple of the limit after which the process is ended even if no agent code runs: the server itself may be busy for
 * a while.
 */
const OWN_CODE_FACTOR = 12;

const { agentFiles, exitCode, form, limitMs, shared, thread } = workerData as WatchdogData;
const cells = new Int32Array(shared, 0, NOTE_OFFSET / 4);
const isOverLimit = createStallDetector(limitMs, () => threadCpuMs(thread));
const isOverOwnLimit = createStallDetector(OWN_CODE_FACTOR * limitMs, () => threadCpuMs(thread));
let reported = false;
let reporting = false;
/** The last heartbeat before which the server was busy with its own work. */
let excusedBeat = -1;

setInterval(() => {
  const beats = Atomics.load(cells, CELL.beats);
  const isStalled = isOverLimit(beats);
  const isLong = isOverOwnLimit(beats);
  if (reporting || !isStalled || (beats === excusedBeat && !isLong)) return;
  if (Atomics.load(cells, CELL.debugged) === 0) endStalled(isLong);
}, CHECK_MS);

interface Culprit {
  readonly agent?: string | undefined;
  readonly task?: string | undefined;
  readonly stack?: readonly string[];
}

function endStalled(isLong: boolean): void {
  reporting = true;
  const beats = Atomics.load(cells, CELL.beats);
  const recovered = () => Atomics.load(cells, CELL.beats) !== beats;
  const session = new Session();
  const urls = new Map<string, string>();
  session.on("Debugger.scriptParsed", ({ params }) => urls.set(params.scriptId, params.url));
  session.on("Debugger.paused", ({ params: { callFrames } }) => {
    if (recovered()) {
      session.disconnect();
      reporting = false;
      return;
    }
    const frames = callFrames.slice(0, MAX_FRAMES);
    const files = frames.map(({ location, url }) => toPath(urls.get(location.scriptId) ?? url));
    const stack = frames.map(
      ({ functionName, location: { lineNumber, columnNumber = 0 } }, at) =>
        `${functionName || "<anonymous>"} (${files[at]}:${lineNumber + 1}:${columnNumber + 1})`,
    );
    if (!isLong && readNote() === undefined && !files.some(isAgentCode)) {
      reportBusy(beats, stack);
      session.post("Debugger.resume", () => session.disconnect());
      return;
    }
    findTask(session, frames, (task) => {
      const agent = agentFiles.find(([file]) => files.includes(file))?.[1];
      report({ ...(readNote() ?? { agent, task }), stack });
      endProcess(session);
    });
  });
  session.connectToMainThread();
  session.post("Debugger.enable", () => session.post("Debugger.pause"));
  setTimeout(() => {
    if (recovered()) {
      reporting = false;
      return;
    }
    if (!isLong && readNote() === undefined) {
      if (reporting) reportBusy(beats, []);
      session.disconnect();
      return;
    }
    report(readNote() ?? {}, "SIGKILL");
    process.kill(process.pid, "SIGKILL");
  }, DEBUGGER_TIMEOUT_MS);
}

/** Not ours, Node's or a package's: an agent's own code, or other code of the embedding program. */
function isAgentCode(file: string): boolean {
  if (agentFiles.some(([known]) => known === file)) return true;
  return isAbsolute(file) && !file.startsWith(CODE_FOLDER) && !file.includes(`${sep}node_modules${sep}`);
}

/** The server is slow but works: logged, not ended. */
function reportBusy(beats: number, stack: readonly string[]): void {
  excusedBeat = beats;
  reporting = false;
  write(WARN, "WARN", `The server was busy for ${limitMs / 1_000} s of CPU time without a pause`, { stack });
}

/** The note written before an agent was called; undefined once the agent has awaited something. */
function readNote(): Culprit | undefined {
  if (cells[CELL.running] === 0) return undefined;
  const text = Buffer.from(shared, NOTE_OFFSET, cells[CELL.noteLength]).toString("utf8");
  const [agent, task] = text.split("\n");
  return { agent, task };
}

/** The turn is a variable of one of the functions on the stack. */
const TASK_OF_FRAME = `(() => {
  for (const read of [() => turn, () => arguments[0]]) {
    try { const { id } = read().task; if (typeof id === "string") return id; } catch {}
  }
})()`;

function findTask(
  session: Session,
  frames: readonly Debugger.CallFrame[],
  found: (task: string | undefined) => void,
): void {
  const [frame, ...rest] = frames;
  if (frame === undefined) {
    found(undefined);
    return;
  }
  const { callFrameId } = frame;
  session.post("Debugger.evaluateOnCallFrame", { callFrameId, expression: TASK_OF_FRAME }, (error, answer) => {
    const value: unknown = error === null ? answer.result.value : undefined;
    if (typeof value === "string") found(value);
    else findTask(session, rest, found);
  });
}

/** Breaks the loop and exits on the main thread, so that child processes of agents end as well. */
function endProcess(session: Session): void {
  const expression = `setImmediate(() => process.exit(${exitCode}))`;
  session.post("Runtime.evaluate", { expression }, () => {
    session.post("Runtime.terminateExecution", () => {});
    session.post("Debugger.resume", () => session.disconnect());
  });
}

function report({ agent, task, stack = [] }: Culprit, signal?: "SIGKILL"): void {
  if (reported) return;
  reported = true;
  const who = agent === undefined ? "Code that does not return" : `Agent ${agent}`;
  const msg = `${who} kept the server from running for ${limitMs / 1_000} s of CPU time; the process is ended`;
  write(FATAL, "FATAL", msg, { agent, task, stack, ...(signal === undefined ? { exitCode } : { signal }) });
}

function write(level: number, name: string, msg: string, fields: Readonly<Record<string, unknown>>): void {
  if (form === "silent") return;
  const time = Date.now();
  const line =
    form === "json"
      ? JSON.stringify({ level, time, ...fields, msg })
      : `[${new Date(time).toTimeString().slice(0, 8)}] ${name}: ${msg} ${JSON.stringify(fields)}`;
  try {
    writeSync(2, `${line}\n`);
  } catch {
    // The disk is full, or no one reads it any more: that must not end the thread that ends a server that hangs.
  }
}

function toPath(url: string): string {
  return url.startsWith("file:") ? fileURLToPath(url) : url;
}
