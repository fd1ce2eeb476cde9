/** How the steps of a run are reported: status messages with a sentence for people and metadata for programs. */

import type { AgentEvent, AgentState, MessageDraft } from "../../../core/engine/agent.ts";
import { EXTENSIONS } from "../../../core/model/extensions.ts";
import { isObject, type JsonObject } from "../../../core/model/json.ts";
import type { Message } from "../../../core/model/message.ts";
import type { StepState } from "../definition/plan.ts";

/** What a status message of a workflow says about a step, in its metadata under the extension's URI. */
export interface StepProgress {
  /** `outline`; `outline[2]` for an item of a `foreach`; `draft/outline` for a step of the sub-workflow `draft`. */
  readonly step: string;
  readonly state: StepState | "started" | "working" | "retrying" | "input-required" | "auth-required";
  /** Name or URL of the agent, once it is resolved. */
  readonly agent?: string;
  /** The skill by which it was found in a registry, and its id there. */
  readonly skill?: string;
  readonly registered?: string;
  /** The dialect it is called in; `local` for an agent of the same process. */
  readonly dialect?: string;
  /** Id of the agent's task, once it is known. */
  readonly task?: string;
  /** Counts from 1. */
  readonly attempt?: number;
}

/** The step that a status message is about; undefined for other messages. */
export function readProgress(message: Pick<Message, "metadata"> | undefined): StepProgress | undefined {
  const value = message?.metadata?.[EXTENSIONS.workflow];
  if (!isObject(value) || typeof value.step !== "string" || typeof value.state !== "string") return undefined;
  return value as JsonObject & StepProgress;
}

export function withProgress(draft: MessageDraft, progress: StepProgress): MessageDraft {
  return {
    ...draft,
    metadata: { ...draft.metadata, [EXTENSIONS.workflow]: { ...progress } },
    extensions:
      draft.extensions === undefined ? [EXTENSIONS.workflow] : [...new Set([...draft.extensions, EXTENSIONS.workflow])],
  };
}

export function progressEvent(status: AgentState, progress: StepProgress, detail = ""): AgentEvent {
  return { status, message: withProgress({ parts: [{ text: sentenceOf(progress, detail) }] }, progress) };
}

function sentenceOf({ agent, skill, step, state, attempt }: StepProgress, detail: string): string {
  const reason = detail === "" ? "." : `: ${detail}`;
  switch (state) {
    case "started": {
      const found = skill === undefined ? "" : `, found by skill ${skill}`;
      return `Step ${step} started (${agent ?? (detail || "sub-workflow")}${found}${(attempt ?? 1) > 1 ? `, attempt ${attempt}` : ""}).`;
    }
    case "working":
      return `Step ${step}: ${detail}`;
    case "retrying":
      return `Step ${step} will be tried again${reason}`;
    case "input-required":
    case "auth-required":
      return `Step ${step} waits${reason}`;
    default:
      return `Step ${step} ${state}${reason}`;
  }
}
