/** What docs/workflows.md shows is read, built and run. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildAgents, loadConfig } from "../../src/core/server/config/index.ts";
import { parseWorkflow } from "../../src/features/workflow/definition/load.ts";
import { CLI, ROOT, runProgram } from "../built/cli.ts";
import { createProject, typeErrors } from "../built/project.ts";
import { blocksOf, commandsOf } from "./blocks.ts";

const blocks = blocksOf("docs/workflows.md");
const textsOf = (kind: string) => blocks.filter((block) => block.kind === kind).map(({ text }) => text);

describe("docs/workflows.md", () => {
  it("has blocks of known kinds", () => {
    const kinds = ["builder", "config", "plan", "problems", "run", "workflow"];
    expect([...new Set(blocks.map(({ kind }) => kind))].sort()).toEqual(kinds);
  });

  it("shows workflows that are valid", () => {
    for (const text of textsOf("workflow")) {
      expect(parseWorkflow(text, { source: "docs/workflows.md" }).order).not.toEqual([]);
    }
  });

  it("shows a configuration that serves the workflow of the repository", async () => {
    const project = createProject();
    try {
      project.write("workflows/article.yaml", readFileSync(join(ROOT, "workflows/article.yaml"), "utf8"));
      const file = project.write("dragoman.yaml", textsOf("config").join("\n"));
      const agents = await buildAgents(await loadConfig(file));
      expect(agents.get("article")?.profile.name).toBe("article");
    } finally {
      project.remove();
    }
  });

  it("shows commands that run, and the plan that one of them prints", async () => {
    const results = [];
    for (const command of textsOf("run").flatMap(commandsOf)) {
      const [npx, dragoman, ...args] = command.split(" ");
      expect([npx, dragoman]).toEqual(["npx", "dragoman"]);
      results.push(await runProgram(process.execPath, [CLI, ...args]));
    }
    expect(results.map(({ code }) => code)).toEqual(results.map(() => 0));
    expect(textsOf("plan")).toEqual([results[0]?.stdout]);
  });

  it("shows the problems of a wrong file", () => {
    const text =
      "steps:\n  outline: { agent: outline }\n" +
      "  b: { agent: document, needs: [outlin], input: '${steps.outline.txt}' }\n  c: { agnet: x }\n";
    const [shown = ""] = textsOf("problems");
    expect(() => parseWorkflow(text, { source: "flow.yaml" })).toThrow(shown.trimEnd());
  });

  it("shows code that is compiled and runs", async () => {
    const project = createProject();
    try {
      const file = project.write("build.ts", textsOf("builder").join("\n"));
      expect(typeErrors([file])).toEqual([]);
      const ran = await runProgram(process.execPath, ["--import", "tsx", file]);
      expect(ran).toMatchObject({ code: 0, stdout: "written, stored\n" });
    } finally {
      project.remove();
    }
  });

  it("starts with the file of the repository", () => {
    const [first = ""] = textsOf("workflow");
    expect(readFileSync(join(ROOT, "workflows/article.yaml"), "utf8")).toContain(first);
  });
});
