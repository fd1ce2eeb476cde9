import { data, text } from "../client/parts.ts";
import type { Agent } from "../engine/agent.ts";
import { isTextPart, type Part } from "../model/part.ts";
import { defineAgent } from "./define.ts";
import { documentOf, readOutline, summaryOf } from "./writers/index.ts";
import { readWrittenInput, type WrittenInput } from "./written-input.ts";

/** A text in, its most telling sentences out. */
export function createSummaryAgent(): Agent {
  return defineAgent({
    name: "Summary writer",
    description:
      "Summarises a text by its most telling sentences. Extractive: works without a language model, in English and Chinese.",
    skills: [
      {
        id: "summarize",
        name: "Summary",
        description: "Text in; its most telling sentences and keywords out, as text and as data. Extractive.",
        tags: ["writing", "summary", "extractive"],
        examples: ["Summarize: …", "总结：……"],
      },
    ],
    inputModes: ["text/plain", "text/markdown", "application/json"],
    onCrash: "resume",
    async *run(turn) {
      yield turn.working();
      const summary = summaryOf(textOf(readWrittenInput(turn.parts), turn.parts));
      if (summary.text === "") {
        yield turn.inputRequired("Which text should I summarise? 请把要总结的文字发给我。");
        return;
      }
      yield turn.artifact({ name: "summary", parts: [text(summary.text), data(summary)] });
    },
  });
}

/** What an outline would say as an article, for a caller that hands on the data of one. */
function textOf({ text: given, data: value }: WrittenInput, parts: readonly Part[]): string {
  const isOutline = !parts.some(isTextPart) && (readOutline(value)?.sections.length ?? 0) > 0;
  return isOutline ? documentOf({ outline: value }).markdown : given;
}
