import type { Agent } from "../engine/agent.ts";
import { defineAgent } from "./define.ts";
import { data, text } from "./parts.ts";
import { documentOf, outlineOf, summaryOf } from "./writers/index.ts";
import { readWrittenInput } from "./written-input.ts";

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
      const given = readWrittenInput(turn.parts).text;
      const summary = summaryOf(isBareTopic(given) ? documentOf({ text: given }).markdown : given);
      if (summary.text === "") {
        yield turn.inputRequired("Which text should I summarise? 请把要总结的文字发给我。");
        return;
      }
      yield turn.artifact({ name: "summary", parts: [text(summary.text), data(summary)] });
    },
  });
}

const SENTENCE_END = /[.!?。！？…]["'”’）)]*\s*$/;

/** There is nothing to leave out of a mere topic: what can be said of it is the plan of an article, marked as such. */
function isBareTopic(given: string): boolean {
  return given.trim() !== "" && !SENTENCE_END.test(given) && outlineOf(given).basis === "topic";
}
