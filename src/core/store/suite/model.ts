import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LogEntry, type TaskEvent } from "../../model/event.ts";
import { fold } from "../../model/fold.ts";
import { isTerminal, isTransitionAllowed, type TaskState, type TaskStatus } from "../../model/task.ts";
import type { TaskStore, Write } from "../contract.ts";
import { groupOf } from "../rules.ts";
import {
  ALICE,
  chunkEvent,
  contextOf,
  message,
  registration,
  SUBMITTED,
  status,
  statusEvent,
  taskEvent,
  uniqueId,
  writeAll,
} from "./fixtures.ts";

/** The whole meaning of a task in a store, as simply as it can be said. */
interface ModelTask {
  entries: LogEntry[];
  status: TaskStatus;
  fence: number;
  node: string | undefined;
  memory: Map<string, string>;
  /** What was registered by group and id, and the cursor it began with. */
  deliveries: Map<string, Registered & { cursor: number }>;
}

type Step =
  | {
      kind: "append";
      task: number;
      pieces: Piece[];
      wrongPosition: boolean;
      wrongFence: boolean;
      lease: number;
      registered: Registered | undefined;
    }
  | { kind: "submit"; task: number; pieces: Piece[]; leased: boolean; registered: Registered | undefined }
  | { kind: "remember"; task: number; key: string; value: string | undefined }
  | { kind: "delivery-put"; task: number; registered: Registered; stranger: boolean }
  | { kind: "delivery-delete"; task: number; registered: Registered; stranger: boolean }
  | { kind: "discard"; task: number }
  | { kind: "cancel"; task: number };

interface Registered {
  readonly id: string;
  readonly route: string;
  readonly address: string;
}

interface Piece {
  readonly state: TaskState | "chunk";
  readonly text: string;
  readonly said: boolean;
  readonly received: boolean;
}

const task = fc.nat(2);
const piece: fc.Arbitrary<Piece> = fc.record({
  state: fc.constantFrom(
    ...(["chunk", "chunk", "TASK_STATE_WORKING", "TASK_STATE_WORKING"] as const),
    ...(["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"] as const),
  ),
  text: fc.string({ unit: "binary", maxLength: 5 }),
  said: fc.boolean(),
  received: fc.boolean(),
});
const pieces = fc.array(piece, { maxLength: 4 });
const rarely = fc.integer({ min: 0, max: 9 }).map((roll) => roll === 0);
const registered: fc.Arbitrary<Registered> = fc.record({
  id: fc.constantFrom("a", "b", "\ud800"),
  route: fc.constantFrom("webhook", "webhook", "room:a", "room:b"),
  address: fc.string({ unit: "binary", maxLength: 5 }),
});
const sometimes = fc.option(registered, { nil: undefined, freq: 3 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("submit" as const),
      task,
      pieces,
      leased: fc.boolean(),
      registered: sometimes,
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      task,
      pieces,
      wrongPosition: rarely,
      wrongFence: rarely,
      lease: fc.nat(6),
      registered: sometimes,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("remember" as const),
      task,
      key: fc.constantFrom("a", "b"),
      value: fc.option(fc.json(), { nil: undefined }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom("delivery-put", "delivery-delete"),
      task,
      registered,
      stranger: rarely,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("discard" as const), task }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("cancel" as const), task }) },
);
const groups = fc.array(fc.array(step, { maxLength: 5 }), { maxLength: 8 });

class Model {
  readonly tasks = new Map<string, ModelTask>();
  #time = 0;

