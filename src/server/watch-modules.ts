import { type FSWatcher, watch } from "node:fs";
import { dirname, sep } from "node:path";
import type { Log } from "../model/ports.ts";
import { buildAgent, type DragomanConfig } from "./config/index.ts";
import type { DragomanServer } from "./serve.ts";

const SETTLE_MS = 100;
const IGNORED = new Set(["node_modules", "dist"]);
/** Everything else beside a module, logs and databases for instance, may change as it likes. */
const SOURCE = /\.(?:[cm]?[jt]sx?|json)$/;

/** Loads agents' modules anew when files beside them change. A module that does not load leaves the old one in place. */
export function watchModules(config: DragomanConfig, server: DragomanServer, log: Log): () => void {
  const byFolder = new Map<string, Set<string>>();
  for (const [name, { source }] of config.agents) {
    if (source.kind !== "module") continue;
    const folder = dirname(source.file);
    byFolder.set(folder, (byFolder.get(folder) ?? new Set()).add(name));
  }
  const watchers: FSWatcher[] = [];
  for (const [folder, names] of byFolder) watchers.push(watchFolder(folder, () => reload(config, names, server, log)));
  return () => {
    for (const watcher of watchers) watcher.close();
  };
}

function watchFolder(folder: string, changed: () => void): FSWatcher {
  let timer: NodeJS.Timeout | undefined;
  return watch(folder, { recursive: true, persistent: false }, (_event, file) => {
    if (file === null || !SOURCE.test(file)) return;
    if (file.split(sep).some((segment) => IGNORED.has(segment) || segment.startsWith("."))) return;
    clearTimeout(timer);
    timer = setTimeout(changed, SETTLE_MS);
  });
}

async function reload(
  config: DragomanConfig,
  names: Iterable<string>,
  server: DragomanServer,
  log: Log,
): Promise<void> {
  for (const name of names) {
    const agent = config.agents.get(name);
    if (agent === undefined) continue;
    try {
      server.replace(name, await buildAgent(name, agent, config, { fresh: true, log }));
      log.info({ agent: name }, "Agent reloaded.");
    } catch (error) {
      log.error({ agent: name, err: error }, "Agent could not be reloaded; the old one goes on.");
    }
  }
}
