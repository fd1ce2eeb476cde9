/** Joins the pieces of messages that are longer than a post, within bounds. */

import type { Clock } from "../../../core/model/ports.ts";
import type { Post, PostFile } from "../../../core/wire/channel.ts";
import type { LiteMessage, Piece } from "../a2a-lite/message.ts";
import { MAX_PIECES } from "../a2a-lite/split-text.ts";

interface JoinLimits {
  /** Messages that are not complete, per peer and in total. */
  readonly messagesPerPeer: number;
  readonly messages: number;
  readonly pieces: number;
  /** Bytes of text of incomplete messages, per peer and in total. */
  readonly bytesPerPeer: number;
  readonly bytes: number;
  /** Time since the last piece after which a message is forgotten. */
  readonly maxAgeMs: number;
}

const JOIN_LIMITS: JoinLimits = {
  messagesPerPeer: 8,
  messages: 256,
  pieces: MAX_PIECES + 56,
  bytesPerPeer: 1024 * 1024,
  bytes: 16 * 1024 * 1024,
  maxAgeMs: 5 * 60_000,
};

export type Joined =
  | { readonly kind: "whole"; readonly message: LiteMessage; readonly files: readonly PostFile[] }
  /** Pieces are missing. */
  | { readonly kind: "incomplete" }
  /** The piece is ignored. `isFirst`: the first one of a message that is refused. */
  | { readonly kind: "refused"; readonly problem: string; readonly isFirst: boolean };

interface OpenMessage {
  readonly peer: string;
  readonly of: number;
  readonly head: LiteMessage;
  readonly pieces: Map<number, { readonly message: LiteMessage; readonly files: readonly PostFile[] }>;
  size: number;
  at: number;
  /** The pieces that follow are ignored. */
  isTooLong: boolean;
}

/** Joins pieces of the same message. Pieces of another peer, room or thread belong to another one. */
export class PieceJoiner {
  readonly #clock: Pick<Clock, "now">;
  readonly #limits: JoinLimits;
  /** In the order of their last pieces. */
  readonly #open = new Map<string, OpenMessage>();

  constructor(clock: Pick<Clock, "now">, limits: Partial<JoinLimits> = {}) {
    this.#clock = clock;
    this.#limits = { ...JOIN_LIMITS, ...limits };
  }

  /** Number of incomplete messages. */
  get size(): number {
    return this.#open.size;
  }

  add(post: Pick<Post, "room" | "thread" | "sender" | "files">, message: LiteMessage, piece: Piece): Joined {
    this.#expire();
    const { files, room, sender, thread } = post;
    if (piece.of === 1) return { kind: "whole", message, files };
    if (piece.of > this.#limits.pieces) return refuse(`more than ${this.#limits.pieces} pieces`, piece.part === 1);
    const peer = JSON.stringify([room, thread ?? null, sender.id]);
    const key = JSON.stringify([peer, piece.mid]);
    const open: OpenMessage = this.#open.get(key) ?? {
      peer,
      of: piece.of,
      head: message,
      pieces: new Map(),
      size: 0,
      at: 0,
      isTooLong: false,
    };
    if (open.isTooLong) return refuse(TOO_LONG);
    if (open.of !== piece.of) return refuse("pieces of one message differ in their number");
    if (nameOf(open.head) !== nameOf(message)) return refuse("pieces of one message differ in type or task");
    if (open.pieces.has(piece.part)) return refuse("the piece has been received before");
    open.size += bytesOf(message);
    open.at = this.#clock.now();
    open.pieces.set(piece.part, { message, files });
    this.#open.delete(key);
    if (open.pieces.size === open.of) return join(open);
    this.#open.set(key, open);
    this.#evict(peer);
    if (this.#open.has(key)) return { kind: "incomplete" };
    this.#open.set(key, { ...open, pieces: new Map(), size: 0, isTooLong: true });
    return refuse(TOO_LONG, true);
  }

  #expire(): void {
    const oldest = this.#clock.now() - this.#limits.maxAgeMs;
    for (const [key, { at }] of this.#open) {
      if (at > oldest) return;
      this.#open.delete(key);
    }
  }

  /** The oldest messages make room for new ones. */
  #evict(peer: string): void {
    const { bytes, bytesPerPeer, messages, messagesPerPeer } = this.#limits;
    const own = [...this.#open].filter(([, open]) => open.peer === peer);
    let size = own.reduce((sum, [, open]) => sum + open.size, 0);
    for (const [index, [key, open]] of own.entries()) {
      if (size <= bytesPerPeer && own.length - index <= messagesPerPeer) break;
      size -= open.size;
      this.#open.delete(key);
    }
    let total = 0;
    for (const open of this.#open.values()) total += open.size;
    for (const [key, open] of this.#open) {
      if (this.#open.size <= messages && total <= bytes) return;
      total -= open.size;
      this.#open.delete(key);
    }
  }
}

const TOO_LONG = "the message is too long";

function refuse(problem: string, isFirst = false): Joined {
  return { kind: "refused", problem, isFirst };
}

function nameOf(message: LiteMessage): string {
  const task = "task" in message ? message.task : "id" in message ? message.id : "";
  return JSON.stringify([message.type, task]);
}

/** Memory that a piece takes up beside its text. */
const PIECE_BYTES = 512;

function bytesOf({ attachments, body, others }: LiteMessage): number {
  let size = PIECE_BYTES + Buffer.byteLength(body);
  for (const name of attachments) size += Buffer.byteLength(name);
  for (const value of Object.values(others)) size += Buffer.byteLength(value);
  return size;
}

function join({ of, pieces }: OpenMessage): Joined {
  const ordered = Array.from({ length: of }, (_, index) => pieces.get(index + 1)).filter(
    (piece) => piece !== undefined,
  );
  const [first] = ordered;
  if (first === undefined) return refuse("the message has no pieces");
  const body = ordered.map(({ message }) => message.body).join("");
  const attachments = ordered.flatMap(({ message }) => message.attachments);
  const files = ordered.flatMap((piece) => piece.files);
  return { kind: "whole", message: { ...first.message, body, attachments }, files };
}
