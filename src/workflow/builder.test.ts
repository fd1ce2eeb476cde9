import { describe, expect, expectTypeOf, it } from "vitest";
import type { z } from "zod";
import { type StepDefinition, workflow } from "./builder.ts";
import { parseWorkflow } from "./load.ts";
import type { stepSchema } from "./schema.ts";

const article = workflow("article", { description: "Topic in; outline, article and summary out." })
  .step("outline", { agent: "outline" })
  .step("document", {
    agent: "document",
    needs: ["outline"],
    input: { text: "Write it out.", data: "${steps.outline.data}" },
  })
  .step("summary", {
    agent: "summary",
    input: { text: "${steps.document.text}" },
    retry: { attempts: 3 },
    timeout: "60s",
  })
  .output("outline", "document", "summary");

describe("the builder", () => {
  it("takes the keys of a step in a file", () => {
    expectTypeOf<keyof StepDefinition<string>>().toEqualTypeOf<keyof z.input<typeof stepSchema>>();
  });

  it("builds what the file says", () => {
    const text = `
name: article
description: Topic in; outline, article and summary out.
steps:
  outline: { agent: outline }
  document: { agent: document, needs: [outline], input: { text: "Write it out.", data: "\${steps.outline.data}" } }
  summary: { agent: summary, input: { text: "\${steps.document.text}" }, retry: { attempts: 3 }, timeout: 60s }
output: [outline, document, summary]
`;
    const read = parseWorkflow(text, { source: "article.yaml" });
    const steps = [...read.steps].map(([name, { position, ...step }]) => [name, step] as const);
    expect(article.build()).toEqual({ ...read, steps: new Map(steps) });
  });

  it("takes workflows as steps", () => {
    const both = workflow("both").step("one", { workflow: article.build() }).step("two", { workflow: article.build() });
    expect(both.build().steps.get("two")?.target).toEqual({ workflow: article.build() });
    expect(both.build().output).toEqual(["one", "two"]);
  });

  it("leaves builders as they are", () => {
    const base = workflow("base").step("a", { agent: "x" });
    base.step("b", { agent: "x" });
    expect(base.build().order).toEqual(["a"]);
  });

  it("reports problems without places", () => {
    const wrong = workflow("wrong").step("a", { agent: "x", input: "${steps.b.text}", timeout: "soon" });
    expect(() => wrong.build()).toThrow(
      'workflow "wrong": steps.a.timeout: must be a duration such as 500ms, 60s, 5m, 1h or 7d\n' +
        'workflow "wrong": steps.a.input: ${steps.b.text}: there is no step "b"; use one of a',
    );
    expect(() => workflow("w").step("a", { agent: "x" }).step("a", { agent: "y" })).toThrow('already has a step "a"');
  });

  it("knows at compile time which steps there are", () => {
    // @ts-expect-error: there is no such step before it
    const wrong = workflow("w").step("a", { agent: "x", needs: ["b"] });
    expect(() => wrong.build()).toThrow('there is no step "b"');
  });
});
