import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ConfigError } from "../../../core/yaml/problems.ts";
import { loadWorkflow, parseWorkflow } from "./load.ts";
import type { Workflow } from "./plan.ts";

const parse = (text: string) => parseWorkflow(text, { source: "flow.yaml" });

async function problemsOf(read: () => Workflow | Promise<Workflow>): Promise<readonly string[]> {
  try {
    await read();
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n");
    throw error;
  }
  return [];
}

const UNCLOSED = "the closing } of this ${ is missing; write $${ for a plain ${";
const SYNTAX = "Flow sequence in block collection must be sufficiently indented and end with a ]";

describe("a workflow file", () => {
  it("is read as the design has it", async () => {
    const workflow = await loadWorkflow(fileURLToPath(new URL("../../../../workflows/article.yaml", import.meta.url)));
    expect(workflow).toMatchObject({ name: "article", output: ["outline", "document", "summary"] });
    expect(workflow.order).toEqual(["outline", "document", "summary"]);
    expect(workflow.steps.get("outline")).toMatchObject({ target: { agent: "outline" }, needs: [] });
    expect(workflow.steps.get("outline")).toMatchObject({ input: undefined });
    expect(workflow.steps.get("document")).toMatchObject({
      needs: ["outline"],
      input: {
        text: { kind: "literal", value: "Write it out." },
        data: { kind: "reference", path: ["steps", "outline", "data"] },
      },
    });
    expect(workflow.steps.get("summary")).toMatchObject({
      retry: { attempts: 3, baseMs: 1_000, capMs: 30_000 },
      timeoutMs: 60_000,
      onFailure: "stop",
      position: { file: expect.stringMatching(/article\.yaml$/), line: 7, column: 3 },
    });
  });

  it("may have expressions without quotes, and every key", () => {
    const { steps, output } = parse(`
steps:
  list: { skill: list_cities }
  each:
    url: https://agents.example.com/weather
    foreach: \${steps.list.data.cities}
    concurrency: 8
    input: { text: "\${index}", data: { city: \${item.name}, n: 1, tags: [a, "\${input.text}"] }, parts: [\${input.parts}] }
    when: "\${steps.list.state} == completed && \${steps.list.data.cities.length} > 0"
    retry: { attempts: 2, delay: 2s, maxDelay: 1m }
    onFailure: continue
    outputSchema: { type: object, required: [degrees] }
  report: { workflow: { steps: { write: { agent: document, input: "\${input.data}" } } }, input: "\${steps.each.data}" }
`);
    expect(steps.get("each")).toMatchObject({
      target: { url: "https://agents.example.com/weather" },
      needs: ["list"],
      foreach: { kind: "reference", path: ["steps", "list", "data", "cities"] },
      concurrency: 8,
      retry: { attempts: 2, baseMs: 2_000, capMs: 60_000 },
      onFailure: "continue",
      outputSchema: { type: "object", required: ["degrees"] },
    });
    const { target } = steps.get("report") ?? {};
    expect(target).toMatchObject({ workflow: { order: ["write"], output: ["write"] } });
    expect(output).toEqual(["report"]);
  });

  it("needs the steps that its templates name", () => {
    const { order, steps } = parse(`
steps:
  c: { agent: x, input: "\${steps.b.text}" }
  b: { agent: x, needs: [a], when: "\${steps.a.data.ok}" }
  a: { agent: x }
`);
    expect(order).toEqual(["a", "b", "c"]);
    expect(steps.get("c")?.needs).toEqual(["b"]);
    expect(steps.get("b")?.needs).toEqual(["a"]);
  });

  it("leaves variables of the environment alone", () => {
    expect(parse("steps: { a: { agent: x, input: '$${HOME}' } }").steps.get("a")?.input).toEqual({
      value: { kind: "literal", value: "${HOME}" },
    });
  });

  it.each([
    ["steps: {}", "flow.yaml:1:8: steps: needs at least one step"],
    ["name: x", "flow.yaml:1:1: steps: is required"],
    ["[]", "flow.yaml:1:1: must be a map of keys, not a list"],
    [
      "steps: { a: { agent: x }",
      "flow.yaml:1:25: Flow map in block collection must be sufficiently indented and end with a }",
    ],
    ['steps: { a: { agent: x, input: "${input.text" } }', `flow.yaml:1:33: ${UNCLOSED}`],
    ["steps: { a: { agent: x, input: ${input.text } }", `flow.yaml:1:32: ${UNCLOSED}`],
    ["steps:\n  a: { agent: x, input: ${input.text\n  b: { agent: x }", `flow.yaml:2:25: ${UNCLOSED}`],
    ["steps:\n  a: { agent: x, when: '${input.text == 1' }\n  b: { agent: \"x }", `flow.yaml:2:25: ${UNCLOSED}`],
    ["steps: { a: { agent: x, input: 'Hi ${input.text' } }\noutput: [a", `flow.yaml:1:36: ${UNCLOSED}`],
    [
      "steps:\n  a: { agent: x, input: '${input.text}', when: \"${ input.data }\" }\n  b: [",
      `flow.yaml:3:7: ${SYNTAX}`,
    ],
    [
      "steps:\n  a:\n    agent: x\n    input: Hi ${input.text",
      `flow.yaml:4:15: steps.a.input: the closing } is missing; write $${"${"} for a plain ${"${"}`,
    ],
    ["steps: { a: { agent: x, need: [b] } }", 'flow.yaml:1:25: steps.a.need: unknown key; did you mean "needs"?'],
    ["steps: { a: {} }", "flow.yaml:1:10: steps.a: needs one of agent, url, skill, workflow"],
    ["steps: { a: x }", "flow.yaml:1:13: steps.a: must be a map of keys, not text"],
    [
      "steps: { a: { agent: x, skill: y } }",
      "flow.yaml:1:10: steps.a: has agent and skill; a step calls only one of them",
    ],
    [
      "steps: { a b: { agent: x } }",
      "flow.yaml:1:10: steps.a b: must be letters, digits, dashes and underscores, at most 64",
    ],
    [
      "steps: { __proto__: { agent: x } }",
      "flow.yaml:1:10: steps.__proto__: must be letters, digits, dashes and underscores, at most 64",
    ],
    ["steps: { a: { url: ftp://x } }", "flow.yaml:1:20: steps.a.url: must be an http or https address without login"],
    [
      "steps: { a: { url: http://u:p@x } }",
      "flow.yaml:1:20: steps.a.url: must be an http or https address without login",
    ],
    [
      "steps: { one: { agent: x }, two: { agent: x, needs: [on] } }",
      'flow.yaml:1:54: steps.two.needs[0]: there is no step "on"; did you mean "one"?',
    ],
    ["steps: { a: { agent: x, needs: [a] } }", "flow.yaml:1:33: steps.a.needs[0]: a step cannot need itself"],
    ["steps: { a: { agent: x } }\noutput: [b]", 'flow.yaml:2:10: output[0]: there is no step "b"; use one of a'],
    ["steps: { a: { agent: x } }\noutput: [a, a]", "flow.yaml:2:13: output[1]: is named twice"],
    ["steps: { a: { agent: x } }\noutput: []", "flow.yaml:2:9: output: must name at least one step"],
    [
      "steps: { a: { agent: x, needs: [b] }, b: { agent: x, needs: [c] }, c: { agent: x, input: '${steps.a.text}' } }",
      "flow.yaml:1:10: steps.a: steps need each other: a → b → c → a",
    ],
    [
      "steps: { a: { agent: x, input: 'Hi ${steps.b.text}' } }",
      'flow.yaml:1:36: steps.a.input: ${steps.b.text}: there is no step "b"; use one of a',
    ],
    [
      "steps: { a: { agent: x, input: { data: { q: ['${steps.a.text}'] } } } }",
      "flow.yaml:1:47: steps.a.input.data.q[0]: ${steps.a.text}: a step cannot refer to itself",
    ],
    [
      "steps: { a: { agent: x, input: '${input.txt}' } }",
      'flow.yaml:1:33: steps.a.input: ${input.txt}: input has no txt; did you mean "text"?',
    ],
    [
      "steps: { a: { agent: x, input: '${input}' } }",
      "flow.yaml:1:33: steps.a.input: ${input}: write which part of it: input.text, input.data, input.parts",
    ],
    [
      "steps: { a: { agent: x, input: '${input.text.length}' } }",
      "flow.yaml:1:33: steps.a.input: ${input.text.length}: input.text has no members",
    ],
    [
      "steps: { a: { agent: x, input: '${API_KEY}' } }",
      "flow.yaml:1:33: steps.a.input: ${API_KEY}: environment variables are not expanded in workflows; write $${ for a plain ${",
    ],
    [
      "steps: { a: { agent: x, input: '${item}' } }",
      "flow.yaml:1:33: steps.a.input: ${item} has a meaning only in what a foreach does for each item",
    ],
    ["steps: { a: { agent: x, input: {} } }", "flow.yaml:1:32: steps.a.input: needs text, data or parts"],
    [
      "steps: { a: { agent: x, input: { parts: '${input.text}' } } }",
      "flow.yaml:1:41: steps.a.input.parts: must be ${input.parts} or ${steps.NAME.artifacts}, and nothing else",
    ],
    [
      "steps: { a: { agent: x, foreach: 'x' } }",
      "flow.yaml:1:34: steps.a.foreach: must be one ${…} and nothing else, or a list",
    ],
    [
      "steps: { a: { agent: x, concurrency: 2 } }",
      "flow.yaml:1:25: steps.a.concurrency: has a meaning only beside foreach",
    ],
    [
      "steps: { a: { agent: x }, b: { agent: x, when: '${steps.a.state} == TASK_STATE_COMPLETED' } }",
      "flow.yaml:1:48: steps.b.when: ${steps.a.state} is never TASK_STATE_COMPLETED; use one of completed, failed, canceled, rejected, skipped",
    ],
    [
      "steps: { a: { agent: x, when: 'completed' } }",
      "flow.yaml:1:31: steps.a.when: refers to nothing, so it is always the same; write ${steps.NAME.state} or the like",
    ],
    ["steps: { a: { agent: x, when: '${input.text} = 1' } }", "flow.yaml:1:46: steps.a.when: cannot read this: = 1"],
    [
      "steps: { a: { agent: x, timeout: 60 } }",
      "flow.yaml:1:34: steps.a.timeout: must be a duration such as 500ms, 60s, 5m, 1h or 7d",
    ],
    [
      "steps: { a: { agent: x, retry: { attempts: 101 } } }",
      "flow.yaml:1:44: steps.a.retry.attempts: must be 100 or less",
    ],
    [
      "steps: { a: { agent: x, outputSchema: { properties: { n: { minimun: 3 } } } } }",
      'flow.yaml:1:60: steps.a.outputSchema.properties.n.minimun: this keyword is not supported; did you mean "minimum"?',
    ],
    [
      "steps: { a: { workflow: { steps: { b: { agent: x, needs: [c] } } } } }",
      'flow.yaml:1:59: steps.a.workflow.steps.b.needs[0]: there is no step "c"; use one of b',
    ],
  ])("is refused where it is wrong: %s", async (text, problem) => {
    expect(await problemsOf(() => parse(text))).toEqual([problem]);
  });

  it("is refused with all of its problems, in the order of the file", async () => {
    const text = `
nam: x
steps:
  a: { agent: x, needs: [q], input: "\${steps.zz.text}", timeout: never }
  b: { agent: x, retry: 3 }
output: [c]
`;
    expect((await problemsOf(() => parse(text))).map((line) => line.split(": ").slice(0, 2).join(": "))).toEqual([
      "flow.yaml:2:1: nam",
      "flow.yaml:4:26: steps.a.needs[0]",
      "flow.yaml:4:38: steps.a.input",
      "flow.yaml:4:66: steps.a.timeout",
      "flow.yaml:5:25: steps.b.retry",
      "flow.yaml:6:10: output[0]",
    ]);
  });

  it("is refused where it is nested too deeply", async () => {
    const [problem] = await problemsOf(() => parse(`steps: { a: { agent: x, input: { data: ${"[".repeat(20_000)}`));
    expect(problem).toMatch(/^flow\.yaml:1:\d+: is nested too deeply$/);
  });

  it("is bounded", async () => {
    const many = Array.from({ length: 1_001 }, (_, at) => `s${at}: { agent: x }`).join(", ");
    expect(await problemsOf(() => parse(`steps: { ${many} }`))).toEqual([
      "flow.yaml:1:8: steps: has more than 1000 steps",
    ]);
    const nest = (depth: number): string =>
      depth === 0 ? "{ agent: x }" : `{ workflow: { steps: { a: ${nest(depth - 1)} } } }`;
    expect(await problemsOf(() => parse(`steps: { a: ${nest(16)} }`))).toEqual([]);
    expect(await problemsOf(() => parse(`steps: { a: ${nest(17)} }`))).toEqual([
      expect.stringContaining("workflows are nested more than 16 deep"),
    ]);
  });
});

