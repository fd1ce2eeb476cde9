import { expect, it, vi } from "vitest";
import { Abort, toAbortSignal } from "./abort.ts";

it("calls each listener once, with the first reason", () => {
  const abort = new Abort();
  const listener = vi.fn(() => expect(abort.reason).toBe("first"));
  abort.addEventListener("abort", listener);
  abort.addEventListener("abort", listener);
  abort.abort("first");
  abort.abort("second");
  expect([abort.aborted, abort.reason, listener.mock.calls.length]).toEqual([true, "first", 1]);
});

it("does not call a listener that was removed, even by the one before it", () => {
  const abort = new Abort();
  const [removed, later] = [vi.fn(), vi.fn()];
  abort.addEventListener("abort", () => abort.removeEventListener("abort", later));
  abort.addEventListener("abort", removed);
  abort.addEventListener("abort", later);
  abort.removeEventListener("abort", removed);
  abort.abort();
  expect([removed, later].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
});

it("has a signal of the platform, made before or after the abort", () => {
  const [early, late] = [new Abort(), new Abort()];
  const signal = toAbortSignal(early);
  early.abort("enough");
  late.abort("enough");
  for (const one of [signal, toAbortSignal(late)]) expect([one.aborted, one.reason]).toEqual([true, "enough"]);
  expect(toAbortSignal(signal)).toBe(signal);
});
