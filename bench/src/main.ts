import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Options, parseOptions, UsageError, usage } from "./options.ts";
import { mediansOf, printReport, printVerdict, type ScenarioReport } from "./report.ts";
import { recordResults } from "./results.ts";
import { type Context, Recorder, type Scenario } from "./scenario.ts";
import { scenarios } from "./scenarios/index.ts";
import { judge } from "./verdict.ts";
import { Workspace } from "./workspace.ts";

const resultsFolder = fileURLToPath(new URL("../results/", import.meta.url));

async function main(): Promise<number> {
  const names = scenarios.map((scenario) => scenario.name);
  const options = parseOptions(process.argv.slice(2), names);
  if (options.help) {
    const described = scenarios.map(({ name, title, setup }) => `${name}: ${title}\n    ${setup}`);
    console.log(`${usage}\n\nScenarios\n\n${described.join("\n\n")}`);
    return 0;
  }
  const reports = await runAll(options);
  const verdicts = reports.flatMap((report) => report.verdicts);
  const missed = reports.flatMap(({ name, verdicts }) =>
    verdicts.filter(({ met }) => !met).map((verdict) => `  ${printVerdict(verdict)}  [${name}]`),
  );
  const broken = reports.some((report) => Object.keys(report.failures).length > 0);
  console.log(
    `\n${verdicts.length - missed.length} of ${verdicts.length} targets met${options.quick ? " (quick: not enforced)" : ""}`,
  );
  if (missed.length > 0) console.log(missed.join("\n"));
  if (!options.quick) {
    const written = await recordResults(resultsFolder, options.rounds, reports, names);
    console.log(`written: ${written.join(", ")}`);
  }
  return broken || (missed.length > 0 && !options.quick) ? 1 : 0;
}

async function runAll(options: Options): Promise<ScenarioReport[]> {
  const workspace = new Workspace(join(resultsFolder, "tmp"));
  await workspace.open();
  const context: Context = {
    rounds: options.rounds,
    size: (full, quick) => (options.quick ? quick : full),
    workspace,
  };
  const reports: ScenarioReport[] = [];
  try {
    for (const scenario of scenarios) {
      if (options.only && !options.only.includes(scenario.name)) continue;
      const report = await runOne(scenario, context);
      console.log(printReport(report));
      reports.push(report);
    }
  } finally {
    await workspace.close();
  }
  return reports;
}

async function runOne(scenario: Scenario, context: Context): Promise<ScenarioReport> {
  const record = new Recorder();
  try {
    await scenario.run(context, record);
  } catch (error) {
    record.fail(scenario.name, error);
  }
  return {
    name: scenario.name,
    title: scenario.title,
    setup: scenario.setup,
    ...(scenario.grid && { grid: scenario.grid }),
    medians: mediansOf(record.samples),
    failures: Object.fromEntries(record.failures),
    verdicts: judge(scenario.targets, record.samples),
  };
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`${error.message}\n\n${usage}`);
  process.exitCode = 2;
}
