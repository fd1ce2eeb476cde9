import { defineConfig } from "vitest/config";

/** Only for a test that hangs: a slow machine must not reach it. */
const HANGS_MS = (process.env.EXPLORE === "1" ? 120 : 10) * 60_000;

// Chosen here, once for all workers, and printed, so that what was found can be repeated.
if (process.env.PROPERTY_SEED === "random") {
  process.env.PROPERTY_SEED = String(Math.floor(Math.random() * 2 ** 31));
  process.stdout.write(`PROPERTY_SEED=${process.env.PROPERTY_SEED}\n`);
}

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "bench/src/**/*.test.ts"],
    setupFiles: ["test/support/property-seed.ts"],
    globalSetup: ["test/channels/left-out.ts"],
    testTimeout: HANGS_MS,
    hookTimeout: HANGS_MS,
    expect: { poll: { timeout: HANGS_MS } },
    pool: "forks",
    // Many tests wait most of their time: for leases, timeouts and other processes.
    maxWorkers: 3,
  },
});
