import { describe, expect, it } from "vitest";
import { FakeClock, settle } from "../../core/engine/testing/fake-clock.ts";
import { ProtocolError } from "../../core/model/errors.ts";
import type { JsonObject } from "../../core/model/json.ts";
import { type Change, ChangeLog, KEPT_CHANGES, type Reset } from "./changes.ts";
import type { RegistryEntry } from "./entry.ts";
import { parseListRequest } from "./query.ts";
import type { Registry } from "./registry.ts";
import { cardOf, createRegistry, entryOf, FakeCards, MemoryRecords, skillOf } from "./testing/fixtures.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;
const URL_A = "https://a.example.com/.well-known/agent-card.json";

function start(options: Partial<Parameters<typeof createRegistry>[0]> = {}) {
  const clock = new FakeClock();
  const cards = new FakeCards();
  const records = new MemoryRecords();
  const registry = createRegistry({ clock, cards, records, ...options });
  return { clock, cards, records, registry };
}

const inline = (name: string, members: { readonly ttlMs?: number; readonly visibility?: "public" } = {}) => ({
  source: { card: cardOf(name) as object as JsonObject },
  probe: false,
  ...members,
});
const byUrl = (url: string, probe = false) => ({ source: { url }, probe });

async function namesOf(registry: Registry, owner: string): Promise<readonly string[]> {
  const { entries } = await registry.list(owner, parseListRequest(""));
  return entries.map(({ card }) => card.name);
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "OK",
    (error: unknown) => (ProtocolError.is(error) ? error.code : "another error"),
  );

/** Changes as they come, without those that the owner may not see. */
async function watch(registry: Registry, owner: string, after?: number) {
  const { changes, toVisible, reset, from } = await registry.watch(owner, after);
  const seen: Change[] = [];
  const resets: Reset[] = [];
  const reading = (async () => {
    for await (const batch of changes) {
      if ("reset" in batch) resets.push(batch);
      else seen.push(...batch.flatMap((change) => toVisible(change) ?? []));
    }
  })();
  return { seen, resets, reset, from, reading, kinds: () => seen.map(({ kind }) => kind) };
}

describe("an agent with a ttl", () => {
  it("is up while its heartbeats come, then stale, dead and gone", async () => {
    const { clock, registry } = start();
    const watcher = await watch(registry, "alice");
    const { entry } = await registry.register("alice", inline("A", { ttlMs: 10 * SECOND }));
    const health = async () => (await registry.get("alice", entry.id)).health;
    expect(entry.health).toBe("up");
    for (let beat = 0; beat < 5; beat++) {
      await clock.advance(8 * SECOND);
      expect(await registry.heartbeat("alice", entry.id)).toBe(clock.now() + 10 * SECOND);
      expect(await health()).toBe("up");
    }
    await clock.advance(11 * SECOND);
    expect(await health()).toBe("stale");
    await registry.heartbeat("alice", entry.id);
    expect(await health()).toBe("up");
    await clock.advance(12 * SECOND);
    expect(await health()).toBe("stale");
    await clock.advance(10 * SECOND);
    expect(await health()).toBe("dead");
    await clock.advance(10 * SECOND);
    expect(await codeOf(registry.get("alice", entry.id))).toBe("METHOD_NOT_FOUND");
    expect(await codeOf(registry.heartbeat("alice", entry.id))).toBe("METHOD_NOT_FOUND");
    expect(watcher.kinds()).toEqual(["registered", "stale", "updated", "stale", "updated", "removed"]);
  });

  it("that could not be heard because the server was down has its ttl once more", async () => {
    const { clock, records, registry } = start();
    const { entry } = await registry.register("alice", inline("A", { ttlMs: 10 * SECOND }));
    await registry.close();
    await clock.advance(5 * MINUTE);
    const next = createRegistry({ clock, records });
    await clock.advance(9 * SECOND);
    expect((await next.get("alice", entry.id)).health).toBe("up");
    await clock.advance(3 * SECOND);
    expect((await next.get("alice", entry.id)).health).toBe("stale");
  });
});

