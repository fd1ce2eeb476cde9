/** Checks that a server can use the configured store, and that the existing content can be read. */
import { access, constants, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { SILENT_LOG } from "../../model/ports.ts";
import { systemClock } from "../../server/clock-and-ids.ts";
import { type DragomanConfig, sectionWarnings } from "../../server/config/index.ts";
import { StoreError } from "../../store/errors.ts";
import { openStore } from "../../store/open.ts";
import { type Check, failed, messageOf, ok, warning } from "./checks.ts";

interface StoreCheckOptions {
  readonly deep?: boolean;
  /** Called at intervals during a long check. */
  readonly onProgress?: (line: string) => void;
}

const NAME = "store";
const MAX_NAMED = 50;
const PROGRESS_MS = 2_000;

export function checkSections(config: DragomanConfig): readonly Check[] {
  return sectionWarnings(config).map(([section, text]) => warning(section, text));
}

/** Neither creates the file nor changes its schema. */
export async function checkStore(spec: string, options: StoreCheckOptions = {}): Promise<readonly Check[]> {
  if (/^postgres(?:ql)?:/.test(spec)) return [await checkServer(spec)];
  if (!spec.startsWith("sqlite:")) {
    return [ok(NAME, `${spec} keeps nothing beyond the process`)];
  }
  const file = spec.slice("sqlite:".length);
  try {
    const found = (await exists(file)) ? await checkFile(file) : await checkNewFile(file);
    if (options.deep !== true || !found.readable) return [found.check];
    return [found.check, ...(await checkContent(file, options.onProgress ?? (() => {})))];
  } catch (error) {
    return [failed(NAME, messageOf(error))];
  }
}

/** Neither makes the tables nor changes them. */
async function checkServer(spec: string): Promise<Check> {
  try {
    const store = await openStore(spec, { baseDirectory: ".", clock: systemClock, log: SILENT_LOG, mode: "inspect" });
    await store.close();
    return ok(NAME, `${store.description} can be opened`);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    if (error.code === "older-schema") return ok(NAME, "PostgreSQL can be used; the tables will be made or migrated");
    return failed(NAME, error.message);
  }
}

interface Found {
  readonly check: Check;
  /** Whether it is a store with the current schema. */
  readonly readable: boolean;
}

async function checkFile(file: string): Promise<Found> {
  await requireAccess(file, file);
  const isInUse = !(await isFree(file));
  const older = await openStore(`sqlite:${file}`, {
    baseDirectory: ".",
    clock: systemClock,
    log: SILENT_LOG,
    mode: "inspect",
  }).then(
    (store) => store.close().then(() => false),
    (error: unknown) => {
      if (error instanceof StoreError && error.code === "older-schema") return true;
      throw error;
    },
  );
  const detail = older ? `${file} can be opened and will be brought up to the current schema` : `${file} can be opened`;
  const check = isInUse ? warning(NAME, `${file} is in use by another dragoman`) : ok(NAME, detail);
  return { check, readable: !older };
}

async function isFree(file: string): Promise<boolean> {
  const { acquireOwnership } = await import("../../store/sqlite/file-access.ts");
  try {
    (await acquireOwnership(file))();
    return true;
  } catch (error) {
    if (error instanceof StoreError && error.code === "in-use") return false;
    throw error;
  }
}

/** Checks the file's folder, or the parent in which it would be created. */
async function checkNewFile(file: string): Promise<Found> {
  let folder = dirname(file);
  while (!(await exists(folder)) && dirname(folder) !== folder) folder = dirname(folder);
  await requireAccess(file, folder);
  return { check: ok(NAME, `${file} will be created`), readable: false };
}

async function requireAccess(file: string, path: string): Promise<void> {
  try {
    await access(path, constants.W_OK);
  } catch (error) {
    const { toOpenError } = await import("../../store/sqlite/file-access.ts");
    throw toOpenError(error, file, path);
  }
}

async function checkContent(file: string, onProgress: (line: string) => void): Promise<readonly Check[]> {
  const { examineFile } = await import("../../store/sqlite/examine.ts");
  let shownAt = systemClock.now();
  const { tasks, damage } = await examineFile(file, systemClock, (what, done, of) => {
    if (systemClock.now() - shownAt < PROGRESS_MS) return;
    shownAt = systemClock.now();
    onProgress(`Checking ${file}: ${done} of ${of} ${what}`);
  });
  const name = "store content";
  if (damage.length === 0) return [ok(name, `${tasks} tasks can be read; nothing is damaged`)];
  const named = damage.slice(0, MAX_NAMED).map(({ what, problem }) => failed(name, `${what}: ${problem}`));
  if (damage.length === named.length) return named;
  return [...named, failed(name, `and ${damage.length - named.length} more`)];
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
