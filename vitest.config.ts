import { defineConfig } from "vitest/config";

/** Only for a test that hangs: a slow machine must not reach it. */
const HANGS_MS = (process.env.EXPLORE === "1" ? 120 : 10) * 60_000;

// Chosen here, once for all workers, and printed, so that what was found can be repeated.
if (process.env.PROPERTY_SEED === "random") {
  process.env.PROPERTY_SEED = String(Math.floor(Math.random() * 2 ** 31));
  process.stdout.write(`PROPERTY_SEED=${process.env.PROPERTY_SEED}\n`);
}

/** Tests that start servers for a whole file, or mostly wait for other processes, so that sharing one gains nothing. */
const ISOLATED = ["test/{channels,cluster,faults,packaging,readme,runtime,terminal}/**/*.test.ts"];

const shared = {
  setupFiles: ["test/support/property-seed.ts", "test/support/features.ts"],
  testTimeout: HANGS_MS,
  hookTimeout: HANGS_MS,
  expect: { poll: { timeout: HANGS_MS } },
  pool: "forks" as const,
};

export default defineConfig({
  test: {
    globalSetup: ["test/channels/left-out.ts"],
    // Many tests wait most of their time: for leases, timeouts and other processes.
    maxWorkers: 3,
    projects: [
      // One process for many files, so that each module is loaded once: loading takes longer than most tests.
      {
        test: {
          ...shared,
          name: "shared",
          include: ["{src,bench/src,test}/**/*.test.ts"],
          exclude: ISOLATED,
          isolate: false,
        },
      },
      { test: { ...shared, name: "isolated", include: ISOLATED } },
    ],
  },
});
