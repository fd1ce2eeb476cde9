/** What one caller does against engines that share a store, in any order, and what must be true of all of it afterwards. */
import fc from "fast-check";
import { ProtocolError } from "../../model/errors.ts";
import { textOf } from "../../model/message.ts";
import type { StreamFrame } from "../../model/operation.ts";
import { isInterrupted, isTerminal } from "../../model/task.ts";
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

/** A step and the node that it goes to. */
type Played = Step & { readonly node: number };

/** What the agent does is the text of the message. */
const SCRIPTS = ["reply", "chunks", "ask", "auth", "fail", "reject", "throw", "until-cancelled", "complete"] as const;

/** `ran` gets the ids of the messages that a turn began for. */
export function scripted(onCrash: Agent["onCrash"], ran: Set<string>, concurrency: number): Agent {
  return agentOf(
    async function* (turn) {
      const script = inputText(turn);
      ran.add(turn.message.messageId);
      if (script === "reply") return textDraft("here");
      yield status("TASK_STATE_WORKING");
      if (script === "chunks") for (let index = 0; index < 20; index++) yield chunk("a", `${index} `, index > 0);
      if (script === "ask") yield status("TASK_STATE_INPUT_REQUIRED", "what?");
      if (script === "auth") yield status("TASK_STATE_AUTH_REQUIRED", "who?");
      if (script === "fail") yield status("TASK_STATE_FAILED", "no");
      if (script === "reject") yield status("TASK_STATE_REJECTED", "no");
      if (script === "throw") throw new Error("as the script says");
      if (script === "until-cancelled") await aborted(turn);
      if (script === "complete") {
        await settle(2);
        yield status("TASK_STATE_COMPLETED", "done");
      }
      return undefined;
    },
    { onCrash, concurrency },
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

const anyNode = fc.nat({ max: 5 });
const played = (some: fc.Arbitrary<Step>): fc.Arbitrary<Played> =>
  fc.tuple(some, anyNode).map(([next, node]) => ({ ...next, node }));

/** Enough of them that tasks and readers meet. */
export const steps = fc.array(played(step), { minLength: 10, maxLength: 40, size: "max" });

/** The same with a store that fails now and then, and processes that die. */
export const stepsWithFaults = fc.array(
  played(fc.oneof({ weight: 9, arbitrary: step }, { weight: 1, arbitrary: fault })),
  { minLength: 10, maxLength: 40, size: "max" },
);

/** A subscriber that comes back with its cursor. */
class View {
  readonly frames: StreamFrame[] = [];
  readonly id: string;
  after: number | undefined;
  /** Where it is connected. */
  node = 0;
  #iterator: AsyncIterator<readonly StreamFrame[]> | undefined;
  #epoch = 0;

  constructor(id: string) {
    this.id = id;
  }

  get last(): number | undefined {
    return this.frames.at(-1)?.number ?? this.after;
  }

  async connect(harness: Harness, node = this.node): Promise<void> {
    const epoch = ++this.#epoch;
    this.node = node;
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

/** Engines that can be replaced by their successors, over a store that can be made to fail. */
export interface World {
  readonly nodes: readonly Harness[];
  readonly store: FlakyStore;
  /** Messages that a turn began for. */
  readonly ran: ReadonlySet<string>;
  /** No turn waits for another task's. */
  readonly hasRoom: boolean;
  /** Kills a node and starts another in its place. */
  replace(node: number): Promise<void>;
}

export class Interleaving {
  readonly #world: World;
  readonly #views: View[] = [];
  #under: { readonly node: number; readonly doing: Promise<unknown> }[] = [];
  readonly #acknowledged = new Set<string>();
  /** Messages that a caller knows to be accepted, with their tasks. */
  readonly #accepted = new Map<string, string>();
  faults = 0;
  readonly #unexpected: string[] = [];
  /** Tasks that were shown to a caller; what was answered by a message is not among them. */
  readonly #tasks: string[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  /** How much there was to check. */
  get extent(): { readonly tasks: number; readonly frames: number } {
    return { tasks: this.#tasks.length, frames: this.#views.reduce((sum, { frames }) => sum + frames.length, 0) };
  }

  /** The node that looks at everything when all is done. */
  get #harness(): Harness {
    return this.#world.nodes[0] as Harness;
  }

  async play(steps: readonly Played[]): Promise<void> {
    for (const next of steps) {
      const node = next.node % this.#world.nodes.length;
      if (next.do === "wait") await settle(next.turns);
      else if (next.do === "pass-time") await this.#harness.clock.advance(next.milliseconds);
      else if (next.do === "crash") await this.#crash(node);
      else if (next.do === "break-store") {
        this.faults++;
        this.#world.store.fail(next.times, next.when);
      } else this.#go(this.#perform(next, this.#world.nodes[node] as Harness), node);
    }
  }

  /** Lets everything come to its end, cancels what is left, and says what is wrong. */
  async finish(): Promise<string[]> {
    this.#world.store.fail(0);
    await this.#harness.clock.advance(60_000);
    await this.#learn();
    if (this.#world.hasRoom) for (const id of this.#tasks) await this.#checkProgress(id);
    for (const id of [...this.#tasks]) {
      const cancelling = this.#harness.cancel(id).catch((error: unknown) => this.#note(error));
      await this.#harness.clock.advance(10_000);
      await cancelling;
    }
    await this.#harness.clock.advance(10_000);
    const late = settle(50).then(() => "late");
    const waiting = this.#under.map(({ doing }) => doing);
    if ((await Promise.race([Promise.all(waiting), late])) === "late") this.#unexpected.push("a caller still waits");
    await this.#learn();
    const found = [...this.#unexpected];
    for (const id of this.#acknowledged) if (!this.#tasks.includes(id)) found.push(`${id} was shown and is gone`);
    for (const id of this.#tasks) {
      const log = await this.#harness.log(id);
      const violations = [
        ...logViolations(log, { ended: true }),
        ...snapshotViolations(log, await this.#harness.stored(id)),
      ];
      found.push(...violations.map((violation) => `${id}: ${violation}`));
    }
    found.push(...(await this.#messageViolations()));
    for (const view of this.#views) {
      const log = await this.#harness.log(view.id);
      if (log.length === 0) continue;
      found.push(...viewViolations(view.frames, log, 1).map((violation) => `view of ${view.id}: ${violation}`));
      if (view.after !== undefined && view.last !== log.length) {
        found.push(`view of ${view.id} ends at ${view.last} of ${log.length}`);
      }
    }
    for (const { engine } of this.#world.nodes) {
      if (engine.load.tasks > 0) found.push("an engine still holds tasks");
      if (engine.load.streams > 0) found.push("an engine still holds streams");
    }
    return found;
  }

  /** With time enough for everything, a task has ended, waits for its caller, or for a turn that never ends by itself. */
  async #checkProgress(id: string): Promise<void> {
    const { status: now, history = [] } = await this.#harness.stored(id);
    if (isTerminal(now.state)) return;
    const messages = history.filter(({ role }) => role === "ROLE_USER");
    const runs = messages.filter(({ messageId }) => this.#world.ran.has(messageId));
    if (runs.some(({ parts }) => textOf(parts) === "until-cancelled")) return;
    if (runs.length < messages.length) this.#unexpected.push(`${id}: a message got no turn`);
    else if (!isInterrupted(now.state)) this.#unexpected.push(`${id}: ${now.state} though nothing is left to do`);
  }

  /** Every accepted message is in its task's history once, and was answered if the task completed. */
  async #messageViolations(): Promise<string[]> {
    const found: string[] = [];
    for (const id of this.#tasks) {
      const { status: now, history = [] } = await this.#harness.stored(id);
      const ids = history.filter(({ role }) => role === "ROLE_USER").map(({ messageId }) => messageId);
      if (new Set(ids).size < ids.length) found.push(`${id}: a message is twice in ${ids.join(", ")}`);
      for (const [message, task] of this.#accepted) {
        if (task === id && !ids.includes(message)) found.push(`${id}: the message ${message} was accepted and is gone`);
      }
      if (now.state !== "TASK_STATE_COMPLETED") continue;
      for (const message of ids) if (!this.#world.ran.has(message)) found.push(`${id}: ${message} got no turn`);
    }
    return found;
  }

  /** Callers of the process that died wait no more; readers come back with their cursors. */
  async #crash(node: number): Promise<void> {
    this.faults++;
    await this.#world.replace(node);
    this.#under = this.#under.filter((under) => under.node !== node);
    const readers = this.#views.filter((view) => view.node === node);
    for (const view of readers) this.#go(view.connect(this.#world.nodes[node] as Harness), node);
  }

  #go(doing: Promise<unknown>, node: number): void {
    this.#under.push({ node, doing: doing.catch((error: unknown) => this.#note(error)) });
  }

  async #perform(
    next: Exclude<Played, { do: "wait" | "pass-time" | "crash" | "break-store" }>,
    harness: Harness,
  ): Promise<void> {
    const node = next.node % this.#world.nodes.length;
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
        await this.#views[next.view % Math.max(this.#views.length, 1)]?.connect(harness, node);
        return;
    }
    await this.#learn(harness);
    const id = this.#tasks[next.task % Math.max(this.#tasks.length, 1)];
    if (id === undefined) return;
    if (next.do === "follow-up") {
      const messageId = next.key === undefined ? `follow-up-${++followUps}` : `${next.text} ${next.key}`;
      const outcome = await harness.send(next.text, { ...keyed(next), messageId, taskId: id });
      if ("task" in outcome && outcome.task.id === id) this.#accepted.set(messageId, id);
    } else if (next.do === "cancel") await harness.cancel(id);
    else {
      const view = new View(id);
      this.#views.push(view);
      await view.connect(harness, node);
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

let followUps = 0;

const EXPECTED: ReadonlySet<string> = new Set([
  "TASK_NOT_FOUND",
  "TASK_NOT_CANCELABLE",
  "UNSUPPORTED_OPERATION",
  "IDEMPOTENCY_CONFLICT",
]);

function keyed(next: { readonly text: string; readonly key: number | undefined }) {
  return next.key === undefined ? {} : { key: `key ${next.key}`, messageId: `${next.text} ${next.key}` };
}