describe("an agent with a card at a URL", () => {
  it("has its card read again by ETag, and shows a new one", async () => {
    const { clock, cards, registry } = start();
    cards.cards.set(URL_A, cardOf("A"));
    const { entry } = await registry.register("alice", byUrl(URL_A));
    expect(entry.health).toBe("up");
    await clock.advance(12 * MINUTE);
    expect(cards.fetched.at(-1)).toBe(`${URL_A} ${JSON.stringify(cardOf("A"))}`);
    expect(cards.fetched).toHaveLength(2);
    const watcher = await watch(registry, "alice");
    cards.cards.set(URL_A, cardOf("A", { skills: [skillOf("new")] }));
    await clock.advance(12 * MINUTE);
    expect((await registry.get("alice", entry.id)).card.skills).toMatchObject([{ id: "new" }]);
    expect(watcher.kinds()).toEqual(["updated"]);
    const { entries } = await registry.list("alice", parseListRequest("skill=new"));
    expect(entries).toHaveLength(1);
  });

  it("is stale when its card cannot be read twice, then dead, then gone; or up again", async () => {
    const { clock, cards, registry } = start();
    cards.cards.set(URL_A, cardOf("A"));
    const { entry } = await registry.register("alice", byUrl(URL_A));
    const state = () => registry.get("alice", entry.id);
    cards.cards.delete(URL_A);
    await clock.advance(10 * MINUTE + 5 * SECOND);
    expect(await state()).toMatchObject({ health: "up", failures: 1, problem: "url: the card could not be fetched" });
    await clock.advance(MINUTE);
    expect(await state()).toMatchObject({ health: "stale", failures: 2 });
    cards.cards.set(URL_A, cardOf("A"));
    await clock.advance(11 * MINUTE);
    expect(await state()).toMatchObject({ health: "up", failures: 0 });
    expect((await state()).problem).toBeUndefined();
    cards.cards.delete(URL_A);
    await clock.advance(DAY + 20 * MINUTE);
    expect((await state()).health).toBe("dead");
    await clock.advance(6 * DAY);
    expect(await codeOf(state())).toBe("METHOD_NOT_FOUND");
  });

  it("that becomes another agent is held back until its owner registers it again", async () => {
    const { clock, cards, registry } = start();
    cards.cards.set(URL_A, cardOf("A"));
    const { entry } = await registry.register("alice", byUrl(URL_A));
    cards.cards.set(URL_A, cardOf("Impostor"));
    await clock.advance(12 * MINUTE);
    const held = await registry.get("alice", entry.id);
    expect(held.card.name).toBe("A");
    expect(held.heldBack?.changes).toEqual(["name: A → Impostor", "hosts: a.example.com → impostor.example.com"]);
    await clock.advance(12 * MINUTE);
    expect((await registry.get("alice", entry.id)).heldBack?.since).toBe(held.heldBack?.since);
    const again = await registry.register("alice", byUrl(URL_A));
    expect(again).toMatchObject({ created: false, entry: { id: entry.id, card: { name: "Impostor" } } });
    expect(again.entry.heldBack).toBeUndefined();
  });

  it("that becomes itself again is no longer held back, also if its ETag is the old one", async () => {
    const { clock, cards, registry } = start();
    cards.cards.set(URL_A, cardOf("A"));
    const { entry } = await registry.register("alice", byUrl(URL_A));
    cards.cards.set(URL_A, cardOf("Impostor"));
    await clock.advance(12 * MINUTE);
    const watcher = await watch(registry, "alice");
    cards.cards.set(URL_A, cardOf("A"));
    await clock.advance(12 * MINUTE);
    expect(await registry.get("alice", entry.id)).not.toHaveProperty("heldBack");
    expect(watcher.kinds()).toEqual(["updated"]);
  });

  it("is probed only where that is asked for", async () => {
    const { clock, cards, registry } = start();
    cards.cards.set(URL_A, cardOf("A"));
    cards.silent.add("A");
    expect(await codeOf(registry.register("alice", byUrl(URL_A, true)))).toBe("INVALID_PARAMS");
    expect(await namesOf(registry, "alice")).toEqual([]);
    cards.silent.clear();
    const { entry } = await registry.register("alice", byUrl(URL_A, true));
    cards.silent.add("A");
    await clock.advance(13 * MINUTE);
    expect((await registry.get("alice", entry.id)).health).toBe("stale");
    await registry.register("alice", byUrl(URL_A));
    await clock.advance(13 * MINUTE);
    expect((await registry.get("alice", entry.id)).health).toBe("up");
  });
});

