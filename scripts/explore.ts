/**
 * Looks for what no one knows of yet: faults, hostile callers and properties with many more cases than the suite has, and a
 * new seed each time. `npm run explore`, or `npm run explore -- --seed N [paths of tests]` to repeat what was found.
 */
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";

const USUAL = [
  "test/faults",
  "test/hostile",
  "test/hostile-secrets",
  "src/dialects",
  "src/engine",
  "src/store",
  "src/client",
];

const { values, positionals } = parseArgs({ options: { seed: { type: "string" } }, allowPositionals: true });
const seed = values.seed ?? String(Math.floor(Math.random() * 2 ** 31));
console.log(`Seed ${seed}; repeat with: npm run explore -- --seed ${seed}`);
const { status } = spawnSync("npx", ["vitest", "run", ...(positionals.length > 0 ? positionals : USUAL)], {
  stdio: "inherit",
  env: { ...process.env, EXPLORE: "1", PROPERTY_SEED: seed, FAULT_SEED: seed, HOSTILE_SEED: seed },
});
if (status !== 0) console.log(`Found with seed ${seed}; repeat with: npm run explore -- --seed ${seed}`);
process.exitCode = status ?? 1;
