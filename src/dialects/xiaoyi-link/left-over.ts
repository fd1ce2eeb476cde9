import type { Notices } from "../xiaoyi/notices.ts";
import { type Recalled, recall } from "./recall.ts";
import type { Tasks } from "./tasks.ts";

export interface LeftOver {
  /** The engine's id of the task. */
  readonly id: string;
  readonly recalled: Recalled;
}

/** What an earlier process left to answer: of each conversation the newest, for phones listen to no other. */
export async function leftOver(
  { agentId, since }: { readonly agentId: string; readonly since: number },
  tasks: Pick<Tasks, "isOwn" | "unfinished">,
  notices: Pick<Notices, "awaits">,
): Promise<readonly LeftOver[]> {
  const newest = new Map<string, LeftOver>();
  for await (const task of tasks.unfinished(since)) {
    const recalled = recall(task);
    if (recalled === undefined || recalled.agentId !== agentId) continue;
    if (recalled.at < (newest.get(recalled.sessionId)?.recalled.at ?? 0)) continue;
    // Anyone can write metadata. What is told by a notification is not told here.
    if (!(await tasks.isOwn(task.id)) || (await notices.awaits(task.id))) continue;
    newest.set(recalled.sessionId, { id: task.id, recalled });
  }
  return [...newest.values()];
}
