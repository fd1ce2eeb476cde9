/** Runs a workflow: shows its steps, passes on its questions, and reports how it ended. */

import { createInterface } from "node:readline/promises";
import { CommandError, CommandExit, toFailure } from "../../../core/cli/errors.ts";
import { type Output, printJson } from "../../../core/cli/output.ts";
import { renderArtifact } from "../../../core/cli/render/task.ts";
import { INDENT } from "../../../core/cli/render/text.ts";
import { StopSignal } from "../../../core/cli/session/stop-signal.ts";
import type { StreamEvent } from "../../../core/model/event.ts";
import { type Part, textOf } from "../../../core/model/message.ts";
import type { Task, TaskStatus } from "../../../core/model/task.ts";
import type { FindAgents } from "../../../core/server/agent-chooser.ts";
import type { DragomanConfig } from "../../../core/server/config/index.ts";
import { readProgress, type StepProgress } from "../agent/progress.ts";
import type { Workflow } from "../definition/plan.ts";
import { RunView, renderChange, renderTree, type StepUpdate } from "./render.ts";
import { createMessageLog, openWorkflowRun, type WorkflowRun } from "./workflow-run.ts";

interface Execution {
  readonly workflow: Workflow;
  readonly parts: readonly Part[];
  readonly config: DragomanConfig | undefined;
  readonly format: "text" | "json" | undefined;
  /** Where agents that the configuration does not have are looked up. */
  readonly find: FindAgents;
}

/** Shorter ones are not credentials, and redacting them everywhere would garble messages. */
const MIN_SECRET_LENGTH = 6;

export async function executeWorkflow(output: Output, execution: Execution): Promise<void> {
  const { config, find, format, parts, workflow } = execution;
  if (config !== undefined) {
    const { collectConfigSecrets } = await import("../../../core/server/config/secrets.ts");
    for (const secret of collectConfigSecrets(config)) {
      if (secret.length >= MIN_SECRET_LENGTH) output.addSecret(secret);
    }
  }
  const run = await openWorkflowRun(workflow, config, find, createMessageLog(output));
  const stop = new StopSignal();
  stop.listenForInterrupt();
  try {
    const task = await runToEnd(output, run, { workflow, parts, stop });
    report(output, task, format, stop.reason === "interrupted");
  } finally {
    stop.dispose();
    await run.close();
  }
}

/** Returns the task when it has ended, or when it asks and no one can answer. */
async function runToEnd(
  output: Output,
  run: WorkflowRun,
  { parts, stop, workflow }: Pick<Execution, "parts" | "workflow"> & { readonly stop: StopSignal },
): Promise<Task> {
  const display = createDisplay(output, workflow);
  const replies = createReplies(output, run, display, stop);
  let id: string | undefined;
  const cancel = async (): Promise<void> => {
    if (id === undefined) return;
    output.info("Cancelling the run. Press Ctrl-C again to quit now.");
    await run.cancel(id);
  };
  stop.signal.addEventListener("abort", () => void cancel(), { once: true });
  try {
    let events = run.send(parts);
    for (;;) {
      for await (const event of events) {
        const isFirst = id === undefined;
        id ??= idOf(event);
        if (isFirst && stop.signal.aborted) void cancel();
        const status = "statusUpdate" in event ? event.statusUpdate.status : undefined;
        const update = status && toUpdate(status);
        if (update !== undefined) display.show(update);
        if (status?.state === "TASK_STATE_AUTH_REQUIRED") replies.accept(await run.get(id ?? ""));
        else if (status !== undefined) replies.end();
      }
      replies.end();
      const task = await run.get(id ?? "");
      if (task.status.state !== "TASK_STATE_INPUT_REQUIRED") {
        display.finish(textOf(task.status.message?.parts ?? []));
        return task;
      }
      display.pause();
      output.info(INDENT + textOf(task.status.message?.parts ?? []));
      const answer = await ask(output, stop.signal);
      if (answer === undefined) {
        await run.cancel(task.id);
        return stop.reason === undefined ? task : run.get(task.id);
      }
      events = run.send([{ text: answer }], task);
    }
  } finally {
    replies.end();
    display.pause();
  }
}

/**
 * While a step waits to be authorised, which is done elsewhere, a person at a terminal may write to its agent about it.
 * The run is followed meanwhile, and after the reply, which is sent once.
 */
function createReplies(output: Output, run: WorkflowRun, display: Display, stop: StopSignal) {
  let waiting: AbortController | undefined;
  const pass = async (task: Task, { signal }: AbortController): Promise<void> => {
    const answer = await ask(output, AbortSignal.any([signal, stop.signal]));
    display.leaveTerminal(false);
    if (answer === undefined) return;
    // What the reply leads to is read where the run is followed.
    for await (const _ of run.send([{ text: answer }], task)) break;
  };
  return {
    accept(task: Task): void {
      if (waiting !== undefined || !canAsk(output)) return;
      waiting = new AbortController();
      display.leaveTerminal(true);
      output.info("Do what it asks for; the run then continues. A line written here is sent to its agent.");
      pass(task, waiting).catch((error: Error) => output.warn(error.message));
    },
    end(): void {
      if (waiting === undefined) return;
      waiting.abort();
      waiting = undefined;
      display.leaveTerminal(false);
    },
  };
}

function idOf(event: StreamEvent): string | undefined {
  if ("task" in event) return event.task.id;
  if ("statusUpdate" in event) return event.statusUpdate.taskId;
  return "artifactUpdate" in event ? event.artifactUpdate.taskId : undefined;
}

