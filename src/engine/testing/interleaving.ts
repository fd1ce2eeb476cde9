/** One caller's doings against an engine, in any order, and what must be true of all of it afterwards. */
import fc from "fast-check";
import { ProtocolError } from "../../model/errors.ts";
import type { StreamFrame } from "../../model/operation.ts";
import type { Agent } from "../agent.ts";
import { aborted, agentOf, chunk, inputText, status, textDraft } from "./agents.ts";
import { settle } from "./fake-clock.ts";
import type { Harness } from "./harness.ts";
import { logViolations, snapshotViolations, viewViolations } from "./log-invariants.ts";
import type { FlakyStore } from "./stores.ts";

type Step =
  | { readonly do: "send"; readonly text: string; readonly key: number | undefined; readonly soon: boolean }
  | { readonly do: "stream"; readonly text: string }
  | { readonly do: "follow-up"; readonly task: number; readonly text: string; readonly key: number | undefined }
  | { readonly do: "cancel"; readonly task: number }
  | { readonly do: "subscribe"; readonly task: number }
  | { readonly do: "reconnect"; readonly view: number }
  | { readonly do: "wait"; readonly turns: number }
  | { readonly do: "pass-time"; readonly milliseconds: number }
  | { readonly do: "break-store"; readonly times: number; readonly when: "before" | "after" }
  | { readonly do: "crash" };

/** What the agent does is the text of the message. */
const SCRIPTS = ["reply", "chunks", "ask", "auth", "fail", "reject", "throw", "until-cancelled", "complete"] as const;

export function scripted(onCrash: Agent["onCrash"]): Agent {
  return agentOf(
    async function* (turn) {
      const script = inputText(turn);
      if (script === "reply") return textDraft("here");
      yield status("TASK_STATE_WORKING");
      if (script === "chunks") for (let index = 0; index < 20; index++) yield chunk("a", `${index} `, index > 0);
      if (script === "ask") yield status("TASK_STATE_INPUT_REQUIRED", "what?");
      if (script === "auth") yield status("TASK_STATE_AUTH_REQUIRED", "who?");
      if (script === "fail") yield status("TASK_STATE_FAILED", "no");
      if (script === "reject") yield status("TASK_STATE_REJECTED", "no");
      if (script === "throw") throw new Error("as told");
      if (script === "until-cancelled") await aborted(turn);
      if (script === "complete") {
        await settle(2);
        yield status("TASK_STATE_COMPLETED", "done");
      }
      return undefined;
    },
    { onCrash, concurrency: 3 },
  );
}

const text = fc.constantFrom(...SCRIPTS);
const place = fc.nat({ max: 5 });
const key = fc.option(fc.nat({ max: 3 }), { nil: undefined });

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("send" as const), text, key, soon: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("stream" as const), text }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("follow-up" as const), task: place, text, key }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cancel" as const), task: place }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("subscribe" as const), task: place }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("reconnect" as const), view: place }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("wait" as const), turns: fc.nat({ max: 6 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("pass-time" as const), milliseconds: fc.constantFrom(10, 1_000, 6_000) }),
  },
);

const fault: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant("break-store" as const),
    times: fc.integer({ min: 1, max: 6 }),
    when: fc.constantFrom("before" as const, "after" as const),
  }),
  fc.record({ do: fc.constant("crash" as const) }),
);

/** Enough of them that tasks and readers meet. */
export const steps = fc.array(step, { minLength: 10, maxLength: 40, size: "max" });

/** The same with a store that fails now and then, and processes that die. */
export const stepsWithFaults = fc.array(fc.oneof({ weight: 9, arbitrary: step }, { weight: 1, arbitrary: fault }), {
  minLength: 10,
  maxLength: 40,
  size: "max",
});

/** A subscriber that comes back with its cursor. */
class View {
  readonly frames: StreamFrame[] = [];
  readonly id: string;
  after: number | undefined;
  #iterator: AsyncIterator<readonly StreamFrame[]> | undefined;
  #epoch = 0;

  constructor(id: string) {
    this.id = id;
  }

  get last(): number | undefined {
    return this.frames.at(-1)?.number ?? this.after;
  }

