/** What comes of requests to cancel a task and to clear a conversation. */
import { toCancelResult, toClearResult } from "../xiaoyi/control.ts";
import type { HeardControl } from "./decode.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";
import type { Tasks } from "./tasks.ts";

export interface ControlAnswer {
  readonly result: object;
  /** The task it was about. */
  readonly taskId?: string;
}

type Request = Pick<HeardControl, "id" | "words">;

const WHATEVER: Request = { id: null, words: { sessionIds: [], taskIds: [] } };

export class Controls {
  readonly #tasks: Tasks;
  readonly #sessions: Sessions;
  readonly #ids: { readonly context: () => string };

  constructor(tasks: Tasks, sessions: Sessions, ids: { readonly context: () => string }) {
    this.#tasks = tasks;
    this.#sessions = sessions;
    this.#ids = ids;
  }

  /** What follows in the conversation follows nothing that was said before; what is under way is for nobody. */
  async clear({ words }: Request, session: Session | undefined): Promise<ControlAnswer> {
    const sessionId = session?.id ?? words.sessionIds[0];
    if (sessionId === undefined) return { result: toClearResult("unknown") };
    if (session?.reply !== undefined) void this.cancel(WHATEVER, session);
    await this.#sessions.clear(sessionId, this.#ids.context());
    return { result: toClearResult("cleared") };
  }

  /** The task that is named, in whichever place; the one that is under way if none is. */
  async cancel({ id: requestId, words }: Request, session: Session | undefined): Promise<ControlAnswer> {
    const { taskIds } = words;
    const reply = session?.reply?.ended === false ? session.reply : undefined;
    await reply?.started;
    const known = taskIds.find((id) => id === reply?.platformId || session?.tasks.get(id) !== undefined);
    // The id of a request may be that of a task, but most are not.
    const namesNone = taskIds.every((id) => id === requestId);
    const platformId = known ?? (namesNone ? reply?.platformId : undefined);
    if (session === undefined || platformId === undefined) return this.#cancelStored(taskIds);
    const { state, task } = await this.#tasks.cancel(session.taskOf(platformId));
    // Nobody reads the log of a task that waits for an answer.
    if (reply?.platformId === platformId && !reply.following && task !== undefined) {
      reply.show({ statusUpdate: { taskId: task.id, contextId: task.contextId, status: task.status } });
    }
    return { taskId: platformId, result: toCancelResult(platformId, state) };
  }

  /** A task of before this process began, if one of the ids is one's. */
  async #cancelStored(taskIds: readonly string[]): Promise<ControlAnswer> {
    for (const id of taskIds) {
      const { state } = await this.#tasks.cancel(id);
      if (state !== "unknown") return { taskId: id, result: toCancelResult(id, state) };
    }
    return { result: toCancelResult(taskIds[0] ?? "", "unknown") };
  }
}
