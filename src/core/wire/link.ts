import type { Connection } from "./connection.ts";

/**
 * A link: text messages in both directions, opened by either side.
 *
 * Messages are iterated, not called back: nothing can arrive before the reader is there to see it, one message is
 * handled before the next, a slow reader makes the sender wait, and the end of the link is the end of the loop.
 */
export interface Link extends Connection {
  /**
   * Messages arrive in the order sent. A promise means the other side is behind and resolves when it may be sent more
   * (or the link has closed): await it. Throws `LinkError` when the link has closed, or when promises were ignored
   * until the buffer was full.
   */
  send(text: string): void | Promise<void>;
  /** For one reader, once. Ends when the link closes, after what arrived before; leaving the loop closes the link. */
  readonly messages: AsyncIterable<string>;
  /**
   * Asks whether the other side has got all that was sent so far: true when it says so, false when the link closed
   * before it did. Without it the fate of the last messages on a link that closed is unknown, however it closed.
   */
  received(): Promise<boolean>;
  /** Messages sent before it still arrive; unread ones here are dropped. */
  close(code?: number, reason?: string): void;
}

type LinkErrorCode = "closed" | "buffer-full" | "already-read";

const LINK_ERROR_MESSAGES = {
  closed: "The link is closed.",
  "buffer-full": "The other side of the link is too far behind.",
  "already-read": "The messages of a link have one reader.",
} satisfies Record<LinkErrorCode, string>;

export class LinkError extends Error {
  override readonly name = "LinkError";
  readonly code: LinkErrorCode;

  constructor(code: LinkErrorCode) {
    super(LINK_ERROR_MESSAGES[code]);
    this.code = code;
  }
}

/** Something to wait at until it is opened, once. */
export interface Deferred {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

export function createDeferred(): Deferred {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise: opened, resolve: open };
}

interface LinkInboxOptions {
  /** The reader took a message. */
  readonly onRead: () => void;
  /** The reader left its loop, or came to its end. */
  readonly onReaderDone: () => void;
}

/** What has arrived at one end of a link and has not been read. */
export class LinkInbox {
  readonly messages: AsyncIterable<string>;
  readonly #unread: string[] = [];
  readonly #options: LinkInboxOptions;
  /** Where the reader waits for a message. */
  #arrival: Deferred | undefined;
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

  push(text: string): void {
    this.#unread.push(text);
    this.#wake();
  }

  /** Nothing more will come; what is unread can still be read. */
  close(): void {
    this.#closed = true;
    this.#wake();
  }

  clear(): void {
    this.#unread.length = 0;
  }

  #wake(): void {
    this.#arrival?.resolve();
    this.#arrival = undefined;
  }

  async *#read(): AsyncGenerator<string, void, undefined> {
    try {
      for (;;) {
        for (let text = this.#unread.shift(); text !== undefined; text = this.#unread.shift()) {
          this.#options.onRead();
          yield text;
        }
        if (this.#closed) return;
        this.#arrival = createDeferred();
        await this.#arrival.promise;
      }
    } finally {
      this.#options.onReaderDone();
    }
  }
}
