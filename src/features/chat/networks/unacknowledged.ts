/** Posts that the network delivers again if this process ends before it has handled them. */

import type { Clock } from "../../../core/model/ports.ts";
import type { Post } from "../../../core/wire/channel.ts";

/** The network is not kept waiting for longer: what takes more time may wait for a post that comes after it. */
const MAX_HANDLING_MS = 5_000;

interface Unacknowledged {
  /** `release` tells the network, when the post is acknowledged or after a while. */
  hold(post: Post, release: () => void): void;
  acknowledge(post: Post): void;
  /** Nothing of what is held is acknowledged to the network. */
  clear(): void;
}

export function createUnacknowledged(clock: Clock): Unacknowledged {
  const held = new Map<Post, { readonly release: () => void; readonly stop: () => void }>();
  function acknowledge(post: Post): void {
    const found = held.get(post);
    held.delete(post);
    found?.stop();
    found?.release();
  }
  return {
    hold(post, release) {
      held.set(post, { release, stop: clock.after(MAX_HANDLING_MS, () => acknowledge(post)) });
    },
    acknowledge,
    clear() {
      for (const { stop } of held.values()) stop();
      held.clear();
    },
  };
}
