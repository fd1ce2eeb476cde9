import { BoundedMap } from "../xiaoyi/bounded-map.ts";
import type { Notes } from "../xiaoyi/notes.ts";
import { Session } from "./session.ts";

const MOST_SESSIONS = 10_000;
const MOST_NAMES = 20_000;

/** Conversations, by every name they are called. */
export class Sessions {
  /** Those in which something is under way, also if they were cleared since. */
  readonly busy = new Set<Session>();
  readonly #known = new BoundedMap<string, Session>(MOST_SESSIONS, (session) => session.idle);
  /** What the app calls its session, and which conversation that is: another one each time the app is opened. */
  readonly #names = new BoundedMap<string, string>(MOST_NAMES);
  /** Contexts of conversations that were cleared, should they go on under their old id. */
  readonly #contexts = new BoundedMap<string, string>(MOST_NAMES);

  readonly #cleared: Notes | undefined;

  constructor(cleared: Notes | undefined) {
    this.#cleared = cleared;
  }

  /** Takes up what an earlier process has kept. */
  async load(): Promise<void> {
    for (const [id, contextId] of (await this.#cleared?.all()) ?? []) this.#contexts.set(id, contextId);
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
    return this.#names.get(name) ?? name;
  }

  learn(name: string, id: string): void {
    if (name !== id) this.#names.set(name, id);
  }

  /** What is said from now on under this id is in another context. Resolves when that will outlast the process. */
  async clear(id: string, contextId: string): Promise<void> {
    this.#known.delete(id);
    this.#contexts.set(id, contextId);
    await this.#cleared?.set(id, contextId);
  }

  /** For a word to a conversation that is not known and will not be. */
  passing(id: string, server: string): Session {
    return new Session(id, id, server, this.#onIdle);
  }

  readonly #onIdle = (session: Session): void => {
    this.busy.delete(session);
  };
}
