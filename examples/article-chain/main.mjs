/** Starts three writers and then their orchestrator, each in a process of its own. When one ends, all are stopped. */

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const WRITERS = ["outline", "document", "summary"];
const PROGRAM = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
// Known only to these four processes, unless the environment has one.
const environment = { ...process.env, CHAIN_KEY: process.env.CHAIN_KEY || randomBytes(24).toString("base64url") };

const children = new Set();
let isStopping = false;

/** Resolves with the server's URL once it listens. */
function start(name) {
  const child = spawn(process.execPath, [PROGRAM, "serve", `${name}.yaml`, "--log-level", "warn"], {
    cwd: import.meta.dirname,
    env: environment,
    stdio: ["ignore", "pipe", "pipe"],
    // In a process group of its own: Ctrl-C reaches only this process, which passes it on once.
    detached: true,
  });
  children.add(child);
  child.on("exit", (code) => {
    children.delete(child);
    stop(code ?? 1);
  });
  return new Promise((resolve) => {
    for (const output of [child.stdout, child.stderr]) {
      createInterface({ input: output }).on("line", (line) => {
        console.log(`${name.padEnd("orchestrator".length)} | ${line}`);
        const url = /^dragoman \S+ listens on (\S+)$/.exec(line)?.[1];
        if (url !== undefined) resolve(url);
      });
    }
  });
}

function stop(code) {
  if (isStopping) return;
  isStopping = true;
  process.exitCode = code;
  for (const child of children) child.kill("SIGTERM");
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => stop(0));

const urls = await Promise.all(WRITERS.map(start));
// Stopped while they started: an orchestrator that is started now would be left running.
if (!isStopping) {
  // A port may have been 0, which stands for a free one.
  for (const [at, name] of WRITERS.entries()) environment[`${name.toUpperCase()}_PORT`] = new URL(urls[at]).port;
  const orchestrator = await start("orchestrator");
  console.log(`\nThe article chain is ready: ${orchestrator}/agents/article`);
}
