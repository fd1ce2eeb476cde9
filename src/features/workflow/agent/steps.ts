/** Runs the steps of a workflow, each when those it needs have ended. */

import { backoffDelay, sleep } from "../../../core/model/backoff.ts";
import type { JsonValue } from "../../../core/model/json.ts";
import type { Part } from "../../../core/model/message.ts";
import { statusText } from "../../../core/model/status-texts.ts";
import type { Scope, Step, StepResult, Workflow } from "../definition/plan.ts";
import { evaluate, readItems, renderInput, TemplateError } from "../definition/template.ts";
import { ItemDisplay } from "./artifact-display.ts";
import { Attempt, type AttemptOutcome } from "./attempt.ts";
import type { RunContext, Stored } from "./context.ts";
import { HaltedError, type HaltScope } from "./halt.ts";
import type { StepProgress } from "./progress.ts";
import {
  checkDeclared,
  failedOutcome,
  joinOutcomes,
  MAX_RUN_SIZE,
  type StepOutcome,
  sizeOfOutcome,
  toInput,
  toItemsResult,
  toResult,
} from "./results.ts";

/** Tasks of earlier steps that a message refers to. */
const MAX_REFERENCES = 100;
/** Reasons of items that are named when a `foreach` fails. */
const MAX_NAMED_ITEMS = 3;

/** Where the steps of a workflow or sub-workflow run. */
interface PlanOptions {
  readonly context: RunContext;
  readonly workflow: Workflow;
  /** Precedes the names of the steps. */
  readonly base: string;
  readonly input: Scope["input"];
  /** Ended by a step that fails, if that ends the workflow. */
  readonly scope: HaltScope;
  /** The name of an output step's artifacts; undefined: they are not shown. */
  readonly show: (step: string) => string | undefined;
}

export interface FailedStep {
  readonly path: string;
  readonly outcome: StepOutcome;
}

interface PlanOutcome {
  /** The step that ended the workflow. */
  readonly failed: FailedStep | undefined;
  /** Steps that failed without ending it. */
  readonly tolerated: readonly string[];
  readonly outcomes: ReadonlyMap<string, StepOutcome>;
}

interface EndedStep {
  readonly outcome: StepOutcome;
  readonly result: StepResult;
}

/** Rejects with a HaltedError if the scope was ended by anything but a step of the workflow. */
export async function runSteps(options: PlanOptions): Promise<PlanOutcome> {
  const { base, scope, workflow } = options;
  const running = new Map<string, Promise<EndedStep>>();
  const ended = new Map<string, EndedStep>();
  // Without a prototype: any name may be that of a step.
  const results: Record<string, StepResult> = Object.create(null);
  const tolerated: string[] = [];
  let failed: FailedStep | undefined;
  const run = async (step: Step): Promise<EndedStep> => {
    await Promise.all(step.needs.map((name) => running.get(name)));
    scope.throwIfHalted();
    const end = await runStep(step, options, { input: options.input, steps: results }, ended);
    ended.set(step.name, end);
    results[step.name] = end.result;
    const { outcome } = end;
    if (outcome.state === "completed" || outcome.state === "skipped") return end;
    if (step.onFailure === "continue") tolerated.push(base + step.name);
    else {
      failed ??= { path: base + step.name, outcome };
      scope.halt("stop");
    }
    return end;
  };
  for (const name of workflow.order) running.set(name, run(workflow.steps.get(name) as Step));
  const settled = await Promise.allSettled(running.values());
  const outcomes = new Map([...ended].map(([name, { outcome }]) => [name, outcome]));
  if (failed !== undefined) return { failed, tolerated, outcomes };
  for (const step of settled) if (step.status === "rejected") throw step.reason;
  return { failed, tolerated, outcomes };
}

async function runStep(
  step: Step,
  options: PlanOptions,
  values: Scope,
  ended: ReadonlyMap<string, EndedStep>,
): Promise<EndedStep> {
  const { context, scope } = options;
  const path = options.base + step.name;
  if (step.when !== undefined && !evaluate(step.when, values)) {
    await context.report({ step: path, state: "skipped" });
    const outcome: StepOutcome = { state: "skipped", artifacts: [], tasks: [] };
    return { outcome, result: toResult(outcome) };
  }
  const references = step.needs.flatMap((name) => ended.get(name)?.outcome.tasks ?? []).slice(0, MAX_REFERENCES);
  const show = options.show(step.name);
  if (step.foreach !== undefined) return runItems({ context, step, path, values, references, scope, show });
  const outcome = await runOnce({ context, step, path, values, references, scope, show });
  return { outcome, result: toResult(outcome) };
}

