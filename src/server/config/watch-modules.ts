import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Log } from "../../model/ports.ts";
import type { DragomanServer } from "../serve.ts";
import { buildAgent, type DragomanConfig } from "./index.ts";

const DEBOUNCE_MS = 100;
const IGNORED_FOLDERS = new Set(["node_modules", "dist"]);
/** Changes of other files beside a module, logs and databases for instance, are ignored. */
const SOURCE_FILE = /\.(?:[cm]?[jt]sx?|json)$/;

interface WatchedConfig {
  readonly file: string;
  /** Reads the file again. */
  load(): Promise<DragomanConfig>;
}

/**
 * Reloads agents when files beside their modules or their entries in the configuration change. If loading fails, the
 * previous version stays in use and the error is logged.
 */
export function watchModules(
  config: DragomanConfig,
  server: Pick<DragomanServer, "replace">,
  log: Log,
  source?: WatchedConfig,
): () => void {
  const reloader = new Reloader(config, server, log);
  const folders = new Map<string, () => void>();
  const watchFolders = (): void => {
    for (const folder of reloader.folders()) {
      if (folders.has(folder)) continue;
      const changed = debounce(() => reloader.reload((file) => dirname(file) === folder));
      folders.set(folder, watchTree(folder, changed, log));
    }
  };
  watchFolders();
  const stopConfig = source === undefined ? undefined : watchConfig(source, reloader, watchFolders, log);
  return () => {
    stopConfig?.();
    for (const stop of folders.values()) stop();
  };
}

class Reloader {
  readonly #started: DragomanConfig;
  readonly #server: Pick<DragomanServer, "replace">;
  readonly #log: Log;
  #current: DragomanConfig;
  /** Serialised, so that the newest version is the last to be applied. */
  #working: Promise<void> = Promise.resolve();

  constructor(config: DragomanConfig, server: Pick<DragomanServer, "replace">, log: Log) {
    this.#started = config;
    this.#current = config;
    this.#server = server;
    this.#log = log;
  }

  folders(): ReadonlySet<string> {
    const files = [...this.#current.agents.values()].flatMap(({ source }) =>
      source.kind === "module" ? [source.file] : [],
    );
    return new Set(files.map((file) => dirname(file)));
  }

  /** Reloads the matching modules. */
  reload(isMeant: (file: string) => boolean): Promise<void> {
    return this.#next(async () => {
      for (const [name, { source }] of this.#current.agents) {
        if (source.kind === "module" && isMeant(source.file)) await this.#replace(name, this.#current);
      }
    });
  }

  /** Applies changes of served agents, and reports changes that require a restart. */
  configure(load: () => Promise<DragomanConfig>, file: string): Promise<void> {
    return this.#next(async () => {
      let next: DragomanConfig;
      try {
        next = await load();
      } catch (error) {
        const reason = reasonOf(error);
        this.#log.error({ file, err: error }, `Configuration not applied, the last valid one stays in use: ${reason}`);
        return;
      }
      const before = this.#current;
      this.#current = next;
      for (const name of next.agents.keys()) {
        if (this.#started.agents.has(name) && isReplaceable(name, before, next)) await this.#replace(name, next);
      }
      const restart = restartNeeded(this.#started, next);
      if (restart.length > 0) this.#log.warn({ file, restart }, `Restart to apply: ${restart.join(", ")}`);
    });
  }

  async #replace(name: string, config: DragomanConfig): Promise<void> {
    const agent = config.agents.get(name);
    if (agent === undefined) return;
    try {
      this.#server.replace(name, await buildAgent(name, agent, config, { fresh: true, log: this.#log }));
      this.#log.info({ agent: name }, "Agent reloaded");
    } catch (error) {
      const reason = reasonOf(error);
      this.#log.error(
        { agent: name, err: error },
        `Agent not reloaded, the last version that loaded stays in use: ${reason}`,
      );
    }
  }

  #next(work: () => Promise<void>): Promise<void> {
    this.#working = this.#working.then(work);
    return this.#working;
  }
}

