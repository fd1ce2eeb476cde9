/** What a process that takes up a task of another one must know to answer it: kept in the metadata of the message. */
import { EXTENSIONS } from "../../model/extensions.ts";
import type { Message } from "../../model/message.ts";
import type { Task } from "../../model/task.ts";
import type { JsonRpcId } from "../../wire/json-rpc.ts";
import { isObject, xiaoyiMark } from "../xiaoyi/marks.ts";

export interface Recalled {
  readonly agentId: string;
  readonly sessionId: string;
  /** The platform's id of the task. */
  readonly taskId: string;
  readonly requestId: JsonRpcId;
  readonly server: string;
  readonly desktop: boolean;
  /** When the message came. */
  readonly at: number;
}

export function marked(message: Message, recalled: Recalled): Message {
  const mark = { ...xiaoyiMark(message.metadata), link: { ...recalled } };
  return { ...message, metadata: { ...message.metadata, [EXTENSIONS.xiaoyi]: mark } };
}

/** By the user's last message. Good only for tasks that are known to be made over this dialect. */
export function recall({ history = [] }: Task): Recalled | undefined {
  for (const message of history.toReversed()) {
    const link = message.role === "ROLE_USER" ? xiaoyiMark(message.metadata)?.link : undefined;
    if (!isObject(link)) continue;
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
    };
  }
  return undefined;
}
