import type { AgentDirectory } from "../../../core/agents/directory.ts";
import type { AgentEvent, Turn } from "../../../core/engine/agent.ts";
import { isRunLost } from "../../../core/model/abort.ts";
import type { Part } from "../../../core/model/message.ts";
import type { Clock } from "../../../core/model/ports.ts";
import type { Workflow } from "../definition/plan.ts";
import { childIdOf, createRunMemory, type Question, type RunContext, type Stored } from "./context.ts";
import { HaltedError, HaltScope } from "./halt.ts";
import { Mailbox } from "./mailbox.ts";
import { progressEvent, type StepProgress, withProgress } from "./progress.ts";
import { MAX_RUN_SIZE, toInput } from "./results.ts";
import { type FailedStep, runSteps } from "./steps.ts";

export interface WorkflowTools {
  readonly directory: AgentDirectory;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
}

/** Key in a task's memory: the question that the task waits to be answered, or waited for last. */
export const ASKED = "asked";

/** Written before a question is asked, and when the run that asked it has ended. */
export interface AskedQuestion {
  /** Id of the message whose turn asked, or ended the run. */
  readonly turn: string;
  /** The step whose agent asked: the next message is for it. Absent if the run has ended: the next begins another. */
  readonly path?: string;
  /** The run that the step belongs to. */
  readonly run: string;
  /** The message that began the run. */
  readonly input: readonly Part[];
}

/** A message begins a run unless it answers a question. The first run of a task has no name. */
function runNameOf({ history, message }: Pick<Turn, "history" | "message">): string {
  return history.length === 0 ? "" : `${message.messageId}/`;
}

/**
 * One turn of a workflow. A question of an agent ends it: the other agents continue on their own, and are found again
 * in the turn that the answer begins, as they are after a crash.
 */
export async function* runTurn(
  turn: Turn,
  workflow: Workflow,
  tools: WorkflowTools,
): AsyncGenerator<AgentEvent, undefined, undefined> {
  const { messageId } = turn.message;
  const known = await turn.memory.get<Stored<AskedQuestion>>(ASKED);
  // A turn that was resumed asks again, or ends again.
  const asked = known?.turn === messageId || known?.path !== undefined ? known : undefined;
  const input = asked?.input ?? turn.message.parts;
  const run = asked?.run ?? runNameOf(turn);
  const mailbox = new Mailbox();
  const scope = new HaltScope();
  const state = new RunState();
  const memory = createRunMemory(turn.memory, run);
  const note = (question: AskedQuestion) => turn.memory.set(ASKED, question as Stored<AskedQuestion>);
  const context: RunContext = {
    ...tools,
    turn,
    memory,
    isResumed: turn.attempt > 1 || asked !== undefined,
    answers: asked?.turn === messageId ? undefined : asked?.path,
    childId: (path, attempt) => childIdOf(turn.task.id, run, path, attempt),
    emit: (event) => mailbox.put(event),
    report: (progress, detail) => mailbox.put(progressEvent(state.status, progress, detail)),
    waitForAuth(path, question) {
      state.waitForAuth(path, question);
      passOnReply();
    },
    ask(question) {
      state.question ??= question;
      scope.halt("leave");
    },
    addRefusal: (path, reason) => void state.refusals.push(`${path} (${reason})`),
    keep: (size) => state.keep(size),
  };
  /** An authorization may be given elsewhere, so the run continues until the caller answers here. */
  const passOnReply = () => {
    const [question] = state.unauthorized;
    if (question !== undefined && turn.followUp?.aborted === true) context.ask(question);
  };
  turn.followUp?.addEventListener("abort", passOnReply, { once: true });
  const abort = () => scope.halt(isRunLost(turn.signal) ? "lose" : "stop");
  turn.signal.addEventListener("abort", abort, { once: true });
  if (turn.signal.aborted) abort();
  const { scope: steps } = scope.nest();
  const show = (name: string) => (workflow.output.includes(name) ? name : undefined);
  const running = runSteps({ context, workflow, base: "", input: toInput(input), scope: steps, show });
  running.then(
    () => mailbox.close(),
    () => mailbox.close(),
  );
  try {
    yield* mailbox.events();
    const outcome = await running.catch((error: unknown) => {
      if (error instanceof HaltedError) return undefined;
      throw error;
    });
    if (turn.signal.aborted) {
      if (!isRunLost(turn.signal) && state.refusals.length > 0) yield canceledEvent(state.refusals);
    } else if (outcome?.failed !== undefined) yield failedEvent(outcome.failed, state);
    else if (state.question !== undefined) {
      const { path } = state.question;
      await memory.flush();
      await note({ turn: messageId, path, run, input });
      yield questionEvent(state.question);
    } else {
      if (asked !== undefined) await note({ turn: messageId, run, input });
      const tolerated = outcome?.tolerated ?? [];
      if (tolerated.length > 0) yield completedEvent(tolerated);
    }
  } finally {
    turn.signal.removeEventListener("abort", abort);
    turn.followUp?.removeEventListener("abort", passOnReply);
    // The engine may end a run that has written too much.
    scope.halt("stop");
    await running.catch(() => {});
  }
  return undefined;
}

/** What the steps of a run add up to. */
class RunState {
  question: Question | undefined;
  readonly refusals: string[] = [];
  readonly #unauthorized = new Map<string, Question>();
  #size = 0;

  /** As long as a step waits to be authorised, that is what callers have to know. */
  get status(): "TASK_STATE_AUTH_REQUIRED" | "TASK_STATE_WORKING" {
    return this.#unauthorized.size > 0 ? "TASK_STATE_AUTH_REQUIRED" : "TASK_STATE_WORKING";
  }

  /** What steps wait to be authorised for, those first that have waited longest. */
  get unauthorized(): Iterable<Question> {
    return this.#unauthorized.values();
  }

  waitForAuth(path: string, question: Question | undefined): void {
    if (question !== undefined) this.#unauthorized.set(path, question);
    else this.#unauthorized.delete(path);
  }

  keep(size: number): boolean {
    this.#size += size;
    return this.#size <= MAX_RUN_SIZE;
  }
}

function questionEvent({ message, progress, status }: Question): AgentEvent {
  const draft = {
    parts: message === undefined || message.parts.length === 0 ? [{ text: waitingText(progress) }] : message.parts,
    metadata: message?.metadata,
    extensions: message?.extensions,
  };
  return { status, message: withProgress(draft, progress) };
}

function waitingText({ agent, state, step }: StepProgress): string {
  const wanted = state === "auth-required" ? "authorization" : "input";
  return `Step ${step} (${agent}) waits for ${wanted}.`;
}

function failedEvent({ outcome, path }: FailedStep, { refusals }: RunState): AgentEvent {
  const { error, state } = outcome;
  const progress: StepProgress = { step: path, state };
  const left = refusals.length === 0 ? "" : ` Not cancelled: ${refusals.join("; ")}.`;
  const text = `Step ${path} ${state}${error === undefined ? "." : `: ${error}`}${left}`;
  return { status: "TASK_STATE_FAILED", message: withProgress({ parts: [{ text }] }, progress) };
}

function canceledEvent(refusals: readonly string[]): AgentEvent {
  const text = `Not all agents confirmed the cancellation: ${refusals.join("; ")}.`;
  return { status: "TASK_STATE_CANCELED", message: { parts: [{ text }] } };
}

function completedEvent(tolerated: readonly string[]): AgentEvent {
  const text = `Completed without ${tolerated.length === 1 ? "step" : "steps"} ${tolerated.join(", ")}.`;
  return { status: "TASK_STATE_COMPLETED", message: { parts: [{ text }] } };
}
