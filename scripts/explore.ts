/**
 * Searches for unknown bugs: runs the tests of faults, hostile callers and properties with many more cases than the
 * suite, and with a new seed each time. `npm run explore`, or `npm run explore -- --seed N [test paths]` to reproduce a
 * failure. `npm run explore -- attacks [names]` attacks a server and measures what that costs others.
 */
import { spawnSync } from "node:child_process";
import { runAttacks } from "./attacks/main.ts";

const USUAL = [
  "test/faults",
  "test/hostile",
  "test/hostile-secrets",
  "src/core/dialects",
  "src/core/engine",
  "src/core/store",
  "src/core/client",
];
const USAGE = `Usage: npm run explore -- [--seed <number>] [paths of tests]
       npm run explore -- attacks [--help] [names of attacks]`;

const given = process.argv.slice(2);
if (given[0] === "attacks") process.exit(await runAttacks(given.slice(1)));
const seed = given[0] === "--seed" ? given[1] : String(Math.floor(Math.random() * 2 ** 31));
const paths = given.slice(given[0] === "--seed" ? 2 : 0);
if (seed === undefined || !/^\d+$/.test(seed) || paths.some((path) => path.startsWith("-"))) {
  console.log(USAGE);
  process.exit(given.includes("--help") ? 0 : 2);
}
const repeat = ["npm run explore -- --seed", seed, ...paths].join(" ");
console.log(`Seed ${seed}; repeat with: ${repeat}`);
const { status } = spawnSync("npx", ["vitest", "run", ...(paths.length > 0 ? paths : USUAL)], {
  stdio: "inherit",
  env: { ...process.env, EXPLORE: "1", PROPERTY_SEED: seed, FAULT_SEED: seed, HOSTILE_SEED: seed },
});
if (status !== 0) console.log(`Failed; repeat with: ${repeat}`);
process.exitCode = status ?? 1;
