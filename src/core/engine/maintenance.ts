import { statusText } from "../model/status-texts.ts";
import { isTerminal } from "../model/task.ts";
import type { Lease, TaskHead, Wakeup } from "../store/contract.ts";
import type { Agent } from "./agent.ts";
import type { ServedAgent } from "./concurrency.ts";
import { type QueuedTurn, toStoredTurn } from "./incoming-message.ts";
import { leaseLostError } from "./node-lease.ts";
import type { NodeReport } from "./node-report.ts";
import type { EngineContext } from "./options.ts";
import type { Runner } from "./runs/runner.ts";
import { textDraft } from "./tasks/task-events.ts";

const CLAIM_BATCH_SIZE = 100;
/** A heartbeat that the store did not take is repeated after this: the lease ends soon. */
const BEAT_RETRY_MS = 1_000;

/** Keeps this node alive in the eyes of the store, and runs what other nodes left behind or ask of it. */
export class Recovery {
  readonly #context: EngineContext;
  readonly #runner: Runner;
  readonly #agents: ReadonlyMap<string, ServedAgent>;
  readonly #report: () => NodeReport;
  #cancelBeat: (() => void) | undefined;
  #cancelGivingUp: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;
  #claiming: Promise<void> | undefined;
  #claimAgain = false;
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  /** Tasks whose cancellation is being looked up. */
  readonly #checked = new Set<string>();
  #sweeping = false;
  /** No more tasks are taken up; heartbeats continue. */
  #leaving = false;
  #stopped = false;

  constructor(
    context: EngineContext,
    runner: Runner,
    agents: ReadonlyMap<string, ServedAgent>,
    report: () => NodeReport,
  ) {
    this.#context = context;
    this.#runner = runner;
    this.#agents = agents;
    this.#report = report;
  }

  async start(): Promise<void> {
    await this.#beat();
    await this.#lookForWork();
    this.#unsubscribe = this.#context.store.wakeups.subscribe((wakeup) => this.#wake(wakeup));
    this.#beatLater(this.#beatMs);
  }

  stopClaiming(): void {
    this.#leaving = true;
  }

  stop(): void {
    this.#stopped = true;
    this.#unsubscribe?.();
    this.#cancelBeat?.();
    this.#cancelGivingUp?.();
  }

  /** Whatever is left of this node is another's at once, and not after the lease. */
  async leave(): Promise<void> {
    const { lease, node, store } = this.#context;
    if (!lease.isShared) return;
    await store.heartbeat(node, 0).then(
      () => store.wakeups.publish({ work: true }),
      () => {},
    );
  }