interface StepOptions {
  readonly context: RunContext;
  readonly step: Step;
  readonly path: string;
  readonly values: Scope;
  readonly references: readonly string[];
  readonly scope: HaltScope;
  readonly show: string | undefined;
}

/** Runs a step for each of its items, so many at a time. */
async function runItems(options: StepOptions): Promise<EndedStep> {
  const { context, path, step, values } = options;
  const items = await readStepItems(options);
  if (typeof items === "string") return endWith(options, failedOutcome(items));
  // The number is all that has to be known to find the tasks of the items again.
  if (items.length > 0) await context.memory.set(itemsKey(path), items.length);
  const { release, scope } = options.scope.nest();
  const display = options.show === undefined ? undefined : new ItemDisplay(options.show);
  const outcomes: StepOutcome[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      const item = items[index] as JsonValue;
      const scoped = { ...values, item, index };
      const outcome = await runOnce({
        ...options,
        path: itemPath(path, index),
        values: scoped,
        scope,
        show: undefined,
      });
      outcomes[index] = outcome;
      if (outcome.state !== "completed" && step.onFailure === "stop") scope.halt("stop");
      for (const event of display?.show(index, outcome) ?? []) await context.emit(event);
    }
  };
  const workers = Array.from({ length: Math.min(step.concurrency, items.length) }, work);
  const settled = await Promise.allSettled(workers);
  release();
  options.scope.throwIfHalted();
  const failures = outcomes.flatMap((outcome, index) =>
    outcome.state === "completed" ? [] : [`${itemPath(step.name, index)}: ${outcome.error ?? outcome.state}`],
  );
  if (failures.length === 0) for (const worker of settled) if (worker.status === "rejected") throw worker.reason;
  const named = failures.slice(0, MAX_NAMED_ITEMS).join("; ");
  const error = `${failures.length} of ${items.length} items did not complete: ${named}`;
  const done = outcomes.filter((outcome) => outcome !== undefined);
  const outcome = failures.length === 0 ? joinOutcomes("completed", done) : joinOutcomes("failed", done, error);
  await report(options, outcome);
  return { outcome, result: toItemsResult(outcome, done) };
}

/** A text says why there are none. */
async function readStepItems({ context, step, values, path }: StepOptions): Promise<readonly JsonValue[] | string> {
  try {
    const items = step.foreach === undefined ? [] : readItems(step.foreach, values);
    await context.report({ step: path, state: "started" }, `${items.length} items`);
    return items;
  } catch (error) {
    if (error instanceof TemplateError) return error.message;
    throw error;
  }
}

/** A step, or an item of one, with all its attempts. */
async function runOnce(options: StepOptions): Promise<StepOutcome> {
  const { context, path, step, values } = options;
  const { memory } = context;
  const stored = context.isResumed ? await memory.get<Stored<StepOutcome>>(doneKey(path)) : undefined;
  if (stored !== undefined) {
    context.keep(sizeOfOutcome(stored));
    return stored;
  }
  let parts: readonly Part[];
  try {
    parts = step.input === undefined ? values.input.parts : renderInput(step.input, values);
  } catch (error) {
    if (error instanceof TemplateError) return (await endWith(options, failedOutcome(error.message))).outcome;
    throw error;
  }
  for (let attempt = (context.isResumed && (await memory.get<number>(attemptKey(path)))) || 1; ; attempt++) {
    options.scope.throwIfHalted();
    const { outcome, retryAfterMs, progress, canBeFound } = await runAttempt(options, parts, attempt);
    if (outcome.state === "completed" || retryAfterMs === undefined || attempt >= step.retry.attempts) {
      const kept = context.keep(sizeOfOutcome(outcome))
        ? outcome
        : failedOutcome(statusText("runTooLong", MAX_RUN_SIZE), outcome.tasks);
      // In this order a crash in between may report the end twice, but never not at all.
      await report(options, kept, progress);
      // Where the task of the step would be found again, the next step need not wait for the record.
      const isFound = canBeFound === true && kept.state === "completed";
      await memory[isFound ? "setLater" : "set"](doneKey(path), kept as Stored<StepOutcome>);
      return kept;
    }
    await context.report({ ...progress, state: "retrying" }, outcome.error);
    await memory.set(attemptKey(path), attempt + 1);
    const { baseMs, capMs } = step.retry;
    await pause(Math.max(retryAfterMs, backoffDelay(attempt, baseMs, capMs, context.random())), options);
  }
}

