import { type ChildTask, canBeQueried } from "../../../core/agents/child-task.ts";
import { Collector, UnusableAnswerError } from "../../../core/agents/collector.ts";
import type { AgentTarget, CallableAgent } from "../../../core/agents/directory.ts";
import { ConnectionError } from "../../../core/client/errors.ts";
import type { AgentEvent } from "../../../core/engine/agent.ts";
import { withAnswer } from "../../../core/model/answer.ts";
import { backoffDelay, sleep } from "../../../core/model/backoff.ts";
import { type ErrorCode, ProtocolError } from "../../../core/model/errors.ts";
import type { TaskEvent } from "../../../core/model/event.ts";
import type { JsonObject } from "../../../core/model/json.ts";
import { type Message, textOf } from "../../../core/model/message.ts";
import type { FrameStream } from "../../../core/model/operation.ts";
import { statusText } from "../../../core/model/status-texts.ts";
import { isTerminal, type TaskState } from "../../../core/model/task.ts";
import type { StepState } from "../definition/plan.ts";
import { ArtifactDisplay } from "./artifact-display.ts";
import type { Question, RunContext } from "./context.ts";
import { HaltedError, type HaltScope } from "./halt.ts";
import { type ChildMessage, chooseAgent, openChild } from "./open-child.ts";
import type { StepProgress } from "./progress.ts";
import { checkDeclared, failedOutcome, type StepOutcome } from "./results.ts";

/** How long the agents of steps may take to confirm that they cancelled; less than the engine gives the run itself. */
const STOP_MS = 4_000;
/** Pauses between questions to an agent whose task waits to be authorised, and whose stream has ended: they double. */
const AUTH_POLL_MS = { base: 2_000, cap: 30_000 };
/** Attempts to follow a task again whose stream ends without a result or any event. */
const MAX_EMPTY_STREAMS = 3;
/** Status messages of one attempt that are passed on, and their length. */
const MAX_PROGRESS = 100;
const MAX_PROGRESS_LENGTH = 500;

/** Errors that another attempt would get again. */
const PERMANENT: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "CONTENT_TYPE_NOT_SUPPORTED",
  "EXTENSION_SUPPORT_REQUIRED",
  "IDEMPOTENCY_CONFLICT",
  "INVALID_PARAMS",
  "INVALID_REQUEST",
  "LOSS_REFUSED",
  "METHOD_NOT_FOUND",
  "PARSE_ERROR",
  "PERMISSION_DENIED",
  "UNAUTHENTICATED",
  "UNSUPPORTED_OPERATION",
  "VERSION_NOT_SUPPORTED",
]);

const STEP_STATES = {
  TASK_STATE_COMPLETED: "completed",
  TASK_STATE_FAILED: "failed",
  TASK_STATE_CANCELED: "canceled",
  TASK_STATE_REJECTED: "rejected",
} as const satisfies Partial<Record<TaskState, StepState>>;

/** Of an agent that gives none. */
const REASONS = {
  failed: "taskFailed",
  canceled: "taskCanceled",
  rejected: "taskRejected",
} as const;

interface AttemptOptions extends ChildMessage {
  readonly target: AgentTarget;
  readonly timeoutMs: number | undefined;
  readonly outputSchema: JsonObject | undefined;
  /** Under which the artifacts are shown as they come; undefined: they are not. */
  readonly show: string | undefined;
}

export interface AttemptOutcome {
  readonly outcome: StepOutcome;
  /** Another attempt may succeed, after so many milliseconds at least. */
  readonly retryAfterMs: number | undefined;
}

/** One attempt at a step: a task at an agent, from the message to its result. */
export class Attempt {
  readonly #context: RunContext;
  readonly #options: AttemptOptions;
  readonly #scope: HaltScope;
  readonly #connection = new AbortController();
  readonly #collector = new Collector();
  readonly #display: ArtifactDisplay | undefined;
  #agent: CallableAgent | undefined;
  #child: ChildTask | undefined;
  /** Resolves when the agent has received the message, or will not. */
  readonly #opened = createGate();
  #ending: Promise<void> | undefined;
  /** When the attempt is over in any case. Its agent knows that too, and may be quicker than the timer here. */
  #deadline: number | undefined;
  /** Aborted when the run ends before the attempt, or the attempt takes too long. */
  readonly #over = new AbortController();
  #timedOut = false;
  #reported = 0;

  constructor(context: RunContext, options: AttemptOptions, scope: HaltScope) {
    this.#context = context;
    this.#options = options;
    this.#scope = scope;
    this.#display = options.show === undefined ? undefined : new ArtifactDisplay(options.show);
  }

