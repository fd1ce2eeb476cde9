/**
 * Adds the optional platform packages that npm omitted from package-lock.json because they are missing from the registry
 * in use. Without an entry for each, `npm ci` rejects the lock file, although it would not install them.
 * Run after every change of dependencies: `npm run lockfile`.
 */
import { readFileSync, writeFileSync } from "node:fs";

interface LockEntry {
  version?: string;
  dev?: boolean;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

const OPERATING_SYSTEMS = [
  "aix",
  "android",
  "darwin",
  "freebsd",
  "linux",
  "netbsd",
  "openbsd",
  "openharmony",
  "sunos",
  "win32",
];
const PROCESSORS = ["arm", "arm64", "ia32", "loong64", "mips64el", "ppc64", "riscv64", "s390x", "wasm32", "x64"];
const EXACT = /^\d+\.\d+\.\d+/;

const file = "package-lock.json";
const lock = JSON.parse(readFileSync(file, "utf8")) as { packages: Record<string, LockEntry> };
const { packages } = lock;

let added = 0;
for (const [path, entry] of Object.entries({ ...packages })) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    if (!EXACT.test(version) || isPresent(path, name, version)) continue;
    packages[placeFor(path, name)] = platformEntry(name, version, entry.dev === true);
    added++;
  }
}
lock.packages = Object.fromEntries(Object.entries(packages).sort(([one], [other]) => (one < other ? -1 : 1)));
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(`${added} entries added`);

function parentOf(path: string): string {
  const at = path.lastIndexOf("node_modules/");
  return at < 0 ? "" : path.slice(0, at);
}

function isPresent(path: string, name: string, version: string): boolean {
  const places = [`${path}/node_modules/${name}`, `${parentOf(path)}node_modules/${name}`, `node_modules/${name}`];
  return places.some((place) => packages[place]?.version === version);
}

function placeFor(path: string, name: string): string {
  return `node_modules/${name}` in packages ? `${parentOf(path)}node_modules/${name}` : `node_modules/${name}`;
}

/** Platform packages contain the platform in their name: `@scope/binding-linux-x64-musl`. */
function platformEntry(name: string, version: string, dev: boolean): LockEntry {
  const segments = (name.split("/").at(-1) ?? "").split("-");
  const os = segments.find((segment) => OPERATING_SYSTEMS.includes(segment));
  const cpu = segments.find((segment) => PROCESSORS.includes(segment));
  return {
    version,
    ...(cpu === undefined ? {} : { cpu: [cpu] }),
    ...(dev ? { dev } : {}),
    ...(segments.some((segment) => segment.startsWith("musl")) ? { libc: ["musl"] } : {}),
    optional: true,
    ...(os === undefined ? {} : { os: [os] }),
  };
}
