import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { stringify } from "yaml";
import type { z } from "zod";
import type { JsonObject } from "../../../core/model/json.ts";
import { ConfigError } from "../../../core/yaml/problems.ts";
import { type StepDefinition, type WorkflowBuilder, workflow } from "./builder.ts";
import { parseWorkflow } from "./load.ts";
import type { Workflow } from "./plan.ts";
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

  it.each([true, false])(
    "makes the same plan as the file of the same content, or complains alike (valid: %s)",
    (valid) => {
      const names = ["a", "b", "c", "提纲"];
      const pick = <T>(right: readonly T[], wrong: readonly T[]) => fc.constantFrom(...right, ...(valid ? [] : wrong));
      /** Of the step at a place: a valid one refers to earlier steps only. */
      const stepAt = (place: number) => {
        const earlier = names.slice(0, place);
        const reference = pick(
          ["${input.text}", "$${HOME}", " - 'x': #", ...earlier.map((name) => `Hi \${steps.${name}.data.0.x}!`)],
          ["${steps.b.text}", "${item}", "${HOME}", "${steps.gone.text}", "${input.txt}", "${"],
        );
        const data = fc.oneof(reference, fc.integer(), fc.boolean(), fc.constant(null), fc.array(reference));
        return fc.record(
          {
            target: pick<object>(
              [{ agent: "x" }, { url: "https://example.com/a" }, { skill: "sing" }],
              [{}, { agent: "x", skill: "sing" }, { url: "ftp://example.com" }],
            ),
            needs: fc.subarray(valid ? earlier : [...names, "gone"]),
            input: fc.oneof(
              reference,
              fc.record({ text: reference, data: fc.dictionary(fc.constantFrom("p", "q"), data) }),
            ),
            when: pick(["${input.text}", "${input.data.n} > 3 && !(${input.text} == no)"], ["no", "${input.text} ="]),
            list: fc.record({
              foreach: fc.oneof(pick(["${input.data}"], ["x"]), fc.array(data, { maxLength: 3 })),
              concurrency: pick([1, 7], [0]),
            }),
            retry: fc.record({ attempts: pick([1, 3], [0]), delay: pick(["2s"], ["5"]) }, { requiredKeys: [] }),
            timeout: pick(["60s", "500ms"], ["soon"]),
            onFailure: fc.constantFrom("stop" as const, "continue" as const),
            outputSchema: pick<JsonObject>([{ type: "object" }], [{ typ: "object" }]),
          },
          { requiredKeys: ["target"] },
        );
      };
      const content = fc.tuple(...names.map((_, place) => stepAt(place)));
      const outputs = fc.option(fc.subarray(names, { minLength: 1 }), { nil: undefined });
      const attempt = (make: () => Workflow): unknown => {
        try {
          const plan = make();
          return { ...plan, steps: [...plan.steps].map(([name, { position: _, ...own }]) => [name, own]) };
        } catch (error) {
          if (!(error instanceof ConfigError)) throw error;
          return error.problems.map(({ message, path }) => `${path}: ${message}`).sort();
        }
      };
      fc.assert(
        fc.property(content, outputs, (drafts, output) => {
          const steps = drafts.map(({ list, target, ...keys }, at): [string, StepDefinition<string>] => [
            names[at] ?? "",
            { ...target, ...list, ...keys },
          ]);
          const built = attempt(() => {
            let builder: WorkflowBuilder<string> = workflow("w");
            for (const [name, definition] of steps) builder = builder.step(name, definition);
            return (output === undefined ? builder : builder.output(...output)).build();
          });
          const text = stringify({ name: "w", steps: Object.fromEntries(steps), ...(output && { output }) });
          expect(attempt(() => parseWorkflow(text, { source: "w.yaml" }))).toEqual(built);
          if (valid) expect(built).not.toBeInstanceOf(Array);
        }),
      );
    },
  );

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
