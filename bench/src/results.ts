import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import { isPlottable, plot } from "./plot.ts";
import type { ScenarioReport } from "./report.ts";

/** Ratios are meaningful only within one run, so each scenario records its run. */
interface RecordedScenario extends ScenarioReport {
  /** With `+` if the work tree was dirty. */
  commit: string;
  at: string;
  rounds: number;
}

export interface Results {
  date: string;
  machine: { node: string; platform: string; arch: string; cores: number };
  scenarios: RecordedScenario[];
}

const plotName = "latest.svg";

interface Run {
  readonly commit: string;
  readonly at: string;
  readonly rounds: number;
}

/** Merges the reports into earlier results of the commit; a scenario that was run again replaces its earlier run. */
export function mergeResults(
  earlier: Results | undefined,
  run: Run,
  reports: readonly ScenarioReport[],
  order: readonly string[],
): Results {
  const known = new Map((earlier?.scenarios ?? []).map((scenario) => [scenario.name, scenario]));
  for (const report of reports) known.set(report.name, { ...report, ...run });
  const scenarios = order.flatMap((name) => known.get(name) ?? []);
  const machine = { node: process.version, platform: process.platform, arch: process.arch, cores: cpus().length };
  return { date: run.at.slice(0, 10), machine, scenarios };
}

/** Writes `<date>-<commit>.json` and, if all of it was run, the plot; returns the paths. */
export async function recordResults(
  folder: string,
  rounds: number,
  reports: readonly ScenarioReport[],
  order: readonly string[],
): Promise<string[]> {
  const run: Run = { commit: currentCommit(folder), at: new Date().toISOString(), rounds };
  const name = `${run.at.slice(0, 10)}-${run.commit}.json`;
  await mkdir(folder, { recursive: true });
  const earlier = await readFile(join(folder, name), "utf8").then(
    (text) => JSON.parse(text) as Results,
    () => undefined,
  );
  const results = mergeResults(earlier, run, reports, order);
  await writeFile(join(folder, name), `${JSON.stringify(results, null, 2)}\n`);
  const written = [name];
  if (isPlottable(results.scenarios)) {
    await writeFile(join(folder, plotName), plot(results.scenarios, `${run.commit}, ${results.date}`));
    written.push(plotName);
  }
  return written.map((file) => `bench/results/${file}`);
}

function currentCommit(folder: string): string {
  const git = (...args: string[]): string => execFileSync("git", args, { cwd: folder, encoding: "utf8" }).trim();
  try {
    const isClean = git("status", "--porcelain", "--", ":/", ":!/bench/results") === "";
    return `${git("rev-parse", "--short=12", "HEAD")}${isClean ? "" : "+"}`;
  } catch {
    return "unknown";
  }
}
