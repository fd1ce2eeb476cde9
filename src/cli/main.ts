#!/usr/bin/env node
import { flushProcessOutput, processOutput } from "./output.ts";
import { run } from "./run.ts";

const code = await run(process.argv.slice(2), processOutput());
await flushProcessOutput();
process.exit(code);
