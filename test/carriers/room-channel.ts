/** A connection to a room server as a channel; several participants may share it. */
import type { Clock } from "../../src/model/ports.ts";
import { type Link, LinkInbox } from "../../src/wire/link.ts";
import { dialWebSocket } from "../../src/wire/websocket-dial.ts";
import type { Channel, Post, PostDraft } from "./channel.ts";
import { MAX_TEXT, type RoomFrame, type RoomPost, type RoomRequest } from "./room-server.ts";

export interface RoomChannelOptions {
  readonly url: string;
  readonly room: string;
  readonly participants: readonly RoomPost["from"][];
  /** Posts that follow it are sent again. */
  readonly since: string | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export async function dialRoom(options: RoomChannelOptions): Promise<Channel> {
  const { clock, participants, signal, since, url } = options;
  const link = await dialWebSocket(url, { clock, headers: {}, connectTimeoutMs: 10_000, signal });
  participants.forEach((join, index) => {
    void link.send(
      JSON.stringify({ join, ...(index === 0 && since !== undefined && { since }) } satisfies RoomRequest),
    );
  });
  return new RoomChannel(link, options);
}

interface Pending {
  readonly resolve: (id: string) => void;
  readonly reject: (error: Error) => void;
}

class RoomChannel implements Channel {
  readonly abilities = { maxText: MAX_TEXT, edits: true, files: true, threads: true };
  readonly posts: AsyncIterable<Post>;
  readonly closed: Channel["closed"];
  readonly #link: Link;
  readonly #options: RoomChannelOptions;
  readonly #pending = new Map<number, Pending>();
  #refs = 0;

  constructor(link: Link, options: RoomChannelOptions) {
    this.#link = link;
    this.#options = options;
    this.closed = link.closed;
    // Acknowledgements must be read while the reader of posts waits for one.
    const inbox = new LinkInbox({ onRead() {}, onReaderDone: () => link.close() });
    this.posts = this.#read(inbox.messages);
    void this.#pump(inbox);
  }

  close(code?: number, reason?: string): void {
    this.#link.close(code, reason);
  }

  async post(draft: PostDraft): Promise<{ readonly id: string }> {
    return { id: await this.#send(draft) };
  }

  async edit(id: string, draft: PostDraft): Promise<void> {
    await this.#send({ ...draft, key: undefined }, id);
  }

  #send(
    { as = "", files = [], key, mentions, replyTo, text }: Omit<PostDraft, "key"> & { key?: string | undefined },
    edits?: string,
  ) {
    const ref = ++this.#refs;
    const request: RoomRequest = {
      post: {
        ref,
        as,
        text,
        files: files.map(({ bytes, ...file }) => ({ ...file, base64: Buffer.from(bytes).toString("base64") })),
        ...(key !== undefined && { key }),
        ...(mentions !== undefined && { mentions }),
        ...(replyTo !== undefined && { replyTo }),
        ...(edits !== undefined && { edits }),
      },
    };
    return new Promise<string>((resolve, reject) => {
      this.#pending.set(ref, { resolve, reject });
      void this.#link.send(JSON.stringify(request));
    });
  }

  async #pump(inbox: LinkInbox): Promise<void> {
    for await (const text of this.#link.messages) {
      const frame = readFrame(text);
      if (frame === undefined) continue;
      if ("ack" in frame) this.#settle(frame.ack.ref, ({ resolve }) => resolve(frame.ack.id));
      else if ("refused" in frame)
        this.#settle(frame.refused.ref, ({ reject }) => reject(new Error(frame.refused.why)));
      else if ("post" in frame) inbox.push(text);
    }
    inbox.close();
    for (const ref of [...this.#pending.keys()]) this.#settle(ref, ({ reject }) => reject(new Error("closed")));
  }

  #settle(ref: number, how: (pending: Pending) => void): void {
    const pending = this.#pending.get(ref);
    this.#pending.delete(ref);
    if (pending !== undefined) how(pending);
  }

  async *#read(texts: AsyncIterable<string>): AsyncGenerator<Post, void, undefined> {
    const own = new Set(this.#options.participants.map(({ id }) => id));
    for await (const text of texts) {
      const { from, ...post } = (JSON.parse(text) as { readonly post: RoomPost }).post;
      yield { ...post, room: this.#options.room, sender: { ...from, self: own.has(from.id) } };
    }
  }
}

/** Undefined for what is not a frame of this protocol. */
function readFrame(text: string): RoomFrame | undefined {
  try {
    const frame: unknown = JSON.parse(text);
    if (typeof frame !== "object" || frame === null) return undefined;
    if ("ack" in frame || "refused" in frame) return frame as RoomFrame;
    if (!("post" in frame)) return undefined;
    const { files, from, id, mentions, text: said } = (frame.post ?? {}) as Partial<RoomPost>;
    const isWhole = typeof id === "string" && typeof said === "string" && typeof from?.id === "string";
    return isWhole && Array.isArray(mentions) && Array.isArray(files) ? (frame as RoomFrame) : undefined;
  } catch {
    return undefined;
  }
}
