import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Log } from "../../model/ports.ts";
import type { DragomanServer } from "../serve.ts";
import { agentKinds } from "./agent-kinds.ts";
import type { AgentConfig } from "./config.ts";
import { buildAgent, type DragomanConfig } from "./index.ts";

const DEBOUNCE_MS = 100;
const IGNORED_FOLDERS = new Set(["node_modules", "dist"]);
/** Changes of other files beside a module or workflow, logs and databases for instance, are ignored. */
const SOURCE_FILE = /\.(?:[cm]?[jt]sx?|json|ya?ml)$/;

interface WatchedConfig {
  readonly file: string;
  /** Reads the file again. */
  load(): Promise<DragomanConfig>;
}

/**
 * Reloads agents when files beside their modules or workflows or their entries in the configuration change. If loading fails, the
 * previous version stays in use and the error is logged.
 */
export function watchModules(
  config: DragomanConfig,
  server: Pick<DragomanServer, "replace">,
  log: Log,
  source?: WatchedConfig,
): () => void {
  const reloader = createReloader(config, server, log);
  const folders = new Map<string, () => void>();
  const watchFolders = (): void => {
    for (const folder of reloader.folders()) {
      if (folders.has(folder)) continue;
      const changed = debounce(() => reloader.reload(folder));
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

type Reloader = ReturnType<typeof createReloader>;

function createReloader(started: DragomanConfig, server: Pick<DragomanServer, "replace">, log: Log) {
  let current = started;
  /** Serialised, so that the newest version is the last to be applied. */
  let working = Promise.resolve();
  const enqueue = (work: () => Promise<void>): Promise<void> => {
    working = working.then(work);
    return working;
  };
  const replace = async (name: string, agent: AgentConfig): Promise<void> => {
    try {
      server.replace(name, await buildAgent(name, agent, current, { fresh: true, log }));
      log.info({ agent: name }, "Agent reloaded");
    } catch (error) {
      const reason = reasonOf(error);
      log.error(
        { agent: name, err: error },
        `Agent not reloaded, the last version that loaded stays in use: ${reason}`,
      );
    }
  };
  return {
    folders(): ReadonlySet<string> {
      return new Set([...current.agents.values()].flatMap((agent) => folderOf(agent) ?? []));
    },
    /** Reloads the modules and workflows in a folder. */
    reload: (folder: string) =>
      enqueue(async () => {
        for (const [name, agent] of current.agents) if (folderOf(agent) === folder) await replace(name, agent);
      }),
    /** Applies changes of served agents, and reports changes that require a restart. */
    configure: (load: () => Promise<DragomanConfig>, file: string) =>
      enqueue(async () => {
        const before = current;
        try {
          current = await load();
        } catch (error) {
          const reason = reasonOf(error);
          log.error({ file, err: error }, `Configuration not applied, the last valid one stays in use: ${reason}`);
          return;
        }
        for (const [name, agent] of current.agents) {
          const isChanged = !isSame(before.agents.get(name), agent);
          if (started.agents.has(name) && isChanged && !isFixed(name, before, current)) await replace(name, agent);
        }
        const restart = restartNeeded(started, current);
        if (restart.length > 0) log.warn({ file, restart }, `Restart to apply: ${restart.join(", ")}`);
      }),
  };
}

/** Where the code or the workflow of an agent is; undefined if that is nowhere but in the configuration. */
function folderOf({ kind, source }: AgentConfig): string | undefined {
  const [file] = agentKinds().get(kind)?.files?.(source) ?? [];
  return file === undefined ? undefined : dirname(file);
}

/** Such as agents that dial in, which are known to the server from its start. */
function isFixed(name: string, ...configs: readonly DragomanConfig[]): boolean {
  return configs.some(({ agents }) => agentKinds().get(agents.get(name)?.kind ?? "")?.isFixed === true);
}

/** Changed keys that a running server cannot apply. */
function restartNeeded(started: DragomanConfig, next: DragomanConfig): readonly string[] {
  const { agents, folder, findOrigins, ...sections } = started;
  const changed = (Object.keys(sections) as (keyof typeof sections)[]).filter(
    (key) => !isSame(started[key], next[key]),
  );
  const names = new Set([...agents.keys(), ...next.agents.keys()]);
  const affected = [...names].filter((name) => {
    const [old, now] = [agents.get(name), next.agents.get(name)];
    return old === undefined || now === undefined || (isFixed(name, started, next) && !isSame(old, now));
  });
  return [
    ...changed.map((key) => (key === "times" ? "cancelGrace, cluster.lease or retention" : key)),
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
