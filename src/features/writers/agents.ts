/** The agents that outline, write and summarise. Without a language model they extract what is in a text. */

import { type AgentDefinition, defineAgent, type SkillDefinition } from "../../core/agents/define.ts";
import type { AgentTurn } from "../../core/agents/turn.ts";
import { data, text } from "../../core/client/parts.ts";
import type { Agent, AgentEvent } from "../../core/engine/agent.ts";
import type { JsonValue } from "../../core/model/json.ts";
import { isDataPart, isRawPart, isTextPart, type Part, textOf } from "../../core/model/message.ts";
import { LABELS, type Outline, readOutline, splitDocument, summarize, writeDocument, writeOutline } from "./index.ts";
import type { WriterName } from "./names.ts";

export interface Writer extends Pick<AgentDefinition, "name" | "description" | "outputModes"> {
  readonly skill: SkillDefinition;
  /** What it does without a language model. */
  readonly extracts: string;
  /** Asked if there is nothing to write about. */
  readonly question: string;
  /** What is written without a language model; undefined if there is nothing to write about. */
  write(turn: AgentTurn, input: TextInput): Iterable<AgentEvent> | AsyncIterable<AgentEvent> | undefined;
}

export const WRITER_INPUT_MODES = ["text/plain", "text/markdown", "application/json"];

export function createWriterAgent(use: WriterName): Agent {
  const { extracts, question, skill, write, ...definition } = WRITERS[use];
  return defineAgent({
    ...definition,
    description: `${definition.description} Extractive: works without a language model, in English and Chinese. ${extracts}`,
    skills: [
      { ...skill, description: `${skill.description} Extractive.`, tags: [...(skill.tags ?? []), "extractive"] },
    ],
    inputModes: WRITER_INPUT_MODES,
    onCrash: "resume",
    async *run(turn) {
      yield turn.working();
      const events = write(turn, readTextInput(turn.parts));
      if (events === undefined) yield turn.inputRequired(question);
      else yield* events;
    },
  });
}

/** Text or a topic in, its outline out. */
const outline: Writer = {
  name: "Outline writer",
  description: "Outlines a text, or drafts the skeleton of an article for a topic.",
  skill: {
    id: "generate_outline",
    name: "Outline",
    description: "Topic or text in; title, sections and points out, as data and as Markdown.",
    tags: ["writing", "outline"],
    examples: ["Write an outline about renewable energy", "写一份关于人工智能的大纲"],
  },
  outputModes: ["application/json", "text/markdown", "text/plain"],
  extracts:
    "Headings and points are phrases of the text; the data carries the text along. A topic gives a skeleton without facts.",
  question: "What should the outline be about? 请告诉我大纲的主题。",
  write(turn, input) {
    const written = writeOutline(input.text);
    return written.sections.length === 0 ? undefined : [outlineArtifact(turn, written)];
  },
};

/** As data and as Markdown. */
export function outlineArtifact(turn: AgentTurn, outline: Outline): AgentEvent {
  const markdown = text(outlineMarkdown(outline), { mediaType: "text/markdown" });
  return turn.artifact({ name: "outline", parts: [data(outline), markdown] });
}

/** A skeleton is marked as one, in the text and in the data. */
function outlineMarkdown(outline: Outline): string {
  const sections = outline.sections.map(({ title, points }) =>
    [
      ...(title === "" ? [] : [`## ${title}\n`]),
      ...(points.length === 0 ? [] : [points.map((point) => `- ${point}\n`).join("")]),
    ].join("\n"),
  );
  const title = outline.topic === "" ? [] : [`# ${outline.topic}\n`];
  const remark =
    outline.basis === "topic" ? [`> ${LABELS[outline.language].skeletonNote(outline.topic, outline.brief)}\n`] : [];
  return [...title, ...remark, ...sections].join("\n");
}

/** An outline or text in, an article out, streamed as it is written. */
const document: Writer = {
  name: "Document writer",
  description: "Writes an article from an outline, a text or a topic.",
  skill: {
    id: "write_document",
    name: "Document",
    description: "Outline (data), text or topic in; an article in Markdown out, streamed.",
    tags: ["writing", "document"],
    examples: ["Write an article about renewable energy", "写一篇关于人工智能的文章"],
  },
  outputModes: ["text/markdown", "text/plain"],
  extracts:
    "Keeps the sentences of a text as they are and in order, below headings. A topic gives a plan without facts.",
  question: "What should the document be about? 请告诉我文章的主题。",
  write(turn, input) {
    const article = writeDocument({ text: input.text, outline: input.data });
    if (article.markdown === "") return undefined;
    return turn.stream("document", splitDocument(article), { description: article.title });
  },
};

/** Text in, its most important sentences out. */
const summary: Writer = {
  name: "Summary writer",
  description: "Summarises a text by its most important sentences.",
  skill: {
    id: "summarize",
    name: "Summary",
    description: "Text in; its most important sentences and keywords out, as text and as data.",
    tags: ["writing", "summary"],
    examples: ["Summarize: …", "总结：……"],
  },
  extracts: "Its sentences are those of the text, about a quarter of it.",
  question: "Which text should I summarise? 请把要总结的文字发给我。",
  write(turn, input) {
    const extracted = summarize(textToSummarize(input, turn.parts));
    if (extracted.text === "") return undefined;
    return [turn.artifact({ name: "summary", parts: [text(extracted.text), data(extracted)] })];
  },
};

/** An outline is converted to an article first, for callers that pass on its data. */
export function textToSummarize({ text: given, data: value }: TextInput, parts: readonly Part[]): string {
  const isOutline = !parts.some(isTextPart) && (readOutline(value)?.sections.length ?? 0) > 0;
  return isOutline ? writeDocument({ outline: value }).markdown : given;
}

export interface TextInput {
  /** The text of the text parts, else of text files, else of data. */
  readonly text: string;
  /** The first data part that is not null. */
  readonly data: JsonValue | undefined;
}

/** Fields in which other agents put text. */
const TEXT_FIELDS = ["text", "markdown", "content", "document", "article", "topic", "内容", "主题"];

export function readTextInput(parts: readonly Part[]): TextInput {
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

export const WRITERS: Readonly<Record<WriterName, Writer>> = { outline, document, summary };
