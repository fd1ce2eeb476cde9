import { expect, test, vi } from "vitest";
import { currentHops, HOPS_VARIABLE } from "./run-hops.ts";

test.each([
  ['{"hops":2,"ancestors":["a"]}', { hops: 2, ancestors: ["a"] }],
  ['{"hops":2,"ancestors":["a"],"remainingMs":5000}', { hops: 2, deadline: performance.timeOrigin + 5_000 }],
  ['{"hops":2,"remainingMs":-1}', undefined],
  ["none", undefined],
])("a process that was started for a run with %s knows how the request came here", (variable, expected) => {
  vi.stubEnv(HOPS_VARIABLE, variable);
  try {
    if (expected === undefined) expect(currentHops()).toBeUndefined();
    else expect(currentHops()).toMatchObject(expected);
  } finally {
    vi.unstubAllEnvs();
  }
});