const REPORTING = new Set(["TASK_STATE_WORKING", "TASK_STATE_AUTH_REQUIRED", "TASK_STATE_INPUT_REQUIRED"]);

/** The end of a run repeats what was reported of the step that ended it. */
function toUpdate({ message, state }: TaskStatus): StepUpdate | undefined {
  const progress = readProgress(message);
  if (progress === undefined || message === undefined || !REPORTING.has(state)) return undefined;
  const { agent, dialect, step } = progress;
  const detail = detailOf(progress, textOf(message.parts));
  return { step, state: progress.state, ...(agent && { agent }), ...(dialect && { dialect }), detail };
}

/** Without the words that repeat the step and its state. */
function detailOf({ state, step }: StepProgress, text: string): string {
  if (state === "started" || state === "completed" || state === "skipped") return "";
  if (!text.startsWith(`Step ${step}`)) return text;
  const colon = text.indexOf(": ", step.length);
  return colon === -1 ? "" : text.slice(colon + 2);
}

const TICK_MS = 1_000;
const RUNNING = new Set(["started", "working", "retrying", "input-required", "auth-required"]);

interface Display {
  show(update: StepUpdate): void;
  /** Leaves the terminal to others until the next update. */
  pause(): void;
  /** Shows changes line by line as long as others need the terminal. */
  leaveTerminal(isLeft: boolean): void;
  /** `message` is that of the task's end, which names the steps that could not be cancelled. */
  finish(message: string): void;
}

/** Shows the steps while they run: as a tree on a terminal, elsewhere one line for each change. */
function createDisplay(output: Output, workflow: Workflow): Display {
  const view = new RunView(workflow);
  const tree = (): readonly string[] => {
    const size = { columns: output.columns, lines: output.maxStatusLines };
    return renderTree(view.rows, { now: performance.now(), ...size });
  };
  const draw = (): void => output.status(tree().join("\n"));
  let timer: NodeJS.Timeout | undefined;
  let isLeft = false;
  const pause = (): void => {
    if (timer === undefined) return;
    clearInterval(timer);
    timer = undefined;
    output.status(undefined);
    output.info(tree());
  };
  const show = (update: StepUpdate): void => {
    const row = view.apply(update, performance.now());
    if (!output.canShowStatus || isLeft) {
      output.info(renderChange(row));
      return;
    }
    // The tree has no room for what a person has to do.
    if (update.state === "auth-required") output.info(renderChange(row));
    timer ??= setInterval(draw, TICK_MS);
    draw();
  };
  return {
    show,
    pause,
    leaveTerminal(left) {
      isLeft = left;
      if (left) pause();
    },
    finish(message) {
      isLeft = false;
      // What was shown line by line, while a person wrote, is not in a tree yet.
      if (output.canShowStatus) timer ??= setInterval(draw, TICK_MS);
      for (const { state, step } of view.rows) {
        if (RUNNING.has(state) && !message.includes(`${step} (`)) show({ step, state: "canceled", detail: "" });
      }
      pause();
    },
  };
}

function canAsk(output: Output): boolean {
  return process.stdin.isTTY === true && output.stderrIsTerminal;
}

/** Undefined if there is no terminal, or no answer. */
async function ask(output: Output, signal: AbortSignal): Promise<string | undefined> {
  if (!canAsk(output) || signal.aborted) return undefined;
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  // A terminal that is read line by line sends no signal for Ctrl-C.
  lines.on("SIGINT", () => process.emit("SIGINT"));
  const closed = new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)));
  try {
    for (;;) {
      const asked = lines.question("> ", { signal }).catch(() => undefined);
      const answer = await Promise.race([asked, closed]);
      if (answer === undefined || answer.trim() !== "") return answer;
    }
  } finally {
    lines.close();
  }
}

/** The artifacts, or the task as JSON; then, if it did not complete, why. */
function report(output: Output, task: Task, format: Execution["format"], interrupted: boolean): void {
  const { status } = task;
  const text = textOf(status.message?.parts ?? []);
  if (format === "json") printJson(output, { task }, "document");
  else for (const artifact of task.artifacts ?? []) output.write(renderArtifact(artifact, false));
  if (status.state === "TASK_STATE_COMPLETED") {
    if (text !== "") output.warn(text);
    return;
  }
  const error = interrupted ? interruption(text) : failureOf(task, text);
  if (format !== "json") throw error;
  // There is one document on stdout, and it is the task.
  output.error(error.message);
  throw new CommandExit(toFailure(error).exit);
}

function interruption(text: string): CommandError {
  return new CommandError("DRAGOMAN_ERR_INTERRUPTED", `Interrupted. The run was cancelled. ${text}`.trim());
}

function failureOf({ status }: Task, text: string): CommandError {
  if (status.state !== "TASK_STATE_INPUT_REQUIRED") {
    const message = text === "" ? "The run did not complete." : text;
    return new CommandError("DRAGOMAN_ERR_WORKFLOW_FAILED", message);
  }
  const step = readProgress(status.message)?.step ?? "";
  return new CommandError(
    "DRAGOMAN_ERR_INPUT_REQUIRED",
    `Step ${step} asks: ${text} There is no terminal to answer at, so the run was cancelled.`,
    "Run it at a terminal, put the answer into the message, or serve the workflow as an agent and reply with dragoman send --task-id.",
  );
}
