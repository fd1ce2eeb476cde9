/** The agents that outline, write and summarise, with a language model. */

import { defineAgent } from "../../core/agents/define.ts";
import { createDirectoryAgent } from "../../core/agents/directory.ts";
import type { AgentTurn } from "../../core/agents/turn.ts";
import { data } from "../../core/client/parts.ts";
import type { Agent, AgentEvent } from "../../core/engine/agent.ts";
import { statusText } from "../../core/model/status-texts.ts";
import {
  outlineArtifact,
  readTextInput,
  type TextInput,
  textToSummarize,
  WRITER_INPUT_MODES,
  WRITERS,
} from "../writers/agents.ts";
import {
  detectLanguage,
  type Language,
  readOutline,
  splitSentences,
  summarize,
  writeOutline,
} from "../writers/index.ts";
import type { WriterName } from "../writers/names.ts";
import type { ChatMessage } from "./chat-codec.ts";
import { type ChatModel, createChatModel } from "./chat-model.ts";
import { LLM_TIMEOUT } from "./index.ts";
import { truncateToTokens } from "./message-content.ts";
import { ModelError } from "./model-error.ts";
import type { LlmHost, LlmOptions } from "./options.ts";
import type { ChatResult } from "./read-answer.ts";
import { createTokenCount, type TokenCount } from "./token-count.ts";

interface ModelWriterOptions extends LlmOptions {
  /** Name of the agent in the configuration. */
  readonly id: string;
  readonly use: WriterName;
  readonly host: LlmHost;
}

export function createModelWriter(options: ModelWriterOptions): Agent {
  const { host, id, use } = options;
  const { extracts: _, question, skill, write, ...definition } = WRITERS[use];
  const model = createChatModel(options, host);
  return createDirectoryAgent((_directory, services) =>
    defineAgent({
      ...definition,
      description: `${definition.description} Written by the language model ${options.model}, in English and Chinese.`,
      skills: [skill],
      inputModes: WRITER_INPUT_MODES,
      timeout: LLM_TIMEOUT,
      onCrash: "resume",
      async *run(turn) {
        yield turn.working();
        const input = readTextInput(turn.parts);
        if (write(turn, input) === undefined) {
          yield turn.inputRequired(question);
          return;
        }
        const tokens = createTokenCount(options.model, undefined, (kind, count) =>
          services()?.countTokens(id, kind, count),
        );
        try {
          const remark = yield* MODEL_WRITERS[use]({ turn, input, options, model, tokens });
          yield { ...turn.completed(remark), ...tokens.toMetadata() };
        } catch (error) {
          if (!(error instanceof ModelError)) throw error;
          yield { ...turn.failed(error.message), ...tokens.toMetadata() };
        }
      },
    }),
  );
}

interface Writing {
  readonly turn: AgentTurn;
  readonly input: TextInput;
  readonly options: LlmOptions;
  readonly model: ChatModel;
  readonly tokens: TokenCount;
}

/** Returns a remark about the result, if any. */
type ModelWriter = (writing: Writing) => AsyncGenerator<AgentEvent, string | undefined, undefined>;

const MODEL_WRITERS: Readonly<Record<WriterName, ModelWriter>> = {
  async *outline(writing) {
    const { input, turn } = writing;
    const offline = writeOutline(input.text);
    const { remark, text } = await ask(writing, PROMPTS[offline.language].outline, input.text);
    const outline = readOutline(text);
    if (outline === undefined || outline.sections.length === 0) {
      yield outlineArtifact(turn, offline);
      return REMARKS[offline.language];
    }
    const topic = outline.topic || offline.topic;
    // Whether it is made of a text or only of a topic does not depend on who wrote it: but no skeleton is left.
    yield outlineArtifact(turn, { ...outline, topic, language: offline.language, basis: "text" });
    return remark;
  },
  async *document(writing) {
    const { data: given, text } = writing.input;
    const outline = readOutline(given);
    const source = outline === undefined ? text : `${text}\n\n${JSON.stringify(outline)}`;
    const language = outline?.language ?? detectLanguage(text);
    return (yield* stream(writing, "document", PROMPTS[language].document, source)).remark;
  },
  async *summary(writing) {
    const { input, turn } = writing;
    const source = textToSummarize(input, turn.parts);
    const offline = summarize(source);
    const { remark, text } = yield* stream(writing, "summary", PROMPTS[offline.language].summary, source);
    const sentences = splitSentences(text).map(({ end, start }) => text.slice(start, end));
    const summary = { ...offline, text, sentences };
    yield turn.artifact({ name: "summary", parts: [data(summary)], append: true, lastChunk: true });
    return remark;
  },
};

