import { describe, expect, it } from "vitest";
import { BUILTIN_AGENTS } from "../../../test/support/builtin-agents.ts";
import { runToEnd, statesOf, textOfArtifact } from "../../core/agents/testing/turns.ts";
import type { AgentEvent } from "../../core/engine/agent.ts";
import type { JsonValue } from "../../core/model/json.ts";

const article = `Solar power turns sunlight into electricity. Panels on roofs feed homes and the grid.
Prices of panels fell by nine tenths within ten years. Storage is now the harder question.

Wind power grows on land and at sea. Turbines at sea meet steadier wind. They cost more to build and to reach.`;
const artikel = "人工智能正在改变医疗行业。医生可以用它更快地阅读影像。患者的隐私需要得到保护。医院正在试用新的系统。";

const { outline, document, summary } = BUILTIN_AGENTS;
const dataOf = (events: readonly AgentEvent[]): unknown =>
  events
    .flatMap((event) => ("artifact" in event ? event.artifact.parts : []))
    .flatMap((part) => ("data" in part ? [part.data] : []))[0];

describe("built-in agents", () => {
  it.each(Object.keys(BUILTIN_AGENTS) as (keyof typeof BUILTIN_AGENTS)[])("%s has a card worth reading", (name) => {
    const { profile } = BUILTIN_AGENTS[name]();
    expect(profile.skills.length).toBeGreaterThan(0);
    expect(profile.description).not.toBe("");
  });

  it("label the writers as extractive, under their published skills", () => {
    for (const [agent, skill] of [
      [outline(), "generate_outline"],
      [document(), "write_document"],
      [summary(), "summarize"],
    ] as const) {
      expect(agent.profile.description).toMatch(/extractive/i);
      expect(agent.profile.skills.map(({ id }) => id)).toEqual([skill]);
    }
  });

  it.each([outline, document, summary])("ask when they are given nothing", async (create) => {
    const { events } = await runToEnd(create(), { text: "  " });
    expect(statesOf(events)).toEqual(["WORKING", "INPUT_REQUIRED"]);
  });
});

describe("outline", () => {
  it.each([article, artikel, "renewable energy", "人工智能"])("outlines %s", async (text) => {
    const { events } = await runToEnd(outline(), { text });
    expect(dataOf(events)).toMatchObject({
      sections: expect.arrayContaining([
        expect.objectContaining({ title: expect.any(String), points: expect.any(Array) }),
      ]),
    });
    expect(textOfArtifact(events, "outline")).toMatch(/^# \S/);
  });
});

describe("document", () => {
  it("writes out an outline that came as data, in streamed pieces", async () => {
    const made = await runToEnd(outline(), { text: article });
    const { events } = await runToEnd(document(), {
      parts: [{ text: "Write it out." }, { data: dataOf(made.events) as JsonValue }],
    });
    const markdown = textOfArtifact(events, "document");
    expect(markdown).toMatch(/^# \S/);
    expect(markdown).toContain("Wind power grows");
    const pieces = events.filter((event) => "artifact" in event);
    expect(pieces.length).toBeGreaterThan(3);
    expect(pieces.at(-1)?.lastChunk).toBe(true);
  });
});

describe("summary", () => {
  it.each([
    [article, "en"],
    [artikel, "zh"],
  ])("picks sentences of the text", async (text, language) => {
    const { events } = await runToEnd(summary(), { text });
    expect(dataOf(events)).toMatchObject({ language });
    const short = textOfArtifact(events, "summary");
    expect(short.length).toBeGreaterThan(0);
    expect(short.length).toBeLessThan(text.length);
  });

  it.each(["solar power", "太阳能"])("of a bare topic is the topic: %s", async (topic) => {
    const { events } = await runToEnd(summary(), { text: topic });
    expect(textOfArtifact(events, "summary")).toBe(topic);
  });

  it("of the data of a skeleton says that it is one", async () => {
    const { events } = await runToEnd(outline(), { text: "solar power" });
    const { events: summarised } = await runToEnd(summary(), { parts: [{ data: dataOf(events) as JsonValue }] });
    expect(textOfArtifact(summarised, "summary")).toMatch(/^This is a skeleton for “Solar power”/);
  });

  it("reads text files and text that came as data", async () => {
    const raw = Buffer.from(article).toString("base64");
    const file = await runToEnd(summary(), { parts: [{ raw, mediaType: "text/markdown" }] });
    const data = await runToEnd(summary(), { parts: [{ data: { markdown: article } }] });
    const text = await runToEnd(summary(), { text: article });
    expect(dataOf(file.events)).toEqual(dataOf(text.events));
    expect(dataOf(data.events)).toEqual(dataOf(text.events));
  });
});
