import { type Analysis, analyse, bestSentences, type SourceSection, sentenceText } from "./analysis.ts";
import { detectLanguage, type Language, skeletonBody } from "./language.ts";
import { capitalised, cleanInline, LONGEST_TITLE, shortened } from "./plain-text.ts";
import { planOf } from "./sections.ts";
import { skeletonOf } from "./skeletons.ts";
import { readRequest } from "./topic.ts";

/** "text": drawn from a text; "topic": a skeleton made from a bare topic, without facts. */
export type Basis = "text" | "topic";

export interface OutlineSection {
  title: string;
  points: string[];
}

export interface Outline {
  topic: string;
  language: Language;
  basis: Basis;
  sections: OutlineSection[];
}

const MOST_POINTS = 4;
const MOST_SUBTITLES = 12;
const OPENING_BONUS = 1.2;

/** An outline of the text given, or a skeleton for the topic given; no sections when there is neither. */
export function outlineOf(text: string): Outline {
  const { content, isTopic } = readRequest(text);
  const body = skeletonBody(content);
  // Nothing but the remark that something is a skeleton: there is neither a topic in it nor a text.
  if (body?.trim() === "") return topicOutline("", text);
  if (!isTopic) {
    const analysis = analyse(body ?? content);
    const plan = planOf(analysis);
    const sections = plan.sections.map((section) => ({ title: section.title, points: pointsOf(analysis, section) }));
    if (sections.length > 0)
      return { topic: plan.title, language: analysis.language, basis: body === undefined ? "text" : "topic", sections };
  }
  return topicOutline(content, text);
}

function topicOutline(content: string, request: string): Outline {
  const topic = shortened(cleanInline(content.slice(0, 2 * LONGEST_TITLE)), LONGEST_TITLE);
  // The words around the topic say in which language the answer is wanted: "写一份关于 Kubernetes 的大纲".
  const language = detectLanguage(request);
  if (!/[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(topic))
    return { topic: "", language, basis: "topic", sections: [] };
  const skeleton = skeletonOf(topic, language);
  return {
    topic: capitalised(skeleton.topic),
    language,
    basis: "topic",
    sections: skeleton.sections.map(({ title, points }) => ({
      title: capitalised(title),
      points: points.map(capitalised),
    })),
  };
}

function pointsOf(analysis: Analysis, section: SourceSection): string[] {
  const subtitles = section.subtitles.filter((subtitle) => subtitle !== "").slice(0, MOST_SUBTITLES);
  if (subtitles.length >= 2) return subtitles;
  const body = section.sentences.filter((index) => index !== section.titleSentence);
  const count = Math.min(MOST_POINTS, Math.max(2, Math.ceil(body.length / 2)));
  const points = bestSentences(analysis, body, count, OPENING_BONUS)
    .map((index) => sentenceText(analysis, index))
    .filter((point) => point !== "");
  return points.length > 0 ? points : subtitles;
}
