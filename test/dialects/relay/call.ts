import { ProtocolError } from "../../../src/core/model/errors.ts";
import type { CallContext, FrameStream, Operation, OutcomeOf, StreamFrame } from "../../../src/core/model/operation.ts";
import type { Link } from "../../../src/core/wire/link.ts";
import { callingEach, type OneLinkCaller } from "../each-link.ts";
import { messageOf } from "./encode.ts";
import { type Answer, readAnswer } from "./schema.ts";

export const calling = callingEach((link) => new RelayCaller(link));

interface Pending {
  readonly kind: Operation["kind"];
  readonly resolve: (outcome: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly frames: FrameQueue;
}

class RelayCaller implements OneLinkCaller {
  readonly #link: Link;
  readonly #pending = new Map<number, Pending>();
  #next = 0;
  #closed = false;

  constructor(link: Link) {
    this.#link = link;
    void this.#listen();
  }

  async dispatch<O extends Operation>(operation: O, { signal }: Pick<CallContext, "signal">): Promise<OutcomeOf<O>> {
    const question = questionOf(operation);
    if (this.#closed) throw gone();
    if (signal?.aborted) throw givenUp();
    const ask = this.#next++;
    const outcome = new Promise<unknown>((resolve, reject) => {
      const frames = new FrameQueue(() => this.#hush(ask));
      this.#pending.set(ask, { kind: operation.kind, resolve, reject, frames });
      signal?.addEventListener("abort", () => this.#fail(ask, givenUp()), { once: true });
    });
    try {
      await this.#link.send(JSON.stringify({ ask, ...question }));
    } catch {
      this.#fail(ask, gone());
    }
    return (await outcome) as OutcomeOf<O>;
  }

  async #listen(): Promise<void> {
    for await (const text of this.#link.messages) {
      try {
        this.#take(readAnswer(text));
      } catch (error) {
        if (!ProtocolError.is(error)) throw error;
      }
    }
    this.#closed = true;
    for (const ask of [...this.#pending.keys()]) this.#fail(ask, gone());
  }

  #take(answer: Answer): void {
    const pending = this.#pending.get(answer.re);
    if (pending === undefined) return;
    if ("error" in answer) this.#fail(answer.re, new ProtocolError(answer.error.code, answer.error.text));
    else if ("begin" in answer) pending.resolve(pending.frames);
    else if ("event" in answer) pending.frames.push(new Frame(answer.event, answer.at));
    else if ("end" in answer) {
      this.#pending.delete(answer.re);
      pending.frames.end();
    } else {
      this.#pending.delete(answer.re);
      // A send is answered with either, the others with a bare task.
      if ("message" in answer) pending.resolve({ message: answer.message });
      else pending.resolve(pending.kind === "send" ? { task: answer.task } : answer.task);
    }
  }

  #fail(ask: number, error: Error): void {
    const pending = this.#pending.get(ask);
    this.#pending.delete(ask);
    pending?.reject(error);
    pending?.frames.end(error);
  }

  #hush(ask: number): void {
    if (!this.#pending.delete(ask) || this.#closed) return;
    void this.#link.send(JSON.stringify({ ask, do: "hush" }));
  }
}

class Frame implements StreamFrame {
  readonly event: StreamFrame["event"];
  readonly number?: number;
  constructor(event: StreamFrame["event"], number: number | undefined) {
    this.event = event;
    if (number !== undefined) this.number = number;
  }
  get json(): string {
    return JSON.stringify(this.event);
  }
}

class FrameQueue implements FrameStream, AsyncIterator<readonly StreamFrame[], undefined> {
  #frames: StreamFrame[] = [];
  #ended = false;
  #error: Error | undefined;
  #wake = () => {};
  readonly #leave: () => void;

  constructor(leave: () => void) {
    this.#leave = leave;
  }

  push(frame: StreamFrame): void {
    this.#frames.push(frame);
    this.#wake();
  }

  end(error?: Error): void {
    this.#ended = true;
    this.#error = error;
    this.#wake();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<readonly StreamFrame[], undefined>> {
    while (this.#frames.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const value = this.#frames;
    this.#frames = [];
    if (value.length > 0) return { done: false, value };
    if (this.#error !== undefined) throw this.#error;
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#leave();
    this.end();
    return { done: true, value: undefined };
  }
}

function questionOf(operation: Operation): object {
  switch (operation.kind) {
    case "send": {
      const soon = operation.configuration?.returnImmediately === true ? true : undefined;
      return { do: "say", message: messageOf(operation.message), soon };
    }
    case "stream":
      return { do: "tell", message: messageOf(operation.message) };
    case "get":
      return { do: "look", job: operation.id };
    case "cancel":
      return { do: "stop", job: operation.id };
    case "subscribe":
      return { do: "watch", job: operation.id, after: operation.after };
    default:
      throw new ProtocolError("UNSUPPORTED_OPERATION", `The relay has no word for ${operation.kind}.`);
  }
}

const gone = () => new ProtocolError("UNAVAILABLE", "The link is closed.");
const givenUp = () => new ProtocolError("UNAVAILABLE", "The question was taken back.");
