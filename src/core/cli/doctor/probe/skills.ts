/** Whether an agent answers the examples of its skills. These are real messages, which may cost money or have effects. */

import type { RemoteAgent } from "../../../client/options.ts";
import type { AgentCard, AgentSkill } from "../../../model/card.ts";
import type { StreamEvent } from "../../../model/event.ts";
import { isDataPart, isTextPart, type Part } from "../../../model/message.ts";
import { isTerminal, type TaskState } from "../../../model/task.ts";
import { type Claim, type Finding, findingOf, isSo, isWrong, notChecked } from "./claims.ts";

export interface ExampleSender {
  readonly agent: RemoteAgent;
  readonly signal: AbortSignal;
  /** Of one answer. */
  readonly timeoutMs: number;
  /** Called once the answer to an example has ended, before its task is cancelled. */
  readonly onEnd: (example: { readonly taskId: string | undefined; readonly error?: unknown }) => Promise<void>;
}

/** Without a sender, `reason` says why nothing is sent. */
export async function probeSkills(
  card: AgentCard,
  sender: ExampleSender | undefined,
  reason: string,
): Promise<readonly Claim[]> {
  const claims: Claim[] = [];
  for (const skill of card.skills) {
    const finding = await probeSkill(card, skill, sender, reason);
    claims.push({ claim: `skill ${skill.id}`, ...finding });
  }
  return claims;
}

async function probeSkill(
  card: AgentCard,
  skill: AgentSkill,
  sender: ExampleSender | undefined,
  reason: string,
): Promise<Finding> {
  const [example] = skill.examples ?? [];
  if (example === undefined) return notChecked("the card has no example for it");
  if (sender === undefined) return notChecked(reason);
  if (!accepts(skill.inputModes ?? card.defaultInputModes, "text/plain")) return notChecked("it does not accept text");
  const { agent, onEnd, signal, timeoutMs } = sender;
  const seen: Seen = { taskId: undefined, state: undefined, types: new Set() };
  try {
    for await (const { event } of agent.stream(example, { signal, timeoutMs })) record(event, seen);
    await onEnd({ taskId: seen.taskId });
    return judge(seen, skill.outputModes ?? card.defaultOutputModes);
  } catch (error) {
    await onEnd({ taskId: seen.taskId, error });
    return findingOf(error);
  } finally {
    await cancelIfOpen(agent, seen);
  }
}

interface Seen {
  taskId: string | undefined;
  state: TaskState | undefined;
  /** Media types of what the agent produced. */
  readonly types: Set<string>;
}

function record(event: StreamEvent, seen: Seen): void {
  const add = (parts: readonly Part[]) => {
    for (const part of parts) seen.types.add(mediaTypeOf(part));
  };
  if ("message" in event) add(event.message.parts);
  else if ("artifactUpdate" in event) add(event.artifactUpdate.artifact.parts);
  else {
    const { status } = "task" in event ? event.task : event.statusUpdate;
    seen.taskId = "task" in event ? event.task.id : event.statusUpdate.taskId;
    seen.state = status.state;
    if ("task" in event) add((event.task.artifacts ?? []).flatMap(({ parts }) => parts));
  }
}

function judge({ state, types }: Seen, modes: readonly string[]): Finding {
  if (state === "TASK_STATE_FAILED" || state === "TASK_STATE_REJECTED" || state === "TASK_STATE_CANCELED") {
    return isWrong(`the task for its example is ${state}`);
  }
  const others = [...types].filter((type) => !accepts(modes, type));
  if (others.length > 0) return isWrong(`answers with ${others.join(", ")}, which its output modes do not name`);
  const produced = types.size === 0 ? "" : `, with ${[...types].join(", ")}`;
  return isSo(`its example is answered${state === undefined ? "" : ` by a task that is ${state}`}${produced}`);
}

/** No one will answer its question or wait for its result. */
async function cancelIfOpen(agent: RemoteAgent, { state, taskId }: Seen): Promise<void> {
  if (taskId === undefined || state === undefined || isTerminal(state)) return;
  await agent.cancel(taskId).catch(() => undefined);
}

function mediaTypeOf(part: Part): string {
  if (part.mediaType !== undefined) return part.mediaType.toLowerCase();
  if (isTextPart(part)) return "text/plain";
  return isDataPart(part) ? "application/json" : "application/octet-stream";
}

/** As servers compare them: without parameters, and with families such as `text/*`. */
function accepts(modes: readonly string[], mediaType: string): boolean {
  const [plain = ""] = mediaType.split(";", 1);
  const [family = ""] = plain.split("/", 1);
  return modes.length === 0 || ["*/*", plain.trim(), `${family}/*`, family].some((mode) => modes.includes(mode));
}
