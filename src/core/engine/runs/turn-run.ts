import { addArtifactUpdate, type OpenArtifact } from "../../model/fold.ts";
import { type Message, type Part, textOf } from "../../model/message.ts";
import { artifactSize, metadataSize, statusSize } from "../../model/size.ts";
import { statusText } from "../../model/status-texts.ts";
import { type Artifact, isInterrupted, isTerminal, withParts } from "../../model/task.ts";
import type { Agent, AgentEvent, AgentRun, ArtifactDraft, MessageDraft } from "../agent.ts";
import type { EngineContext } from "../options.ts";
import type { LiveTask } from "../tasks/live-task.ts";
import { agentMessage, artifactEvent, textDraft } from "../tasks/task-events.ts";
import { NO_EXTRAS } from "../tasks/task-write.ts";
import type { RunningTurn } from "./running-turn.ts";
import {
  checkParts,
  OutputLimitError,
  requireEvent,
  requireReply,
  validateArtifact,
  validateState,
} from "./validate-output.ts";

/** How a turn ended: the log says the rest. `message`: the agent answered before it gave any other sign. */
type TurnResult = { readonly kind: "events" } | { readonly kind: "message"; readonly message: Message };

/** Drives one turn of an agent into the task's log. Never throws. */
export class TurnRun {
  readonly #context: EngineContext;
  readonly #live: LiveTask;
  readonly #agent: Agent;
  readonly #turn: RunningTurn;
  /** Artifacts begun in this turn. */
  #begun: Set<string> | undefined;
  /** Artifacts of this turn, if their text is to be repeated in the last status. */
  readonly #repeated: Map<string, OpenArtifact> | undefined;
  #signs = 0;
  /** The last thing the agent said was that someone has to authorize it. */
  #waits = false;
  #cancelled = false;
  #over = false;
  /** WORKING was written before the agent yielded anything. */
  #announced = false;
  #stopWaiting: (() => void) | undefined;