describe("owners", () => {
  it("do not see what others have registered, unless it is public", async () => {
    const { registry } = start();
    const hidden = await registry.register("alice", inline("Hidden"));
    const shown = await registry.register("alice", inline("Shown", { visibility: "public" }));
    const watcher = await watch(registry, "bob");
    expect(await namesOf(registry, "alice")).toEqual(["Hidden", "Shown"]);
    expect(await namesOf(registry, "bob")).toEqual(["Shown"]);
    const query = { text: "agent hidden shown", filter: { terms: [] } };
    expect((await registry.search("bob", query, 10)).found.map(({ entry }) => entry.card.name)).toEqual(["Shown"]);
    expect((await registry.list("bob", parseListRequest(""))).total).toBe(1);
    for (const action of ["get", "heartbeat", "remove"] as const) {
      expect(await codeOf(registry[action]("bob", hidden.entry.id))).toBe("METHOD_NOT_FOUND");
    }
    for (const action of ["heartbeat", "remove"] as const) {
      expect(await codeOf(registry[action]("bob", shown.entry.id))).toBe("PERMISSION_DENIED");
    }
    await registry.remove("alice", hidden.entry.id);
    await registry.remove("alice", shown.entry.id);
    await settle();
    expect(watcher.seen.map(({ kind, displayName }) => `${kind} ${displayName}`)).toEqual(["removed Shown"]);
  });

  it("see an agent come and go with its visibility", async () => {
    const { registry } = start();
    const [own, other] = [await watch(registry, "alice"), await watch(registry, "bob")];
    for (const visibility of ["private", "public", "public", "private"] as const) {
      await registry.register("alice", { ...inline("A"), visibility });
    }
    await settle();
    expect(own.kinds()).toEqual(["registered", "updated", "updated"]);
    expect(other.kinds()).toEqual(["registered", "removed"]);
  });

  it("have entries of their own for the same agent", async () => {
    const { registry } = start();
    const first = await registry.register("alice", inline("A"));
    const second = await registry.register("bob", inline("A"));
    const again = await registry.register("alice", inline("A"));
    expect(second.entry.id).not.toBe(first.entry.id);
    expect(again).toMatchObject({ created: false, entry: { id: first.entry.id } });
  });

  it("have a limited number of agents, also if they register many at once", async () => {
    const { cards, registry } = start({ limits: { agentsPerOwner: 3, agents: 5 } });
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, at) => codeOf(registry.register("alice", inline(`A${at}`)))),
    );
    expect(results.filter((code) => code === "OK").length).toBeLessThanOrEqual(3);
    for (let at = 0; at < 10; at++) await codeOf(registry.register("alice", inline(`A${at}`)));
    const names = await namesOf(registry, "alice");
    expect(names).toHaveLength(3);
    expect(await codeOf(registry.register("alice", inline("B")))).toBe("RESOURCE_EXHAUSTED");
    expect(await codeOf(registry.register("alice", byUrl(URL_A)))).toBe("RESOURCE_EXHAUSTED");
    expect(cards.fetched).toEqual([]);
    expect(await codeOf(registry.register("alice", inline(names[0] as string)))).toBe("OK");
    await registry.register("bob", inline("B1"));
    await registry.register("bob", inline("B2"));
    expect(await codeOf(registry.register("bob", inline("B3")))).toBe("RESOURCE_EXHAUSTED");
  });
});

