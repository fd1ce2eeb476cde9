/** The workflow of docs/conformance.md does what the page says, without the code host. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { runInProcess } from "../../src/core/cli/testing/run-in-process.ts";
import { createTckAgent } from "../../src/features/writers/tck.ts";
import { createFolder, startServer } from "../support/lifecycle.ts";
import { blocksOf } from "./blocks.ts";

interface Step {
  readonly name?: string;
  readonly run?: string;
  readonly if?: string;
  readonly with?: { readonly path?: string };
}

const [block] = blocksOf("docs/conformance.md").filter(({ kind }) => kind === "workflow");
const workflow = parse(block?.text ?? "") as { jobs: { conformance: { steps: readonly Step[] } } };
const steps = new Map(workflow.jobs.conformance.steps.map((step) => [step.name, step]));

it("tests a server, and keeps the reports that its later steps read also when requirements fail", async () => {
  const server = await startServer({ agents: { tck: createTckAgent() } });
  const folder = createFolder();
  const [line = ""] = steps.get("Test it")?.run?.split("\n") ?? [];
  const [, ...words] = line.replace("npx --yes ", "").split(" ");
  const args = words.map((word) =>
    word.replace("http://127.0.0.1:4000", server.url).replace(/^(\w+)=(?=conformance)/, `$1=${folder}/`),
  );
  const { code } = await runInProcess(...args, "--transport", "JSONRPC", "--a2a-version", "1.0");
  expect(code).toBe(0);
  const written = readdirSync(folder).sort();
  expect(written).toEqual(["conformance.json", "conformance.md", "conformance.xml"]);
  expect(readFileSync(join(folder, "conformance.md"), "utf8")).toContain("**Conformant.**");
  expect(steps.get("Show the report")).toMatchObject({
    if: "always()",
    run: expect.stringMatching(/^cat conformance\.md >> /),
  });
  expect(steps.get("Keep the reports")).toMatchObject({ if: "always()", with: { path: "conformance.*" } });
});

it("starts a server of this package with flags that exist", async () => {
  const [line = ""] = steps.get("Start the server")?.run?.split("\n") ?? [];
  const [, , , ...words] = line.replace(/ &$/, "").split(" ");
  expect((await runInProcess(...words, "--help")).code).toBe(0);
});
