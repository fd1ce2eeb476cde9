import type { Agent } from "../engine/agent.ts";
import { defineAgent } from "./define.ts";
import { documentChunks, documentOf } from "./writers/index.ts";
import { readWrittenInput } from "./written-input.ts";

/** An outline or a text in, an article out, streamed as it is put together. */
export function createDocumentAgent(): Agent {
  return defineAgent({
    name: "Document writer",
    description:
      "Writes an article from an outline, a text or a topic. Extractive: works without a language model, in English and Chinese.",
    skills: [
      {
        id: "write_document",
        name: "Document",
        description: "Outline (data), text or topic in; an article in Markdown out, streamed. Extractive.",
        tags: ["writing", "document", "extractive"],
        examples: ["Write an article about renewable energy", "写一篇关于人工智能的文章"],
      },
    ],
    inputModes: ["text/plain", "text/markdown", "application/json"],
    outputModes: ["text/markdown", "text/plain"],
    onCrash: "resume",
    async *run(turn) {
      yield turn.working();
      const { text, data } = readWrittenInput(turn.parts);
      const article = documentOf({ text, ...(data === undefined ? undefined : { outline: data }) });
      if (article.markdown === "") {
        yield turn.inputRequired("What should the document be about? 请告诉我文章的主题。");
        return;
      }
      yield* turn.stream("document", documentChunks(article), { description: article.title });
    },
  });
}