  /** The write a step means now, and what must come of it. */
  perform(id: string, doing: Step): { write: Write; expected: string } {
    const known = this.tasks.get(id);
    switch (doing.kind) {
      case "submit": {
        const entries = this.#legal(id, undefined, doing.pieces);
        const task: ModelTask = {
          entries: [...entries],
          status: fold(entries).status,
          fence: 0,
          node: undefined,
          memory: new Map(),
          deliveries: new Map(),
        };
        register(task, doing.registered, 0);
        if (doing.leased && !isTerminal(task.status.state)) Object.assign(task, { fence: 1, node: "n" });
        if (known === undefined) this.tasks.set(id, task);
        const write: Write = {
          kind: "submit",
          ...ALICE,
          id,
          contextId: contextOf(id),
          dialect: "a2a-v1",
          entries,
          status: task.status,
          turn: 1,
          ...(doing.leased ? { node: "n" } : undefined),
          ...toDeliveries(doing.registered),
        };
        return { write, expected: known === undefined ? accepted(task) : "exists" };
      }
      case "append":
        return this.#append(id, known, doing);
      case "remember": {
        const { key, value } = doing;
        const write: Write = { kind: "remember", id, fence: known?.fence ?? 0, key, value };
        if (open(known)) value === undefined ? known.memory.delete(key) : known.memory.set(key, value);
        return { write, expected: outcome(known) };
      }
      case "delivery-put": {
        const { registered, stranger } = doing;
        const scope = { ...ALICE, owner: stranger ? "bob" : ALICE.owner };
        const write: Write = { kind: "delivery-put", ...scope, id, delivery: registration(registered.id, registered) };
        if (known === undefined || stranger) return { write, expected: "missing" };
        register(known, registered, known.entries.length);
        return { write, expected: accepted(known) };
      }
      case "delivery-delete": {
        const scope = { ...ALICE, owner: doing.stranger ? "bob" : ALICE.owner };
        const write: Write = {
          kind: "delivery-delete",
          ...scope,
          id,
          group: groupOf(doing.registered.route),
          deliveryId: doing.registered.id,
        };
        if (known === undefined || doing.stranger) return { write, expected: "missing" };
        known.deliveries.delete(keyOf(doing.registered));
        return { write, expected: accepted(known) };
      }
      case "discard": {
        if (open(known)) this.tasks.delete(id);
        const write: Write = { kind: "discard", id, fence: known?.fence ?? 0, reply: message("plain") };
        return { write, expected: outcome(known) };
      }
      case "cancel":
        return { write: { kind: "request-cancel", id }, expected: outcome(known) };
    }
  }

  #append(id: string, known: ModelTask | undefined, doing: Extract<Step, { kind: "append" }>) {
    const entries = this.#legal(id, known, doing.pieces);
    const before = known?.entries.length ?? 0;
    const now = known === undefined ? undefined : fold([...known.entries, ...entries]).status;
    const lease = doing.lease === 0 ? ("release" as const) : doing.lease === 1 ? { take: "n" } : undefined;
    const write: Write = {
      kind: "append",
      id,
      expect: before + (doing.wrongPosition ? 1 : 0),
      fence: (known?.fence ?? 0) + (doing.wrongFence ? 1 : 0),
      entries,
      ...(now === undefined || now === known?.status ? undefined : { status: now }),
      ...(lease === undefined ? undefined : { lease }),
      ...toDeliveries(doing.registered),
    };
    if (!open(known)) return { write, expected: outcome(known) };
    if (doing.wrongFence) return { write, expected: "fenced" };
    if (doing.wrongPosition) return { write, expected: "position" };
    register(known, doing.registered, before);
    known.entries.push(...entries);
    known.status = now ?? known.status;
    if (lease === "release") known.node = undefined;
    else if (lease !== undefined) Object.assign(known, { fence: known.fence + 1, node: "n" });
    if (isTerminal(known.status.state)) known.node = undefined;
    return { write, expected: accepted(known) };
  }

  /** As many of the pieces as the rules of a log allow, with numbers. */
  #legal(id: string, known: ModelTask | undefined, wanted: readonly Piece[]): LogEntry[] {
    const first: [TaskEvent, undefined] = [taskEvent(id, { history: [message("first")] }), undefined];
    const events: [TaskEvent, string | undefined][] = known === undefined ? [first] : [];
    let state: TaskState = known?.status.state ?? SUBMITTED;
    for (const { state: next, text, said, received } of wanted) {
      if (isTerminal(state)) break;
      if (next === "chunk") events.push([chunkEvent(id, [{ text }], !said), undefined]);
      else if (isTransitionAllowed(state, next)) {
        state = next;
        const event = statusEvent(id, status(next, this.#time++, said ? text : undefined));
        events.push([event, received ? text : undefined]);
      }
    }
    const from = (known?.entries.length ?? 0) + 1;
    return events.map(([event, text], index) =>
      LogEntry.of(from + index, event, text === undefined ? undefined : message(text)),
    );
  }
}

