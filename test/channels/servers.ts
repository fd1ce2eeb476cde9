/** Real chat servers of Debian packages, each started for a test on a free port of loopback. */

import { type ChildProcess, spawn } from "node:child_process";
import { pbkdf2Sync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { accessSync, constants, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

export interface ChatServer {
  readonly port: number;
  /** As if it had crashed. */
  stop(): Promise<void>;
  /** With what it has stored, on the same port. */
  start(): Promise<void>;
  /** Stops it and deletes its files. */
  close(): Promise<void>;
}

export const SERVER_PACKAGES = ["ngircd", "prosody", "mosquitto"] as const;
type ServerPackage = (typeof SERVER_PACKAGES)[number];

/** With `CI=1` a missing server is not tolerated: its tests run, and fail. */
export function hasServer(name: ServerPackage): boolean {
  return process.env.CI === "1" || pathOf(name) !== undefined;
}

/** Programs of the system are not in the path of every user. */
function pathOf(program: string): string | undefined {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  return folders.map((folder) => join(folder, program)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** In PEM. */
interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Returns the paths of the files. */
function writeCertificate(folder: string, { cert, key }: Certificate) {
  const paths = { cert: join(folder, "server.crt"), key: join(folder, "server.key") };
  writeFileSync(paths.cert, cert);
  writeFileSync(paths.key, key, { mode: 0o600 });
  return paths;
}

interface NgircdOptions {
  readonly password?: string;
  /** Encrypted connections only. */
  readonly tls?: Certificate;
  /** As Debian configures it; else clients may send as fast as they can. */
  readonly floodControl?: boolean;
}

export function startNgircd({ password, floodControl = false, tls }: NgircdOptions = {}): Promise<ChatServer> {
  return startServer("ngircd", ([port], folder) => {
    const config = join(folder, "ngircd.conf");
    const files = tls && writeCertificate(folder, tls);
    const lines = [
      "[Global]",
      "Name = irc.test",
      "Info = test",
      "Listen = 127.0.0.1",
      ...(tls === undefined ? [`Ports = ${port}`] : []),
      ...(password === undefined ? [] : [`Password = ${password}`]),
      "[Limits]",
      "MaxConnectionsIP = 0",
      "MaxNickLength = 30",
      ...(floodControl ? [] : ["MaxPenaltyTime = 0"]),
      "[Options]",
      "DNS = no",
      "Ident = no",
      "PAM = no",
      ...(files === undefined
        ? []
        : ["[SSL]", `CertFile = ${files.cert}`, `KeyFile = ${files.key}`, `Ports = ${port}`]),
    ];
    writeFileSync(config, `${lines.join("\n")}\n`);
    return ["-n", "-f", config];
  });
}

interface MosquittoOptions {
  /** Passwords by name; default: anyone is admitted. */
  readonly users?: Readonly<Record<string, string>>;
  /** Encrypted connections only. */
  readonly tls?: Certificate;
}

export function startMosquitto({ tls, users }: MosquittoOptions = {}) {
  return startServer("mosquitto", ([port], folder) => {
    const config = join(folder, "mosquitto.conf");
    const passwords = join(folder, "passwords");
    const files = tls && writeCertificate(folder, tls);
    const lines = [
      `listener ${port} 127.0.0.1`,
      ...(files === undefined ? [] : [`certfile ${files.cert}`, `keyfile ${files.key}`]),
      "persistence true",
      `persistence_location ${folder}/`,
      "autosave_interval 1",
      "autosave_on_changes true",
      ...(process.getuid?.() === 0 ? ["user root"] : []),
      ...(users === undefined ? ["allow_anonymous true"] : ["allow_anonymous false", `password_file ${passwords}`]),
    ];
    writeFileSync(config, `${lines.join("\n")}\n`);
    const entries = Object.entries(users ?? {}).map(([name, password]) => `${name}:${toMosquittoHash(password)}\n`);
    writeFileSync(passwords, entries.join(""), { mode: 0o600 });
    return ["-c", config];
  });
}

/** What Debian's configuration enables, without the modules that need the system (posix, admin_shell) or other servers. */
const PROSODY_MODULES = [
  "disco",
  "roster",
  "saslauth",
  "tls",
  "blocklist",
  "bookmarks",
  "carbons",
  "limits",
  "pep",
  "private",
  "smacks",
  "vcard4",
  "vcard_legacy",
  "csi_simple",
  "invites",
  "invites_adhoc",
  "invites_register",
  "ping",
  "register",
  "time",
  "uptime",
  "version",
  "admin_adhoc",
  "http",
];

export interface Prosody extends ChatServer {
  /** Of the rooms. */
  readonly muc: string;
}

/** Accounts `<name>@localhost` with these passwords, rooms at `rooms.localhost`, uploads. `tls`: it is required. */
export async function startProsody(
  accounts: Readonly<Record<string, string>>,
  { tls }: { readonly tls?: Certificate } = {},
): Promise<Prosody> {
  const server = await startServer("prosody", ([port, httpPort], folder) => {
    const config = join(folder, "prosody.cfg.lua");
    const data = join(folder, "data", "localhost", "accounts");
    mkdirSync(data, { recursive: true });
    for (const [name, password] of Object.entries(accounts)) {
      writeFileSync(join(data, `${name}.dat`), `return { ["password"] = ${JSON.stringify(password)} }\n`);
    }
    const files = tls && writeCertificate(folder, tls);
    const lines = [
      "run_as_root = true",
      `pidfile = "${folder}/prosody.pid"`,
      `data_path = "${folder}/data"`,
      `certificates = "${folder}"`,
      `modules_enabled = { ${PROSODY_MODULES.map((name) => `"${name}"`).join(", ")} }`,
      `modules_disabled = { "s2s", "offline"${files === undefined ? ', "tls"' : ""} }`,
      'authentication = "internal_plain"',
      `c2s_require_encryption = ${files !== undefined}`,
      `allow_unencrypted_plain_auth = ${files === undefined}`,
      ...(files === undefined ? [] : [`ssl = { certificate = "${files.cert}", key = "${files.key}" }`]),
      'interfaces = { "127.0.0.1" }',
      `c2s_ports = { ${port} }`,
      'http_interfaces = { "127.0.0.1" }',
      `http_ports = { ${httpPort} }`,
      "https_ports = {}",
      `log = { info = "${folder}/prosody.log" }`,
      'VirtualHost "localhost"',
      'Component "rooms.localhost" "muc"',
      'modules_enabled = { "muc_mam" }',
      "muc_room_default_public_jids = true",
      "muc_room_default_persistent = true",
      'Component "upload.localhost" "http_file_share"',
      'http_host = "127.0.0.1"',
      `http_external_url = "http://127.0.0.1:${httpPort}/"`,
      "http_file_share_size_limit = 1024 * 1024",
    ];
    writeFileSync(config, `${lines.join("\n")}\n`);
    return ["-F", "--config", config];
  });
  return { ...server, muc: "rooms.localhost" };
}

function toMosquittoHash(password: string): string {
  const salt = randomBytes(12);
  const hash = pbkdf2Sync(password, salt, 101, 64, "sha512");
  return `$7$101$${salt.toString("base64")}$${hash.toString("base64")}`;
}

/** `configure` writes the configuration for these free ports and returns the arguments of the program. */
async function startServer(
  name: ServerPackage,
  configure: (ports: readonly number[], folder: string) => readonly string[],
): Promise<ChatServer> {
  const program = pathOf(name);
  if (program === undefined) throw new Error(`${name} is not installed (apt-get install ${name})`);
  const folder = mkdtempSync(join(tmpdir(), `dragoman-${name}-`));
  const [port = 0, ...more] = await freePorts(2);
  const args = configure([port, ...more], folder);
  let child: ChildProcess | undefined;

  async function start(): Promise<void> {
    const started = spawn(program ?? "", args, { stdio: "ignore" });
    child = started;
    await Promise.race([accepts(port, started), once(started, "error").then(([error]) => Promise.reject(error))]);
  }
  async function stop(): Promise<void> {
    const stopped = child;
    child = undefined;
    if (stopped === undefined || stopped.exitCode !== null || stopped.signalCode !== null) return;
    const exit = once(stopped, "exit");
    stopped.kill("SIGKILL");
    await exit;
  }
  await start();
  return {
    port,
    start,
    stop,
    async close() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function freePorts(count: number): Promise<number[]> {
  const listeners = await Promise.all(
    Array.from({ length: count }, async () => {
      const listener = createServer().listen(0, "127.0.0.1");
      await once(listener, "listening");
      return listener;
    }),
  );
  const ports = listeners.map((listener) => (listener.address() as AddressInfo).port);
  await Promise.all(listeners.map((listener) => once(listener.close(), "close")));
  return ports;
}

async function accepts(port: number, child: ChildProcess): Promise<void> {
  while (child.exitCode === null && child.signalCode === null) {
    const socket = connect(port, "127.0.0.1");
    const open = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    });
    socket.destroy();
    if (open) return;
    await delay(20);
  }
  throw new Error(`The server ended with ${child.exitCode ?? child.signalCode} before it accepted connections.`);
}
