import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, relative } from "node:path";
import { fileURLToPath } from "node:url";
import "../test/support/features.ts";
import { NO_METER, SILENT_LOG } from "../src/core/model/ports.ts";
import { systemTools } from "../src/core/server/clock-and-ids.ts";
import { createDialects } from "../src/core/server/dialects.ts";
import { renderBridges } from "../test/bridge/table.ts";
import { conformancePage } from "../test/conformance/comparison.ts";
import { renderMatrix } from "../test/interop/matrix.ts";
import { findCitations, markdownReport, toResults, yamlReport } from "./a2a-cli-report.ts";
import { channelsPage } from "./channel-docs.ts";
import { cliPage } from "./cli-docs.ts";
import { configurationPage, editorSchema, plainSchema } from "./config-docs.ts";
import { dialectsPage } from "./dialect-docs.ts";
import { descriptorFiles } from "./generate-descriptors.ts";
import { referencePage } from "./reference-docs.ts";
import { workflowSchema, workflowsPage } from "./workflow-docs.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const at = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

const dialects = createDialects({ ...systemTools, log: SILENT_LOG, meter: NO_METER }, { agents: {} });
const protos = dialects.flatMap(({ serving: { rpc } }) => rpc?.source() ?? []);

const results = toResults(findCitations());
const files: ReadonlyMap<string, string> = new Map([
  [at("schema/dragoman.schema.json"), `${JSON.stringify(editorSchema(), undefined, 2)}\n`],
  [at("docs/configuration.md"), configurationPage(plainSchema())],
  [at("schema/workflow.schema.json"), `${JSON.stringify(workflowSchema(), undefined, 2)}\n`],
  [at("docs/workflows.md"), workflowsPage(await readFile(at("docs/workflows.md"), "utf8"))],
  [at("docs/channels.md"), channelsPage(await readFile(at("docs/channels.md"), "utf8"), "en")],
  [at("docs/channels.zh.md"), channelsPage(await readFile(at("docs/channels.zh.md"), "utf8"), "zh")],
  [at("docs/reference.md"), referencePage()],
  [at("docs/cli.md"), cliPage()],
  [at("docs/a2a-cli-report.yaml"), yamlReport(results)],
  [at("docs/a2a-cli-report.md"), markdownReport(results)],
  [at("docs/dialects.md"), dialectsPage(dialects)],
  [
    at("docs/conformance.md"),
    conformancePage(
      await readFile(at("docs/conformance.md"), "utf8"),
      JSON.parse(await readFile(at("test/conformance/compared.json"), "utf8")),
    ),
  ],
  [
    at("docs/interop.md"),
    renderMatrix(JSON.parse(await readFile(at("test/interop/matrix.json"), "utf8"))) +
      renderBridges(JSON.parse(await readFile(at("test/bridge/bridges.json"), "utf8"))),
  ],
  ...descriptorFiles().map(([path, content]): [string, string] => [at(path), content]),
  ...protos.map(({ path, text }): [string, string] => [at(`proto/${path}`), text]),
]);

const check = process.argv.includes("--check");
let outdated = 0;
for (const [file, content] of files) {
  const present = await readFile(file, "utf8").catch(() => undefined);
  if (present === content) continue;
  outdated++;
  const name = relative(root, file);
  if (check) {
    console.error(`${name} is out of date; run npm run docs.`);
  } else {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
    console.log(`wrote ${name}`);
  }
}
if (check && outdated > 0) process.exitCode = 1;