interface ReportedOutcome extends AttemptOutcome {
  readonly progress: Omit<StepProgress, "state">;
  /** A run that is resumed would get the outcome again. */
  readonly canBeFound?: boolean;
}

async function runAttempt(options: StepOptions, parts: readonly Part[], number: number): Promise<ReportedOutcome> {
  const { context, path, references, scope, show, step } = options;
  const { outputSchema, target, timeoutMs } = step;
  if ("workflow" in target) return runSubWorkflow(options, target.workflow, parts, number);
  const attempt = new Attempt(
    context,
    { path, number, id: context.childId(path, number), target, parts, references, timeoutMs, outputSchema, show },
    scope,
  );
  const result = await attempt.run();
  return { ...result, progress: attempt.progress, canBeFound: attempt.canBeFound };
}

/** A workflow as a step: its steps run in the same task. */
async function runSubWorkflow(
  options: StepOptions,
  workflow: Workflow,
  parts: readonly Part[],
  attempt: number,
): Promise<ReportedOutcome> {
  const { context, path, show, step } = options;
  const { release, scope } = options.scope.nest();
  const { timeoutMs } = step;
  let timedOut = false;
  const stopTimer =
    timeoutMs === undefined
      ? () => {}
      : context.clock.after(timeoutMs, () => {
          timedOut = true;
          scope.halt("stop");
        });
  const progress = { step: path, attempt };
  await context.report({ ...progress, state: "started" });
  const single = workflow.output.length === 1;
  const showStep = (name: string): string | undefined =>
    show === undefined || !workflow.output.includes(name) ? undefined : single ? show : `${show}/${name}`;
  try {
    const base = subBase(path, attempt);
    const { failed, outcomes } = await runSteps({
      context,
      workflow,
      base,
      input: toInput(parts),
      scope,
      show: showStep,
    });
    options.scope.throwIfHalted();
    if (failed === undefined) {
      const returned = workflow.output.flatMap((name) => outcomes.get(name) ?? []);
      const outcome = await checkDeclared(joinOutcomes("completed", returned), step.outputSchema);
      return { outcome, retryAfterMs: outcome.state === "completed" ? undefined : 0, progress };
    }
    const error = `Step ${failed.path}: ${failed.outcome.error ?? failed.outcome.state}`;
    return { outcome: joinOutcomes("failed", [], error), retryAfterMs: 0, progress };
  } catch (error) {
    options.scope.throwIfHalted();
    if (!timedOut || !(error instanceof HaltedError)) throw error;
    const outcome = failedOutcome(statusText("stepTimedOut", (timeoutMs ?? 0) / 1000));
    return { outcome, retryAfterMs: 0, progress };
  } finally {
    stopTimer();
    release();
  }
}

async function endWith(options: StepOptions, outcome: StepOutcome): Promise<EndedStep> {
  await report(options, outcome);
  return { outcome, result: toResult(outcome) };
}

async function report({ context, path }: StepOptions, outcome: StepOutcome, progress?: ReportedOutcome["progress"]) {
  await context.report({ step: path, ...progress, state: outcome.state }, outcome.error);
}

/** Rejects with a HaltedError if the run ends meanwhile. */
async function pause(milliseconds: number, { context, scope }: StepOptions): Promise<void> {
  const halted = new AbortController();
  const forget = scope.onHalt(() => halted.abort(new HaltedError("The run has ended.")));
  await sleep(context.clock, milliseconds, halted.signal).finally(forget);
}

/** Key in the memory of a run: how a step ended. */
export const doneKey = (path: string): string => `done:${path}`;
/** Key in the memory of a run: the attempt that a step has reached, if not the first. */
export const attemptKey = (path: string): string => `attempt:${path}`;
/** Key in the memory of a run: the number of items of a step. */
export const itemsKey = (path: string): string => `items:${path}`;
export const itemPath = (path: string, index: number): string => `${path}[${index}]`;
/** Precedes the steps of a sub-workflow, whose attempts have nothing in common. */
export const subBase = (path: string, attempt: number): string => (attempt === 1 ? `${path}/` : `${path}#${attempt}/`);
