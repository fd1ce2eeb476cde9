/** A real PostgreSQL server for tests: its own files, on a free port of loopback. */

import { execFile, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { accessSync, chownSync, constants, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";

const executeFile = promisify(execFile);

export interface PostgresServer {
  readonly port: number;
  /** Of a superuser, with a password; `schema` chooses where a store keeps its tables. */
  url(schema?: string): string;
  /** Statements of someone else, on a connection of their own. Returns the rows of the last. */
  run(sql: string): Promise<readonly Record<string, unknown>[]>;
  /** `immediate`: as if it had crashed. */
  stop(mode?: "immediate" | "fast"): Promise<void>;
  /** With what it has stored, on the same port. */
  start(): Promise<void>;
  /** Stops it and deletes its files. */
  close(): Promise<void>;
}

interface PostgresOptions {
  /** Lines of postgresql.conf. */
  readonly settings?: readonly string[];
  /** Lines of pg_hba.conf in place of those that ask for the password. */
  readonly access?: readonly string[];
  /** Writes reach the disk before they are answered. Default: false, which is faster. */
  readonly durable?: boolean;
}

const DEBIAN_FOLDER = "/usr/lib/postgresql";
const USER = "postgres";

/** With `CI=1` a missing server is not tolerated: its tests run, and fail. */
export function hasPostgres(): boolean {
  return process.env.CI === "1" || findPrograms() !== undefined;
}

/** The folder with the programs of the newest version. */
function findPrograms(): string | undefined {
  const inPath = (process.env.PATH ?? "").split(delimiter);
  return [...inPath, ...debianFolders()].find((folder) => isExecutable(join(folder, "initdb")));
}

function debianFolders(): string[] {
  try {
    const versions = readdirSync(DEBIAN_FOLDER).sort((one, other) => Number(other) - Number(one));
    return versions.map((version) => join(DEBIAN_FOLDER, version, "bin"));
  } catch {
    return [];
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const programs = findPrograms();
  if (programs === undefined) throw new Error("PostgreSQL is not installed (apt-get install postgresql).");
  const { settings = [], access = ["host all all 127.0.0.1/32 scram-sha-256"], durable = false } = options;
  const folder = mkdtempSync(join(tmpdir(), "dragoman-postgres-"));
  const data = join(folder, "data");
  const password = randomBytes(12).toString("hex");
  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, password);
  const owner = serverUser();
  if (owner !== undefined) for (const path of [folder, passwordFile]) chownSync(path, owner.uid, owner.gid);

  /** The server refuses to run as root. */
  const execute = (program: string, ...args: string[]) => {
    const file = join(programs, program);
    return executeFile(file, args, { cwd: folder, ...owner, env: { PATH: process.env.PATH, LC_ALL: "C.UTF-8" } });
  };

  await execute(
    "initdb",
    "-D",
    data,
    "-U",
    USER,
    "-A",
    "scram-sha-256",
    `--pwfile=${passwordFile}`,
    "-E",
    "UTF8",
    "-N",
  );
  const port = await findFreePort();
  const fast = ["fsync = off", "full_page_writes = off", "synchronous_commit = off"];
  const lines = [
    "listen_addresses = '127.0.0.1'",
    `port = ${port}`,
    `unix_socket_directories = '${folder}'`,
    "shared_buffers = 32MB",
    "max_connections = 200",
    ...(durable ? [] : fast),
    ...settings,
  ];
  writeFileSync(join(data, "postgresql.auto.conf"), `${lines.join("\n")}\n`);
  writeFileSync(join(data, "pg_hba.conf"), `local all all trust\n${access.join("\n")}\n`);

  const start = async () => {
    await execute("pg_ctl", "-D", data, "-w", "-t", "120", "-l", join(folder, "log"), "start");
  };
  const stop = async (mode: "immediate" | "fast" = "fast") => {
    await execute("pg_ctl", "-D", data, "-w", "-t", "120", "-m", mode, "stop");
  };
  const isRunning = () => spawnSync(join(programs, "pg_ctl"), ["-D", data, "status"], { ...owner }).status === 0;
  const close = async () => {
    if (isRunning()) await stop("immediate");
    rmSync(folder, { recursive: true, force: true });
  };

  try {
    await start();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    port,
    url: (schema) => {
      const query = schema === undefined ? "" : `?schema=${encodeURIComponent(schema)}`;
      return `postgres://${USER}:${password}@127.0.0.1:${port}/postgres${query}`;
    },
    run: async (sql) => {
      const client = new pg.Client({ host: folder, port, user: USER, database: USER });
      await client.connect();
      try {
        // One result per statement, if there are several.
        const results = [await client.query<Record<string, unknown>>(sql)].flat();
        return results.at(-1)?.rows ?? [];
      } finally {
        await client.end();
      }
    },
    stop,
    start,
    close,
  };
}

function serverUser(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (which: "-u" | "-g") => Number(spawnSync("id", [which, USER]).stdout.toString().trim());
  return { uid: id("-u"), gid: id("-g") };
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