  get #beatMs(): number {
    return this.#context.times.leaseMs / 3;
  }

  #beatLater(delay: number): void {
    if (this.#stopped) return;
    this.#cancelBeat = this.#context.clock.after(delay, () => {
      this.#beat().then(
        () => {
          this.#beatLater(this.#beatMs);
          // Not waited for: taking up a thousand tasks may take longer than the lease.
          this.#attempt(this.#lookForWork());
        },
        (error: unknown) => {
          this.#context.log.warn({ err: error }, "The store did not take the heartbeat.");
          this.#beatLater(this.#context.lease.isShared ? Math.min(BEAT_RETRY_MS, this.#beatMs) : this.#beatMs);
        },
      );
    });
  }

  async #beat(): Promise<void> {
    const { lease, store, node, times } = this.#context;
    if (lease.isOver) this.#giveUp();
    const sentAt = lease.now();
    const cancelled = await store.heartbeat(node, times.leaseMs, JSON.stringify(this.#report()));
    lease.renew(sentAt);
    this.#runner.committer.markReachable();
    if (lease.isShared) this.#giveUpLater();
    this.#cancel(cancelled);
  }

  /** Other nodes take this node's tasks over when its lease ends: by then nothing of them runs here any more. */
  #giveUpLater(): void {
    this.#cancelGivingUp?.();
    if (this.#stopped) return;
    const { clock, lease } = this.#context;
    this.#cancelGivingUp = clock.after(Math.max(lease.leftMs, 1), () => {
      if (lease.isOver) this.#giveUp();
      else this.#giveUpLater();
    });
  }

  #giveUp(): void {
    const { size } = this.#runner.tasks;
    if (size === 0) return;
    const { log, meter } = this.#context;
    log.error({ tasks: size }, "No heartbeat reached the store in the time of the lease; the runs are given up.");
    meter.count("runs_fenced", size);
    this.#runner.tasks.abandonAll(leaseLostError());
  }

  async #lookForWork(): Promise<void> {
    await this.#claim();
    if (this.#sweeping) return;
    this.#sweeping = true;
    try {
      await this.#runner.tasks.sweep();
    } finally {
      this.#sweeping = false;
    }
  }

  /** Other nodes ask for something; what no wake-up announces is found by the next beat. */
  #wake(wakeup: Wakeup | "all"): void {
    if (wakeup === "all") {
      this.#attempt(this.#lookSoon());
      return;
    }
    for (const id of wakeup.cancel ?? []) this.#attempt(this.#cancelIfRequested(id));
    if (wakeup.work !== true) return;
    for (const id of wakeup.log ?? []) {
      const live = this.#runner.get(id);
      if (live !== undefined) this.#attempt(this.#runner.tasks.catchUp(live));
    }
    this.#attempt(this.#claim());
  }

  /** One look at a time; whatever asks meanwhile gets another. */
  #lookSoon(): Promise<void> {
    this.#lookAgain = true;
    this.#looking ??= this.#lookRounds().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookRounds(): Promise<void> {
    while (this.#lookAgain && !this.#stopped) {
      this.#lookAgain = false;
      await this.#beat();
      await this.#lookForWork();
    }
  }

  /** A wake-up is a hint, and may come from anyone: what counts is what is stored. */
  async #cancelIfRequested(id: string): Promise<void> {
    if (this.#runner.get(id) === undefined || this.#checked.has(id)) return;
    this.#checked.add(id);
    try {
      const head = await this.#context.store.head(id);
      if (head?.cancelRequested === true) this.#cancel([id]);
    } finally {
      this.#checked.delete(id);
    }
  }

  #attempt(work: Promise<void>): void {
    work.catch((error: unknown) => this.#context.log.warn({ err: error }, "A wake-up could not be followed."));
  }

  #cancel(ids: readonly string[]): void {
    for (const id of ids) {
      const live = this.#runner.get(id);
      if (live !== undefined && !live.closed && !live.isReleasing && !isTerminal(live.state)) this.#runner.cancel(live);
    }
  }

  /** Takes up what waits for a node, one round at a time; whatever asks meanwhile gets another round. */
  #claim(): Promise<void> {
    this.#claimAgain = true;
    this.#claiming ??= this.#claimRounds().finally(() => {
      this.#claiming = undefined;
    });
    return this.#claiming;
  }

  async #claimRounds(): Promise<void> {
    while (this.#claimAgain && !this.#stopped && !this.#leaving) {
      this.#claimAgain = false;
      // What a node takes that counts as dead is taken from it at once.
      if (this.#context.lease.isOver) return;
      await this.#reclaimOrphans();
      await this.#claimAll();
    }
  }

  /** Tasks that the store counts as this node's, but whose runs were given up when the store failed. */
  async #reclaimOrphans(): Promise<void> {
    const { node, store } = this.#context;
    const { orphans } = this.#runner.tasks;
    for (const id of [...orphans]) {
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
        orphans.delete(id);
      } catch (error) {
        // One that cannot be read must not keep the others waiting.
        this.#context.log.warn({ err: error, task: id }, "A task that was given up could not be taken up again.");
      }
    }
  }

  async #claimAll(): Promise<void> {
    const { isShared } = this.#context.lease;
    for (;;) {
      const served = [...this.#agents.values()].filter(({ agent }) => !isShared || agent.isAvailable?.() !== false);
      const names = served.map(({ name }) => name);
      const leases = await this.#context.store.claim(this.#context.node, names, CLAIM_BATCH_SIZE);
      for (const lease of leases) {
        try {
          await this.#takeOver(lease);
        } catch (error) {
          this.#context.log.error({ err: error, task: lease.head.id }, "An abandoned task could not be taken over.");
        }
      }
      if (leases.length < CLAIM_BATCH_SIZE || this.#stopped || this.#leaving) return;
    }
  }

  async #takeOver(lease: Lease): Promise<void> {
    const { head } = lease;
    const served = this.#agents.get(head.agent);
    if (served === undefined) return;
    // A run that was still waiting for its agent has done nothing yet: taking it up repeats nothing.
    const first = head.attempt <= 1;
    const reason = first || head.cancelRequested ? undefined : this.#whyNotResumed(served.agent, head.attempt);
    if (reason !== undefined) {
      this.#context.meter.count("runs_failed_by_crash");
      this.#context.log.warn({ task: head.id, agent: head.agent }, "A task was cut off by a crash and is failed.");
      // Without reading the task, which may be what ended the processes before.
      const isHere = this.#runner.get(head.id) !== undefined;
      if (!isHere && (await this.#runner.tasks.failStored({ ...head, fence: lease.fence }, reason))) return;
    }
    const live = await this.#runner.tasks.adopt(served, lease, (until) => this.#openTurns(head, until));
    if (live === undefined) return;
    if (head.cancelRequested) {
      this.#runner.cancel(live);
      return;
    }
    if (reason !== undefined) {
      live.end("TASK_STATE_FAILED", textDraft(reason));
      return;
    }
    if (!first) {
      this.#context.meter.count("runs_resumed");
      this.#context.log.info({ task: head.id, agent: head.agent, attempt: head.attempt }, "A task is resumed.");
      live.pushStatus("TASK_STATE_WORKING", undefined, { attempt: head.attempt });
    }
    this.#runner.start(live);
  }

  #whyNotResumed({ crashText = statusText("processStopped"), onCrash }: Agent, attempt: number): string | undefined {
    if (onCrash === "fail") return crashText;
    return attempt > this.#context.limits.attempts ? statusText("processStoppedOften", attempt - 1) : undefined;
  }

  /** The messages from the interrupted turn up to where the task was taken up, in order; later ones follow by themselves. */
  async #openTurns({ attempt, id, turn, owner }: TaskHead, until: number): Promise<QueuedTurn[]> {
    const found: QueuedTurn[] = [];
    let after = turn - 1;
    for (;;) {
      const [read] = await this.#context.store.read([{ id, after }], 500);
      if (read?.kind !== "entries" || read.entries.length === 0) return found;
      for (const entry of read.entries) {
        if (entry.number > until) return found;
        after = entry.number;
        const first = entry.number === 1 && "task" in entry.event ? entry.event.task.history?.[0] : undefined;
        const message = entry.received ?? first;
        if (message !== undefined) {
          const isRepeated = attempt > 1 && found.length === 0;
          found.push({ ...toStoredTurn(owner, message, entry), isRepeated, isStored: entry.number === turn });
        }
        const checkpoint = entry.request?.checkpoint;
        if (checkpoint !== undefined && found[0] !== undefined) found[0].checkpoint = checkpoint;
      }
    }
  }
}

/** Tasks at a time: a request that comes meanwhile waits for no more than these. */
const BATCH_SIZE = 20;
/** Between two portions, for requests. */
const PAUSE_MS = 5;

/** Reduces the logs of tasks that ended long ago, deletes what is past its retention and gives back its space, a little at a time. */
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
    const { store, times } = this.#context;
    // Tasks may be kept for ever; pruning then deletes only what has expired.
    const { compactAfterMs, pruneAfterMs = Number.POSITIVE_INFINITY } = times;
    while (!this.#stopped && (await store.compact(compactAfterMs, BATCH_SIZE)) === BATCH_SIZE) await this.#pause();
    while (!this.#stopped && (await store.prune(pruneAfterMs, BATCH_SIZE)) === BATCH_SIZE) await this.#pause();
    while (!this.#stopped && (await store.shrink?.()) === true) await this.#pause();
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#context.clock.after(PAUSE_MS, resolve);
    });
  }
}
