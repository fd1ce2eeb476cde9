import { extname } from "node:path";
import { Worker, type WorkerOptions } from "node:worker_threads";

/** Node reads no TypeScript in a thread of its own, so sources are loaded there as modules of agents are. */
const LOAD_SOURCE = `const { workerData } = require("node:worker_threads");
import(workerData.loader).then(({ createJiti }) => createJiti(workerData.source).import(workerData.source));`;

/** Starts a thread with a module of this package, named by its place below `src` without its extension. */
export function startThread(module: string, options: Omit<WorkerOptions, "eval"> & { workerData: object }): Worker {
  const extension = extname(import.meta.url);
  const file = new URL(`../${module}${extension}`, import.meta.url);
  if (extension === ".js") return new Worker(file, options);
  const workerData = { ...options.workerData, loader: import.meta.resolve("jiti"), source: file.href };
  return new Worker(LOAD_SOURCE, { ...options, eval: true, workerData });
}
