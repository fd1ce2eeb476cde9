import { BoundedMap } from "../xiaoyi/bounded-map.ts";
import { toCancelResult, toClearResult } from "../xiaoyi/control.ts";
import type { PersistentMap } from "../xiaoyi/ports.ts";
import type { FrameSource, OutgoingFrame } from "./connection.ts";
import type { ControlFrame } from "./decode.ts";
import type { Reply } from "./reply.ts";
import type { LinkTasks } from "./tasks.ts";

/** Tasks of one conversation that a cancellation can still name. */
const MAX_TASKS = 32;

/** A conversation. What is to be said in it is said in order, and on the server that it came from. */
export class Session implements FrameSource<Reply> {
  readonly id: string;
  readonly contextId: string;
  /** The newest answer: phones listen to no other. */
  reply: Reply | undefined;
  /** The server its last message came over. */
  server: string;
  /** The engine's ids of tasks, by those of the platform. */
  readonly tasks = new BoundedMap<string, string>(MAX_TASKS);
  readonly #controls: string[] = [];
  readonly #onIdle: (session: Session) => void;

  constructor(id: string, contextId: string, server: string, onIdle: (session: Session) => void) {
    this.id = id;
    this.contextId = contextId;
    this.server = server;
    this.#onIdle = onIdle;
  }

  /** Nothing is under way here. */
  get idle(): boolean {
    return this.reply?.isSettled !== false && this.#controls.length === 0;
  }

  /** The engine's id of a task, as far as it is known to be another than the platform's. */
  taskOf(platformId: string): string {
    return this.tasks.get(platformId) ?? platformId;
  }

  /** All of an answer has arrived. */
  settle(reply: Reply): void {
    if (this.reply === reply && reply.ended) this.reply = undefined;
    if (this.idle) this.#onIdle(this);
  }

  /** Says something that belongs to no task's answer. */
  enqueue(text: string): void {
    this.#controls.push(text);
  }

  peek(): OutgoingFrame<Reply> | undefined {
    const [text] = this.#controls;
    return text === undefined ? this.reply?.peek() : { text };
  }

  sent(): void {
    if (this.#controls.shift() === undefined) this.reply?.sent();
    else if (this.idle) this.#onIdle(this);
  }
}

/** What comes of requests to cancel a task and to clear a conversation. */

interface ControlResult {
  readonly result: object;
  /** The task it was about. */
  readonly taskId?: string;
}

type ControlRequest = Pick<ControlFrame, "id" | "target">;

const ANY_TASK: ControlRequest = { id: null, target: { sessionIds: [], taskIds: [] } };

export class ControlHandler {
  readonly #tasks: LinkTasks;
  readonly #sessions: Sessions;
  readonly #ids: { readonly context: () => string };

  constructor(tasks: LinkTasks, sessions: Sessions, ids: { readonly context: () => string }) {
    this.#tasks = tasks;
    this.#sessions = sessions;
    this.#ids = ids;
  }

  /** What follows in the conversation follows nothing that was said before; what is under way is for nobody. */
  async clear({ target }: ControlRequest, session: Session | undefined): Promise<ControlResult> {
    const sessionId = session?.id ?? target.sessionIds[0];
    if (sessionId === undefined) return { result: toClearResult("unknown") };
    if (session?.reply !== undefined) void this.cancel(ANY_TASK, session);
    await this.#sessions.clear(sessionId, this.#ids.context());
    return { result: toClearResult("cleared") };
  }

  /** The task that is named, in whichever place; the one that is under way if none is. */
  async cancel({ id: requestId, target }: ControlRequest, session: Session | undefined): Promise<ControlResult> {
    const { taskIds } = target;
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
  async #cancelStored(taskIds: readonly string[]): Promise<ControlResult> {
    for (const id of taskIds) {
      const { state } = await this.#tasks.cancel(id);
      if (state !== "unknown") return { taskId: id, result: toCancelResult(id, state) };
    }
    return { result: toCancelResult(taskIds[0] ?? "", "unknown") };
  }
}

const MAX_SESSIONS = 10_000;
const MAX_ALIASES = 20_000;

/** Conversations, by every name they are called. */
export class Sessions {
  /** Those in which something is under way, also if they were cleared since. */
  readonly busy = new Set<Session>();
  readonly #known = new BoundedMap<string, Session>(MAX_SESSIONS, (session) => session.idle);
  /** What the app calls its session, and which conversation that is: another one each time the app is opened. */
  readonly #aliases = new BoundedMap<string, string>(MAX_ALIASES);
  /** Contexts of conversations that were cleared, should they go on under their old id. */
  readonly #contexts = new BoundedMap<string, string>(MAX_ALIASES);

  readonly #cleared: PersistentMap | undefined;

  constructor(cleared: PersistentMap | undefined) {
    this.#cleared = cleared;
  }

  /** Takes up what an earlier process has kept. */
  async load(): Promise<void> {
    for (const [id, contextId] of (await this.#cleared?.entries()) ?? []) this.#contexts.set(id, contextId);
  }

  of(id: string, server: string): Session {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const session = new Session(id, this.#contexts.get(id) ?? id, server, this.#onIdle);
    this.#known.set(id, session);
    return session;
  }

  /** The first that is known, by whichever name. */
  find(ids: readonly string[]): Session | undefined {
    for (const id of ids) {
      const session = this.#known.get(id) ?? this.#known.get(this.idOf(id));
      if (session !== undefined) return session;
    }
    return undefined;
  }

  /** The id of the conversation that is called so. */
  idOf(name: string): string {
    return this.#aliases.get(name) ?? name;
  }

  addAlias(name: string, id: string): void {
    if (name !== id) this.#aliases.set(name, id);
  }

  /** What is said from now on under this id is in another context. Resolves when that will outlast the process. */
  async clear(id: string, contextId: string): Promise<void> {
    this.#known.delete(id);
    this.#contexts.set(id, contextId);
    await this.#cleared?.set(id, contextId);
  }

  /** For a word to a conversation that is not known and will not be. */
  createTransient(id: string, server: string): Session {
    return new Session(id, id, server, this.#onIdle);
  }

  readonly #onIdle = (session: Session): void => {
    this.busy.delete(session);
  };
}
