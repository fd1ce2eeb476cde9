import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RateLimiter } from "./admission.ts";

function limited(rate: { perSecond: number; burst: number }, remembered?: number) {
  let now = 1_000_000;
  const limiter = new RateLimiter(rate, () => now, remembered);
  return { limiter, pass: (milliseconds: number) => (now += milliseconds) };
}

describe("a rate limiter", () => {
  it("lets a burst pass, then as many as the rate says", () => {
    const { limiter, pass } = limited({ perSecond: 10, burst: 3 });
    expect([1, 2, 3].map(() => limiter.take("a"))).toEqual([0, 0, 0]);
    expect(limiter.take("a")).toBeCloseTo(0.1);
    pass(99);
    expect(limiter.take("a")).toBeGreaterThan(0);
    pass(1);
    expect(limiter.take("a")).toBe(0);
    expect(limiter.take("a")).toBeCloseTo(0.1);
  });

  it("says after how long the next may come, and it may", () => {
    const { limiter, pass } = limited({ perSecond: 0.5, burst: 1 });
    expect(limiter.take("a")).toBe(0);
    const wait = limiter.take("a");
    expect(wait).toBeCloseTo(2);
    pass(wait * 1_000);
    expect(limiter.take("a")).toBe(0);
  });

  it("does not hold refused requests against anyone", () => {
    const { limiter, pass } = limited({ perSecond: 1, burst: 1 });
    limiter.take("a");
    for (let attempt = 0; attempt < 1_000; attempt++) limiter.take("a");
    pass(1_000);
    expect(limiter.take("a")).toBe(0);
  });

  it("counts each for itself", () => {
    const { limiter } = limited({ perSecond: 1, burst: 1 });
    expect([limiter.take("a"), limiter.take("b")]).toEqual([0, 0]);
    expect(limiter.take("a")).toBeGreaterThan(0);
  });

  it("never lets more pass than burst and rate allow", () => {
    const steps = fc.array(fc.nat({ max: 400 }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 20 }),
        steps,
        (perSecond, burst, waits) => {
          const { limiter, pass } = limited({ perSecond, burst });
          let elapsed = 0;
          let passed = 0;
          for (const wait of waits) {
            pass(wait);
            elapsed += wait;
            if (limiter.take("a") === 0) passed++;
          }
          expect(passed).toBeLessThanOrEqual(burst + (elapsed / 1_000) * perSecond + 1e-6);
        },
      ),
    );
  });

  it("remembers a bounded number, and the busy ones longest", () => {
    const { limiter } = limited({ perSecond: 1, burst: 1 }, 100);
    limiter.take("busy");
    for (let stranger = 0; stranger < 10_000; stranger++) {
      limiter.take(`stranger ${stranger}`);
      expect(limiter.size).toBeLessThanOrEqual(200);
    }
    expect(limiter.take("stranger 9999")).toBeGreaterThan(0);
  });
});
