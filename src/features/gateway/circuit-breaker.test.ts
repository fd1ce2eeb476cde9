import { expect, test } from "vitest";
import { CircuitBreaker } from "./circuit-breaker.ts";

function breakerAt() {
  const time = { now: 0 };
  const policy = { threshold: 3, baseMs: 1_000, capMs: 4_000 };
  return { time, breaker: new CircuitBreaker(policy, { now: () => time.now }, () => 1) };
}

test("calls are attempted until too many in a row have failed", () => {
  const { breaker } = breakerAt();
  for (let at = 0; at < 2; at++) breaker.failed();
  expect(breaker.acquire()).toBe(0);
  breaker.succeeded();
  for (let at = 0; at < 2; at++) breaker.failed();
  expect(breaker.acquire()).toBe(0);
  breaker.failed();
  expect(breaker.acquire()).toBe(1_000);
});

test("after the pause one call is attempted at a time; pauses grow up to the cap", () => {
  const { breaker, time } = breakerAt();
  for (let at = 0; at < 3; at++) breaker.failed();
  for (const pause of [1_000, 2_000, 4_000, 4_000]) {
    expect(breaker.acquire()).toBe(pause);
    time.now += pause;
    expect(breaker.acquire()).toBe(0);
    expect(breaker.acquire()).toBeGreaterThan(0);
    breaker.failed();
  }
  time.now += 4_000;
  expect(breaker.acquire()).toBe(0);
  breaker.abandoned();
  expect(breaker.acquire()).toBe(0);
  breaker.succeeded();
  expect([breaker.acquire(), breaker.acquire()]).toEqual([0, 0]);
});