describe("an object inside another file", () => {
  it("is read like a file, with problems at their places there", async () => {
    const options = {
      source: "dragoman.yaml",
      path: ["agents", "article", "workflow"],
      position: (path: readonly PropertyKey[]) => ({ line: path.length, column: 1 }),
    };
    const read = (content: object) => () => parseWorkflow(content, options);
    expect(await problemsOf(read({ steps: { a: { agent: "x", needs: ["b"] } } }))).toEqual([
      'dragoman.yaml:4:1: agents.article.workflow.steps.a.needs[0]: there is no step "b"; use one of a',
    ]);
    expect(read({ steps: { a: { agent: "x" } } })().steps.get("a")?.position).toEqual({
      file: "dragoman.yaml",
      line: 2,
      column: 1,
    });
  });
});

describe("sub-workflows in files", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "dragoman-workflows-"));
    await writeFile(join(folder, "main.yaml"), "steps: { a: { workflow: sub.yaml }, b: { workflow: sub.yaml } }");
    await writeFile(join(folder, "sub.yaml"), "name: sub\nsteps: { c: { agent: x } }");
    await writeFile(join(folder, "loop.yaml"), "steps: { a: { workflow: back.yaml } }");
    await writeFile(join(folder, "back.yaml"), "steps: { b: { workflow: ./loop.yaml } }");
    await writeFile(join(folder, "broken.yaml"), "steps: { a: { workflow: gone.yaml }, b: { workflow: bad.yaml } }");
    await writeFile(join(folder, "bad.yaml"), "steps:\n  c: { agnet: x }");
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const inFolder = (file: string) => join(folder, file);

  it("are relative to the file", async () => {
    const { steps } = await loadWorkflow(inFolder("main.yaml"));
    expect(steps.get("a")?.target).toMatchObject({ workflow: { name: "sub" } });
  });

  it("may not call each other", async () => {
    expect(await problemsOf(() => loadWorkflow(inFolder("loop.yaml")))).toEqual([
      `${inFolder("back.yaml")}:1:25: steps.b.workflow: workflows call each other: loop.yaml → back.yaml → loop.yaml`,
    ]);
  });

  it("are reported in their own file", async () => {
    expect(await problemsOf(() => loadWorkflow(inFolder("broken.yaml")))).toEqual([
      `${inFolder("broken.yaml")}:1:25: steps.a.workflow: cannot read ${inFolder("gone.yaml")}: file not found`,
      `${inFolder("bad.yaml")}:2:8: steps.c.agnet: unknown key; did you mean "agent"?`,
    ]);
    expect(await problemsOf(() => loadWorkflow(inFolder("gone.yaml")))).toEqual([
      `${inFolder("gone.yaml")}: file not found`,
    ]);
    expect(await problemsOf(() => loadWorkflow(folder))).toEqual([`${folder}: is not a file`]);
  });
});
