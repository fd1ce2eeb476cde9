/** Notifications: how a user who does not look any more is told of an answer, and what follows when it is tapped. */

import type { JsonObject } from "../../../model/json.ts";
import { isInterrupted, type Task } from "../../../model/task.ts";
import { deriveId } from "../../shared/responses.ts";
import {
  artifactFrame,
  countCodePoints,
  type DataWire,
  type FrameScope,
  type RenderedFrame,
  splitText,
  type TextWire,
} from "../frames.ts";
import { type Language, phoneText, translateStatus } from "../phone-texts.ts";
import { visibleTextOf } from "./phone-renderer.ts";

/** Where one of the user's devices can be told things. */
export interface PhoneAddress {
  readonly pushId: string;
  readonly loginSessionId?: string;
}

/** What is told. */
export interface PhoneNotification {
  readonly taskId: string;
  /** The platform knows no notification of a task that waits: a question is complete in itself. */
  readonly state: "completed" | "failed";
  readonly text: string;
  /** Which of the task's questions it is, if it is one. */
  readonly question?: string;
}

interface NotificationTarget {
  /** Of the trigger that the owner of the agent set up in the platform's console. */
  readonly apiId: string;
  readonly address: PhoneAddress;
  /** Made once, also where the request is repeated. */
  readonly requestId: string;
  readonly resultId: string;
}

/** Characters that travel with a notification; the platform asks for what is longer when it is tapped. */
const MAX_INLINE_TEXT = 1_000;

/** What there is to tell of a task; undefined while it works, and where the user knows: it was canceled. */
export function toPhoneNotification(task: Task, language: Language): PhoneNotification | undefined {
  const { message, state, timestamp } = task.status;
  if (state === "TASK_STATE_COMPLETED")
    return { taskId: task.id, state: "completed", text: answerTextOf(task, language) };
  if (isInterrupted(state)) {
    const asked = message === undefined ? "" : visibleTextOf(message.parts);
    const question = message?.messageId ?? timestamp ?? "";
    return { taskId: task.id, state: "completed", text: asked === "" ? answerTextOf(task, language) : asked, question };
  }
  if (state !== "TASK_STATE_FAILED" && state !== "TASK_STATE_REJECTED") return undefined;
  return { taskId: task.id, state: "failed", text: answerTextOf(task, language) };
}

/** All that a task gave, as text: what cannot be told in a notification is told by its name, its link or its words. */
export function answerTextOf({ artifacts = [], status }: Task, language: Language): string {
  const { message, state } = status;
  const parts = message?.parts ?? [];
  const last = state === "TASK_STATE_FAILED" ? translateStatus(parts, language) : parts;
  const sections = [...artifacts.map((artifact) => artifact.parts), last].map(visibleTextOf);
  return sections.filter((text) => text !== "").join("\n\n");
}

/** The body of the request. Where a part is text, the platform disregards all others; it takes no files. */
export function encodeNotification(
  { question, state, taskId, text }: PhoneNotification,
  route: NotificationTarget,
  language: Language,
): string {
  const { address, apiId, requestId, resultId } = route;
  const isQuestion = question !== undefined;
  const content = text === "" ? phoneText(language, isQuestion ? "question" : state) : text;
  const artifactId = isQuestion ? deriveId("question", [taskId, question]) : deriveId("answer", taskId);
  return JSON.stringify({
    jsonrpc: "2.0",
    id: requestId,
    result: {
      id: resultId,
      apiId,
      pushId: address.pushId,
      agentLoginSessionId: address.loginSessionId,
      pushText: truncateNotificationText(content),
      kind: "task",
      // The platform shows no artifact twice, so that a repeated request does no harm.
      artifacts: [{ artifactId, parts: [contentOf(content, taskId)] }],
      status: { state },
    },
  });
}

function contentOf(text: string, taskId: string): TextWire | DataWire {
  if (countCodePoints(text) <= MAX_INLINE_TEXT) return { kind: "text", text };
  const data: JsonObject = { pushDataId: taskId };
  return { kind: "data", data };
}

/** What a tapped notification stood for, if it is still there: the one answer whose last artifact is also its end. */
export function toTapAnswerFrames(scope: FrameScope, text: string | undefined, language: Language): RenderedFrame[] {
  const shown = text ?? phoneText(language, "gone");
  const pieces = shown === "" ? [phoneText(language, "completed")] : splitText(shown);
  return pieces.map((piece, index) => {
    const { error, result } = artifactFrame(scope, [{ kind: "text", text: piece }], { append: index > 0 });
    return { error, result: { ...result, final: index === pieces.length - 1 } };
  });
}

export type PushResult =
  | { readonly kind: "sent" }
  /** Trying again may help. */
  | { readonly kind: "busy"; readonly why: string }
  | { readonly kind: "refused"; readonly why: string };

const FLOW_CONTROL = "99911113";
const TOO_MANY = 429;

/** What the platform made of a notification. Some of its answers are empty. */
export function decodePushResponse(status: number, body: string): PushResult {
  if (status >= 500 || status === TOO_MANY) return { kind: "busy", why: `status ${status}` };
  if (status < 200 || status >= 300) return { kind: "refused", why: `status ${status}` };
  const code = codeIn(body);
  if (code === undefined || code === "0") return { kind: "sent" };
  return { kind: code === FLOW_CONTROL ? "busy" : "refused", why: `code ${code}` };
}

const CODE = /^-?\w{1,16}$/;

function codeIn(body: string): string | undefined {
  try {
    const answer = JSON.parse(body) as { result?: { code?: unknown } | null; error?: { code?: unknown } | null } | null;
    const code = String(answer?.result?.code ?? answer?.error?.code ?? "0");
    return CODE.test(code) ? code : "unreadable";
  } catch {
    // No JSON: the status says all there is to know.
    return undefined;
  }
}

/** The words of a notification: the bar shows three lines, which hold 84 Latin or 57 Chinese characters. */

const LATIN_ROOM = 84;
const WIDE_ROOM = 57;
/** A whole bar, in units that both kinds of characters take a whole number of. */
const ROOM = LATIN_ROOM * WIDE_ROOM;

/** Whatever is not surely narrow is taken for wide: a bar with room left is better than a word that is cut. */
const NARROW = /^[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{Nd}\p{M}\x20-\x7e\u00a0-\u00ff]$/u;
const SPACES = /[\p{White_Space}\p{Cc}]+/gu;
const ELLIPSIS = "…";

/** As much of a text as the bar shows, on one line, with dots where there was more. */
export function truncateNotificationText(text: string): string {
  const line = text.replaceAll(SPACES, " ").trim();
  let room = ROOM;
  // Where the text ends if dots must follow.
  let end = 0;
  for (const { index, segment } of graphemeSegmenter().segment(line)) {
    room -= widthOf(segment);
    if (room < 0) return line.slice(0, end).trimEnd() + ELLIPSIS;
    if (room >= widthOf(ELLIPSIS)) end = index + segment.length;
  }
  return line;
}

let segmenter: Intl.Segmenter | undefined;

/** Made for the first notification: it loads tables, and most servers send none. */
function graphemeSegmenter(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter;
}

function widthOf(segment: string): number {
  let width = 0;
  for (const character of segment) width += NARROW.test(character) ? WIDE_ROOM : LATIN_ROOM;
  return width;
}
