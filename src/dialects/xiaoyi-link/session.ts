import { BoundedMap } from "../xiaoyi/bounded-map.ts";
import type { Outgoing, Talker } from "./line.ts";
import type { Reply } from "./reply.ts";

/** Tasks of one conversation that a cancellation can still name. */
const MOST_TASKS = 32;

/** A conversation. What is to be said in it is said in order, and on the server that it came from. */
export class Session implements Talker<Reply> {
  readonly id: string;
  readonly contextId: string;
  /** The newest answer: phones listen to no other. */
  reply: Reply | undefined;
  /** The server its last message came over. */
  server: string;
  /** The engine's ids of tasks, by those of the platform. */
  readonly tasks = new BoundedMap<string, string>(MOST_TASKS);
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
    return this.reply?.resting !== false && this.#controls.length === 0;
  }

  /** The engine's id of a task, as far as it is known to be another than the platform's. */
  taskOf(platformId: string): string {
    return this.tasks.get(platformId) ?? platformId;
  }

  /** All of an answer has arrived. */
  rest(reply: Reply): void {
    if (this.reply === reply && reply.ended) this.reply = undefined;
    if (this.idle) this.#onIdle(this);
  }

  /** Says something that belongs to no task's answer. */
  say(text: string): void {
    this.#controls.push(text);
  }

  peek(): Outgoing<Reply> | undefined {
    const [text] = this.#controls;
    return text === undefined ? this.reply?.peek() : { text };
  }

  sent(): void {
    if (this.#controls.shift() === undefined) this.reply?.sent();
    else if (this.idle) this.#onIdle(this);
  }
}
