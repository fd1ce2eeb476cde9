/** Starts PostgreSQL, unless CLUSTER_STORE names one that runs, and three nodes on it. Ctrl-C stops all of them. */

import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const PORTS = (process.env.CLUSTER_PORTS ?? "4001,4002,4003").split(",");
const PROGRAM = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const DEBIAN_FOLDER = "/usr/lib/postgresql";

const children = new Set();
let isStopping = false;
let stopDatabase = () => {};

function findPrograms() {
  const debian = existsSync(DEBIAN_FOLDER)
    ? readdirSync(DEBIAN_FOLDER).map((version) => join(DEBIAN_FOLDER, version, "bin"))
    : [];
  const folder = [...process.env.PATH.split(":"), ...debian.reverse()].find((path) => existsSync(join(path, "initdb")));
  if (folder === undefined) {
    console.error(
      "PostgreSQL is not installed. Install it (apt-get install postgresql), or set CLUSTER_STORE=postgres://….",
    );
    process.exit(1);
  }
  return folder;
}

async function findFreePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A server of its own, whose data are deleted when it stops. */
async function startDatabase() {
  const programs = findPrograms();
  const folder = mkdtempSync(join(tmpdir(), "dragoman-cluster-"));
  const data = join(folder, "data");
  mkdirSync(data, { mode: 0o700 });
  // PostgreSQL does not run as root.
  const idOf = (which) => Number(execFileSync("id", [which, "postgres"]).toString());
  const user = process.getuid() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : {};
  if (user.uid !== undefined) for (const path of [folder, data]) chownSync(path, user.uid, user.gid);
  const run = (program, ...args) =>
    execFileSync(join(programs, program), args, { ...user, cwd: folder, stdio: "ignore" });
  const port = await findFreePort();
  run("initdb", "-D", data, "-U", "dragoman", "-A", "trust", "-E", "UTF8");
  const options = `-c port=${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${folder}`;
  run("pg_ctl", "-D", data, "-w", "-o", options, "-l", join(folder, "log"), "start");
  stopDatabase = () => {
    run("pg_ctl", "-D", data, "-m", "fast", "-w", "stop");
    rmSync(folder, { recursive: true, force: true });
  };
  return `postgres://dragoman@127.0.0.1:${port}/postgres`;
}

/** Resolves with the node's URL once it listens. */
function startNode(port, store) {
  const child = spawn(process.execPath, [PROGRAM, "serve", "dragoman.yaml", "--log-level", "warn"], {
    cwd: import.meta.dirname,
    env: { ...process.env, NODE_PORT: port, CLUSTER_STORE: store },
    stdio: ["ignore", "pipe", "pipe"],
    // In a process group of its own: Ctrl-C reaches only this process, which passes it on once.
    detached: true,
  });
  children.add(child);
  child.on("exit", (code, signal) => {
    children.delete(child);
    if (!isStopping) console.log(`node ${port} | ended (${signal ?? code})`);
    if (children.size === 0) finish(code ?? 1);
  });
  return new Promise((resolve) => {
    for (const output of [child.stdout, child.stderr]) {
      createInterface({ input: output }).on("line", (line) => {
        const url = /^dragoman \S+ listens on (\S+)$/.exec(line)?.[1];
        if (url !== undefined) resolve({ url, pid: child.pid });
        else if (line.startsWith("{") || line.startsWith("Error")) console.log(`node ${port} | ${line}`);
      });
    }
  });
}

function finish(code) {
  isStopping = true;
  stopDatabase();
  process.exit(code);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    if (!isStopping) console.log("Stopping; tasks have ten seconds to finish. Press Ctrl-C again to quit now.");
    isStopping = true;
    for (const child of children) child.kill("SIGTERM");
    if (children.size === 0) finish(0);
  });
}

const store = process.env.CLUSTER_STORE ?? (await startDatabase());
console.log(`Store: ${store.replace(/:[^:@/]*@/, "@")}`);
const agents = [];
// The first one makes the tables.
for (const port of PORTS) {
  const { url, pid } = await startNode(port, store);
  console.log(`Node: ${url} (pid ${pid})`);
  agents.push(`${url}/agents/count`);
}
console.log(`\nThe cluster is ready: ${agents.join(" ")}`);
