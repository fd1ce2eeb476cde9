import { execFile, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const DEBIAN_FOLDER = "/usr/lib/postgresql";
const USER = "postgres";

/** A PostgreSQL server with its usual settings, so that an answer means that the write is on disk. */
export class Database {
  readonly port: number;
  readonly #folder: string;
  readonly #control: (...args: string[]) => Promise<unknown>;

  private constructor(folder: string, port: number, control: (...args: string[]) => Promise<unknown>) {
    this.#folder = folder;
    this.port = port;
    this.#control = control;
  }

  /** Needs Debian's package `postgresql`. The server refuses to run as root. */
  static async start(parent: string): Promise<Database> {
    const version = readdirSync(DEBIAN_FOLDER).sort((one, other) => Number(other) - Number(one))[0] ?? "";
    const programs = join(DEBIAN_FOLDER, version, "bin");
    const folder = mkdtempSync(join(parent, "postgres-"));
    const idOf = (which: string) => Number(spawnSync("id", [which, USER]).stdout.toString());
    const owner = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : {};
    if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid);
    const data = join(folder, "data");
    await run(join(programs, "initdb"), ["-D", data, "-U", USER, "-A", "trust", "-E", "UTF8"], owner);
    const port = await freePort();
    const settings = { port, listen_addresses: "'127.0.0.1'", unix_socket_directories: "''", max_connections: 200 };
    const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`);
    writeFileSync(join(data, "postgresql.auto.conf"), lines.join(""));
    const control = (...args: string[]) => run(join(programs, "pg_ctl"), ["-D", data, "-w", ...args], owner);
    const database = new Database(folder, port, control);
    await control("-l", join(folder, "log"), "start");
    return database;
  }

  /** Of a store of Dragoman's, in a schema of its own. */
  url(schema: string): string {
    return `postgres://${USER}@127.0.0.1:${this.port}/postgres?schema=${schema}`;
  }

  /** CPU microseconds of all its processes, those that have ended included. */
  cpu(): number {
    const root = Number(readFileSync(join(this.#folder, "data", "postmaster.pid"), "utf8").split("\n")[0]);
    const ticks = readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => readTimes(Number(pid)))
      .reduce((sum, times) => {
        if (times?.pid === root) return sum + times.own + times.ended;
        return times?.parent === root ? sum + times.own : sum;
      }, 0);
    return ticks * MICROS_PER_TICK;
  }

  async stop(): Promise<void> {
    await this.#control("-m", "immediate", "stop");
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const MICROS_PER_TICK = 10_000;

/** Fields of proc(5): ticks of the process itself, and of its children that were waited for. */
function readTimes(pid: number) {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return undefined;
  try {
    const fields = readFileSync(file, "utf8")
      .replace(/^.*\) /, "")
      .split(" ")
      .map(Number);
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11);
    return { pid, parent: fields[1], own: user + system, ended: endedUser + endedSystem };
  } catch {
    return undefined;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
