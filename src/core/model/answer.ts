import { EXTENSIONS } from "./extensions.ts";
import { isDataPart, isPlainText, isTextPart, type Message, type Part } from "./message.ts";
import { isInterrupted, isTerminal, type Task, type TaskState, type TaskStatus } from "./task.ts";

const ANSWERED: ReadonlySet<TaskState> = new Set(["TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"]);

/**
 * The task with its answer. Some agents write all of it into the messages of their work, and end or ask without one: if
 * there is no artifact either, what the agent wrote since the caller's last message becomes the message of the status.
 */
export function withAnswer(task: Task): Task {
  const { artifacts = [], history = [], status } = task;
  if (!ANSWERED.has(status.state) || hasParts(status.message) || artifacts.some(hasParts)) return task;
  const written = history
    .slice(history.findLastIndex(({ role }) => role === "ROLE_USER") + 1)
    .filter(({ metadata }) => metadata?.[EXTENSIONS.workflow] === undefined);
  const last = written.at(-1);
  const parts = joinParts(written);
  return last === undefined || parts.length === 0
    ? task
    : { ...task, status: { ...status, message: { ...last, parts } } };
}

/** Newest messages of one turn that are remembered. */
const MAX_MESSAGES = 1_000;

/** The same for a reader of events. */
export class TurnAnswer {
  #written: Message[] = [];
  #hasArtifact = false;

  /** What the task has as it stands. */
  begin({ artifacts = [], history = [] }: Task): void {
    this.#written = history.slice(-MAX_MESSAGES);
    this.#hasArtifact = artifacts.some(hasParts);
  }

  addArtifact(artifact: { readonly parts: readonly Part[] }): void {
    this.#hasArtifact ||= hasParts(artifact);
  }

  /** The message to show with a status. */
  messageOf(status: TaskStatus): Message | undefined {
    const task = { id: "", contextId: "", status, history: this.#written };
    const { message } = this.#hasArtifact ? status : withAnswer(task).status;
    if (isTerminal(status.state) || isInterrupted(status.state)) this.begin({ ...task, history: [] });
    else if (message !== undefined) this.#written.push(message);
    if (this.#written.length > 2 * MAX_MESSAGES) this.#written = this.#written.slice(-MAX_MESSAGES);
    return message;
  }
}

function hasParts(content: { readonly parts: readonly Part[] } | undefined): boolean {
  return content !== undefined && content.parts.length > 0;
}

/** Beside text, data is about the work, such as calls of tools; reasoning is left out. */
function joinParts(messages: readonly Message[]): readonly Part[] {
  const all = messages.flatMap(({ parts }) => parts).filter(({ metadata }) => !metadata?.[EXTENSIONS.reasoning]);
  const hasText = all.some((part) => isTextPart(part) && part.text.trim() !== "");
  const joined: Part[] = [];
  for (const part of hasText ? all.filter((one) => !isDataPart(one)) : all) {
    const before = joined.at(-1);
    if (before !== undefined && isPlainText(before) && isPlainText(part))
      joined[joined.length - 1] = { text: `${before.text}${separator(before.text, part.text)}${part.text}` };
    else joined.push(part);
  }
  return joined;
}

/** Pieces of a sentence have the space between them, messages have none. */
function separator(before: string, after: string): string {
  return /(?:^|\s)$/.test(before) || /^(?:$|[\s.,;:!?)，。；：！？、）])/.test(after) ? "" : "\n";
}
