import type { AgentEvent } from "../../../core/engine/agent.ts";

interface Delivery {
  readonly event: AgentEvent;
  readonly delivered: () => void;
}

/** Events of steps that run at the same time, on their way into the one log of the run. */
export class Mailbox {
  readonly #waiting: Delivery[] = [];
  #closed = false;
  #wake: (() => void) | undefined;

  /** Resolves when the event is in the log, so that a step is never further than the log, nor far ahead of it. */
  put(event: AgentEvent): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push({ event, delivered: resolve });
      this.#wake?.();
    });
  }

  /** Events that are still waiting are delivered, later ones are dropped. */
  close(): void {
    this.#closed = true;
    this.#wake?.();
  }

  /** Yields until the mailbox is closed. A consumer that leaves earlier closes it. */
  async *events(): AsyncGenerator<AgentEvent, void, undefined> {
    let next: Delivery | undefined;
    try {
      for (;;) {
        next = this.#waiting.shift();
        if (next !== undefined) {
          yield next.event;
          next.delivered();
        } else if (this.#closed) return;
        else await this.#somethingNew();
      }
    } finally {
      this.#closed = true;
      next?.delivered();
      for (const { delivered } of this.#waiting.splice(0)) delivered();
    }
  }

  #somethingNew(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
