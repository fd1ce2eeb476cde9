import { statusText } from "../model/status-texts.ts";
import type { Lease, TaskHead } from "../store/contract.ts";
import { toStoredTurn } from "./incoming-message.ts";
import type { EngineContext } from "./options.ts";
import { fromHead } from "./request-identity.ts";
import type { Runner, ServedAgent } from "./runs/runner.ts";
import { EventFactory } from "./runs/turn-run.ts";
import type { QueuedTurn } from "./tasks/live-task.ts";

const CLAIM_BATCH_SIZE = 100;

/** Keeps this node alive in the eyes of the store, and takes over what nodes that died left behind. */
export class Recovery {
  readonly #context: EngineContext;
  readonly #runner: Runner;
  readonly #agents: ReadonlyMap<string, ServedAgent>;
  #cancelBeat: (() => void) | undefined;
  #stopped = false;

  constructor(context: EngineContext, runner: Runner, agents: ReadonlyMap<string, ServedAgent>) {
    this.#context = context;
    this.#runner = runner;
    this.#agents = agents;
  }

  async start(): Promise<void> {
    await this.#beat();
    this.#beatLater();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelBeat?.();
  }

  #beatLater(): void {
    if (this.#stopped) return;
    this.#cancelBeat = this.#context.clock.after(this.#context.times.leaseMs / 3, () => {
      this.#beat()
        .catch((error: unknown) => this.#context.log.warn({ err: error }, "The store did not take the heartbeat."))
        .finally(() => this.#beatLater());
    });
  }

  async #beat(): Promise<void> {
    const cancelled = await this.#context.store.heartbeat(this.#context.node, this.#context.times.leaseMs);
    for (const id of cancelled) {
      const live = this.#runner.get(id);
      if (live !== undefined) this.#runner.cancel(live);
    }
    await this.#reclaimOrphans();
    await this.#claimAll();
  }

  /** Tasks that are ours in the store's eyes, but whose runs were given up when the store failed. */
  async #reclaimOrphans(): Promise<void> {
    const { node, store } = this.#context;
    for (const id of [...this.#runner.orphans]) {
      try {
        const head = await store.head(id);
        if (head?.node === node && this.#runner.get(id) === undefined) {
          const { fence, number } = head;
          const take = { kind: "append", id, expect: number, fence, entries: [], lease: { take: node } } as const;
          const [taken] = await store.write([take]);
          if (taken?.ok !== true) continue;
          await this.#takeOver({ head: { ...head, attempt: head.attempt + 1 }, fence: taken.fence });
        }
        // Only now: a store that fails on the way leaves the task to the next beat.
        this.#runner.orphans.delete(id);
      } catch (error) {
        // One that cannot be read must not keep the others waiting.
        this.#context.log.warn({ err: error, task: id }, "A task that was given up could not be taken up again.");
      }
    }
  }

  async #claimAll(): Promise<void> {
    const names = [...this.#agents.keys()];
    for (;;) {
      const leases = await this.#context.store.claim(this.#context.node, names, CLAIM_BATCH_SIZE);
      for (const lease of leases) {
        try {
          await this.#takeOver(lease);
        } catch (error) {
          this.#context.log.error({ err: error, task: lease.head.id }, "An abandoned task could not be taken over.");
        }
      }
      if (leases.length < CLAIM_BATCH_SIZE || this.#stopped) return;
    }
  }

  async #takeOver(lease: Lease): Promise<void> {
    const { head, fence } = lease;
    const served = this.#agents.get(head.agent);
    if (served === undefined || this.#runner.get(head.id) !== undefined) return;
    const fold = await this.#runner.unpark(head);
    const { attempt } = head;
    const live = this.#runner.add({ ...fromHead(head), fold, fence, attempt, origin: "leased" }, fold.status.state);
    live.visible = true;
    live.decide();
    if (head.cancelRequested) {
      this.#runner.end(live, "TASK_STATE_CANCELED");
      return;
    }
    // A run that was still waiting for its agent has done nothing yet: taking it up repeats nothing.
    const first = head.attempt <= 1;
    const resumes = served.agent.onCrash === "resume" && head.attempt <= this.#context.limits.attempts;
    if (!first && !resumes) {
      this.#context.meter.count("runs_failed_by_crash");
      this.#context.log.warn({ task: head.id, agent: head.agent }, "A task was cut off by a crash and is failed.");
      this.#runner.end(live, "TASK_STATE_FAILED", crashReason(served.agent.onCrash, head.attempt));
      return;
    }
    live.turns.push(...(await this.#openTurns(head)));
    if (!first) {
      this.#context.meter.count("runs_resumed");
      this.#context.log.info({ task: head.id, agent: head.agent, attempt: head.attempt }, "A task is resumed.");
      const metadata = { attempt: head.attempt };
      live.push(new EventFactory(this.#context, live).status("TASK_STATE_WORKING", undefined, metadata));
    }
    this.#runner.start(live, served);
  }

  /** The messages from the interrupted turn on, in order. */
  async #openTurns({ id, turn, owner }: TaskHead): Promise<QueuedTurn[]> {
    const found: QueuedTurn[] = [];
    let after = turn - 1;
    for (;;) {
      const [read] = await this.#context.store.read([{ id, after }], 500);
      if (read?.kind !== "entries" || read.entries.length === 0) return found;
      for (const entry of read.entries) {
        after = entry.number;
        const first = entry.number === 1 && "task" in entry.event ? entry.event.task.history?.[0] : undefined;
        const message = entry.received ?? first;
        if (message !== undefined) found.push(toStoredTurn(owner, message, entry));
      }
    }
  }
}

function crashReason(policy: "fail" | "resume", attempt: number): string {
  if (policy === "fail") return statusText("processStopped");
  return statusText("processStoppedOften", attempt - 1);
}

const BATCH_SIZE = 200;

/** Reduces the logs of tasks that ended long ago and deletes what nobody wants kept, a little at a time. */
export class Housekeeping {
  readonly #context: EngineContext;
  #cancel: (() => void) | undefined;
  #stopped = false;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  start(): void {
    if (this.#stopped) return;
    this.#cancel = this.#context.clock.after(this.#context.times.housekeepingMs, () => {
      this.compactAndPrune()
        .catch((error: unknown) => this.#context.log.warn({ err: error }, "Tidying up the store failed."))
        .finally(() => this.start());
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  async compactAndPrune(): Promise<void> {
    const { store, clock, times } = this.#context;
    const now = clock.now();
    while (!this.#stopped && (await store.compact(now - times.compactAfterMs, BATCH_SIZE)) === BATCH_SIZE)
      await yieldToEventLoop();
    // Tasks may be kept for ever, but not the keys that have had their time: pruning forgets those too.
    const endedBefore = times.pruneAfterMs === undefined ? 0 : now - times.pruneAfterMs;
    while (!this.#stopped && (await store.prune(endedBefore, BATCH_SIZE)) === BATCH_SIZE) await yieldToEventLoop();
  }
}

/** Lets waiting requests in between two portions. */
function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
