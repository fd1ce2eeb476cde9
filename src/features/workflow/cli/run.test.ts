import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ROOT } from "../../../../test/built/cli.ts";
import { runInProcess } from "../../../core/cli/testing/run-in-process.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "dragoman-run-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const write = (name: string, content: string): string => {
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
};

const ARTICLE = join(ROOT, "workflows/article.yaml");
const CONFIG = join(ROOT, "dragoman.yaml");

describe("run --dry-run", () => {
  it("prints the plan of the article workflow, with what its names stand for", async () => {
    const { code, stdout } = await runInProcess("run", ARTICLE, "--dry-run", "--config", CONFIG);
    expect(code).toBe(0);
    expect(stdout).toBe(`Workflow: article
Description: Topic in; outline, article and summary out.
Steps:
  1  outline   agent outline   use: outline
  2  document  agent document  use: document  after outline
  3  summary   agent summary   use: summary   after document; 3 attempts; timeout 1m
Output: outline, document, summary
`);
  });

  it("resolves skills and URLs, and numbers the steps of sub-workflows", async () => {
    const file = write(
      "flow.yaml",
      `
steps:
  a: { skill: generate_outline, onFailure: continue }
  b: { needs: [a], workflow: { steps: { c: { url: https://agents.example.com, when: "\${input.text}" } } } }
  d: { agent: script, foreach: [1, 2] }
`,
    );
    const config = write(
      "agents.yaml",
      "agents: { o: { use: outline }, script: { exec: [/bin/cat, --token=secret] } }",
    );
    const { code, stdout } = await runInProcess("run", file, "--dry-run", "--config", config, "-o", "json");
    expect(code).toBe(0);
    expect(stdout).not.toContain("secret");
    expect(JSON.parse(stdout)).toEqual({
      name: null,
      description: null,
      steps: [
        {
          number: "1",
          step: "a",
          target: "skill generate_outline",
          resolved: "agent o, use: outline",
          needs: [],
          notes: ["may fail"],
        },
        {
          number: "2",
          step: "d",
          target: "agent script",
          resolved: "exec: cat",
          needs: [],
          notes: ["for each item, 4 at a time"],
        },
        { number: "3", step: "b", target: "workflow", resolved: "1 step", needs: ["a"], notes: [] },
        {
          number: "3.1",
          step: "c",
          target: "https://agents.example.com",
          resolved: "https://agents.example.com",
          needs: [],
          notes: ["conditional"],
        },
      ],
      output: ["b", "d"],
    });
  });

  it("says what each kind of agent is, without its secrets", async () => {
    const llm = "{ baseUrl: http://127.0.0.1:1/v1, model: small, apiKey: secret }";
    const config = write(
      "agents.yaml",
      `
agents:
  far: { remote: "https://agents.example.com/a?token=secret" }
  model: { llm: ${llm} }
  writer: { use: summary, llm: ${llm} }
  inner: { workflow: { steps: { a: { agent: far } } } }
  phone: { link: { agentId: phone-1, ak: key, sk: secret-secret } }
`,
    );
    const names = ["far", "model", "writer", "inner", "phone"];
    const file = write("flow.yaml", `steps:\n${names.map((name) => `  ${name}: { agent: ${name} }\n`).join("")}`);
    const { code, stdout } = await runInProcess("run", file, "--dry-run", "--config", config, "-o", "json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout).steps.map(({ resolved }: { resolved: string }) => resolved)).toEqual([
      "remote: https://agents.example.com/a",
      "llm: small",
      "use: summary, llm: small",
      "workflow",
      "link: phone-1",
    ]);
  });

  it("names file, line and step of what is wrong", async () => {
    const file = write("flow.yaml", "steps:\n  a: { agent: outlin }\n  b: { skill: fly }\n");
    const { code, stderr } = await runInProcess("run", file, "--dry-run", "--config", CONFIG);
    expect(code).toBe(1);
    expect(stderr).toContain(`${file}:2:3: steps.a.agent: there is no agent "outlin"; did you mean "outline"?\n`);
    expect(stderr).toContain(`${file}:3:3: steps.b.skill: no agent has the skill "fly"; use one of echo, `);
    const cyclic = write("cyclic.yaml", "steps:\n  a: { agent: x, needs: [b] }\n  b: { agent: x, needs: [a] }\n");
    const failed = await runInProcess("run", cyclic, "--dry-run", "-o", "json");
    expect(failed.code).toBe(1);
    expect(JSON.parse(failed.stdout).error).toMatchObject({
      code: "DRAGOMAN_ERR_WORKFLOW",
      message: `${cyclic}:2:3: steps.a: steps need each other: a → b → a`,
    });
  });
});

describe("run --graph", () => {
  it.each([
    ["mermaid", "flowchart TD\n"],
    ["dot", "digraph workflow {\n"],
  ])("prints %s without a configuration", async (format, start) => {
    const { code, stdout } = await runInProcess("run", ARTICLE, "--graph", format);
    expect([code, stdout.slice(0, start.length)]).toEqual([0, start]);
  });

  it("knows no other format", async () => {
    expect((await runInProcess("run", ARTICLE, "--graph", "svg")).code).toBe(2);
  });
});
