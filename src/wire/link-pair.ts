/** Two ends of a link in one process: for tests, and for callers and callees that share a process. */
import { createGate, type Gate } from "./gate.ts";
import { type Link, type LinkClosure, LinkError, NORMAL_CLOSURE } from "./link.ts";
import { LinkInbox } from "./link-inbox.ts";

export interface LinkPairOptions {
  /** Unread messages from which on `send` answers with a promise. */
  readonly highWater?: number;
  /** Unread messages at which `send` refuses. */
  readonly maxBuffered?: number;
}

/** One direction: where its sender waits, and what its reader has not read. */
interface Direction {
  readonly inbox: LinkInbox;
  room: Gate | undefined;
  /** Where the sender waits for its reader to have read all. */
  readAll: Gate | undefined;
}

export function createLinkPair(options: LinkPairOptions = {}): [Link, Link] {
  const { highWater = 64, maxBuffered = 1024 } = options;
  let closure: LinkClosure | undefined;
  let settleClosed = (_closure: LinkClosure): void => {};
  const closed = new Promise<LinkClosure>((resolve) => {
    settleClosed = resolve;
  });

  function createDirection(closeReader: () => void): Direction {
    const direction: Direction = {
      inbox: new LinkInbox({
        onTaken() {
          if (direction.inbox.size < highWater) openGate(direction, "room");
          if (direction.inbox.size === 0) openGate(direction, "readAll");
        },
        onLeft: closeReader,
      }),
      room: undefined,
      readAll: undefined,
    };
    return direction;
  }

  function createEnd(own: Direction, other: Direction): Link {
    return {
      send(text) {
        if (closure !== undefined) throw new LinkError("closed");
        if (other.inbox.size >= maxBuffered) throw new LinkError("buffer-full");
        other.inbox.put(text);
        if (other.inbox.size < highWater) return;
        other.room ??= createGate();
        return other.room.opened;
      },
      messages: own.inbox.messages,
      async received() {
        if (other.inbox.size > 0 && closure === undefined) {
          other.readAll ??= createGate();
          await other.readAll.opened;
        }
        return closure === undefined;
      },
      close(code = NORMAL_CLOSURE, reason = "") {
        own.inbox.drop();
        if (closure !== undefined) return;
        closure = { code, reason };
        for (const direction of [own, other]) {
          direction.inbox.close();
          openGate(direction, "room");
          openGate(direction, "readAll");
        }
        settleClosed(closure);
      },
      closed,
    };
  }

  const toLeft = createDirection(() => left.close());
  const toRight = createDirection(() => right.close());
  const left = createEnd(toLeft, toRight);
  const right = createEnd(toRight, toLeft);
  return [left, right];
}

function openGate(direction: Direction, name: "room" | "readAll"): void {
  direction[name]?.open();
  direction[name] = undefined;
}
