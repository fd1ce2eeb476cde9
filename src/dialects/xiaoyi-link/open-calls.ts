import type { OpenCall } from "./open-call.ts";

/** Agents answer only the newest message of a conversation, so each is said when the one before it was answered. */
export class OpenCalls {
  readonly #calls = new Map<string, OpenCall>();
  readonly #sessions = new Map<string, OpenCall[]>();

  get size(): number {
    return this.#calls.size;
  }

  get(taskId: string): OpenCall | undefined {
    return this.#calls.get(taskId);
  }

  /** True when it is the call's turn. */
  add(call: OpenCall): boolean {
    this.#calls.set(call.taskId, call);
    const queue = this.#sessions.get(call.sessionId);
    if (queue === undefined) this.#sessions.set(call.sessionId, [call]);
    else queue.push(call);
    return queue === undefined;
  }

  /** Returns the call whose turn it is now, if the one that ended was in its way. */
  remove(call: OpenCall): OpenCall | undefined {
    this.#calls.delete(call.taskId);
    const queue = this.#sessions.get(call.sessionId) ?? [];
    const place = queue.indexOf(call);
    queue.splice(place, 1);
    if (queue.length === 0) this.#sessions.delete(call.sessionId);
    return place === 0 ? queue[0] : undefined;
  }

  /** Those whose turn it is. */
  begun(): OpenCall[] {
    return [...this.#sessions.values()].flatMap(([first]) => first ?? []);
  }
}
