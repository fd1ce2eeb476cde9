import { HOPS_VARIABLE } from "../../client/run-hops.ts";
import type { Agent, AgentEvent, MessageDraft } from "../../engine/agent.ts";
import { encodeHops } from "../../model/extensions.ts";
import { type Log, SILENT_LOG } from "../../model/ports.ts";
import { statusText } from "../../model/status-texts.ts";
import { type AgentDefinition, defineAgent } from "../define.ts";
import type { AgentTurn } from "../turn.ts";
import { Child, type ChildOptions, type Exit } from "./child.ts";
import { type OutputEvent, readOutputEvent, splitLines } from "./output.ts";

export interface ProcessAgentOptions extends Omit<AgentDefinition, "run"> {
  /** The program and its arguments, executed without a shell. */
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Input on stdin: the text of the message, or one JSON object `{message, history, task}`. */
  readonly format?: "text" | "json";
  /** Time between SIGTERM and SIGKILL when the turn is aborted. */
  readonly cancelGraceMs?: number;
  /** Where the program's stderr is shown: only in the log, or also to the caller if the run fails. */
  readonly stderr?: "log" | "caller";
  /** Maximum number of characters that one run may write to stdout; a program that writes more is terminated. */
  readonly maxOutput?: number;
  readonly log?: Log;
  /** Name of the agent in log entries. */
  readonly id?: string;
}

/** Default concurrency: processes cost more than function calls, so only this many run at a time. */
const DEFAULT_CONCURRENCY = 16;
const DEFAULT_CANCEL_GRACE_MS = 5_000;
const DEFAULT_MAX_OUTPUT = 16 * 1024 * 1024;
const OUTPUT_ARTIFACT = "output";

interface RunOptions extends ChildOptions {
  readonly stderr: "log" | "caller";
  readonly maxOutput: number;
  readonly log: Log;
  /** Fields added to every log entry of the run. */
  readonly about: Readonly<Record<string, string>>;
}

/** An agent that starts a process for every turn: message on stdin, reply on stdout. */
export function createProcessAgent(options: ProcessAgentOptions): Agent {
  const {
    command,
    cwd,
    env,
    format = "text",
    cancelGraceMs = DEFAULT_CANCEL_GRACE_MS,
    stderr = "log",
    maxOutput = DEFAULT_MAX_OUTPUT,
    log = SILENT_LOG,
    id = options.name,
    ...definition
  } = options;
  return defineAgent({
    concurrency: DEFAULT_CONCURRENCY,
    ...definition,
    run: (turn) =>
      runProcess(turn, inputOf(turn, format), {
        command,
        cwd,
        graceMs: cancelGraceMs,
        env: {
          ...process.env,
          ...env,
          DRAGOMAN_TASK_ID: turn.task.id,
          DRAGOMAN_CONTEXT_ID: turn.task.contextId,
          [HOPS_VARIABLE]: JSON.stringify(encodeHops(turn.hops, Date.now())),
        },
        stderr,
        maxOutput,
        log,
        about: { agent: id, task: turn.task.id, program: command[0] },
      }),
  });
}

/** Callers get generic messages: paths, stack traces and other stderr output are only logged. */
async function* runProcess(
  turn: AgentTurn,
  input: string,
  options: RunOptions,
): AsyncGenerator<AgentEvent, MessageDraft | undefined, undefined> {
  if (turn.signal.aborted) return undefined;
  let child: Child;
  try {
    child = await Child.start(options);
  } catch (error) {
    options.log.error({ ...options.about, cwd: options.cwd, err: error }, "Program could not be started");
    yield turn.failed(statusText("programNotStarted"));
    return undefined;
  }
  const stop = () => child.stop();
  turn.signal.addEventListener("abort", stop, { once: true });
  if (turn.signal.aborted) stop();
  void logExit(child, options);
  try {
    child.writeInput(input);
    const reply = yield* readEvents(turn, child, options.maxOutput);
    if (reply === "too-long") {
      options.log.warn({ ...options.about, maxOutput: options.maxOutput }, "Program wrote too much and is ended");
      yield turn.failed(statusText("programTooLong", options.maxOutput));
      return undefined;
    }
    const exit = await child.exit;
    if (turn.signal.aborted) return undefined;
    if (exit.code !== 0) {
      const stderr = options.stderr === "caller" ? await child.stderrTail() : "";
      const { code, signal } = exit;
      const ended = signal === null ? statusText("programExited", code ?? "") : statusText("programEnded", signal);
      yield turn.failed(`${ended}${stderr === "" ? "" : `\n${stderr}`}`);
      return undefined;
    }
    if (reply === undefined) return undefined;
    if (reply.direct) return reply.message;
    yield { status: "TASK_STATE_COMPLETED", message: reply.message };
    return undefined;
  } finally {
    turn.signal.removeEventListener("abort", stop);
    child.stop();
  }
}

/** Separate from the run: child processes may keep stderr open after the result is complete. */
async function logExit(child: Child, { log, about }: RunOptions): Promise<void> {
  const exit = await child.exit;
  const failed = exit.code !== 0 && !child.stopped;
  const stderr = await child.stderrTail();
  if (failed) log.error({ ...about, ...exit, stderr }, `Program ${describeExit(exit)}`);
  else if (stderr !== "") log.info({ ...about, ...exit, stderr }, "Program wrote to stderr");
}

function describeExit({ code, signal }: Exit): string {
  return signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
}

interface Reply {
  readonly message: MessageDraft;
  /** There was no other output, so no task is required. */
  readonly direct: boolean;
}

async function* readEvents(
  turn: AgentTurn,
  child: Child,
  maxOutput: number,
): AsyncGenerator<AgentEvent, Reply | "too-long" | undefined, undefined> {
  let written = 0;
  let silent = true;
  let message: MessageDraft | undefined;
  try {
    for await (const line of splitLines(child.stdout)) {
      const event = line.whole ? readOutputEvent(line.text) : undefined;
      if (event?.kind === "message") {
        if (message !== undefined) yield { status: "TASK_STATE_WORKING", message };
        silent &&= message === undefined;
        message = event.message;
        continue;
      }
      silent = false;
      if (event !== undefined) {
        yield toAgentEvent(turn, event);
      } else {
        const append = written > 0;
        written += line.text.length;
        // All lines become one part of the task, so the limit applies to their total length.
        if (written > maxOutput) return "too-long";
        yield {
          artifact: { artifactId: OUTPUT_ARTIFACT, name: OUTPUT_ARTIFACT, parts: [{ text: line.text }] },
          append: append || undefined,
        };
      }
    }
  } catch (error) {
    // The output of a stopped process is truncated on purpose.
    if (!turn.signal.aborted) throw error;
  }
  return message === undefined ? undefined : { message, direct: silent };
}

function toAgentEvent(turn: AgentTurn, event: Exclude<OutputEvent, { kind: "message" }>): AgentEvent {
  if (event.kind === "artifact") return turn.artifact(event.options);
  return { status: event.state, message: event.message };
}

function inputOf(turn: AgentTurn, format: "text" | "json"): string {
  if (format === "text") return turn.text;
  return `${JSON.stringify({ message: turn.message, history: turn.history, task: turn.task })}\n`;
}
