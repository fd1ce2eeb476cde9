/** What a task is in chat: text and files, with a marker for agents and without one for people. */

import { withAnswer } from "../../../core/model/answer.ts";
import type { Loss } from "../../../core/model/loss.ts";
import { textOf } from "../../../core/model/message.ts";
import type { Task } from "../../../core/model/task.ts";
import { encodeOutcome } from "./encode.ts";
import type { LiteMessage, LiteState, Outgoing } from "./message.ts";
import { isTerminalLiteState, toLiteState } from "./states.ts";

/** The fields of a message that has nothing but its type's own. */
export const NOTHING = { body: "", attachments: [], others: {} } as const;

/** Maximum length of a text that shows progress. */
const MAX_PROGRESS_LENGTH = 300;

/** Texts for people, who do not see the state, where the agent has written none. */
const TEXTS = {
  accepted: "",
  working: "",
  "input-required": "Please tell me more.",
  completed: "Done.",
  failed: "That failed.",
  cancelled: "Cancelled.",
  rejected: "I cannot do that.",
} as const satisfies Record<LiteState, string>;

/** How a task ended, or what it asks. Without `theirs` it was asked for in plain language. */
export function toOutcome(
  task: Task,
  { data = false, theirs }: { readonly data?: boolean; readonly theirs?: string },
  losses: Loss[],
): Pick<Outgoing, "content" | "files"> {
  const state = toLiteState(task.status.state, losses);
  const { body, files } = encodeOutcome(withAnswer(task), losses, { data });
  const isSilent = body === "" && files.length === 0;
  if (theirs === undefined) return { content: isSilent ? TEXTS[state] : body, files };
  if (!isTerminalLiteState(state)) {
    const question = isSilent ? TEXTS[state] : body;
    return { content: { ...NOTHING, type: "status", task: theirs, state, body: question }, files };
  }
  const artifacts = files.map(({ name }) => name);
  return { content: { ...NOTHING, type: "result", task: theirs, state, artifacts, body }, files };
}

/** Undefined if there is nothing to show. `partial`: also the text that the agent has written so far. */
export function toProgress(task: Task, theirs: string | undefined, partial: boolean): LiteMessage | string | undefined {
  const { artifacts = [], status } = task;
  const text = textOf(status.message?.parts ?? []);
  if (theirs === undefined) return partial && text !== "" ? shorten(text) : undefined;
  const written = partial ? artifacts.map(({ parts }) => textOf(parts)).join("\n") : "";
  const progress = PERCENT.exec(text)?.[0].replaceAll(" ", "");
  const state = toLiteState(status.state);
  const message = { ...NOTHING, type: "status", task: theirs, state, body: shorten(text || written) } as const;
  return progress === undefined ? message : { ...message, progress };
}

const PERCENT = /\b\d{1,3} ?%/;

/** Keeps the end of a text, which is the newest part. */
function shorten(text: string): string {
  return text.length <= MAX_PROGRESS_LENGTH ? text : `…${text.slice(-MAX_PROGRESS_LENGTH).toWellFormed()}`;
}