interface Written {
  readonly text: string;
  readonly remark: string | undefined;
}

/** An answer that is read as a whole before anything is shown. */
async function ask(writing: Writing, prompt: string, source: string): Promise<Written> {
  const chunks = request(writing, prompt, source);
  for (;;) {
    const step = await chunks.next();
    if (step.done === true) return step.value;
  }
}

/** An answer whose text is shown as it comes. */
async function* stream(
  writing: Writing,
  name: string,
  prompt: string,
  source: string,
): AsyncGenerator<AgentEvent, Written, undefined> {
  const { turn } = writing;
  const chunks = request(writing, prompt, source);
  for (let append = false; ; ) {
    const step = await chunks.next();
    if (step.done !== true) {
      yield turn.artifact({ name, text: step.value, append });
      append = true;
      continue;
    }
    // The summary is followed by its data.
    if (name !== "summary") yield turn.artifact({ name, text: "", append: true, lastChunk: true });
    return step.value;
  }
}

async function* request(writing: Writing, prompt: string, source: string): AsyncGenerator<string, Written, undefined> {
  const { model, options, tokens, turn } = writing;
  const messages: readonly ChatMessage[] = [
    { role: "system", content: options.system === undefined ? prompt : `${prompt}\n\n${options.system}` },
    { role: "user", content: truncateToTokens(source, options.maxContextTokens) },
  ];
  const chunks = model.stream({ messages, maxTokens: options.maxTokens, signal: turn.signal });
  for (;;) {
    const step = await chunks.next();
    if (step.done === true) {
      tokens.add(step.value, messages);
      return toWritten(step.value, options);
    }
    if (step.value.text !== "") yield step.value.text;
  }
}

function toWritten({ finish, text }: ChatResult, { maxTokens }: LlmOptions): Written {
  if (finish === "content_filter") throw new ModelError(statusText("modelFiltered"));
  if (text === "") throw new ModelError(statusText("modelSaidNothing"));
  if (finish !== "length") return { text, remark: undefined };
  return {
    text,
    remark: maxTokens === undefined ? statusText("modelCutOff") : statusText("modelOutOfTokens", maxTokens),
  };
}

/** The language of the answer is that of the source, or of the request around a topic. */
const PROMPTS = {
  en: {
    outline:
      'You outline texts and plan articles. The user sends a text or a topic. Answer with nothing but a JSON object of this form: {"topic": "title of the whole", "sections": [{"title": "title of the section", "points": ["one complete sentence per point"]}]}. Three to seven sections, two to five points each, in the order of the text. For a text, use only what it says.',
    document:
      "You write articles in Markdown. The user sends an outline as JSON, a text or a topic. Write the whole article in English: one `#` title, a `##` heading for each section of the outline in its order, and paragraphs of prose. Where the user sends an outline or a text, use its facts and invent none. Answer with nothing but the article.",
    summary:
      "You summarise texts. Answer with nothing but a summary in English of two to five sentences, as running text without a heading. Say what a reader must know, with the names and figures that matter, and use only what the text says.",
  },
  zh: {
    outline:
      '你负责为文章列大纲。用户会发来一段文字或一个主题。只回答一个 JSON 对象，格式为：{"topic": "全文标题", "sections": [{"title": "章节标题", "points": ["每个要点一个完整的句子"]}]}。三到七节，每节二到五个要点，顺序与原文一致。如果给出的是文字，只使用其中的内容。用中文回答。',
    document:
      "你负责用 Markdown 写文章。用户会发来 JSON 格式的大纲、一段文字或一个主题。请用中文写出整篇文章：一个 `#` 标题，按大纲顺序每节一个 `##` 小标题，正文用段落。如果给出的是大纲或文字，使用其中的事实，不要编造。只回答文章本身。",
    summary:
      "你负责总结文章。只用中文回答一段二到五句话的摘要，不加标题。写出读者必须知道的内容，包括重要的名称和数字，只使用原文的内容。",
  },
} as const satisfies Record<Language, Record<WriterName, string>>;

/** Beside an outline that the model was to write. */
const REMARKS = {
  en: "The language model's outline could not be read; this one was made without it.",
  zh: "语言模型给出的大纲无法读取，这份大纲未使用语言模型。",
} as const satisfies Record<Language, string>;
