import { expect, it } from "vitest";
import { createRates } from "./render.ts";

const IDLE = { agents: [], queued: 0, streams: 0, takenOver: 0, fenced: 0, missedWakeups: 0 };

const nodeAt = (beatAt: number, commits: number) => ({
  id: "one",
  upMs: beatAt,
  beatAt,
  beatAgoMs: 0,
  alive: true,
  left: false,
  tasks: 0,
  report: JSON.stringify({ ...IDLE, commits, events: 2 * commits, commitMs: 4 * commits }),
});

it("keeps the rates of a node until its next report", () => {
  const withRates = createRates();
  const rates = [nodeAt(0, 10), nodeAt(0, 10), nodeAt(5_000, 60), nodeAt(5_000, 60), nodeAt(10_000, 60)].map(
    (node) => withRates(node).rates,
  );
  const busy = { commitsPerSecond: 10, eventsPerSecond: 20, commitMs: 4 };
  expect(rates).toEqual([
    undefined,
    undefined,
    busy,
    busy,
    { commitsPerSecond: 0, eventsPerSecond: 0, commitMs: undefined },
  ]);
  expect(withRates({ ...nodeAt(10_000, 60), alive: false }).rates).toBeUndefined();
});
