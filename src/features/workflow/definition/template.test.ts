import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../../core/model/json.ts";
import { ExpressionError, parseCondition } from "./expression.ts";
import type { InputTemplate, Scope, StepResult, StepState, Template } from "./plan.ts";
import {
  evaluate,
  MAX_ITEMS,
  parseTemplate,
  printTemplate,
  readItems,
  renderInput,
  TemplateError,
} from "./template.ts";
import { arbitraryReference } from "./testing/arbitraries.ts";

const artifact = { artifactId: "1", name: "outline", parts: [{ text: "one" }, { url: "https://files.example/a.png" }] };
const scope: Scope = {
  input: { text: "Bees", data: { depth: 2 }, parts: [{ text: "Bees" }, { raw: "aGk=", filename: "hi.txt" }] },
  steps: {
    outline: {
      text: "1. Hives",
      data: { title: "Bees", sections: [{ title: "Hives" }, { title: "Honey" }], "": 1 },
      artifacts: [artifact],
      state: "completed",
    },
    silent: { text: "", data: undefined, artifacts: [], state: "completed" },
    skipped: { text: "", data: undefined, artifacts: [], state: "skipped" },
  },
  item: { name: "honey" },
  index: 1,
};

const render = (text: string) => renderInput({ value: parseTemplate(text) }, scope);
const whole = (data: string): InputTemplate => ({ data: parseTemplate(data) });

describe("a template", () => {
  it.each<[string, unknown]>([
    ["plain", [{ text: "plain" }]],
    ["${input.text}", [{ text: "Bees" }]],
    ["About ${input.text}, ${steps.outline.data.sections.1.title}.", [{ text: "About Bees, Honey." }]],
    ["${steps.outline.data.sections.0}", [{ data: { title: "Hives" } }]],
    ["${steps.outline.data.sections.length}", [{ data: 2 }]],
    ["Outline: ${steps.outline.data.sections.0}", [{ text: 'Outline: {"title":"Hives"}' }]],
    ["${index}", [{ data: 1 }]],
    ["${index}: ${item.name}", [{ text: "1: honey" }]],
    ["${input.parts}", scope.input.parts],
    ["${steps.outline.artifacts}", artifact.parts],
    ["${steps.outline.artifacts.0.parts.1}", [artifact.parts[1]]],
    ["${steps.outline.state}", [{ text: "completed" }]],
    ["$${input.text} costs $5", [{ text: "${input.text} costs $5" }]],
    ["${ input.text }", [{ text: "Bees" }]],
    ["${steps.skipped.data}", [{ text: "" }]],
    ["(${steps.skipped.data.title})", [{ text: "()" }]],
    ["${steps.skipped.artifacts}", []],
    ["", [{ text: "" }]],
  ])("%s", (text, parts) => expect(render(text)).toEqual(parts));

  it("keeps data as data, and text as text", () => {
    expect(renderInput({ text: parseTemplate("${input.data}"), data: parseTemplate("${input.text}") }, scope)).toEqual([
      { text: '{"depth":2}' },
      { data: "Bees" },
    ]);
    expect(renderInput(whole("${steps.skipped.data}"), scope)).toEqual([{ data: null }]);
  });

  it("is rendered inside lists and maps", () => {
    const data: Template = {
      kind: "map",
      members: new Map<string, Template>([
        ["title", parseTemplate("${steps.outline.data.title}")],
        ["__proto__", { kind: "list", items: [parseTemplate("${index}"), { kind: "literal", value: null }] }],
      ]),
    };
    const [part] = renderInput({ data }, scope);
    expect(JSON.stringify(part)).toBe('{"data":{"title":"Bees","__proto__":[1,null]}}');
  });

  it("adds the parts that are passed on", () => {
    const parts = [
      { kind: "reference", path: ["input", "parts"] },
      { kind: "reference", path: ["steps", "outline", "artifacts"] },
    ] as const;
    expect(renderInput({ text: parseTemplate("See:"), parts }, scope)).toEqual([
      { text: "See:" },
      ...scope.input.parts,
      ...artifact.parts,
    ]);
  });

  it.each([
    ["${steps.outline.data.titel}", 'steps.outline.data has no titel; did you mean "title"?'],
    ["${steps.outline.data.sections.2.title}", "steps.outline.data.sections has no 2"],
    ["${steps.outline.data.title.length}", "steps.outline.data.title has no length"],
    ["${steps.outline.data.constructor}", "has no constructor"],
    ["${steps.outline.data.__proto__}", "has no __proto__"],
    ["${steps.silent.data}", "steps.silent has no data"],
    ["${steps.gone.data}", "steps has no gone"],
    ["${input.parts.0.text}", "is neither an artifact nor a part"],
  ])("cannot be rendered: %s", (text, message) => {
    expect(() => render(text)).toThrow(TemplateError);
    expect(() => render(text)).toThrow(message);
  });

  it.each(["${", "${input.text", "a ${} b", "${a b}"])("cannot be read: %s", (text) => {
    expect(() => parseTemplate(text)).toThrow(ExpressionError);
  });

  it("is read back as it was printed", () => {
    const piece = fc.oneof(fc.string(), fc.constantFrom("${", "$", "}", "$${"), arbitraryReference);
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const written = pieces.map((one) =>
          // A dollar sign before a reference would escape it.
          typeof one === "string" ? `${one.replaceAll("${", "$$${").replace(/\$+$/, "")} ` : printTemplate(one),
        );
        const template = parseTemplate(written.join(""));
        if (template.kind === "list" || template.kind === "map") throw new Error("not a text");
        expect(parseTemplate(printTemplate(template))).toEqual(template);
      }),
    );
  });

  it("is rendered or refused with a TemplateError, whatever the values are", () => {
    const value = fc.jsonValue().map((one) => one as JsonValue);
    const result: fc.Arbitrary<StepResult> = fc.record({
      text: fc.string(),
      data: fc.option(value, { nil: undefined }),
      artifacts: fc.array(fc.record({ artifactId: fc.string(), parts: fc.array(fc.record({ text: fc.string() })) })),
      state: fc.constantFrom<StepState>("completed", "failed", "skipped"),
    });
    const scopes: fc.Arbitrary<Scope> = fc.record(
      {
        input: fc.record({
          text: fc.string(),
          data: fc.option(value, { nil: undefined }),
          parts: fc.array(fc.record({ data: value })),
        }),
        steps: fc.dictionary(fc.constantFrom("a", "b", "0", "__proto__"), result),
        item: value,
        index: fc.nat(),
      },
      { requiredKeys: ["input", "steps"] },
    );
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), arbitraryReference)),
        arbitraryReference,
        scopes,
        (pieces, alone, any) => {
          for (const template of [{ kind: "text", pieces } as const, alone]) {
            for (const use of [
              () => renderInput({ value: template }, any),
              () => renderInput({ text: template, data: template, parts: [alone] }, any),
              () => readItems(template, any),
            ]) {
              try {
                use();
              } catch (error) {
                expect(error).toBeInstanceOf(TemplateError);
              }
            }
          }
          expect(typeof evaluate({ kind: "binary", operator: "<", left: alone, right: alone }, any)).toBe("boolean");
        },
      ),
    );
  });
});

