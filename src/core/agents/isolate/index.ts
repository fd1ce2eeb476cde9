import type { Agent, AgentEvent, MessageDraft, Turn } from "../../engine/agent.ts";
import type { ExtendedProfile } from "../../model/card.ts";
import { AgentThread, ThreadEndedError, type ThreadOptions } from "./agent-thread.ts";

/** A thread runs one turn at a time, so that terminating it affects no other; each has its own copy of the module. */
const DEFAULT_CONCURRENCY = 8;
/** An idle thread is terminated after this time to free its memory. */
const IDLE_MS = 60_000;

/**
 * Runs the agent of a module in its own threads: an endless loop terminates its thread and fails its task, and the
 * server continues. `maxThreads` overrides the module's `concurrency`. Throws an AgentModuleError for a module that
 * cannot be used.
 */
export async function createIsolatedAgent(options: ThreadOptions, maxThreads?: number): Promise<Agent> {
  const threads = new ThreadPool(options);
  const first = await threads.take();
  const { profile, onCrash, concurrency, timeoutMs, asksForExtended, receivesDropped } = first.agent;
  threads.putBack(first);
  const limit = maxThreads ?? (Number.isFinite(concurrency) ? concurrency : DEFAULT_CONCURRENCY);
  threads.max = limit;
  return {
    profile: asksForExtended
      ? {
          ...profile,
          extended: (caller) =>
            threads.use(async (thread) => {
              const { json } = await thread.extended(caller);
              return json === undefined ? undefined : (JSON.parse(json) as ExtendedProfile);
            }),
        }
      : profile,
    onCrash,
    concurrency: limit,
    timeoutMs,
    run: (turn) => runIsolated(threads, turn),
    dropped: receivesDropped ? (task) => threads.use((thread) => thread.dropped(task)) : undefined,
  };
}

async function* runIsolated(
  threads: ThreadPool,
  turn: Turn,
): AsyncGenerator<AgentEvent, MessageDraft | undefined, undefined> {
  if (turn.signal.aborted) return undefined;
  const thread = await threads.take();
  const abort = () => thread.abort(turn.signal.reason);
  let finished = false;
  try {
    thread.begin(turn);
    turn.signal.addEventListener("abort", abort, { once: true });
    if (turn.signal.aborted) abort();
    for (;;) {
      const { done, json, warnings = [] } = await thread.next();
      for (const warning of warnings) turn.unyielded?.set({}, () => threads.reportOnce(warning));
      const value: unknown = json === undefined ? undefined : JSON.parse(json);
      finished = done;
      if (done) return value as MessageDraft | undefined;
      yield value as AgentEvent;
    }
  } catch (error) {
    finished = true;
    if (!(error instanceof ThreadEndedError)) throw error;
    if (!turn.signal.aborted) yield { status: "TASK_STATE_FAILED", message: { parts: [{ text: error.message }] } };
    return undefined;
  } finally {
    turn.signal.removeEventListener("abort", abort);
    // Not awaited: the engine has abandoned the run and must not be blocked by it.
    void (finished ? Promise.resolve() : thread.giveUp()).then(() => threads.putBack(thread));
  }
}

class ThreadPool {
  /** Each thread has a copy of the module, and makes its mistakes again. */
  readonly #reported = new Set<string>();
  readonly #options: ThreadOptions;
  readonly #idle = new Map<AgentThread, NodeJS.Timeout>();
  /** Maximum number of threads: one that does not stop counts until it has ended. */
  max = DEFAULT_CONCURRENCY;
  #taken = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  /** Returns an idle thread, or a new one. */
  async take(): Promise<AgentThread> {
    while (this.#taken >= this.max) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#taken++;
    try {
      return await this.#find();
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  #release(): void {
    this.#taken--;
    this.#waiting.shift()?.();
  }

  async #find(): Promise<AgentThread> {
    for (const [thread, timer] of this.#idle) {
      clearTimeout(timer);
      this.#idle.delete(thread);
      if (!thread.ended) return thread;
    }
    return AgentThread.start(this.#options);
  }

  putBack(thread: AgentThread): void {
    this.#release();
    thread.close();
    if (thread.ended) return;
    const timer = setTimeout(() => {
      this.#idle.delete(thread);
      thread.end("The agent's thread was idle.");
    }, IDLE_MS).unref();
    this.#idle.set(thread, timer);
  }

  /** Undefined for a warning that another thread has given. */
  reportOnce(warning: string): string | undefined {
    if (this.#reported.has(warning)) return undefined;
    this.#reported.add(warning);
    return warning;
  }

  async use<T>(work: (thread: AgentThread) => Promise<T>): Promise<T> {
    const thread = await this.take();
    try {
      return await work(thread);
    } finally {
      this.putBack(thread);
    }
  }
}