  async connect(harness: Harness): Promise<void> {
    const epoch = ++this.#epoch;
    await this.#iterator?.return?.();
    const stream = await harness.subscribe(this.id, this.last ?? 1, { replay: true });
    this.after ??= 1;
    if (epoch !== this.#epoch) return void stream[Symbol.asyncIterator]().return?.();
    const iterator = stream[Symbol.asyncIterator]();
    this.#iterator = iterator;
    for (let read = await iterator.next(); read.done !== true; read = await iterator.next()) {
      if (epoch !== this.#epoch) return;
      this.frames.push(...read.value);
    }
  }
}

/** An engine that can be replaced by its successor, over a store that can be made to fail. */
export interface World {
  readonly harness: Harness;
  readonly store: FlakyStore;
  succeed(): Promise<Harness>;
}

export class Interleaving {
  readonly #world: World;
  #harness: Harness;
  readonly #views: View[] = [];
  #under: Promise<unknown>[] = [];
  readonly #acknowledged = new Set<string>();
  faults = 0;
  readonly #unexpected: string[] = [];
  /** Tasks that a caller was told of; what was answered by a message is not among them. */
  readonly #tasks: string[] = [];

  constructor(world: World) {
    this.#world = world;
    this.#harness = world.harness;
  }

  /** How much there was to check. */
  get extent(): { readonly tasks: number; readonly frames: number } {
    return { tasks: this.#tasks.length, frames: this.#views.reduce((sum, { frames }) => sum + frames.length, 0) };
  }

  async play(steps: readonly Step[]): Promise<void> {
    for (const next of steps) {
      if (next.do === "wait") await settle(next.turns);
      else if (next.do === "pass-time") await this.#harness.clock.advance(next.milliseconds);
      else if (next.do === "crash") await this.#crash();
      else if (next.do === "break-store") {
        this.faults++;
        this.#world.store.fail(next.times, next.when);
      } else this.#go(this.#perform(next, this.#harness));
    }
  }

  /** Lets everything come to its end, cancels what is left, and says what is wrong. */
  async finish(): Promise<string[]> {
    this.#world.store.fail(0);
    await this.#harness.clock.advance(60_000);
    await this.#learn();
    for (const id of [...this.#tasks]) {
      const cancelling = this.#harness.cancel(id).catch((error: unknown) => this.#note(error));
      await this.#harness.clock.advance(10_000);
      await cancelling;
    }
    await this.#harness.clock.advance(10_000);
    const late = settle(50).then(() => "late");
    if ((await Promise.race([Promise.all(this.#under), late])) === "late") this.#unexpected.push("someone still waits");
    await this.#learn();
    const found = [...this.#unexpected];
    for (const id of this.#acknowledged) if (!this.#tasks.includes(id)) found.push(`${id} was told of and is gone`);
    for (const id of this.#tasks) {
      const log = await this.#harness.log(id);
      const violations = [
        ...logViolations(log, { ended: true }),
        ...snapshotViolations(log, await this.#harness.stored(id)),
      ];
      found.push(...violations.map((violation) => `${id}: ${violation}`));
    }
    for (const view of this.#views) {
      const log = await this.#harness.log(view.id);
      if (log.length === 0) continue;
      found.push(...viewViolations(view.frames, log, 1).map((violation) => `view of ${view.id}: ${violation}`));
      if (view.after !== undefined && view.last !== log.length) {
        found.push(`view of ${view.id} ends at ${view.last} of ${log.length}`);
      }
    }
    if (this.#harness.engine.load.tasks > 0) found.push("the engine still holds tasks");
    if (this.#harness.engine.load.streams > 0) found.push("the engine still holds streams");
    return found;
  }

  /** Whoever waited for the process that died waits no more; readers come back with their cursors. */
  async #crash(): Promise<void> {
    this.faults++;
    this.#harness = await this.#world.succeed();
    this.#under = [];
    for (const view of this.#views) this.#go(view.connect(this.#harness));
  }

  #go(doing: Promise<unknown>): void {
    this.#under.push(doing.catch((error: unknown) => this.#note(error)));
  }

  async #perform(
    next: Exclude<Step, { do: "wait" | "pass-time" | "crash" | "break-store" }>,
    harness: Harness,
  ): Promise<void> {
    switch (next.do) {
      case "send": {
        const outcome = await harness.send(next.text, { ...keyed(next), returnImmediately: next.soon });
        if ("task" in outcome) this.#acknowledged.add(outcome.task.id);
        return;
      }
      case "stream":
        for await (const batch of await harness.stream(next.text)) {
          for (const { event } of batch) if ("task" in event) this.#acknowledged.add(event.task.id);
        }
        return;
      case "reconnect":
        await this.#views[next.view % Math.max(this.#views.length, 1)]?.connect(harness);
        return;
    }
    await this.#learn(harness);
    const id = this.#tasks[next.task % Math.max(this.#tasks.length, 1)];
    if (id === undefined) return;
    if (next.do === "follow-up") await harness.send(next.text, { ...keyed(next), taskId: id });
    else if (next.do === "cancel") await harness.cancel(id);
    else {
      const view = new View(id);
      this.#views.push(view);
      await view.connect(harness);
    }
  }

  async #learn(harness = this.#harness): Promise<void> {
    for (const { id } of (await harness.list()).tasks) if (!this.#tasks.includes(id)) this.#tasks.push(id);
    const stored = await Promise.all(this.#tasks.map((id) => this.#harness.memory.head(id)));
    // A task that was answered by a message has vanished, and that is right.
    for (let index = stored.length - 1; index >= 0; index--)
      if (stored[index] === undefined) this.#tasks.splice(index, 1);
  }

  #note(error: unknown): void {
    if (!ProtocolError.is(error)) this.#unexpected.push(`not a ProtocolError: ${String(error)}`);
    else if (!EXPECTED.has(error.code) && !this.#isExcused(error)) {
      this.#unexpected.push(`${error.code}: ${error.message}`);
    }
  }

  /** A task that many write to at once may ask one of them to come again; with faults anyone may have to. */
  #isExcused({ code, message }: ProtocolError): boolean {
    return code === "UNAVAILABLE" && (this.faults > 0 || message === "The task is busy; try again.");
  }
}

const EXPECTED: ReadonlySet<string> = new Set([
  "TASK_NOT_FOUND",
  "TASK_NOT_CANCELABLE",
  "UNSUPPORTED_OPERATION",
  "IDEMPOTENCY_CONFLICT",
]);

function keyed(next: { readonly text: string; readonly key: number | undefined }) {
  return next.key === undefined ? {} : { key: `key ${next.key}`, messageId: `${next.text} ${next.key}` };
}
