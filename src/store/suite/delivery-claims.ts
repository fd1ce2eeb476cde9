import { describe, expect, it } from "vitest";
import type { PushClaim, PushClaimQuery, PushProgress, TaskStore } from "../contract.ts";
import {
  ALICE,
  accept,
  append,
  chunkEvent,
  finished,
  message,
  registration,
  status,
  statusEvent,
  submit,
  uniqueId,
  WORKING,
  writeOne,
} from "./fixtures.ts";

const HOUR = 3_600_000;

function query(more: Partial<PushClaimQuery> = {}): PushClaimQuery {
  return { node: "n", max: 10, ttlMs: HOUR, perHost: 10, busy: new Map(), ...more };
}

async function claim(store: TaskStore, more: Partial<PushClaimQuery> = {}): Promise<readonly PushClaim[]> {
  return (await store.claimPush(query(more))).claims;
}

async function claimOne(store: TaskStore): Promise<PushClaim> {
  const [claimed, ...others] = await claim(store);
  if (claimed === undefined || others.length > 0) throw new Error(`expected one claim, got ${others.length}`);
  return claimed;
}

const idsIn = (claims: readonly PushClaim[]) => claims.map(({ config }) => config.id);

function progress({ config, place, claim }: PushClaim, cursor: number, next: PushProgress["next"]): PushProgress {
  return { kind: "push-progress", id: config.taskId, place, claim, cursor, next };
}

function moreOf(id: string, after: number) {
  return append(id, after, [chunkEvent(id, [{ text: "a" }])]);
}

const RELEASE = { kind: "release" } as const;

