/** A person, or an agent of somebody else, in a room: raw frames, and everything that was posted while it was there. */
import { once } from "node:events";
import { WebSocket } from "ws";
import type { RoomFrame, RoomPost, RoomRequest, RoomServer } from "./room-server.ts";

type Said = Omit<Extract<RoomRequest, { post: unknown }>["post"], "as" | "ref" | "text">;

export class Participant {
  readonly id: string;
  /** In order, edits included. */
  readonly posts: RoomPost[] = [];
  readonly #socket: WebSocket;
  readonly #acks = new Map<number, (id: string) => void>();
  readonly #waiting = new Set<() => void>();
  #refs = 0;

  private constructor(id: string, socket: WebSocket) {
    this.id = id;
    this.#socket = socket;
    socket.on("message", (data) => this.#receive(JSON.parse(String(data)) as RoomFrame));
  }

  static async join(room: RoomServer, id: string, bot = false): Promise<Participant> {
    const socket = new WebSocket(room.url);
    const participant = new Participant(id, socket);
    await once(socket, "open");
    socket.send(JSON.stringify({ join: { id, name: id, bot } } satisfies RoomRequest));
    return participant;
  }

  /** Resolves with the id of the post. */
  say(text: string, how: Said = {}): Promise<string> {
    const ref = ++this.#refs;
    this.#socket.send(JSON.stringify({ post: { ...how, ref, as: this.id, text } } satisfies RoomRequest));
    return new Promise((resolve) => this.#acks.set(ref, resolve));
  }

  /** The post that an agent answers another one with, as it stands after the last edit, once it is as wanted. */
  async answerTo(replyTo: string, from: string, wanted: (text: string) => boolean = isFinished): Promise<RoomPost> {
    for (;;) {
      const found = this.answersTo(replyTo, from)[0];
      const latest = this.posts.findLast(({ edits, id }) => (edits ?? id) === found?.id);
      if (found !== undefined && latest !== undefined && wanted(latest.text)) return { ...latest, id: found.id };
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  /** Without the edits. */
  answersTo(replyTo: string, from?: string): readonly RoomPost[] {
    return this.posts.filter(
      (post) => post.replyTo === replyTo && post.edits === undefined && (from === undefined || post.from.id === from),
    );
  }

  /** The first post that is as wanted, from those before on. */
  async post(wanted: (post: RoomPost) => boolean): Promise<RoomPost> {
    for (;;) {
      const found = this.posts.find(wanted);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  leave(): void {
    this.#socket.terminate();
  }

  #receive(frame: RoomFrame): void {
    if ("ack" in frame) this.#acks.get(frame.ack.ref)?.(frame.ack.id);
    if ("post" in frame) this.posts.push(frame.post);
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

function isFinished(text: string): boolean {
  return !text.endsWith(" …");
}
