import { setTimeout as sleep } from "node:timers/promises";
import type { Channel, Post } from "../../../core/wire/channel.ts";

/** Enough to find a post that arrived before it was waited for. */
const MAX_KEPT = 200;

/** Reads a channel in the background, so that several steps can wait for posts. */
export class PostReader {
  readonly #kept: Post[] = [];
  readonly #listeners = new Set<(post: Post) => void>();

  constructor(channel: Channel) {
    void this.#read(channel).catch(() => {});
  }

  /** The first post, also of those that arrived already, for which `find` returns something; undefined after the time. */
  async first<T>(
    find: (post: Post) => T | undefined,
    milliseconds: number,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    for (const post of this.#kept) {
      const found = find(post);
      if (found !== undefined) return found;
    }
    const ended = new AbortController();
    let found: T | undefined;
    const listen = (post: Post): void => {
      found ??= find(post);
      if (found !== undefined) ended.abort();
    };
    this.#listeners.add(listen);
    await sleep(milliseconds, undefined, { signal: AbortSignal.any([signal, ended.signal]) }).catch(() => {});
    this.#listeners.delete(listen);
    return found;
  }

  async #read(channel: Channel): Promise<void> {
    for await (const post of channel.posts) {
      channel.acknowledge?.(post);
      this.#kept.push(post);
      if (this.#kept.length > MAX_KEPT) this.#kept.shift();
      for (const listen of this.#listeners) listen(post);
    }
  }
}