/** Each opens a store of its own: what is due is due to whoever asks. */
export function describePushOutbox(open: () => Promise<TaskStore>): void {
  describe("what is left to tell", () => {
    it("is claimed once, with where its config stands", async () => {
      const store = await open();
      const id = uniqueId("\ud800 task");
      await accept(store, finished(id, 1, { push: [registration("one", { token: "t" })] }));
      const claimed = await claimOne(store);
      expect(claimed).toMatchObject({ attempts: 0, host: "hook.example", scope: ALICE });
      expect(claimed.config).toMatchObject({ ...registration("one", { token: "t" }), taskId: id, cursor: 0 });
      expect(await claim(store)).toEqual([]);
      const released = await writeOne(store, progress(claimed, 2, RELEASE));
      expect(released).toEqual({ ok: true, number: 2, fence: 0 });
      expect(await claim(store)).toEqual([]);
      expect((await store.pushConfig(id, "one"))?.config.cursor).toBe(2);
      expect(await store.pushDeliveries({ limit: 10 })).toEqual([]);
    });

    it("begins after the event that was the newest when the config was made", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, submit(id), { kind: "push-put", ...ALICE, id, config: registration("one") });
      expect(await claim(store)).toEqual([]);
      expect(await writeOne(store, moreOf(id, 1))).toMatchObject({ due: true });
      expect(await writeOne(store, moreOf(id, 2))).not.toHaveProperty("due");
      expect((await claimOne(store)).config.cursor).toBe(1);
      expect(await writeOne(store, moreOf(id, 3))).not.toHaveProperty("due");
    });

    it("is nothing where nobody registered", async () => {
      const store = await open();
      const id = uniqueId();
      expect(await writeOne(store, submit(id))).not.toHaveProperty("due");
      expect(await writeOne(store, moreOf(id, 1))).not.toHaveProperty("due");
      expect(await store.claimPush(query())).toEqual({ claims: [] });
    });

    it("of a task that may be taken back waits, until a second event or for as long as was said", async () => {
      const store = await open();
      const [one, two] = [uniqueId(), uniqueId()];
      const push = [registration("one")];
      const tellAfter = Date.now() + HOUR;
      expect(await writeOne(store, submit(one, [], { push, notifyAfter: tellAfter }))).not.toHaveProperty("due");
      await accept(store, submit(two, [], { push, notifyAfter: 1 }));
      expect((await claim(store)).map(({ config }) => config.taskId)).toEqual([two]);
      expect((await store.claimPush(query())).nextAt).toBeGreaterThan(Date.now());
      expect(await writeOne(store, moreOf(one, 1))).toMatchObject({ due: true });
      expect((await claimOne(store)).config).toMatchObject({ taskId: one, cursor: 0 });
    });

    it("goes on while its holder holds, and is due at once if it lets go too early", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, submit(id, [statusEvent(id, status(WORKING))], { push: [registration("one")] }));
      const claimed = await claimOne(store);
      const until = Date.now() + HOUR;
      expect(await writeOne(store, progress(claimed, 1, { kind: "hold", until }))).not.toHaveProperty("due");
      expect(await claim(store)).toEqual([]);
      await accept(store, moreOf(id, 2));
      expect(await writeOne(store, progress(claimed, 2, RELEASE))).toMatchObject({ due: true });
      const again = await claimOne(store);
      expect(again.config.cursor).toBe(2);
      expect(again.claim).toBeGreaterThan(claimed.claim);
    });

    it("goes to another when a claim has ended, and the late one is refused", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, finished(id, 1, { push: [registration("one")] }));
      const [late] = await claim(store, { node: "a", ttlMs: 0 });
      const [next] = await claim(store, { node: "b" });
      if (late === undefined || next === undefined) throw new Error("expected two claims");
      expect(await writeOne(store, progress(late, 2, RELEASE))).toEqual({ ok: false, refusal: "fenced" });
      await accept(store, progress(next, 1, RELEASE));
      expect((await store.pushConfig(id, "one"))?.config.cursor).toBe(1);
    });

    it("waits after a failure, which is forgiven once something is told", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, finished(id, 1, { push: [registration("one")] }));
      const error = "HTTP 503 \0";
      await accept(store, progress(await claimOne(store), 0, { kind: "retry", at: 0, error }));
      const second = await claimOne(store);
      expect(second.attempts).toBe(1);
      const at = Date.now() + HOUR;
      await accept(store, progress(second, 0, { kind: "retry", at, error }));
      expect(await store.claimPush(query())).toEqual({ claims: [], nextAt: at });
      expect(await store.pushDeliveries({ limit: 10 })).toMatchObject([
        { taskId: id, configId: "one", cursor: 0, number: 2, attempts: 2, dueAt: at, lastError: error },
      ]);
      expect(await store.redeliverPush({ taskId: id })).toHaveLength(1);
      await accept(store, progress(await claimOne(store), 1, { kind: "retry", at: 0, error: "other" }));
      expect((await claimOne(store)).attempts).toBe(1);
    });

    it("that was given up stays so until somebody asks for it", async () => {
      const store = await open();
      const [id, other] = [uniqueId(), uniqueId()];
      await accept(store, submit(id, [], { push: [registration("one")] }));
      await accept(store, progress(await claimOne(store), 0, { kind: "dead", error: "gone" }));
      expect(await writeOne(store, moreOf(id, 1))).not.toHaveProperty("due");
      expect(await claim(store)).toEqual([]);
      const dead = { taskId: id, configId: "one", attempts: 1, lastError: "gone", deadAt: expect.any(Number) };
      expect(await store.pushDeliveries({ limit: 10, dead: true })).toMatchObject([dead]);
      await accept(store, finished(other, 1, { push: [registration("two")] }));
      expect(await store.pushDeliveries({ limit: 10, dead: true })).toHaveLength(1);
      expect(await store.pushDeliveries({ limit: 10, taskId: other })).toMatchObject([{ configId: "two" }]);
      const [first] = await store.pushDeliveries({ limit: 1 });
      expect(await store.pushDeliveries({ limit: 10, after: first?.place ?? 0 })).toMatchObject([{ configId: "two" }]);
      expect(await store.redeliverPush({ taskId: other })).toEqual([]);
      const due = { taskId: id, configId: "one", dialect: registration("one").dialect, scope: ALICE };
      expect(await store.redeliverPush({})).toMatchObject([due]);
      expect(await store.pushDeliveries({ limit: 10, dead: true })).toEqual([]);
      expect(idsIn(await claim(store)).sort()).toEqual(["one", "two"]);
    });

    it("can be told again from any event", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, finished(id, 1, { push: [registration("one"), registration("two")] }));
      for (const claimed of await claim(store)) await accept(store, progress(claimed, 2, RELEASE));
      expect(await store.redeliverPush({ taskId: id })).toEqual([]);
      expect(await store.redeliverPush({ taskId: id, configId: "two", from: 2 })).toMatchObject([{ configId: "two" }]);
      expect((await claimOne(store)).config).toMatchObject({ id: "two", cursor: 1 });
      expect(await store.redeliverPush({ taskId: uniqueId(), from: 1 })).toEqual([]);
    });

    it("is bounded for each host, and those behind a full one get their turn", async () => {
      const store = await open();
      const id = uniqueId();
      const slow = Array.from({ length: 8 }, (_, at) =>
        registration(`slow ${at}`, { url: `http://slow.example/${at}` }),
      );
      const push = [...slow, registration("quick"), registration("odd", { url: "no address" })];
      await accept(store, finished(id, 1, { push }));
      const first = await claim(store, { max: 4, perHost: 2 });
      expect(idsIn(first).sort()).toEqual(["odd", "quick", "slow 0", "slow 1"]);
      const busy = new Map([["slow.example", 2]]);
      expect(await claim(store, { max: 4, perHost: 2, busy })).toEqual([]);
      expect(await claim(store, { max: 0, perHost: 2 })).toEqual([]);
      expect(idsIn(await claim(store, { perHost: 3, busy }))).toEqual(["slow 2"]);
    });
  });

  describe("a config that changes while it is told something", () => {
    it("and is deleted is told nothing more", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, finished(id, 1, { push: [registration("one")] }));
      const claimed = await claimOne(store);
      await accept(store, { kind: "push-delete", ...ALICE, id, configId: "one" });
      expect(await writeOne(store, progress(claimed, 1, RELEASE))).toEqual({ ok: false, refusal: "missing" });
      await accept(store, { kind: "push-put", ...ALICE, id, config: registration("one") });
      expect(await writeOne(store, progress(claimed, 1, RELEASE))).toEqual({ ok: false, refusal: "missing" });
      expect(await claim(store)).toEqual([]);
    });

    it("and is replaced tells the new address what it had not told yet, even if it had given up", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, finished(id, 1, { push: [registration("one")] }));
      const claimed = await claimOne(store);
      const config = registration("one", { url: "https://new.example/" });
      expect(await writeOne(store, { kind: "push-put", ...ALICE, id, config })).toMatchObject({ due: true });
      expect(await writeOne(store, progress(claimed, 1, RELEASE))).toEqual({ ok: false, refusal: "fenced" });
      const again = await claimOne(store);
      expect(again).toMatchObject({ host: "new.example", config: { url: config.url, cursor: 0 } });
      await accept(store, progress(again, 0, { kind: "dead", error: "gone" }));
      await accept(store, { kind: "push-put", ...ALICE, id, config });
      expect(await claimOne(store)).toMatchObject({ attempts: 0 });
    });

    it("and goes with its task is told nothing more", async () => {
      const store = await open();
      const [taken, pruned] = [uniqueId(), uniqueId()];
      const push = [registration("one")];
      await accept(store, submit(taken, [], { node: "n", push }), finished(pruned, 1, { push }));
      const claims = await claim(store);
      await accept(store, { kind: "discard", id: taken, fence: 1, reply: message("plain") });
      expect(await store.prune(0, 10)).toBe(1);
      for (const claimed of claims) {
        expect(await writeOne(store, progress(claimed, 1, RELEASE))).toEqual({ ok: false, refusal: "missing" });
      }
      expect(claims).toHaveLength(2);
      expect(await store.pushDeliveries({ limit: 10 })).toEqual([]);
      expect(await store.redeliverPush({})).toEqual([]);
    });
  });
}
