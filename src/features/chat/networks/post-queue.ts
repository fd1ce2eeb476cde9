/** The receiving end of a channel: posts that have arrived and not been read, and how the channel ended. */

import type { Post } from "../../../core/wire/channel.ts";
import { type Closure, INTERNAL_ERROR_CLOSURE, NORMAL_CLOSURE } from "../../../core/wire/connection.ts";

/** A reader that is this far behind does not read at all. */
const MAX_UNREAD = 10_000;

export interface PostQueue {
  /** For one reader. Ends after the queue has ended, when all has been read. */
  readonly posts: AsyncIterable<Post>;
  readonly closed: Promise<Closure>;
  readonly ended: boolean;
  /** Dropped if the queue has ended. Ends the queue if it is not read. */
  push(post: Post): void;
  /** The first call counts. Calls `onEnd` once. */
  end(code?: number, reason?: string): void;
}

/** `onEnd` disconnects from the network; `closed` resolves after it. It must not reject. */
export function createPostQueue(onEnd: (closure: Closure) => void | Promise<void>): PostQueue {
  const unread: Post[] = [];
  let wake = (): void => {};
  let ended = false;
  let resolveClosed: (closure: Closure) => void = () => {};
  const closed = new Promise<Closure>((resolve) => {
    resolveClosed = resolve;
  });

  function end(code = NORMAL_CLOSURE, reason = ""): void {
    if (ended) return;
    ended = true;
    wake();
    void Promise.resolve(onEnd({ code, reason })).then(() => resolveClosed({ code, reason }));
  }

  async function* read(): AsyncGenerator<Post, void, undefined> {
    for (;;) {
      for (let post = unread.shift(); post !== undefined; post = unread.shift()) yield post;
      if (ended) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }

  return {
    posts: { [Symbol.asyncIterator]: read },
    closed,
    get ended() {
      return ended;
    },
    push(post) {
      if (ended) return;
      unread.push(post);
      wake();
      if (unread.length > MAX_UNREAD) end(INTERNAL_ERROR_CLOSURE, "Too many unread posts.");
    },
    end,
  };
}