function isReplaceable(name: string, before: DragomanConfig, next: DragomanConfig): boolean {
  const [old, now] = [before.agents.get(name), next.agents.get(name)];
  // Dial-in agents are registered with the acceptor when the server starts.
  if (old?.source.kind === "link" || now?.source.kind === "link") return false;
  return !isSame(old, now);
}

/** Changed keys that a running server cannot apply. */
function restartNeeded(started: DragomanConfig, next: DragomanConfig): readonly string[] {
  const { agents, folder, origins, ...sections } = started;
  const changed = (Object.keys(sections) as (keyof typeof sections)[]).filter(
    (key) => !isSame(started[key], next[key]),
  );
  const names = new Set([...agents.keys(), ...next.agents.keys()]);
  const affected = [...names].filter((name) => {
    const [old, now] = [agents.get(name), next.agents.get(name)];
    const isLink = old?.source.kind === "link" || now?.source.kind === "link";
    return old === undefined || now === undefined || (isLink && !isSame(old, now));
  });
  return [
    ...changed.map((key) => (key === "times" ? "cancelGrace or retention" : key)),
    ...affected.map((name) => `agents.${name}`),
  ];
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function watchConfig(source: WatchedConfig, reloader: Reloader, configured: () => void, log: Log): () => void {
  const { file, load } = source;
  const reload = debounce(() => reloader.configure(load, file).then(configured));
  const warn = debounce(() => log.warn({ file: ".env" }, "Restart to apply: .env"));
  // Watches the folder, not the file: editors replace the file.
  const watcher = watch(dirname(file), { persistent: false }, (_event, name) => {
    if (name === null || name === basename(file)) reload();
    else if (name === ".env") warn();
  });
  watcher.on("error", (error) => log.warn({ err: error }, "The configuration is no longer watched"));
  return () => watcher.close();
}

/** Debounced: saving causes several events, and the file is complete only after a quiet moment. */
function debounce(run: () => unknown): () => void {
  let timer: NodeJS.Timeout | undefined;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, DEBOUNCE_MS);
  };
}

/**
 * Watches a folder and its sub-folders, not files: a watch of a file ends when another file is renamed over it, which
 * is how most editors save.
 */
function watchTree(root: string, changed: () => void, log: Log): () => void {
  const watchers = new Map<string, FSWatcher>();
  const drop = (folder: string): void => {
    watchers.get(folder)?.close();
    watchers.delete(folder);
  };
  const add = (folder: string): void => {
    drop(folder);
    try {
      const watcher = watch(folder, { persistent: false }, (_event, name) => {
        if (name === null || SOURCE_FILE.test(name)) changed();
        else if (isWatchedFolder(folder, name)) {
          add(join(folder, name));
          changed();
        }
      });
      watcher.on("error", () => drop(folder));
      watchers.set(folder, watcher);
      for (const name of readdirSync(folder)) if (isWatchedFolder(folder, name)) add(join(folder, name));
    } catch (error) {
      log.warn({ folder, err: error }, "Folder cannot be watched");
    }
  };
  add(root);
  // A folder may be replaced as a whole, by a build or a branch switch; a watch of the old one would see no more
  // changes.
  const parent = watch(dirname(root), { persistent: false }, (_event, name) => {
    if (name !== basename(root) || !isWatchedFolder(dirname(root), name)) return;
    add(root);
    changed();
  });
  parent.on("error", () => parent.close());
  return () => {
    parent.close();
    for (const folder of [...watchers.keys()]) drop(folder);
  };
}

function isWatchedFolder(folder: string, name: string): boolean {
  if (IGNORED_FOLDERS.has(name) || name.startsWith(".")) return false;
  return statSync(join(folder, name), { throwIfNoEntry: false })?.isDirectory() === true;
}