describe("agents of the server", () => {
  it("are always there, live, and belong to no caller", async () => {
    let entry: RegistryEntry = entryOf("self.echo", cardOf("Echo"), { owner: "", source: "server", health: "up" });
    const hidden = entryOf("self.x", cardOf("X"), { owner: "", source: "server", visibility: "private" });
    const { registry, records } = start({ serverEntries: () => [entry, hidden], serverEntryAt: () => entry });
    expect(await namesOf(registry, "alice")).toEqual(["Echo"]);
    const watcher = await watch(registry, "alice");
    entry = { ...entry, card: cardOf("Echo 2"), updatedAt: 2_000 };
    expect(await namesOf(registry, "alice")).toEqual(["Echo 2"]);
    await settle();
    expect(watcher.kinds()).toEqual(["updated"]);
    expect(await codeOf(registry.remove("alice", "self.echo"))).toBe("PERMISSION_DENIED");
    expect(await codeOf(registry.get("", "self.x"))).toBe("OK");
    expect(await codeOf(registry.get("alice", "self.x"))).toBe("METHOD_NOT_FOUND");
    expect(await registry.register("alice", byUrl("https://here"))).toMatchObject({ created: false, entry });
    const { registry: hiding } = start({ serverEntries: () => [hidden], serverEntryAt: () => hidden });
    expect(await codeOf(hiding.register("alice", byUrl("https://here")))).toBe("METHOD_NOT_FOUND");
    expect(records.spaces.get("registry")?.size ?? 0).toBe(0);
  });
});

describe("a watcher", () => {
  it("continues where it was, also with another process", async () => {
    const { clock, records, registry } = start();
    await registry.register("alice", inline("A"));
    const { from } = await watch(registry, "alice");
    await clock.advance(SECOND);
    await registry.register("alice", inline("B"));
    const watcher = await watch(registry, "alice", from);
    await settle();
    expect(watcher.reset).toBeUndefined();
    expect(watcher.seen.map(({ displayName }) => displayName)).toEqual(["B"]);
    await registry.close();
    await watcher.reading;
    const next = createRegistry({ clock, records });
    const resumed = await watch(next, "alice", from);
    await settle();
    expect(resumed.seen.map(({ displayName }) => displayName)).toEqual(["B"]);
  });

  it("that reads too slowly is told that it has missed changes, and continues with new ones", async () => {
    const log = new ChangeLog(new MemoryRecords(), new FakeClock());
    const changes = log.follow(log.last);
    const entry = entryOf("a", cardOf("A"));
    for (let at = 0; at <= KEPT_CHANGES; at++) await log.append("updated", entry);
    const { value: missed } = await changes.next();
    expect(missed).toEqual({ reset: { oldest: log.floor }, last: log.last });
    const next = changes.next();
    await log.append("stale", entry);
    expect((await next).value).toMatchObject([{ kind: "stale", displayName: "A" }]);
  });

  it("is told when it cannot continue", async () => {
    const { clock, registry } = start();
    const { from } = await watch(registry, "alice");
    expect((await watch(registry, "alice", from - 1)).reset).toBeDefined();
    expect((await watch(registry, "alice", from + MINUTE)).reset).toBeDefined();
    for (let at = 0; at <= KEPT_CHANGES; at++) {
      const { entry } = await registry.register("alice", inline("A"));
      if (at % 2 === 1) continue;
      await registry.remove("alice", entry.id);
    }
    await clock.advance(SECOND);
    const late = await watch(registry, "alice", from);
    expect(late.reset?.oldest).toBeGreaterThan(from);
    expect(late.from).toBeGreaterThan(from);
  });
});

