import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createBackoff, sleep } from "./backoff.ts";

const policy = { baseMs: 100, capMs: 1000, resetAfterMs: 5000 };

describe("createBackoff", () => {
  it("doubles up to the cap", () => {
    const backoff = createBackoff(policy, { random: () => 0, now: () => 0 });
    expect(Array.from({ length: 6 }, () => backoff.next())).toEqual([50, 100, 200, 400, 500, 500]);
  });

  it("stays within half and all of the doubled base, capped, however often it is asked", () => {
    const dice = fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), {
      minLength: 1,
      maxLength: 1200,
    });
    fc.assert(
      fc.property(dice, fc.nat({ max: 10_000 }), fc.nat({ max: 100_000 }), (rolls, baseMs, capMs) => {
        let roll = 0;
        const backoff = createBackoff({ ...policy, baseMs, capMs }, { random: () => rolls[roll++] ?? 0, now: () => 0 });
        let ceiling = Math.min(baseMs, capMs);
        for (const _ of rolls) {
          const wait = backoff.next();
          expect(wait).toBeGreaterThanOrEqual(ceiling / 2);
          expect(wait).toBeLessThanOrEqual(ceiling);
          ceiling = Math.min(ceiling * 2, capMs);
        }
      }),
    );
  });

  it("stays a number however often it is asked", () => {
    const backoff = createBackoff({ ...policy, baseMs: 0 }, { random: () => 0.5, now: () => 0 });
    const waits = Array.from({ length: 1100 }, () => backoff.next());
    expect(new Set(waits)).toEqual(new Set([0]));
  });

  it("gives up after the tries it has", () => {
    const backoff = createBackoff({ ...policy, maxTries: 2 }, { random: () => 0, now: () => 0 });
    expect([backoff.next(), backoff.next(), backoff.next(), backoff.next()]).toEqual([50, 100, undefined, undefined]);
    expect(createBackoff({ ...policy, maxTries: 0 }, { random: () => 0, now: () => 0 }).next()).toBeUndefined();
  });

  it("forgets old tries only after a connection that held", () => {
    let time = 0;
    const backoff = createBackoff({ ...policy, maxTries: 3 }, { random: () => 0, now: () => time });
    expect([backoff.next(), backoff.next()]).toEqual([50, 100]);
    backoff.markConnected();
    time += policy.resetAfterMs - 1;
    expect(backoff.next()).toBe(200);
    time += policy.resetAfterMs;
    expect(backoff.next()).toBeUndefined();
    backoff.markConnected();
    time += 1;
    backoff.markConnected();
    time += policy.resetAfterMs - 1;
    expect(backoff.next()).toBe(50);
  });
});

describe("sleep", () => {
  function startTimer() {
    const timers = new Map<() => void, number>();
    const clock = {
      after(milliseconds: number, run: () => void) {
        timers.set(run, milliseconds);
        return () => timers.delete(run);
      },
    };
    return { clock, timers };
  }

  it("ends with its timer", async () => {
    const { clock, timers } = startTimer();
    const { signal } = new AbortController();
    const slept = sleep(clock, 50, signal);
    expect([...timers.values()]).toEqual([50]);
    for (const run of timers.keys()) run();
    await expect(slept).resolves.toBeUndefined();
  });

  it.each([true, false])("ends with the reason of a signal, aborted before: %s", async (before) => {
    const { clock, timers } = startTimer();
    const controller = new AbortController();
    if (before) controller.abort(new Error("enough"));
    const slept = sleep(clock, 50, controller.signal);
    controller.abort(new Error("enough"));
    await expect(slept).rejects.toThrow("enough");
    expect(timers.size).toBe(0);
  });
});
