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
  /** By which the frames of the task's messages are known: the platform may deliver them again. */
  readonly frames: readonly string[];
}

export function marked(message: Message, recalled: Recalled): Message {
  const mark = { ...xiaoyiMark(message.metadata), link: { ...recalled } };
  return { ...message, metadata: { ...message.metadata, [EXTENSIONS.xiaoyi]: mark } };
}

/** By the user's last message. Good only for tasks that are known to be made over this dialect. */
export function recall({ history = [] }: Task): Recalled | undefined {
  const links = history.flatMap(({ metadata, role }) => {
    const link = role === "ROLE_USER" ? xiaoyiMark(metadata)?.link : undefined;
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
      frames: links.flatMap(({ frames }) => (Array.isArray(frames) ? frames.filter(isText) : [])),
    };
  }
  return undefined;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
