/** Conversations, and what is sent in them. */

import { BoundedMap } from "../bounded-map.ts";
import type { PersistentMap } from "../ports.ts";
import type { FrameSource, OutgoingFrame } from "./frame-sender.ts";
import type { Reply } from "./reply.ts";

/** Maximum number of tasks per conversation that can still be canceled by id. */
const MAX_TASKS = 32;

/** A conversation. Its frames are sent in order, on the server that its messages come from. */
export class Session implements FrameSource {
  readonly id: string;
  readonly contextId: string;
  /** The newest answer: phones show no other. */
  reply: Reply | undefined;
  /** The server that delivered its last message. */
  server: string;
  /** The engine's task ids, by the platform's. */
  readonly tasks = new BoundedMap<string, string>(MAX_TASKS);
  readonly #controls: string[] = [];
  readonly #onIdle: (session: Session) => void;

  constructor(id: string, contextId: string, server: string, onIdle: (session: Session) => void) {
    this.id = id;
    this.contextId = contextId;
    this.server = server;
    this.#onIdle = onIdle;
  }

  /** No answer is pending. */
  get idle(): boolean {
    return this.reply?.isSettled !== false && this.#controls.length === 0;
  }

  /** The engine's task id, if known to differ from the platform's. */
  taskOf(platformId: string): string {
    return this.tasks.get(platformId) ?? platformId;
  }

  settle(reply: Reply): void {
    if (this.reply === reply && reply.ended) this.reply = undefined;
    if (this.idle) this.#onIdle(this);
  }

  /** Sends a frame that is not part of a task's answer. */
  enqueue(text: string): void {
    this.#controls.push(text);
  }

  peek(): OutgoingFrame | undefined {
    const [text] = this.#controls;
    return text === undefined ? this.reply?.peek() : { text };
  }

  sent(): void {
    if (this.#controls.shift() === undefined) this.reply?.sent();
    else if (this.idle) this.#onIdle(this);
  }
}

const MAX_SESSIONS = 10_000;
const MAX_ALIASES = 20_000;

export class Sessions {
  /** Conversations with a pending answer, including cleared ones. */
  readonly busy = new Set<Session>();
  readonly #known = new BoundedMap<string, Session>(MAX_SESSIONS, (session) => session.idle);
  /** The app's session ids and their conversations: the app uses a new one each time it is opened. */
  readonly #aliases = new BoundedMap<string, string>(MAX_ALIASES);
  /** Contexts of cleared conversations, in case they continue under their old id. */
  readonly #contexts = new BoundedMap<string, string>(MAX_ALIASES);

  readonly #cleared: PersistentMap | undefined;

  constructor(cleared: PersistentMap | undefined) {
    this.#cleared = cleared;
  }

  /** Loads what an earlier process stored. */
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

  /** The first known conversation, by any of its ids. */
  find(ids: readonly string[]): Session | undefined {
    for (const id of ids) {
      const session = this.#known.get(id) ?? this.#known.get(this.idOf(id));
      if (session !== undefined) return session;
    }
    return undefined;
  }

  idOf(name: string): string {
    return this.#aliases.get(name) ?? name;
  }

  addAlias(name: string, id: string): void {
    if (name !== id) this.#aliases.set(name, id);
  }

  /** Later messages under this id are in another context. Resolves when that is stored. */
  async clear(id: string, contextId: string): Promise<void> {
    this.#known.delete(id);
    this.#contexts.set(id, contextId);
    await this.#cleared?.set(id, contextId);
  }

  /** For a response to a conversation that is not stored. */
  createTransient(id: string, server: string): Session {
    return new Session(id, id, server, this.#onIdle);
  }

  readonly #onIdle = (session: Session): void => {
    this.busy.delete(session);
  };
}
