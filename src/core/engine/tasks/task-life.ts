import type { Message } from "../../model/message.ts";
import type { Refusal } from "../../store/contract.ts";

type Phase = "new" | "taking" | "leased" | "withdrawing" | "withdrawn" | "released" | "ended" | "lost";

/**
 * What this node has to do with a task, and what may come next. Only `enter` changes it.
 *
 * - The committer brings a task to `leased`, `released` and `ended`, when the store has accepted its write.
 * - A terminal event that another node wrote (`absorb`) ends it, too.
 * - The runner withdraws the task of an agent that answered with a plain message.
 * - A refused write, a store or lease that is gone, an error of the engine and the end of this node lose it (`lose`).
 */
const NEXT_PHASES: Readonly<Record<Phase, readonly Phase[]>> = {
  /** Made for a new message: the store does not know it yet. */
  new: ["leased", "released", "ended", "withdrawn", "lost"],
  /** It waited for its caller, whose message is here: the next write takes its lease. */
  taking: ["leased", "released", "ended", "lost"],
  /** Written by this node alone, under the fence of its lease. */
  leased: ["withdrawing", "released", "ended", "lost"],
  /** The store is asked to forget it. Nothing is written meanwhile, and requests for it wait. */
  withdrawing: ["leased", "withdrawn", "lost"],
  /** No longer this node's: the agent's message is the answer instead, it waits for its caller, it is over, ... */
  withdrawn: [],
  released: [],
  ended: [],
  /** ... or this node can no longer write it. */
  lost: [],
};

interface Life {
  readonly phase: Phase;
  readonly fence: number;
  readonly loss?: Loss;
}

export interface Loss {
  readonly error: Error;
  /** Of the write by which it was lost: nothing of that write was made. */
  readonly refusal?: Refusal;
  /** Another node continues, as readers of the log see. */
  readonly isHandedOver?: boolean;
}

type Run = "unrun" | "first-queued" | "running" | "idle" | "queued";

/** The turns of a task, which the runner moves. A task that is idle and has no message to answer gives its lease back. */
const NEXT_RUNS: Readonly<Record<Run, readonly Run[]>> = {
  unrun: ["first-queued", "running"],
  /** The agent has no room. A crash now finds a run that never began. */
  "first-queued": ["running"],
  running: ["idle"],
  idle: ["queued", "running"],
  /** As before, for a task whose turns before were answered here. */
  queued: ["running"],
};

/** What callers wait for, and what the run listens to. */
type Milestone = "decided" | "settled" | "released" | "lost" | "revealed" | "turn-added";

/** The life of a task on this node: what may happen to it next, and who waits for that. Knows neither store nor agent. */
export class TaskLife {
  #life: Life;
  #run: Run = "unrun";
  /**
   * Undefined while it is open whether the answer is this task; then null, or the message that is the answer. The first
   * decision counts. What decides for the task: a sign of its agent, a caller that knows it, its end and its loss.
   */
  #answer: Message | null | undefined;
  /** Made for the first: most tasks have one in their whole life. */
  #listeners: { readonly milestone: Milestone; readonly call: () => void }[] | undefined;

  constructor(phase: Phase, fence: number, visible: boolean) {
    this.#life = { phase, fence };
    this.#answer = visible ? null : undefined;
  }

  protected get phase(): Phase {
    return this.#life.phase;
  }

  protected enter(phase: Phase, fence = this.#life.fence, loss?: Loss): void {
    const { phase: before } = this.#life;
    if (phase === before && fence === this.#life.fence) return;
    if (!NEXT_PHASES[before].includes(phase)) throw new Error(`A task that is ${before} cannot become ${phase}.`);
    this.#life = loss === undefined ? { phase, fence } : { phase, fence, loss };
  }

  /** No longer written here, for now or for good: later events are dropped. */
  get closed(): boolean {
    const { phase } = this.#life;
    return phase !== "leased" && phase !== "new" && phase !== "taking";
  }

  get isLeased(): boolean {
    return this.#life.phase === "leased" || this.#life.phase === "withdrawing";
  }

  get isBeingTaken(): boolean {
    return this.#life.phase === "taking";
  }

  get fence(): number {
    return this.#life.fence;
  }

  get lostError(): Error | undefined {
    return this.#life.loss?.error;
  }

  get lostRefusal(): Refusal | undefined {
    return this.#life.loss?.refusal;
  }

  get isHandedOver(): boolean {
    return this.#life.loss?.isHandedOver === true;
  }

  protected get run(): Run {
    return this.#run;
  }

  protected moveRun(run: Run): void {
    if (!NEXT_RUNS[this.#run].includes(run)) throw new Error(`A run that is ${this.#run} cannot become ${run}.`);
    this.#run = run;
  }

  /** Its turns are running or in line to run. */
  get active(): boolean {
    return this.#run !== "unrun" && this.#run !== "idle";
  }

  get isRunning(): boolean {
    return this.#run === "running";
  }

  /** A caller knows the task, or will: it cannot be withdrawn. */
  get visible(): boolean {
    return this.#answer !== undefined;
  }

  /** The message that took the place of the task. */
  protected get reply(): Message | undefined {
    return this.#answer ?? undefined;
  }

  /** The answer is the task, unless it is just being withdrawn. */
  decide(): void {
    if (this.#answer !== undefined || this.#life.phase === "withdrawing") return;
    this.#answer = null;
    this.notify("decided");
  }

  /** Shows the task though the agent has given no sign; a message it returns then completes the task. */
  reveal(): void {
    if (this.closed) return;
    this.decide();
    this.notify("revealed");
  }

  protected decideFor(reply: Message): void {
    this.#answer = reply;
    this.notify("decided");
    this.notify("settled");
  }

  /** Resolves with the message of an agent that answered without a task, or undefined when the answer is the task. */
  async whenDecided(): Promise<Message | undefined> {
    if (this.#answer === undefined) await this.reached("decided");
    return this.reply;
  }

  /** Calls it the next time. */
  on(milestone: Milestone, call: () => void): void {
    this.#listeners ??= [];
    this.#listeners.push({ milestone, call });
  }

  protected reached(milestone: Milestone): Promise<void> {
    return new Promise((resolve) => this.on(milestone, resolve));
  }

  protected notify(milestone: Milestone): void {
    const all = this.#listeners;
    if (all === undefined || !all.some((listener) => listener.milestone === milestone)) return;
    this.#listeners = all.filter((listener) => listener.milestone !== milestone);
    for (const listener of all) if (listener.milestone === milestone) listener.call();
  }
}
