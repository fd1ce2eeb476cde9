#!/usr/bin/env node
import "./features.ts";
import { flushProcessOutput, processOutput } from "./core/cli/output.ts";
import { run } from "./core/cli/run.ts";

const code = await run(process.argv.slice(2), processOutput());
await flushProcessOutput();
process.exit(code);
