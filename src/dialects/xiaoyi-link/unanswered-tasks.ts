import { isObject } from "../../model/json.ts";
import type { Message } from "../../model/message.ts";
import type { Task } from "../../model/task.ts";
import type { JsonRpcId } from "../../wire/json-rpc.ts";
import { XIAOYI_EXTENSION, xiaoyiMetadata } from "../xiaoyi/metadata.ts";
import type { OfflineNotifications, PersistentMap } from "../xiaoyi/ports.ts";
import type { LinkTasks } from "./tasks.ts";

/** What a process needs to answer a task of an earlier one: stored in the message's metadata. */

export interface ReplyAddress {
  readonly agentId: string;
  readonly sessionId: string;
  /** The platform's id of the task. */
  readonly taskId: string;
  readonly requestId: JsonRpcId;
  readonly server: string;
  readonly desktop: boolean;
  /** When the message was received. */
  readonly at: number;
  /** Keys of the frames with the task's messages: the platform may deliver them again. */
  readonly frames: readonly string[];
}

export function withReplyAddress(message: Message, recalled: ReplyAddress): Message {
  const mark = { ...xiaoyiMetadata(message.metadata), link: { ...recalled } };
  return { ...message, metadata: { ...message.metadata, [XIAOYI_EXTENSION]: mark } };
}

/** Read from the user's last message. Reliable only for tasks that are known to be created over this dialect. */
function readReplyAddress({ history = [] }: Task): ReplyAddress | undefined {
  const links = history.flatMap(({ metadata, role }) => {
    const link = role === "ROLE_USER" ? xiaoyiMetadata(metadata)?.link : undefined;
    return isObject(link) ? [link] : [];
  });
  for (const link of links.toReversed()) {
    const { agentId, at, desktop, requestId, server, sessionId, taskId } = link;
    if (typeof agentId !== "string" || typeof sessionId !== "string" || typeof taskId !== "string") continue;
    return {
      agentId,
      sessionId,
      taskId,
      requestId: typeof requestId === "string" || typeof requestId === "number" ? requestId : null,
      server: typeof server === "string" ? server : "",
      desktop: desktop === true,
      at: typeof at === "number" ? at : 0,
      frames: links.flatMap(({ frames }) => (Array.isArray(frames) ? frames.filter(isString) : [])),
    };
  }
  return undefined;
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}

interface UnansweredTask {
  /** The engine's task id. */
  readonly id: string;
  readonly address: ReplyAddress;
}

interface UnansweredQuery {
  readonly agentId: string;
  /** When this process started to resume tasks of earlier ones. */
  readonly since: number;
  /** Answers that earlier processes did not complete. */
  readonly unanswered: PersistentMap | undefined;
}

/** Tasks that an earlier process left unanswered: the newest of each conversation, as phones show no other. */
export async function findUnansweredTasks(
  { agentId, since, unanswered }: UnansweredQuery,
  tasks: Pick<LinkTasks, "ended" | "isOwn" | "unfinished">,
  notifications: Pick<OfflineNotifications, "isPending">,
): Promise<readonly UnansweredTask[]> {
  const newest = new Map<string, UnansweredTask>();
  const consider = async (task: Task): Promise<void> => {
    const address = readReplyAddress(task);
    if (address === undefined || address.agentId !== agentId) return;
    if (address.at < (newest.get(address.sessionId)?.address.at ?? 0)) return;
    // Metadata is not trusted: any client can write it. Tasks with a pending notification are not answered here.
    if (!(await tasks.isOwn(task.id)) || (await notifications.isPending(task.id))) return;
    newest.set(address.sessionId, { id: task.id, address });
  };
  const stored = (await unanswered?.entries()) ?? [];
  for (const [id] of stored) {
    const task = await tasks.ended(id);
    if (task !== undefined) await consider(task);
  }
  for await (const task of tasks.unfinished(since)) await consider(task);
  const found = [...newest.values()];
  const owed = new Set(found.map(({ id }) => id));
  for (const [id] of stored) if (!owed.has(id)) void unanswered?.delete(id);
  return found;
}
