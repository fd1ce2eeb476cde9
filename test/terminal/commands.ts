/** Runs command lines one after the other in one process: starting one for each takes longer than all the rest. */
import { readFileSync } from "node:fs";
import { flushProcessOutput, processOutput } from "../../src/core/cli/output.ts";
import { run } from "../../src/core/cli/run.ts";

// No one is there to answer questions.
process.stdin.isTTY = false;
const output = processOutput();
const lines = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as readonly (readonly string[])[];
for (const words of lines) {
  process.stdout.write(`\n$ ${words.slice(0, 2).join(" ")}\n`);
  process.stdout.write(`exit ${await run(words, output)}\n`);
}
await flushProcessOutput();
process.exit(0);
