import { expect, it } from "vitest";
import { FakeClock } from "../../engine/testing/fake-clock.ts";
import { SILENT_LOG } from "../../model/ports.ts";
import type { Records } from "../../model/records.ts";
import { Hold } from "./hold.ts";

const LEASE_MS = 10_000;

/** One space of records that expire, as all nodes see it. */
function createRecords(clock: FakeClock): Pick<Records, "record" | "put"> {
  const kept = new Map<string, { readonly value: string; readonly until: number }>();
  const read = (key: string) => {
    const found = kept.get(key);
    return found === undefined || found.until <= clock.now() ? undefined : found.value;
  };
  return {
    record: async (_, key) => read(key),
    async put({ key, value, ttlMs = 0, ifValue }) {
      if ((read(key) ?? null) !== ifValue) return false;
      kept.set(key, { value, until: clock.now() + ttlMs });
      return true;
    },
  };
}

function createHold(node: string, clock: FakeClock, records: Pick<Records, "record" | "put">, failures: number) {
  const counts = { opened: 0, tried: 0 };
  const tools = { node, records, clock, log: SILENT_LOG, leaseMs: LEASE_MS, monotonic: () => clock.now() };
  const hold = new Hold("a carrier", tools, {
    async onGain() {
      if (++counts.tried <= failures) throw new Error("It does not open.");
      counts.opened++;
    },
    async onLose() {},
    hasGivenUp: () => false,
  });
  return { hold, counts };
}

it("tries again to open connections that could not be opened", async () => {
  const clock = new FakeClock();
  const { hold, counts } = createHold("one", clock, createRecords(clock), 1);
  await clock.advance(LEASE_MS);
  expect(counts).toEqual({ tried: 2, opened: 1 });
  expect(hold.isHeld).toBe(true);
  await hold.release();
});

it("lets another node open connections that this one cannot open", async () => {
  const clock = new FakeClock();
  const records = createRecords(clock);
  const here = createHold("here", clock, records, Number.POSITIVE_INFINITY);
  await clock.advance(1);
  const there = createHold("there", clock, records, 0);
  await clock.advance(2 * LEASE_MS);
  expect(there.counts.opened).toBe(1);
  expect([here.hold.isHeld, there.hold.isHeld]).toEqual([false, true]);
  await here.hold.release();
  await there.hold.release();
});
