/** One frame of an agent's answer, for those who act as the platform. Agents differ widely, so it is read with good will. */
import { EXTENSIONS } from "../../model/extensions.ts";
import type { LossRule, Lossy } from "../../model/loss.ts";
import type { Part } from "../../model/part.ts";
import type { TaskState } from "../../model/state.ts";
import { type Members, readAnswer } from "../shared/early-reading.ts";
import { reasoningOf, xiaoyiMark } from "./marks.ts";
import { readPart } from "./parts.ts";

export interface HeardArtifact {
  readonly kind: "artifact";
  readonly artifactId: string;
  readonly append: boolean;
  readonly final: boolean;
  readonly text: string;
  readonly reasoning: string;
  /** Cards, data and files. */
  readonly things: readonly Part[];
}

export interface HeardStatus {
  readonly kind: "status";
  /** Undefined: the agent says that it does not know, or what nobody knows. */
  readonly state: TaskState | undefined;
  /** Without those that say nothing. */
  readonly parts: readonly Part[];
  readonly final: boolean;
}

export type HeardFrame = HeardArtifact | HeardStatus;

export const HEARD_LOSSES = {
  unknownPart: {
    kind: "dropped",
    what: "part",
    reason: "It is none of text, reasoningText, file and data.",
    direction: "heard",
  },
} as const satisfies Record<string, LossRule>;

/** `result` of a response. Throws INVALID_AGENT_RESPONSE for what is neither an artifact nor a status. */
export function readHeardFrame(result: unknown): Lossy<HeardFrame> {
  return readAnswer(result, (members) => {
    const final = members.flag("final") === true;
    if (members.raw("artifact") !== undefined) return readArtifact(members, final);
    return members.requiredObject("status", (status) => readStatus(status, final));
  });
}

function readArtifact(members: Members, final: boolean): HeardArtifact {
  const append = members.flag("append") === true;
  return members.requiredObject("artifact", (artifact) => {
    const parts = (artifact.list("parts", readHeardPart) ?? []).flat();
    return {
      kind: "artifact",
      artifactId: artifact.text("artifactId") ?? "",
      append,
      final,
      text: parts.map((part) => (isSpoken(part) ? part.text : "")).join(""),
      reasoning: parts.map((part) => reasoningOf(part) ?? "").join(""),
      things: parts.filter((part) => !isSpoken(part) && reasoningOf(part) === undefined),
    };
  });
}

function readStatus(status: Members, final: boolean): HeardStatus {
  const parts = status.object("message", (message) => (message.list("parts", readHeardPart) ?? []).flat()) ?? [];
  return {
    kind: "status",
    state: STATE_OF_WORD.get(status.raw("state")),
    parts: parts.filter((part) => !isSilent(part)).map(toProgress),
    final,
  };
}

const STATE_OF_WORD: ReadonlyMap<unknown, TaskState> = new Map<unknown, TaskState>([
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

const CONTENTS = ["text", "reasoningText", "file", "data"] as const;

/** None for what is no part; a text that was left out because it is empty is empty. */
function readHeardPart(members: Members): Part[] {
  if (CONTENTS.some((name) => members.raw(name) !== undefined)) return [readPart(members)];
  if (members.raw("kind") !== "text") members.reading.lose(HEARD_LOSSES.unknownPart);
  return [];
}

/** What people read as the answer: neither reasoning nor something that has text only for those who cannot show it. */
function isSpoken(part: Part): part is Part & { readonly text: string } {
  return "text" in part && reasoningOf(part) === undefined && xiaoyiMark(part.metadata) === undefined;
}

function isSilent(part: Part): boolean {
  return (isSpoken(part) && part.text === "") || reasoningOf(part) === "";
}

/** Reasoning that others can read, too: here it is told with a status, where nobody takes it for the answer. */
export function progressPart(text: string): Part {
  return { text, metadata: { [EXTENSIONS.reasoning]: true } };
}

function toProgress(part: Part): Part {
  const reasoning = reasoningOf(part);
  return reasoning === undefined ? part : progressPart(reasoning);
}
