/** Notifications: how a user who does not look any more is told of an answer, and what follows when it is tapped. */

import type { JsonObject } from "../../model/json.ts";
import { isInterrupted, type Task } from "../../model/task.ts";
import { deriveId } from "../shared/responses.ts";
import { fitNotificationText } from "./notification-text.ts";
import { type Language, phoneText, translateStatus } from "./phone-texts.ts";
import { shownTextOf } from "./phone-voice.ts";
import { artifactFrame, type FrameScope, type Rendered } from "./rendered.ts";
import { countCodePoints, splitText } from "./text-pieces.ts";
import type { DataWire, TextWire } from "./wire.ts";

/** Where one of the user's devices can be told things. */
export interface PhoneAddress {
  readonly pushId: string;
  readonly loginSessionId?: string;
}

/** What is told. */
export interface Notice {
  readonly taskId: string;
  /** The platform knows no notification of a task that waits: a question is complete in itself. */
  readonly state: "completed" | "failed";
  readonly text: string;
  /** Which of the task's questions it is, if it is one. */
  readonly question?: string;
}

interface NoticeRoute {
  /** Of the trigger that the owner of the agent set up in the platform's console. */
  readonly apiId: string;
  readonly address: PhoneAddress;
  /** Made once, also where the request is repeated. */
  readonly requestId: string;
  readonly resultId: string;
}

/** Characters that travel with a notification; the platform asks for what is longer when it is tapped. */
const LONGEST_DIRECT_TEXT = 1_000;

/** What there is to tell of a task; undefined while it works, and where the user knows: it was canceled. */
export function noticeOf(task: Task, language: Language): Notice | undefined {
  const { message, state, timestamp } = task.status;
  if (state === "TASK_STATE_COMPLETED")
    return { taskId: task.id, state: "completed", text: answerTextOf(task, language) };
  if (isInterrupted(state)) {
    const asked = message === undefined ? "" : shownTextOf(message.parts);
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
  const sections = [...artifacts.map((artifact) => artifact.parts), last].map(shownTextOf);
  return sections.filter((text) => text !== "").join("\n\n");
}

/** The body of the request. Where a part is text, the platform disregards all others; it takes no files. */
export function toNotification(
  { question, state, taskId, text }: Notice,
  route: NoticeRoute,
  language: Language,
): string {
  const { address, apiId, requestId, resultId } = route;
  const isQuestion = question !== undefined;
  const words = text === "" ? phoneText(language, isQuestion ? "question" : state) : text;
  const artifactId = isQuestion ? deriveId("question", [taskId, question]) : deriveId("answer", taskId);
  return JSON.stringify({
    jsonrpc: "2.0",
    id: requestId,
    result: {
      id: resultId,
      apiId,
      pushId: address.pushId,
      agentLoginSessionId: address.loginSessionId,
      pushText: fitNotificationText(words),
      kind: "task",
      // The platform shows no artifact twice, so that a repeated request does no harm.
      artifacts: [{ artifactId, parts: [contentOf(words, taskId)] }],
      status: { state },
    },
  });
}

function contentOf(text: string, taskId: string): TextWire | DataWire {
  if (countCodePoints(text) <= LONGEST_DIRECT_TEXT) return { kind: "text", text };
  const data: JsonObject = { pushDataId: taskId };
  return { kind: "data", data };
}

/** What a tapped notification stood for, if it is still there: the one answer whose last artifact is also its end. */
export function tappedFrames(scope: FrameScope, text: string | undefined, language: Language): Rendered[] {
  const shown = text ?? phoneText(language, "gone");
  const pieces = shown === "" ? [phoneText(language, "completed")] : splitText(shown);
  return pieces.map((piece, index) => {
    const { error, result } = artifactFrame(scope, [{ kind: "text", text: piece }], { append: index > 0 });
    return { error, result: { ...result, final: index === pieces.length - 1 } };
  });
}

export type PushVerdict =
  | { readonly kind: "told" }
  /** Trying again may help. */
  | { readonly kind: "busy"; readonly why: string }
  | { readonly kind: "refused"; readonly why: string };

const FLOW_CONTROL = "99911113";
const TOO_MANY = 429;

/** What the platform made of a notification. Some of its answers are empty. */
export function readPushAnswer(status: number, body: string): PushVerdict {
  if (status >= 500 || status === TOO_MANY) return { kind: "busy", why: `status ${status}` };
  if (status < 200 || status >= 300) return { kind: "refused", why: `status ${status}` };
  const code = codeIn(body);
  if (code === undefined || code === "0") return { kind: "told" };
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