function toDeliveries(registered: Registered | undefined) {
  return registered === undefined ? undefined : { deliveries: [registration(registered.id, registered)] };
}

function keyOf({ id, route }: Registered): string {
  return `${groupOf(route)} ${id}`;
}

function register(task: ModelTask, registered: Registered | undefined, cursor: number): void {
  if (registered === undefined) return;
  const key = keyOf(registered);
  task.deliveries.set(key, { ...registered, cursor: task.deliveries.get(key)?.cursor ?? cursor });
}

function open(task: ModelTask | undefined): task is ModelTask {
  return task !== undefined && !isTerminal(task.status.state);
}

function accepted(task: ModelTask): string {
  return `${task.entries.length} under ${task.fence}`;
}

function outcome(task: ModelTask | undefined): string {
  if (task === undefined) return "missing";
  return open(task) ? accepted(task) : "terminal";
}

export function describeModel(store: () => TaskStore): void {
  describe("any sequence of writes", () => {
    it("leaves the store as a list of entries and its fold would be", async () => {
      await fc.assert(
        fc.asyncProperty(groups, fc.nat(6), fc.nat(20), async (written, history, after) => {
          const model = new Model();
          const ids = [uniqueId(), uniqueId(), uniqueId()] as const;
          for (const group of written) {
            const steps = group.map((doing) => model.perform(ids[doing.task] as string, doing));
            const results = await writeAll(
              store(),
              steps.map(({ write }) => write),
            );
            const got = results.map((result) =>
              result.ok ? `${result.number} under ${result.fence}` : result.refusal,
            );
            expect(got).toEqual(steps.map(({ expected }) => expected));
          }
          for (const id of ids) await compare(store(), id, model.tasks.get(id), history, after);
        }),
        { numRuns: 150 },
      );
    });
  });
}

async function compare(store: TaskStore, id: string, known: ModelTask | undefined, history: number, after: number) {
  const head = await store.head(id);
  if (known === undefined) {
    expect(head).toBeUndefined();
    expect(await store.deliveries(id, { group: "webhooks", limit: 10 })).toBeUndefined();
    return;
  }
  const { entries, status: now, fence, node, memory, deliveries } = known;
  for (const group of ["webhooks", "replies"] as const) {
    const kept = await store.deliveries(id, { group, limit: 10 });
    const expected = [...deliveries.values()].filter(({ route }) => groupOf(route) === group);
    expect(kept?.deliveries).toMatchObject(expected);
    expect(kept?.deliveries).toHaveLength(expected.length);
  }
  expect(head).toMatchObject({ number: entries.length, status: now, fence, node });
  expect(await store.memory(id)).toEqual(memory);
  const [read] = await store.read([{ id, after }], 7);
  if (read?.kind !== "entries") throw new Error(`expected entries, got ${read?.kind}`);
  const plain = (entry: LogEntry) => [entry.number, entry.json, entry.received];
  expect(read.entries.map(plain)).toEqual(entries.slice(after, after + 7).map(plain));
  for (const artifacts of [true, false]) {
    const whole = fold(entries).toTask({ historyLength: history, artifacts });
    expect(await store.snapshot(id, { history, artifacts })).toEqual({
      task: whole,
      number: entries.length,
    });
    const at = Math.min(Math.max(after, 1), entries.length);
    const past = fold(entries.slice(0, at)).toTask({ historyLength: history, artifacts });
    expect(await store.snapshot(id, { history, artifacts, at })).toEqual({ task: past, number: at });
  }
}
