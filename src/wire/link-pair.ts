/** Two ends of a link in one process: for tests, and for callers and callees that share a process. */
import { type Link, type LinkClosure, LinkError, NORMAL_CLOSURE } from "./link.ts";

export interface LinkPairOptions {
  /** Unread messages from which on `send` answers with a promise. */
  readonly highWater?: number;
  /** Unread messages at which `send` refuses. */
  readonly maxBuffered?: number;
}

interface Gate {
  readonly opened: Promise<void>;
  readonly open: () => void;
}

function createGate(): Gate {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** What one end has been sent and has not read. */
interface Inbox {
  readonly unread: string[];
  /** Where the reader waits for a message. */
  arrival: Gate | undefined;
  /** Where the sender waits for room. */
  room: Gate | undefined;
}

function openGates(inbox: Inbox): void {
  inbox.arrival?.open();
  inbox.arrival = undefined;
  inbox.room?.open();
  inbox.room = undefined;
}

export function createLinkPair(options: LinkPairOptions = {}): [Link, Link] {
  const { highWater = 64, maxBuffered = 1024 } = options;
  let closure: LinkClosure | undefined;
  let settleClosed = (_closure: LinkClosure): void => {};
  const closed = new Promise<LinkClosure>((resolve) => {
    settleClosed = resolve;
  });

  function createEnd(own: Inbox, other: Inbox): Link {
    let taken = false;

    function send(text: string): void | Promise<void> {
      if (closure !== undefined) throw new LinkError("closed");
      if (other.unread.length >= maxBuffered) throw new LinkError("buffer-full");
      other.unread.push(text);
      other.arrival?.open();
      other.arrival = undefined;
      if (other.unread.length < highWater) return;
      other.room ??= createGate();
      return other.room.opened;
    }

    function close(code = NORMAL_CLOSURE, reason = ""): void {
      own.unread.length = 0;
      if (closure !== undefined) return;
      closure = { code, reason };
      openGates(own);
      openGates(other);
      settleClosed(closure);
    }

    async function* read(): AsyncGenerator<string, void, undefined> {
      try {
        for (;;) {
          for (let text = own.unread.shift(); text !== undefined; text = own.unread.shift()) {
            if (own.unread.length < highWater) {
              own.room?.open();
              own.room = undefined;
            }
            yield text;
          }
          if (closure !== undefined) return;
          own.arrival = createGate();
          await own.arrival.opened;
        }
      } finally {
        close();
      }
    }

    const messages: AsyncIterable<string> = {
      [Symbol.asyncIterator]() {
        if (taken) throw new LinkError("already-read");
        taken = true;
        return read();
      },
    };
    return { send, messages, close, closed };
  }

  const left: Inbox = { unread: [], arrival: undefined, room: undefined };
  const right: Inbox = { unread: [], arrival: undefined, room: undefined };
  return [createEnd(left, right), createEnd(right, left)];
}
