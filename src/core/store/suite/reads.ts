import { describe, expect, it } from "vitest";
import { LogEntry, type TaskEvent } from "../../model/event.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import { fold } from "../../model/fold.ts";
import type { Scope, TaskHead, TaskStore } from "../contract.ts";
import {
  accept,
  append,
  COMPLETED,
  chunkEvent,
  EVERYTHING,
  INPUT_REQUIRED,
  MINUTE,
  message,
  readAll,
  status,
  statusEvent,
  submit,
  taskEvent,
  uniqueId,
  WORKING,
} from "./fixtures.ts";

/** A conversation of several turns with artifacts, split into commits; and all of its entries. */
async function converse(store: TaskStore, id: string): Promise<LogEntry[]> {
  const said = (number: number, event: TaskEvent, received?: string) =>
    LogEntry.of(number, event, received === undefined ? undefined : message(received));
  const commits: LogEntry[][] = [
    [
      said(1, taskEvent(id, { history: [message("one"), message("two")], metadata: { from: "suite" } }), "ignored"),
      said(2, withUsage(statusEvent(id, status(WORKING, 1, "thinking")), 3)),
      said(3, chunkEvent(id, [{ text: "a" }], false)),
    ],
    [said(4, chunkEvent(id, [{ text: "b" }]))],
    [said(5, statusEvent(id, status(INPUT_REQUIRED, 2, "which?")))],
    [
      said(6, statusEvent(id, status(WORKING, 3)), "this one"),
      said(7, chunkEvent(id, [{ data: null }, { text: "c" }])),
    ],
    [said(8, chunkEvent(id, [{ text: "other" }], true, "second"))],
    [said(9, statusEvent(id, status(WORKING, 4, "nearly"))), said(10, statusEvent(id, status(WORKING, 5)))],
    [said(11, withUsage(statusEvent(id, status(COMPLETED, 6, "done")), 7))],
  ];
  const [first, ...rest] = commits as [LogEntry[], ...LogEntry[][]];
  const metadata = { from: "suite", [EXTENSIONS.usage]: { tokens: 3 } };
  await accept(store, submit(id, [], { entries: first, status: status(WORKING, 1, "thinking"), metadata }));
  for (const entries of rest) {
    const statuses = entries.flatMap(({ event }) => ("statusUpdate" in event ? [event.statusUpdate.status] : []));
    const after = (entries[0] as LogEntry).number - 1;
    const now = statuses.at(-1);
    const usage = after < 10 ? undefined : { metadata: { ...metadata, [EXTENSIONS.usage]: { tokens: 7 } } };
    const moved = now === undefined ? undefined : { status: now, ...usage };
    await accept(store, append(id, after, [], { entries, ...moved }));
  }
  return commits.flat();
}

function withUsage(event: TaskEvent, tokens: number): TaskEvent {
  if (!("statusUpdate" in event)) return event;
  return { statusUpdate: { ...event.statusUpdate, metadata: { [EXTENSIONS.usage]: { tokens }, more: true } } };
}