  constructor(context: EngineContext, live: LiveTask, agent: Agent, turn: RunningTurn) {
    this.#context = context;
    this.#live = live;
    this.#agent = agent;
    this.#turn = turn;
    if (agent.profile.repeatTextInStatus !== true) return;
    this.#repeated = new Map();
    const { artifacts = [] } = turn.checkpoint === undefined ? {} : live.fold.toTask();
    for (const artifact of artifacts) addArtifactUpdate(this.#repeated, { artifact });
  }

  /** Asks the agent to stop. What it still says within the grace time is kept. */
  cancel(reason: Error): void {
    this.#cancelled = true;
    this.#turn.abort(reason);
  }

  /**
   * The agent has had its first turn of the event loop. One that is still at work is shown to be: at once where the task
   * is known, else when a stream would show the task, for until then the answer may be a message.
   */
  showIfSilent(): void {
    if (!this.#isSilent()) return;
    if (this.#live.visible) {
      this.#beginWork();
      return;
    }
    const { clock, times } = this.#context;
    const showWork = () => {
      if (this.#isSilent()) this.#beginWork();
    };
    this.#live.on("revealed", showWork);
    this.#stopWaiting = clock.after(times.showTaskAfterMs, showWork);
  }

  #isSilent(): boolean {
    return !this.#over && !this.#live.closed && this.#live.state === "TASK_STATE_SUBMITTED";
  }

  #beginWork(): void {
    this.#announced = true;
    this.#live.pushStatus("TASK_STATE_WORKING");
  }

  async drive(): Promise<TurnResult> {
    let run: AgentRun | undefined;
    try {
      run = this.#start();
      for (;;) {
        const step = await this.#resume(run);
        if (this.#live.closed) {
          if (step.done !== true) this.#context.meter.count("events_dropped_after_terminal");
          returnRun(run);
          return { kind: "events" };
        }
        if (step.done === true) return this.#finish(step.value ?? undefined);
        this.#emitAll(step.value);
        if (isTerminal(this.#live.state)) {
          returnRun(run);
          return { kind: "events" };
        }
        const { backlog } = this.#live;
        if (backlog !== undefined) await backlog;
      }
    } catch (error) {
      this.#fail(error);
      if (run !== undefined) returnRun(run);
      return { kind: "events" };
    } finally {
      this.#over = true;
      this.#stopWaiting?.();
    }
  }

  /** Until the agent returns nothing else runs: a watchdog must be able to tell whose code that is. */
  #start(): AgentRun {
    const { monitor } = this.#context;
    monitor.enter(this.#live.agent, this.#live.id);
    try {
      return this.#agent.run(this.#turn);
    } finally {
      monitor.leave();
    }
  }

  #resume(run: AgentRun): ReturnType<AgentRun["next"]> {
    const { monitor } = this.#context;
    monitor.enter(this.#live.agent, this.#live.id);
    try {
      return run.next();
    } finally {
      monitor.leave();
    }
  }

  #emitAll(yielded: AgentEvent | readonly AgentEvent[]): void {
    if (!isBatch(yielded)) {
      this.#emit(yielded);
      return;
    }
    for (const event of yielded) {
      // Dropped as if it had been yielded later.
      if (isTerminal(this.#live.state)) this.#context.meter.count("events_dropped_after_terminal");
      else this.#emit(event);
    }
  }

  #emit(event: AgentEvent): void {
    requireEvent(event);
    if (this.#signs++ === 0) this.#live.decide();
    this.#waits = "status" in event && event.status === "TASK_STATE_AUTH_REQUIRED";
    const extras = event.checkpoint === undefined ? NO_EXTRAS : { request: { checkpoint: event.checkpoint } };
    this.#turn.markYielded("status" in event ? event.message : event.artifact);
    if ("status" in event) {
      if (this.#announced && this.#signs === 1 && isBareWorking(event)) return;
      this.#count(event.message?.parts, statusSize(event.message) + metadataSize(event.metadata));
      const completesEarly = event.status === "TASK_STATE_COMPLETED" && this.#live.openTurns > 1;
      // A message that was accepted meanwhile must still be answered, so the task continues.
      const state = completesEarly ? "TASK_STATE_WORKING" : validateState(event.status);
      const message = event.message ?? (state === "TASK_STATE_COMPLETED" ? this.#repeatedText() : undefined);
      this.#live.pushStatus(state, message, event.metadata, extras);
      return;
    }
    const artifact = this.#toArtifact(event.artifact);
    if (this.#live.state === "TASK_STATE_SUBMITTED") this.#beginWork();
    const begun = this.#begun?.has(artifact.artifactId) === true;
    const continues =
      event.append === true &&
      (begun || (this.#turn.continuesOutput && this.#live.fold.hasArtifact(artifact.artifactId)));
    this.#count(artifact.parts, artifactSize(artifact, continues) + metadataSize(event.metadata));
    if (!begun) this.#begin(artifact.artifactId);
    if (this.#repeated !== undefined) addArtifactUpdate(this.#repeated, { artifact, append: continues });
    this.#live.push(artifactEvent(this.#live, artifact, continues, event.lastChunk === true, event.metadata), extras);
  }

  /** Before it is kept: `bytes` are those that the task grows by. */
  #count(parts: readonly Part[] | undefined, bytes: number): void {
    if (parts !== undefined) checkParts(parts, this.#context.limits.part);
    const refusal = this.#live.grow(bytes);
    if (refusal !== undefined) throw new OutputLimitError(refusal);
  }

  #begin(artifactId: string): void {
    this.#begun ??= new Set();
    this.#begun.add(artifactId);
  }

  #toArtifact(given: ArtifactDraft): Artifact {
    const draft = validateArtifact(given);
    if (draft.artifactId !== undefined) return draft as Artifact;
    return withParts({ ...draft, artifactId: this.#context.ids.artifact() }, draft.parts);
  }

  #finish(reply: MessageDraft | undefined): TurnResult {
    requireReply(reply);
    this.#turn.markYielded(reply);
    for (const warning of this.#turn.warnings()) {
      this.#context.log.warn({ agent: this.#live.agent, task: this.#live.id }, warning);
    }
    if (reply !== undefined && this.#signs === 0 && !this.#live.visible && !this.#cancelled) {
      return { kind: "message", message: agentMessage(this.#context, this.#live, reply) };
    }
    this.#live.decide();
    const live = this.#live;
    if (isTerminal(live.state)) return { kind: "events" };
    if (this.#cancelled) live.pushStatus("TASK_STATE_CANCELED");
    else if (reply === undefined && this.#isParked()) return { kind: "events" };
    else if (live.openTurns > 1) {
      if (reply !== undefined) live.pushStatus("TASK_STATE_WORKING", reply);
    } else live.pushStatus("TASK_STATE_COMPLETED", reply ?? this.#repeatedText());
    return { kind: "events" };
  }

  #repeatedText(): MessageDraft | undefined {
    if (this.#repeated === undefined) return undefined;
    const texts = [...this.#repeated.values()].map(({ parts }) => textOf(parts)).filter((text) => text !== "");
    return texts.length === 0 ? undefined : textDraft(texts.join("\n\n"));
  }

  /** A question is open until it is answered; an authorization only if the agent did nothing after asking for it. */
  #isParked(): boolean {
    return isInterrupted(this.#live.state) && (this.#live.state === "TASK_STATE_INPUT_REQUIRED" || this.#waits);
  }

  #fail(error: unknown): void {
    this.#live.decide();
    if (this.#live.closed || isTerminal(this.#live.state)) return;
    if (this.#cancelled) {
      this.#live.pushStatus("TASK_STATE_CANCELED");
      return;
    }
    if (error instanceof OutputLimitError) {
      this.#live.pushStatus("TASK_STATE_FAILED", textDraft(error.message));
      return;
    }
    const { log, mentionLog } = this.#context;
    log.error({ err: error, task: this.#live.id, agent: this.#live.agent }, "The agent threw.");
    // What an agent throws may hold anything, secrets included: the caller gets a plain sentence, the log the rest.
    const text = statusText(mentionLog ? "agentFailedSeeLog" : "agentFailed");
    this.#live.pushStatus("TASK_STATE_FAILED", textDraft(text));
  }
}

function isBatch(yielded: AgentEvent | readonly AgentEvent[]): yielded is readonly AgentEvent[] {
  return Array.isArray(yielded);
}

/** Nothing but what is known of every run. */
function isBareWorking(event: Extract<AgentEvent, { status: unknown }>): boolean {
  return event.status === "TASK_STATE_WORKING" && event.message === undefined && event.metadata === undefined;
}

/** Lets the agent clean up; whether and when it does is its own affair. */
function returnRun(run: AgentRun): void {
  run.return?.().then(undefined, () => undefined);
}
