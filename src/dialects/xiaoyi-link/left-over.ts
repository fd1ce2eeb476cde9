import type { Task } from "../../model/task.ts";
import type { Notes } from "../xiaoyi/notes.ts";
import type { Notices } from "../xiaoyi/notices.ts";
import { type Recalled, recall } from "./recall.ts";
import type { Tasks } from "./tasks.ts";

export interface LeftOver {
  /** The engine's id of the task. */
  readonly id: string;
  readonly recalled: Recalled;
}

export interface Left {
  readonly agentId: string;
  /** When this process began to take up the tasks of earlier ones. */
  readonly since: number;
  /** What earlier processes have not said all of. */
  readonly unanswered: Notes | undefined;
}

/** What an earlier process left to answer: of each conversation the newest, for phones listen to no other. */
export async function leftOver(
  { agentId, since, unanswered }: Left,
  tasks: Pick<Tasks, "ended" | "isOwn" | "unfinished">,
  notices: Pick<Notices, "awaits">,
): Promise<readonly LeftOver[]> {
  const newest = new Map<string, LeftOver>();
  const consider = async (task: Task): Promise<void> => {
    const recalled = recall(task);
    if (recalled === undefined || recalled.agentId !== agentId) return;
    if (recalled.at < (newest.get(recalled.sessionId)?.recalled.at ?? 0)) return;
    // Anyone can write metadata. What is told by a notification is not told here.
    if (!(await tasks.isOwn(task.id)) || (await notices.awaits(task.id))) return;
    newest.set(recalled.sessionId, { id: task.id, recalled });
  };
  const noted = (await unanswered?.all()) ?? [];
  for (const [id] of noted) {
    const task = await tasks.ended(id);
    if (task !== undefined) await consider(task);
  }
  for await (const task of tasks.unfinished(since)) await consider(task);
  const found = [...newest.values()];
  const owed = new Set(found.map(({ id }) => id));
  for (const [id] of noted) if (!owed.has(id)) void unanswered?.delete(id);
  return found;
}
