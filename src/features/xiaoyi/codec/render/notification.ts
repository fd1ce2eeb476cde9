/** Notifications: how a user who has left learns of an answer, and what is sent when the notification is tapped. */

import { deriveId } from "../../../../core/dialects/shared/responses.ts";
import { withAnswer } from "../../../../core/model/answer.ts";
import { isInterrupted, type Task } from "../../../../core/model/task.ts";
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

export interface PhoneAddress {
  readonly pushId: string;
  readonly loginSessionId?: string;
}

export interface PhoneNotification {
  readonly taskId: string;
  /** The platform has no notification for a task that waits for input: a question is sent as completed. */
  readonly state: "completed" | "failed";
  readonly text: string;
  /** Identifies the question, if the notification is one. */
  readonly question?: string;
}

interface NotificationTarget {
  /** The id of the trigger that the agent's owner configured in the platform's console. */
  readonly apiId: string;
  readonly address: PhoneAddress;
  /** The same when the request is retried. */
  readonly requestId: string;
  readonly resultId: string;
}

/** Maximum text in a notification, in characters; the platform requests longer text when the notification is tapped. */
const MAX_INLINE_TEXT = 1_000;

/** The notification for a task; undefined while the task is working, and if it was canceled, which the user knows. */
export function toPhoneNotification(given: Task, language: Language): PhoneNotification | undefined {
  const task = withAnswer(given);
  const { message, state, timestamp } = task.status;
  const { id: taskId } = task;
  const text = answerTextOf(task, language);
  if (state === "TASK_STATE_COMPLETED") return { taskId, state: "completed", text };
  if (state === "TASK_STATE_FAILED" || state === "TASK_STATE_REJECTED") return { taskId, state: "failed", text };
  if (!isInterrupted(state)) return undefined;
  const question = message?.messageId ?? timestamp ?? "";
  return {
    taskId,
    state: "completed",
    text: visibleTextOf(message === undefined ? [] : translateStatus(message, language)) || text,
    question,
  };
}

/** The whole answer of a task as text: other content is represented by its name, link or fallback text. */
export function answerTextOf(task: Task, language: Language): string {
  const { artifacts = [], status } = withAnswer(task);
  const last = status.message === undefined ? [] : translateStatus(status.message, language);
  const sections = [...artifacts.map((artifact) => artifact.parts), last].map(visibleTextOf);
  return sections.filter((text) => text !== "").join("\n\n");
}

/** The request body. If one part is text, the platform ignores all others; it does not accept files. */
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
      // The platform shows each artifact once, so repeating a request is safe.
      artifacts: [{ artifactId, parts: [contentOf(content, taskId)] }],
      status: { state },
    },
  });
}

function contentOf(text: string, taskId: string): TextWire | DataWire {
  if (countCodePoints(text) <= MAX_INLINE_TEXT) return { kind: "text", text };
  return { kind: "data", data: { pushDataId: taskId } };
}

/** The answer behind a tapped notification, if it still exists: the only answer whose last artifact is also its end. */
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
  /** Retryable. */
  | { readonly kind: "busy"; readonly why: string }
  | { readonly kind: "refused"; readonly why: string };

const FLOW_CONTROL = "99911113";
const TOO_MANY = 429;

/** Decodes the platform's response to a notification. Some responses are empty. */
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
    // Not JSON: the status is sufficient.
    return undefined;
  }
}

/** Notification text: the notification bar shows three lines, which hold 84 Latin or 57 Chinese characters. */
const LATIN_ROOM = 84;
const WIDE_ROOM = 57;
/** The width of the bar, in units of which both kinds of characters take a whole number. */
const ROOM = LATIN_ROOM * WIDE_ROOM;

/** Characters that may be wide count as wide: unused space is better than a word that is cut off. */
const NARROW = /^[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{Nd}\p{M}\x20-\x7e\u00a0-\u00ff]$/u;
const SPACES = /[\p{White_Space}\p{Cc}]+/gu;
const ELLIPSIS = "…";

/** Truncates a text to what the bar shows, on one line, with an ellipsis if it was longer. */
export function truncateNotificationText(text: string): string {
  const line = text.replaceAll(SPACES, " ").trim();
  let room = ROOM;
  // The end of the text if an ellipsis must follow.
  let end = 0;
  for (const { index, segment } of graphemeSegmenter().segment(line)) {
    room -= widthOf(segment);
    if (room < 0) return line.slice(0, end).trimEnd() + ELLIPSIS;
    if (room >= widthOf(ELLIPSIS)) end = index + segment.length;
  }
  return line;
}

let segmenter: Intl.Segmenter | undefined;

/** Created on first use: it loads tables, and most servers send no notifications. */
function graphemeSegmenter(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter;
}

function widthOf(segment: string): number {
  let width = 0;
  for (const character of segment) width += NARROW.test(character) ? WIDE_ROOM : LATIN_ROOM;
  return width;
}