  /** Rejects with a HaltedError if the run ends before the attempt. */
  async run(): Promise<AttemptOutcome> {
    const { clock } = this.#context;
    const { timeoutMs } = this.#options;
    this.#scope.throwIfHalted();
    const forget = this.#scope.onHalt((reason) => {
      this.#ending = reason === "stop" ? this.#stop() : this.#leave(reason === "lose");
      this.#over.abort();
    });
    let stopTimer = () => {};
    if (timeoutMs !== undefined) {
      this.#deadline = clock.now() + timeoutMs;
      stopTimer = clock.after(timeoutMs, () => {
        this.#timedOut = true;
        this.#ending ??= this.#stop();
        this.#over.abort();
      });
    }
    try {
      const result = await this.#perform();
      if (result.outcome.state !== "completed") this.#throwIfOver();
      return result;
    } catch (error) {
      return this.#toFailure(error);
    } finally {
      this.#opened.open();
      stopTimer();
      forget();
      await this.#ending;
      this.#context.waitForAuth(this.#options.path, undefined);
    }
  }

  /** There is a task that would be found again by its chosen id, and with it the outcome. */
  get canBeFound(): boolean {
    return this.#child?.id !== undefined && this.#agent?.isLocal === true && canBeQueried(this.#agent);
  }

  get progress(): Omit<StepProgress, "state"> {
    const { id, number, path, target } = this.#options;
    const task = this.#child?.id ?? (this.#agent?.isLocal === true ? id : undefined);
    return {
      step: path,
      ...(this.#agent && { agent: this.#agent.name, dialect: this.#agent.dialect }),
      ...(this.#agent?.chosen && {
        registered: this.#agent.chosen.id,
        ...("skill" in target && { skill: target.skill }),
      }),
      ...(task !== undefined && { task }),
      attempt: number,
    };
  }

  async #perform(): Promise<AttemptOutcome> {
    this.#agent = await chooseAgent(this.#context, this.#options);
    this.#throwIfOver();
    await this.#context.report({ ...this.progress, state: "started" });
    this.#throwIfOver();
    const frames = await openChild({
      context: this.#context,
      attempt: this.#options,
      agent: this.#agent,
      signal: this.#connection.signal,
      deadline: this.#deadline,
      onCreate: (child) => {
        this.#child = child;
      },
    });
    this.#opened.open();
    if (frames === undefined) return mayRetry(failedOutcome(statusText("deliveryUnknown")));
    return this.#follow(this.#agent, frames);
  }

  async #follow(agent: CallableAgent, opened: FrameStream): Promise<AttemptOutcome> {
    let frames = opened;
    let empty = 0;
    for (;;) {
      const before = this.#collector.events;
      const reply = await this.#read(frames);
      if (reply !== undefined) return this.#finish("completed", reply);
      const child = this.#child as ChildTask;
      const { id, state } = child;
      if (state !== undefined && state in STEP_STATES) {
        return this.#finish(STEP_STATES[state as keyof typeof STEP_STATES], this.#answer);
      }
      this.#throwIfOver();
      const waits = state === "TASK_STATE_AUTH_REQUIRED";
      if (state === "TASK_STATE_INPUT_REQUIRED" || (waits && !canBeQueried(agent))) this.#ask(state);
      if (waits) await this.#waitForAuth(agent);
      empty = this.#collector.events > before ? 0 : empty + 1;
      if (id === undefined || !canBeQueried(agent) || empty > MAX_EMPTY_STREAMS) {
        return mayRetry(failedOutcome(statusText("answerBrokeOff"), this.#tasks));
      }
      frames = await child.attach(id, undefined, this.#connection.signal);
    }
  }

  /** Returns the message of an agent that answers without a task. */
  async #read(frames: FrameStream): Promise<Message | undefined> {
    const child = this.#child as ChildTask;
    const reading = child.read(frames, (event) => this.#translate(event));
    for (;;) {
      const step = await reading.next();
      if (step.done === true) return step.value;
      for (const { event, items } of step.value) {
        for (const item of items) await this.#context.emit(item);
        await this.#reportState(event);
      }
      // What follows the end is not of interest.
      if (child.state !== undefined && isTerminal(child.state)) await child.leave();
    }
  }

  #translate(event: TaskEvent): AgentEvent[] {
    const changes = this.#collector.apply(event);
    return changes.flatMap((change) => this.#display?.show(change) ?? []);
  }

  /** Until the task is no longer what it was when its agent ended the stream. */
  async #waitForAuth({ can }: CallableAgent): Promise<void> {
    const { clock, random } = this.#context;
    for (let looks = 1; ; looks++) {
      await sleep(clock, backoffDelay(looks, AUTH_POLL_MS.base, AUTH_POLL_MS.cap, random()), this.#over.signal);
      const task = can?.operations.get === true ? await this.#child?.get() : undefined;
      if (task?.status.state !== "TASK_STATE_AUTH_REQUIRED") return;
    }
  }

  /** Passes on what the agent writes about its work. */
  async #reportState(event: TaskEvent): Promise<void> {
    if ("artifactUpdate" in event) return;
    const { message, state } = "task" in event ? event.task.status : event.statusUpdate.status;
    const waits = state === "TASK_STATE_AUTH_REQUIRED";
    this.#context.waitForAuth(this.#options.path, waits ? this.#question(state) : undefined);
    const text = message === undefined ? "" : textOf(message.parts).slice(0, MAX_PROGRESS_LENGTH);
    // A task as it stands says nothing new about the work.
    if (!waits && ("task" in event || state !== "TASK_STATE_WORKING" || text === "")) return;
    if (++this.#reported > MAX_PROGRESS) return;
    await this.#context.report({ ...this.progress, state: waits ? "auth-required" : "working" }, text);
  }

  /** The turn ends with the question of the agent. */
  #ask(status: Question["status"]): never {
    this.#context.ask(this.#question(status));
    throw new HaltedError("The step waits for an answer.");
  }

  #question(status: Question["status"]): Question {
    const state = status === "TASK_STATE_INPUT_REQUIRED" ? "input-required" : "auth-required";
    return { status, path: this.#options.path, message: this.#answer, progress: { ...this.progress, state } };
  }

  get #answer(): Message | undefined {
    const { task } = this.#collector;
    return task && withAnswer(task).status.message;
  }

  async #finish(
    state: (typeof STEP_STATES)[keyof typeof STEP_STATES],
    message: Message | undefined,
  ): Promise<AttemptOutcome> {
    const { outputSchema } = this.#options;
    const parts = message?.parts ?? [];
    const text = textOf(parts);
    if (state !== "completed") {
      const failed: StepOutcome = {
        ...failedOutcome(text === "" ? statusText(REASONS[state]) : text, this.#tasks),
        state,
      };
      return state === "failed" ? mayRetry(failed) : { outcome: failed, retryAfterMs: undefined };
    }
    const artifacts = this.#collector.task?.artifacts ?? [];
    const returned: StepOutcome = {
      state,
      artifacts,
      tasks: this.#tasks,
      ...(artifacts.length === 0 && parts.length > 0 ? { message: parts } : undefined),
    };
    const outcome = await checkDeclared(returned, outputSchema);
    if (outcome !== returned) return mayRetry(outcome);
    for (const event of this.#display?.showMessage(outcome) ?? []) await this.#context.emit(event);
    return { outcome, retryAfterMs: undefined };
  }

  get #tasks(): readonly string[] {
    const id = this.#child?.id;
    return id === undefined ? [] : [id];
  }

  get #isTimedOut(): boolean {
    return this.#timedOut || (this.#deadline !== undefined && this.#context.clock.now() >= this.#deadline);
  }

  #throwIfOver(): void {
    this.#scope.throwIfHalted();
    if (this.#isTimedOut) throw new HaltedError("The step took too long.");
  }

  #toFailure(error: unknown): AttemptOutcome {
    this.#scope.throwIfHalted();
    const tasks = this.#tasks;
    if (this.#isTimedOut) {
      const { timeoutMs = 0 } = this.#options;
      return mayRetry(failedOutcome(statusText("stepTimedOut", timeoutMs / 1000), tasks));
    }
    if (error instanceof HaltedError) throw error;
    if (error instanceof UnusableAnswerError) {
      this.#ending ??= this.#stop();
      return { outcome: failedOutcome(error.message, tasks), retryAfterMs: undefined };
    }
    if (ConnectionError.is(error)) return mayRetry(failedOutcome(error.message, tasks));
    if (!ProtocolError.is(error)) throw error;
    if (error.code === "INVALID_AGENT_RESPONSE") this.#ending ??= this.#stop();
    const failed = failedOutcome(error.message, tasks);
    if (PERMANENT.has(error.code)) return { outcome: failed, retryAfterMs: undefined };
    return mayRetry(failed, (error.retryAfter ?? 0) * 1000);
  }

  /** The task continues at the agent. The agent must have received the message, or it would be unknown later. */
  async #leave(atOnce: boolean): Promise<void> {
    if (atOnce) this.#connection.abort();
    else await this.#opened.passed;
    await this.#child?.leave();
  }

  async #stop(): Promise<void> {
    const { addRefusal, clock } = this.#context;
    const over = new AbortController();
    const limit = createGate();
    const stopTimer = clock.after(STOP_MS, () => {
      over.abort(new Error("no answer"));
      limit.open();
    });
    await Promise.race([this.#opened.passed, limit.passed]);
    try {
      await this.#child?.cancel(over.signal);
    } catch (error) {
      const { agent = "" } = this.progress;
      if (!(await this.#hasEnded(error))) addRefusal(this.#options.path, `${agent}: ${(error as Error).message}`);
    } finally {
      stopTimer();
      await this.#child?.leave();
      this.#connection.abort();
    }
  }

  /** A task that has ended, or never began, cannot be cancelled. */
  async #hasEnded(error: unknown): Promise<boolean> {
    if (!ProtocolError.is(error)) return false;
    if (error.code === "TASK_NOT_FOUND") return true;
    const task = error.code === "TASK_NOT_CANCELABLE" ? await this.#child?.get().catch(() => undefined) : undefined;
    return task !== undefined && isTerminal(task.status.state);
  }
}

interface Gate {
  readonly passed: Promise<void>;
  open(): void;
}

function createGate(): Gate {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

function mayRetry(outcome: StepOutcome, afterMs = 0): AttemptOutcome {
  return { outcome, retryAfterMs: afterMs };
}
