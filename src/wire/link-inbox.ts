import { createGate, type Gate } from "./gate.ts";
import { LinkError } from "./link.ts";

export interface LinkInboxOptions {
  /** The reader took a message. */
  readonly onTaken: () => void;
  /** The reader left its loop, or came to its end. */
  readonly onLeft: () => void;
}

/** What has arrived at one end of a link and has not been read. */
export class LinkInbox {
  readonly messages: AsyncIterable<string>;
  readonly #unread: string[] = [];
  readonly #options: LinkInboxOptions;
  /** Where the reader waits for a message. */
  #arrival: Gate | undefined;
  #taken = false;
  #closed = false;

  constructor(options: LinkInboxOptions) {
    this.#options = options;
    this.messages = {
      [Symbol.asyncIterator]: () => {
        if (this.#taken) throw new LinkError("already-read");
        this.#taken = true;
        return this.#read();
      },
    };
  }

  get size(): number {
    return this.#unread.length;
  }

  put(text: string): void {
    this.#unread.push(text);
    this.#wake();
  }

  /** Nothing more will come; what is unread can still be read. */
  close(): void {
    this.#closed = true;
    this.#wake();
  }

  drop(): void {
    this.#unread.length = 0;
  }

  #wake(): void {
    this.#arrival?.open();
    this.#arrival = undefined;
  }

  async *#read(): AsyncGenerator<string, void, undefined> {
    try {
      for (;;) {
        for (let text = this.#unread.shift(); text !== undefined; text = this.#unread.shift()) {
          this.#options.onTaken();
          yield text;
        }
        if (this.#closed) return;
        this.#arrival = createGate();
        await this.#arrival.opened;
      }
    } finally {
      this.#options.onLeft();
    }
  }
}
