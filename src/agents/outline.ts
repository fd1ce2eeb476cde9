import { data, text } from "../client/parts.ts";
import type { Agent } from "../engine/agent.ts";
import { defineAgent } from "./define.ts";
import { LABELS, type Outline, outlineOf } from "./writers/index.ts";
import { readWrittenInput } from "./written-input.ts";

/** A text or a topic in, its outline out. */
export function createOutlineAgent(): Agent {
  return defineAgent({
    name: "Outline writer",
    description:
      "Outlines a text, or drafts the skeleton of an article for a topic. Extractive: works without a language model, in English and Chinese.",
    skills: [
      {
        id: "generate_outline",
        name: "Outline",
        description: "Topic or text in; title, sections and points out, as data and as Markdown. Extractive.",
        tags: ["writing", "outline", "extractive"],
        examples: ["Write an outline about renewable energy", "写一份关于人工智能的大纲"],
      },
    ],
    outputModes: ["application/json", "text/markdown", "text/plain"],
    inputModes: ["text/plain", "text/markdown", "application/json"],
    onCrash: "resume",
    async *run(turn) {
      yield turn.working();
      const outline = outlineOf(readWrittenInput(turn.parts).text);
      if (outline.sections.length === 0) {
        yield turn.inputRequired("What should the outline be about? 请告诉我大纲的主题。");
        return;
      }
      yield turn.artifact({
        name: "outline",
        parts: [data(outline), text(outlineMarkdown(outline), { mediaType: "text/markdown" })],
      });
    },
  });
}

/** A skeleton says that it is one, in the text as in the data. */
function outlineMarkdown(outline: Outline): string {
  const sections = outline.sections.map(
    ({ title, points }) => `${title === "" ? "" : `## ${title}\n\n`}${points.map((point) => `- ${point}\n`).join("")}`,
  );
  const title = outline.topic === "" ? [] : [`# ${outline.topic}\n`];
  const remark = outline.basis === "topic" ? [`> ${LABELS[outline.language].skeletonNote(outline.topic)}\n`] : [];
  return [...title, ...remark, ...sections].join("\n");
}
