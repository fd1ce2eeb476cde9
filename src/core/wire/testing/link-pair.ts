/** Two ends of a link in one process: for tests, and for callers and callees that share a process. */

import { type Closure, NORMAL_CLOSURE } from "../connection.ts";
import { createDeferred, type Deferred, type Link, LinkError, LinkInbox } from "../link.ts";

interface LinkPairOptions {
  /** Unread messages from which on `send` answers with a promise. */
  readonly highWater?: number;
  /** Unread messages at which `send` refuses. */
  readonly maxBuffered?: number;
}

/** One direction: where its sender waits, and what its reader has not read. */
interface Direction {
  readonly inbox: LinkInbox;
  room: Deferred | undefined;
  /** Where the sender waits for its reader to have read all. */
  readAll: Deferred | undefined;
}

export function createLinkPair(options: LinkPairOptions = {}): [Link, Link] {
  const { highWater = 64, maxBuffered = 1024 } = options;
  let closure: Closure | undefined;
  let settleClosed = (_closure: Closure): void => {};
  const closed = new Promise<Closure>((resolve) => {
    settleClosed = resolve;
  });

  function createDirection(closeReader: () => void): Direction {
    const direction: Direction = {
      inbox: new LinkInbox({
        onRead() {
          if (direction.inbox.size < highWater) resolveDeferred(direction, "room");
          if (direction.inbox.size === 0) resolveDeferred(direction, "readAll");
        },
        onReaderDone: closeReader,
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
        other.inbox.push(text);
        if (other.inbox.size < highWater) return;
        other.room ??= createDeferred();
        return other.room.promise;
      },
      messages: own.inbox.messages,
      async received() {
        if (other.inbox.size > 0 && closure === undefined) {
          other.readAll ??= createDeferred();
          await other.readAll.promise;
        }
        return closure === undefined;
      },
      close(code = NORMAL_CLOSURE, reason = "") {
        own.inbox.clear();
        if (closure !== undefined) return;
        closure = { code, reason };
        for (const direction of [own, other]) {
          direction.inbox.close();
          resolveDeferred(direction, "room");
          resolveDeferred(direction, "readAll");
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

function resolveDeferred(direction: Direction, name: "room" | "readAll"): void {
  direction[name]?.resolve();
  direction[name] = undefined;
}