export function describeReads(store: () => TaskStore): void {
  describe("snapshot", () => {
    it("is the fold of the log, at every number, with as much of it as asked", async () => {
      const id = uniqueId();
      const entries = await converse(store(), id);
      for (let at = 1; at <= entries.length; at++) {
        const expected = fold(entries.slice(0, at));
        for (const history of [0, 1, 2, 3, 4, 5, 6, 7, 8, 100, Number.POSITIVE_INFINITY]) {
          for (const artifacts of [true, false]) {
            const task = expected.toTask({ historyLength: history, artifacts });
            const options = { history, artifacts };
            expect(await store().snapshot(id, { ...options, at })).toEqual({ task, number: at });
            if (at === entries.length) expect(await store().snapshot(id, options)).toEqual({ task, number: at });
          }
        }
      }
    });

    it("counts the message of a status that was replaced, however the log was committed", async () => {
      const id = uniqueId();
      await accept(store(), submit(id, [statusEvent(id, status(WORKING, 1, "first"))]));
      await accept(store(), append(id, 2, [chunkEvent(id, [{ text: "x" }])]));
      const options = { history: 1, artifacts: false };
      expect((await store().snapshot(id, options))?.task.history).toBeUndefined();
      await accept(store(), append(id, 3, [statusEvent(id, status(WORKING, 2))]));
      expect((await store().snapshot(id, options))?.task.history).toEqual([message("first", "ROLE_AGENT")]);
    });

    it("beyond the newest number is the task as it is", async () => {
      const id = uniqueId();
      await accept(store(), submit(id));
      expect(await store().snapshot(id, { ...EVERYTHING, at: 99 })).toMatchObject({ number: 1 });
    });

    it("of an unknown task is undefined", async () => {
      expect(await store().snapshot(uniqueId(), EVERYTHING)).toBeUndefined();
    });
  });

  describe("read", () => {
    it("gives what follows each cursor, with the received messages", async () => {
      const id = uniqueId();
      const entries = await converse(store(), id);
      for (let after = 0; after <= entries.length; after++) {
        expect(await readAll(store(), id, after)).toEqual(entries.slice(after).map((entry) => entry.json));
      }
      const [read] = await store().read([{ id, after: 0 }], 100);
      if (read?.kind !== "entries") throw new Error("expected entries");
      expect(read.entries.map(({ number, event, received }) => ({ number, event, received }))).toEqual(
        entries.map(({ number, event, received }) => ({ number, event, received })),
      );
    });

    it("respects the limit and can be continued", async () => {
      const id = uniqueId();
      const entries = await converse(store(), id);
      for (const limit of [1, 2, 3, 5]) {
        const got: string[] = [];
        while (got.length < entries.length) {
          const some = await readAll(store(), id, got.length, limit);
          expect(some.length).toBeGreaterThan(0);
          expect(some.length).toBeLessThanOrEqual(limit);
          got.push(...some);
        }
        expect(got).toEqual(entries.map((entry) => entry.json));
      }
    });

    it("answers several cursors by position", async () => {
      const [one, two] = [uniqueId(), uniqueId()];
      await accept(store(), submit(one), submit(two, [statusEvent(two, status(WORKING, 1))]));
      const reads = await store().read(
        [
          { id: two, after: 1 },
          { id: uniqueId(), after: 0 },
          { id: one, after: 1 },
          { id: two, after: 7 },
          { id: one, after: 0 },
          { id: two, after: 0 },
        ],
        10,
      );
      const shape = reads.map((read) =>
        read.kind === "entries" ? read.entries.map(({ number }) => number) : read.kind,
      );
      expect(shape).toEqual([[2], "missing", [], [], [1], [1, 2]]);
    });
  });

  describe("numbers", () => {
    it("answers by position, 0 for the unknown", async () => {
      const [one, two] = [uniqueId(), uniqueId()];
      await accept(store(), submit(one), submit(two, [statusEvent(two, status(WORKING, 1))]));
      expect(await store().numbers([two, "unknown", one, two])).toEqual([2, 0, 1, 2]);
      expect(await store().numbers([])).toEqual([]);
    });
  });

  describe("text", () => {
    const odd = 'NUL \u0000 lone \ud800 and \udc00, line \n \r \u2028, quote " \\ + \u0001 \ufeff 漢字 😀';

    it("comes back as it was, in every place", async () => {
      const id = `${uniqueId()} ${odd}`;
      const scope = { agent: odd, tenant: `${odd}t`, owner: `${odd}o` };
      const idempotency = { key: odd, fingerprint: odd, ttlMs: MINUTE };
      const events = [
        statusEvent(id, status(WORKING, 1, odd)),
        chunkEvent(id, [{ text: odd }, { data: { [odd]: odd } }]),
      ];
      const write = submit(id, events, { ...scope, dialect: odd, idempotency, node: odd });
      await accept(store(), write, { kind: "remember", id, fence: 1, key: odd, value: JSON.stringify(odd) });
      expect(await store().head(id)).toMatchObject({
        ...scope,
        id,
        contextId: write.contextId,
        dialect: odd,
        node: odd,
      });
      const task = fold(write.entries).toTask();
      const snapshot = await store().snapshot(id, EVERYTHING);
      expect(snapshot).toEqual({ task, number: 3 });
      const { agent, tenant, owner } = (await store().head(id)) as TaskHead;
      const asked = (scope: Scope) => store().snapshot(id, { ...EVERYTHING, scope });
      expect(await asked({ agent, tenant, owner })).toEqual({ task, number: 3 });
      expect(await asked({ agent, tenant, owner: `${owner}${odd}` })).toBeUndefined();
      expect(await asked({ agent, tenant: `${tenant}${odd}`, owner })).toBeUndefined();
      expect(await asked({ agent: `${agent}${odd}`, tenant, owner })).toBeUndefined();
      expect(await readAll(store(), id)).toEqual(write.entries.map((entry) => entry.json));
      expect(await store().memory(id)).toEqual(new Map([[odd, JSON.stringify(odd)]]));
      const page = await store().list({ ...scope, contextId: write.contextId, limit: 5, ...EVERYTHING });
      expect(page.tasks).toEqual([task]);
      expect(await store().findIdempotencyRecord({ ...scope, key: odd })).toMatchObject({
        taskId: id,
        fingerprint: odd,
      });
    });

    it("does not mix up what differs only in odd characters", async () => {
      const base = uniqueId();
      const ids = [`${base}\u0000`, `${base}\ud800`, `${base}\ufffd`, base, `\u0001${base}`, `${base}\u0000\u0000`];
      await accept(store(), ...ids.map((id) => submit(id)));
      for (const id of ids) expect((await store().head(id))?.id).toBe(id);
    });

    it("may be long", async () => {
      const id = uniqueId();
      const text = `${"long text 漢 ".repeat(350_000)}end`;
      await accept(store(), submit(id, [statusEvent(id, status(WORKING, 1, text)), chunkEvent(id, [{ text }])]));
      const snapshot = await store().snapshot(id, EVERYTHING);
      const [part] = snapshot?.task.artifacts?.[0]?.parts ?? [];
      expect(part !== undefined && "text" in part && part.text === text).toBe(true);
      expect((await store().head(id))?.status.message?.parts).toEqual([{ text }]);
    });
  });
}
