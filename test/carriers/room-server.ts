/** A room over WebSockets: broadcasts posts to everyone in it, numbers them, keeps them, and serves their files. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

export interface RoomPost {
  readonly id: string;
  readonly from: { readonly id: string; readonly name: string; readonly bot: boolean };
  readonly text: string;
  readonly mentions: readonly string[];
  readonly replyTo?: string;
  readonly edits?: string;
  readonly files: readonly { readonly name: string; readonly mediaType: string; readonly url: string }[];
  readonly at: number;
}

/** From a participant. */
export type RoomRequest =
  | { readonly join: RoomPost["from"]; readonly since?: string }
  | { readonly leave: string }
  | {
      readonly post: Partial<Pick<RoomPost, "text" | "mentions" | "replyTo" | "edits">> & {
        readonly ref: number;
        readonly as: string;
        readonly key?: string;
        readonly files?: readonly { readonly name: string; readonly mediaType: string; readonly base64: string }[];
      };
    };

/** To participants. */
export type RoomFrame =
  | { readonly joined: string }
  | { readonly left: string }
  | { readonly post: RoomPost }
  | { readonly ack: { readonly ref: number; readonly id: string } }
  | { readonly refused: { readonly ref: number; readonly why: string } };

export const MAX_TEXT = 400;

export class RoomServer {
  readonly posts: RoomPost[] = [];
  /** New connections are cut. */
  isFull = false;
  readonly #http: Server = createServer((request, response) => {
    const bytes = this.#files.get(request.url ?? "");
    response.writeHead(bytes === undefined ? 404 : 200).end(bytes);
  });
  readonly #files = new Map<string, Buffer>();
  readonly #keys = new Map<string, string>();
  readonly #members = new Map<WebSocket, Map<string, RoomPost["from"]>>();

  readonly #watchers: (() => void)[] = [];

  static async open(): Promise<RoomServer> {
    const room = new RoomServer();
    new WebSocketServer({ server: room.#http }).on("connection", (socket) => room.#accept(socket));
    room.#http.listen(0, "127.0.0.1");
    await once(room.#http, "listening");
    return room;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  get url(): string {
    return this.origin.replace("http", "ws");
  }

  /** Resolves when a participant is in the room. */
  joined(participant: string): Promise<void> {
    return this.#until(() => this.#has(participant));
  }

  /** Resolves when a participant is not in the room. */
  left(participant: string): Promise<void> {
    return this.#until(() => !this.#has(participant));
  }

  /** A frame that only the connection of one participant gets, whatever it says. */
  inject(participant: string, frame: string): void {
    for (const [socket, members] of this.#members) if (members.has(participant)) socket.send(frame);
  }

  /** Cuts the connection of a participant. */
  cut(participant: string): void {
    for (const [socket, members] of this.#members) if (members.has(participant)) socket.terminate();
  }

  async close(): Promise<void> {
    for (const socket of this.#members.keys()) socket.terminate();
    this.#http.closeAllConnections();
    this.#http.close();
    await once(this.#http, "close");
  }

  #has(participant: string): boolean {
    return [...this.#members.values()].some((members) => members.has(participant));
  }

  async #until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#watchers.push(resolve));
  }

  #accept(socket: WebSocket): void {
    if (this.isFull) {
      socket.terminate();
      return;
    }
    const members = new Map<string, RoomPost["from"]>();
    this.#members.set(socket, members);
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#members.delete(socket);
      for (const wake of this.#watchers.splice(0)) wake();
      for (const id of members.keys()) this.#broadcast({ left: id });
    });
    socket.on("message", (data) => this.#receive(socket, members, JSON.parse(String(data)) as RoomRequest));
  }

  #receive(socket: WebSocket, members: Map<string, RoomPost["from"]>, request: RoomRequest): void {
    if ("join" in request) {
      members.set(request.join.id, request.join);
      for (const wake of this.#watchers.splice(0)) wake();
      this.#broadcast({ joined: request.join.id });
      if (request.since === undefined) return;
      const { since } = request;
      const missed = this.posts.slice(this.posts.findIndex(({ id }) => id === since) + 1);
      for (const post of missed) send(socket, { post });
    } else if ("leave" in request) {
      members.delete(request.leave);
      this.#broadcast({ left: request.leave });
    } else this.#post(socket, members.get(request.post.as), request.post);
  }

  #post(
    socket: WebSocket,
    from: RoomPost["from"] | undefined,
    draft: Extract<RoomRequest, { post: unknown }>["post"],
  ): void {
    const { edits, files = [], key, mentions = [], ref, replyTo, text = "" } = draft;
    const known = key === undefined ? undefined : this.#keys.get(key);
    if (known !== undefined) {
      send(socket, { ack: { ref, id: known } });
      return;
    }
    const original = this.posts.find((post) => post.id === edits);
    const isOthers = edits !== undefined && original?.from.id !== from?.id;
    const why = isOthers ? "not yours" : text.length > MAX_TEXT ? "too long" : undefined;
    if (from === undefined || why !== undefined) {
      send(socket, { refused: { ref, why: why ?? "not in the room" } });
      return;
    }
    const id = `p${this.posts.length + 1}`;
    if (key !== undefined) this.#keys.set(key, id);
    const post: RoomPost = {
      id,
      from,
      text,
      mentions,
      ...(replyTo !== undefined && { replyTo }),
      ...(edits !== undefined && { edits }),
      files: files.map(({ base64, mediaType, name }) => {
        const path = `/files/${this.#files.size + 1}`;
        this.#files.set(path, Buffer.from(base64, "base64"));
        return { name, mediaType, url: `${this.origin}${path}` };
      }),
      at: Date.now(),
    };
    this.posts.push(post);
    send(socket, { ack: { ref, id } });
    this.#broadcast({ post });
  }

  #broadcast(frame: RoomFrame): void {
    for (const socket of this.#members.keys()) send(socket, frame);
  }
}

function send(socket: WebSocket, frame: RoomFrame): void {
  socket.send(JSON.stringify(frame));
}
