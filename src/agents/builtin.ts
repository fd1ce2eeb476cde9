import { data, text } from "../client/parts.ts";
import type { Agent } from "../engine/agent.ts";
import type { JsonValue } from "../model/json.ts";
import { isDataPart, isRawPart, isTextPart, type Part, textOf } from "../model/message.ts";
import {
  LABELS,
  type Outline,
  readOutline,
  splitDocument,
  summarize,
  writeDocument,
  writeOutline,
} from "../writers/index.ts";
import type { BuiltinName } from "./builtin-names.ts";
import { defineAgent } from "./define.ts";
import { createTckAgent } from "./tck.ts";

export const BUILTIN_AGENTS = {
  echo: createEchoAgent,
  outline: createOutlineAgent,
  document: createDocumentAgent,
  summary: createSummaryAgent,
  tck: createTckAgent,
} as const satisfies Record<BuiltinName, () => Agent>;

/** Repeats its input: the shortest agent that uses every feature of a task. */
export function createEchoAgent(): Agent {
  return defineAgent({
    name: "Echo",
    description: "Sends back what it is sent, as an artifact.",
    skills: [
      {
        id: "echo",
        name: "Echo",
        description: "Returns the parts of the message unchanged.",
        tags: ["echo", "test"],
        examples: ["hello"],
      },
    ],
    inputModes: ["*/*"],
    outputModes: ["*/*"],
    onCrash: "resume",
    async *run(turn) {
      yield turn.working();
      yield turn.artifact({ name: "echo", parts: turn.parts });
    },
  });
}

/** Text or a topic in, its outline out. */
function createOutlineAgent(): Agent {
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
      const outline = writeOutline(readTextInput(turn.parts).text);
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

/** A skeleton is marked as one, in the text and in the data. */
function outlineMarkdown(outline: Outline): string {
  const sections = outline.sections.map(
    ({ title, points }) => `${title === "" ? "" : `## ${title}\n\n`}${points.map((point) => `- ${point}\n`).join("")}`,
  );
  const title = outline.topic === "" ? [] : [`# ${outline.topic}\n`];
  const remark = outline.basis === "topic" ? [`> ${LABELS[outline.language].skeletonNote(outline.topic)}\n`] : [];
  return [...title, ...remark, ...sections].join("\n");
}

/** An outline or text in, an article out, streamed as it is written. */
function createDocumentAgent(): Agent {
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
      const { text, data } = readTextInput(turn.parts);
      const article = writeDocument({ text, ...(data === undefined ? undefined : { outline: data }) });
      if (article.markdown === "") {
        yield turn.inputRequired("What should the document be about? 请告诉我文章的主题。");
        return;
      }
      yield* turn.stream("document", splitDocument(article), { description: article.title });
    },
  });
}

/** Text in, its most important sentences out. */
function createSummaryAgent(): Agent {
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
      const summary = summarize(textToSummarize(readTextInput(turn.parts), turn.parts));
      if (summary.text === "") {
        yield turn.inputRequired("Which text should I summarise? 请把要总结的文字发给我。");
        return;
      }
      yield turn.artifact({ name: "summary", parts: [text(summary.text), data(summary)] });
    },
  });
}

/** An outline is converted to an article first, for callers that pass on its data. */
function textToSummarize({ text: given, data: value }: TextInput, parts: readonly Part[]): string {
  const isOutline = !parts.some(isTextPart) && (readOutline(value)?.sections.length ?? 0) > 0;
  return isOutline ? writeDocument({ outline: value }).markdown : given;
}

interface TextInput {
  /** The text of the text parts, else of text files, else of data. */
  readonly text: string;
  /** The first data part that is not null. */
  readonly data: JsonValue | undefined;
}

/** Fields in which other agents put text. */
const TEXT_FIELDS = ["text", "markdown", "content", "document", "article", "topic", "内容", "主题"];

function readTextInput(parts: readonly Part[]): TextInput {
  const data = parts.filter(isDataPart).find((part) => part.data !== null)?.data;
  const text = textOf(parts).trim() || textOfFiles(parts) || textOfData(data);
  return { text: text.replace(/\r\n?/g, "\n"), data };
}

function textOfFiles(parts: readonly Part[]): string {
  return parts
    .filter(isRawPart)
    .filter((part) => part.mediaType?.startsWith("text/") === true)
    .map((part) => Buffer.from(part.raw, "base64").toString("utf8"))
    .join("\n\n")
    .trim();
}

function textOfData(data: JsonValue | undefined): string {
  if (typeof data === "string") return data.trim();
  if (typeof data !== "object" || data === null || Array.isArray(data)) return "";
  const members = new Map(Object.entries(data));
  for (const name of TEXT_FIELDS) {
    const value = members.get(name);
    if (typeof value === "string" && value.trim() !== "") return value.trim();
  }
  return "";
}