describe("items", () => {
  it("are those of a list", () => {
    expect(readItems(parseTemplate("${steps.outline.data.sections}"), scope)).toHaveLength(2);
    expect(readItems({ kind: "list", items: [parseTemplate("${input.text}")] }, scope)).toEqual(["Bees"]);
    expect(readItems(parseTemplate("${steps.skipped.data.items}"), scope)).toEqual([]);
  });

  it("are refused if they are none or too many", () => {
    expect(() => readItems(parseTemplate("${steps.outline.data}"), scope)).toThrow("must be a list, not a map");
    const input = { ...scope.input, data: Array.from({ length: MAX_ITEMS + 1 }, () => 0) };
    expect(() => readItems(parseTemplate("${input.data}"), { ...scope, input })).toThrow("has 10001 items, more than");
  });
});

describe("conditions", () => {
  const values: Scope = {
    ...scope,
    input: {
      ...scope.input,
      text: " 12 ",
      data: { n: 3, yes: "true", no: false, list: [1, { a: 1 }], same: [1, { a: 1 }] },
    },
  };
  it.each([
    ["${steps.outline.state} == completed", true],
    ["${steps.skipped.state} == completed", false],
    ["${steps.skipped.state} == skipped || ${input.data.n} > 5", true],
    ["${input.data.n} >= 3 && ${input.data.n} <= 3", true],
    ["${input.text} == 12", true],
    ["${input.text} > 9", true],
    ['${input.text} > "9"', false],
    ["${input.data.yes} == true", true],
    ["!${input.data.no}", true],
    ["${input.data.gone} == null", true],
    ["${input.data.gone.below} < 3", false],
    ["${input.data.list} == ${input.data.same}", true],
    ["${input.data.list} != ${input.data}", true],
    ["${input.data.list.length} == 2", true],
    ["${input.data.toString}", false],
    ["${steps.silent.text}", false],
  ])("%s is %s", (text, expected) => expect(evaluate(parseCondition(text), values)).toBe(expected));
});
