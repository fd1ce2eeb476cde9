import { existsSync } from "node:fs";
import type { Agent, AgentEvent, MessageDraft } from "../../engine/agent.ts";
import type { AgentDefinition } from "../define.ts";
import { defineAgent } from "../define.ts";
import type { AgentTurn } from "../turn.ts";
import { Child, type ChildOptions } from "./child.ts";
import { linesOf } from "./lines.ts";
import { type OutputEvent, readOutputEvent } from "./output.ts";

export interface ProcessAgentOptions extends Omit<AgentDefinition, "run"> {
  /** The program and its arguments; no shell reads them. */
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** What stdin gets: the text of the message, or one JSON object `{message, history, task}`. */
  readonly format?: "text" | "json";
  /** Time between SIGTERM and SIGKILL when the turn is aborted. */
  readonly cancelGraceMs?: number;
}

/** Processes are dearer than function calls: unless told otherwise, only so many run at a time. */
const DEFAULT_CONCURRENCY = 16;
const DEFAULT_CANCEL_GRACE_MS = 5_000;
const OUTPUT = "output";

/** An agent that starts a process for every turn: message in on stdin, reply out on stdout. */
export function createProcessAgent(options: ProcessAgentOptions): Agent {
  const { command, cwd, env, format = "text", cancelGraceMs = DEFAULT_CANCEL_GRACE_MS, ...definition } = options;
  return defineAgent({
    concurrency: DEFAULT_CONCURRENCY,
    ...definition,
    run: (turn) =>
      runProcess(turn, inputOf(turn, format), {
        command,
        cwd,
        graceMs: cancelGraceMs,
        env: { ...process.env, ...env, DRAGOMAN_TASK_ID: turn.task.id, DRAGOMAN_CONTEXT_ID: turn.task.contextId },
      }),
  });
}

async function* runProcess(
  turn: AgentTurn,
  input: string,
  options: ChildOptions,
): AsyncGenerator<AgentEvent, MessageDraft | undefined, undefined> {
  if (turn.signal.aborted) return undefined;
  let child: Child;
  try {
    child = await Child.start(options);
  } catch (error) {
    yield turn.failed(startFailure(options, error));
    return undefined;
  }
  const stop = () => child.stop();
  turn.signal.addEventListener("abort", stop, { once: true });
  if (turn.signal.aborted) stop();
  try {
    child.give(input);
    const reply = yield* eventsOf(turn, child);
    const { code, signal } = await child.exit;
    if (turn.signal.aborted) return undefined;
    if (code !== 0) {
      yield turn.failed(exitFailure(options, code, signal, await child.stderrTail()));
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

interface Reply {
  readonly message: MessageDraft;
  /** Nothing else was said, so it needs no task. */
  readonly direct: boolean;
}

async function* eventsOf(turn: AgentTurn, child: Child): AsyncGenerator<AgentEvent, Reply | undefined, undefined> {
  let opened = false;
  let silent = true;
  let message: MessageDraft | undefined;
  try {
    for await (const line of linesOf(child.stdout)) {
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
        yield {
          artifact: { artifactId: OUTPUT, name: OUTPUT, parts: [{ text: line.text }] },
          ...(opened && { append: true }),
        };
        opened = true;
      }
    }
  } catch (error) {
    // A stopped process's output is cut off on purpose.
    if (!turn.signal.aborted) throw error;
  }
  return message === undefined ? undefined : { message, direct: silent };
}

function toAgentEvent(turn: AgentTurn, event: Exclude<OutputEvent, { kind: "message" }>): AgentEvent {
  if (event.kind === "artifact") return turn.artifact(event.options);
  return { status: event.state, ...(event.message && { message: event.message }) };
}

function inputOf(turn: AgentTurn, format: "text" | "json"): string {
  if (format === "text") return turn.text;
  return `${JSON.stringify({ message: turn.message, history: turn.history, task: turn.task })}\n`;
}

function startFailure({ command, cwd }: ChildOptions, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  // Callers are told what is wrong, not where things are on this machine.
  return `Could not start ${command[0]}: ${existsSync(cwd) ? reason : "its working directory does not exist"}.`;
}

function exitFailure(
  { command }: ChildOptions,
  code: number | null,
  signal: NodeJS.Signals | null,
  stderr: string,
): string {
  const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
  return `${command[0]} ${how}.${stderr === "" ? "" : `\n${stderr}`}`;
}