it("follows what another node with the same store does", async () => {
  const { clock, records, registry } = start();
  const other = createRegistry({ clock, records });
  const watcher = await watch(other, "alice");
  const { entry } = await registry.register("alice", inline("A"));
  await clock.advance(3 * SECOND);
  expect(await namesOf(other, "alice")).toEqual(["A"]);
  expect(watcher.kinds()).toEqual(["registered"]);
  await Promise.all([other.register("alice", inline("B")), registry.register("alice", inline("C"))]);
  await other.remove("alice", entry.id);
  await clock.advance(3 * SECOND);
  expect(await namesOf(registry, "alice")).toEqual(["B", "C"]);
  expect(await namesOf(other, "alice")).toEqual(["B", "C"]);
});

it("follows another node that has more changes than are read at a time", async () => {
  const { clock, records, registry } = start();
  const other = createRegistry({ clock, records });
  await other.list("alice", parseListRequest(""));
  for (let number = 0; number < 1_200; number++) await registry.register("alice", inline(`A${number}`));
  await clock.advance(3 * SECOND);
  expect(await other.list("alice", parseListRequest(""))).toMatchObject({ total: 1_200 });
});

describe("nodes whose clocks are minutes apart", () => {
  const apart = (clock: FakeClock, ms: number) => ({
    now: () => clock.now() + ms,
    after: (milliseconds: number, run: () => void) => clock.after(milliseconds, run),
  });

  it.each([-10 * MINUTE, 10 * MINUTE])("tell each other of every change, in one order (%s ms)", async (ms) => {
    const { clock, records, registry } = start();
    const other = createRegistry({ clock: apart(clock, ms), records });
    const watchers = [await watch(registry, "alice"), await watch(other, "alice")];
    const names: string[] = [];
    for (let round = 0; round < 5; round++) {
      for (const [at, node] of [registry, other, registry].entries()) {
        await node.register("alice", inline(`A${round}${at}`));
        names.push(`A${round}${at}`);
      }
      await clock.advance(3 * SECOND);
    }
    for (const watcher of watchers) expect(watcher.kinds()).toEqual(names.map(() => "registered"));
    expect(await namesOf(other, "alice")).toEqual(names);
    expect(await namesOf(registry, "alice")).toEqual(names);
  });

  it.each([-10 * MINUTE, 10 * MINUTE])(
    "take a heartbeat that the other received for what it is (%s ms)",
    async (ms) => {
      const { clock, records, registry } = start();
      const other = createRegistry({ clock: apart(clock, ms), records });
      await other.list("alice", parseListRequest(""));
      const { entry } = await registry.register("alice", { ...inline("A"), ttlMs: MINUTE });
      for (let minute = 0; minute < 5; minute++) {
        await clock.advance(MINUTE / 2);
        await registry.heartbeat("alice", entry.id);
        await clock.advance(MINUTE / 4);
        expect((await other.get("alice", entry.id)).health).toBe("up");
      }
      await clock.advance(MINUTE);
      expect((await other.get("alice", entry.id)).health).toBe("stale");
      await clock.advance(5 * MINUTE);
      await expect(other.get("alice", entry.id)).rejects.toThrow();
    },
  );
});

it("is read again if the store was away when it was opened", async () => {
  const { clock, records, registry } = start();
  await registry.register("alice", inline("A"));
  const away = new MemoryRecords();
  let isAway = true;
  away.records = (space, query) => (isAway ? Promise.reject(new Error("away")) : records.records(space, query));
  away.record = (space, key) => records.record(space, key);
  const other = createRegistry({ clock, records: away });
  await expect(namesOf(other, "alice")).rejects.toThrow("away");
  isAway = false;
  await clock.advance(2 * SECOND);
  expect(await namesOf(other, "alice")).toEqual(["A"]);
});

it("skips a damaged record", async () => {
  const { clock, records, registry } = start();
  await registry.register("alice", inline("A"));
  await records.put({ space: "registry", key: "0", value: "{" });
  await records.put({ space: "registry:changes", key: "0", value: "no" });
  expect(await namesOf(createRegistry({ clock, records }), "alice")).toEqual(["A"]);
});
