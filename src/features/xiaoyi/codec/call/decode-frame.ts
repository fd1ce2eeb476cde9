/**
 * Decodes one frame of an agent's answer, for the side that acts as the platform. Agents differ widely, so decoding is
 * lenient.
 */

import { type Members, readResponse } from "../../../../core/dialects/shared/json-members.ts";
import { invalidResponse } from "../../../../core/dialects/shared/responses.ts";
import { EXTENSIONS } from "../../../../core/model/extensions.ts";
import { isObject } from "../../../../core/model/json.ts";
import type { Lossy } from "../../../../core/model/loss.ts";
import { isTextPart, type Part, type TextPart } from "../../../../core/model/message.ts";
import type { TaskState } from "../../../../core/model/task.ts";
import { decodeError, isSuccess, PLATFORM_CODES } from "../errors.ts";
import { LOSSES } from "../losses.ts";
import { reasoningOf, xiaoyiMetadata } from "../metadata.ts";
import { decodePart, hasKnownContent } from "../parts.ts";

interface FrameBase {
  readonly taskId: string | undefined;
  readonly final: boolean;
  /** The error message that accompanies a frame of a failed task. */
  readonly failure: string | undefined;
}

export interface ArtifactFrame extends FrameBase {
  readonly kind: "artifact";
  readonly artifactId: string;
  readonly append: boolean;
  /** Undefined if the frame does not specify it. */
  readonly lastChunk: boolean | undefined;
  /** Empty reasoning is a sign of life meant for phones; undefined if the frame has no reasoning. */
  readonly reasoning: string | undefined;
  /** Without reasoning. */
  readonly parts: readonly Part[];
}

export interface StatusFrame extends FrameBase {
  readonly kind: "status";
  /** Undefined: the state is `unknown`, or not a known one. */
  readonly state: TaskState | undefined;
  /** Without empty parts. */
  readonly parts: readonly Part[];
}

export type AnswerFrame = ArtifactFrame | StatusFrame;

interface ResponseMembers {
  readonly result?: unknown;
  readonly error?: unknown;
}

/**
 * Throws the agent's error as a ProtocolError, and INVALID_AGENT_RESPONSE for anything that is neither an artifact nor
 * a status.
 */
export function decodeAnswerFrame({ error, result }: ResponseMembers): Lossy<AnswerFrame> {
  const refusal = isObject(error) && !isSuccess(error) ? decodeError(error) : undefined;
  if (!isObject(result)) throw refusal ?? invalidResponse("a frame has neither result nor error");
  // A failed task sends its error code with the last frame; any other code concerns the answer as a whole.
  if (refusal !== undefined && refusal.metadata?.code !== String(PLATFORM_CODES.taskFailed)) throw refusal;
  return readResponse(result, (members) => {
    const taskId = members.text("taskId");
    const always = { taskId, final: members.flag("final") === true, failure: refusal?.message };
    if (members.raw("status") === undefined || members.raw("artifact") !== undefined) {
      return decodeArtifact(members, always);
    }
    return members.requiredObject("status", (status) => decodeStatus(status, always));
  });
}

/** Used for agents that send artifacts without an id. */
const ANSWER = "answer";

function decodeArtifact(members: Members, always: FrameBase): ArtifactFrame {
  const append = members.flag("append") === true;
  const lastChunk = members.flag("lastChunk");
  return members.requiredObject("artifact", (artifact) => {
    const parts = (artifact.list("parts", decodeAnswerPart) ?? []).flat();
    const thoughts = parts.flatMap((part) => reasoningOf(part) ?? []);
    return {
      ...always,
      kind: "artifact",
      artifactId: artifact.text("artifactId") ?? ANSWER,
      append,
      lastChunk,
      reasoning: thoughts.length === 0 ? undefined : thoughts.join(""),
      parts: parts.filter((part) => reasoningOf(part) === undefined),
    };
  });
}

function decodeStatus(status: Members, always: FrameBase): StatusFrame {
  const parts = status.object("message", (message) => (message.list("parts", decodeAnswerPart) ?? []).flat()) ?? [];
  return {
    ...always,
    kind: "status",
    state: STATE_OF_NAME.get(status.raw("state")),
    parts: parts.filter((part) => !isEmpty(part)).map(toProgress),
  };
}

const STATE_OF_NAME: ReadonlyMap<unknown, TaskState> = new Map<unknown, TaskState>([
  ["submitted", "TASK_STATE_SUBMITTED"],
  ["working", "TASK_STATE_WORKING"],
  ["input-required", "TASK_STATE_INPUT_REQUIRED"],
  ["auth-required", "TASK_STATE_AUTH_REQUIRED"],
  ["completed", "TASK_STATE_COMPLETED"],
  ["canceled", "TASK_STATE_CANCELED"],
  ["cancelled", "TASK_STATE_CANCELED"],
  ["failed", "TASK_STATE_FAILED"],
  ["rejected", "TASK_STATE_REJECTED"],
]);

/** Empty for anything that is not a part. A text part without its text is one whose text is empty. */
function decodeAnswerPart(members: Members): Part[] {
  if (hasKnownContent(members)) return [decodePart(members)];
  if (members.raw("kind") !== "text") members.reading.lose(LOSSES.unknownPart);
  return [];
}

/** Text of the answer itself: neither reasoning nor the fallback text of something else. */
export function isAnswerText(part: Part): part is TextPart {
  return isTextPart(part) && reasoningOf(part) === undefined && xiaoyiMetadata(part.metadata) === undefined;
}

function isEmpty(part: Part): boolean {
  return (isAnswerText(part) && part.text === "") || reasoningOf(part) === "";
}

/** Reasoning that other dialects can read, too: sent with a status, so that it is not taken for the answer. */
export function progressPart(text: string): Part {
  return { text, metadata: { [EXTENSIONS.reasoning]: true } };
}

function toProgress(part: Part): Part {
  const reasoning = reasoningOf(part);
  return reasoning === undefined ? part : progressPart(reasoning);
}
