/** Reads events of rooms by `/sync`, from where an earlier connection stopped. */

import type { ChannelOptions, Post } from "../../wire/channel.ts";
import type { ChannelTools } from "../network.ts";
import type { PostQueue } from "../post-queue.ts";
import { type MatrixApi, MatrixError } from "./api.ts";
import { type MatrixEvent, readMessage } from "./content.ts";
import type { MatrixRooms } from "./rooms.ts";

type Cursors = ChannelOptions["cursors"];

interface SyncContext {
  readonly api: MatrixApi;
  readonly rooms: MatrixRooms;
  readonly self: string;
  readonly queue: PostQueue;
  readonly tools: ChannelTools;
  readonly signal: AbortSignal;
}

interface SyncReply {
  readonly next_batch: string;
  readonly rooms?: {
    readonly join?: Readonly<Record<string, JoinedRoom>>;
    readonly invite?: Readonly<Record<string, unknown>>;
  };
}

interface JoinedRoom {
  readonly state?: { readonly events?: readonly MatrixEvent[] };
  readonly timeline?: {
    readonly events?: readonly MatrixEvent[];
    readonly limited?: boolean;
    readonly prev_batch?: string;
  };
}

/** How long the server waits for something new. */
const WAIT_MS = 30_000;
const PAGE = 100;
/** Pages that are read after an absence; what is older is not delivered. */
const MAX_PAGES = 20;
/** Posts whose thread is remembered, for their edits, which do not name it. */
const MAX_THREADS = 1_000;

/** Where reading begins: after the last post of an earlier connection, or now. */
export async function findStart(context: Pick<SyncContext, "api" | "rooms" | "signal">, cursors: Cursors) {
  const token = newestToken(cursors);
  try {
    return (await sync(context, token, 0)).start;
  } catch (error) {
    // A token of another account or server.
    if (token === undefined || !(error instanceof MatrixError) || error.status !== 400) throw error;
    return (await sync(context, undefined, 0)).start;
  }
}

/** Resolves when aborted; rejects if the connection has failed. */
export async function syncRooms(context: SyncContext, start: string): Promise<void> {
  const { api, rooms, self, signal, tools } = context;
  const threads = new Map<string, string>();
  let since = start;
  while (!signal.aborted) {
    const reply = await syncPatiently(context, since);
    if (reply === undefined) continue;
    for (const id of Object.keys(reply.rooms?.invite ?? {})) {
      const room = rooms.byId(id);
      if (room !== undefined) await rooms.join(room, signal);
    }
    const posts: Omit<Post, "cursor">[] = [];
    for (const [id, joined] of Object.entries(reply.rooms?.join ?? {})) {
      const room = rooms.byId(id);
      if (room === undefined) continue;
      for (const event of joined.state?.events ?? []) rooms.apply(room, event);
      const missed = await readMissed(api, id, joined, since, signal);
      for (const event of [...missed, ...(joined.timeline?.events ?? [])]) {
        rooms.apply(room, event);
        const post = room.encrypted ? undefined : toPost(event, room, self, threads, api);
        if (post !== undefined) posts.push(post);
      }
    }
    const { next_batch } = reply;
    posts.forEach((post, index) => {
      // Reading continues after a whole batch only: before its last post, the token is that of the batch before.
      const token = index === posts.length - 1 ? next_batch : since;
      context.queue.push({ ...post, cursor: `${tools.clock.now()} ${token}` });
    });
    since = next_batch;
  }
}

/** `start` is where reading begins if nothing of the reply is used. */
async function sync(
  { api, rooms, signal }: Pick<SyncContext, "api" | "rooms" | "signal">,
  since: string | undefined,
  waitMs: number,
): Promise<SyncReply & { readonly start: string }> {
  const none = { types: [] };
  const timeline = { limit: since === undefined ? 0 : PAGE };
  const room = { rooms: rooms.ids, timeline, state: { types: ["m.room.member", "m.room.encryption"] } };
  const filter = { presence: none, account_data: none, room: { ...room, ephemeral: none, account_data: none } };
  const query = { filter: JSON.stringify(filter), timeout: `${waitMs}`, ...(since !== undefined && { since }) };
  const reply = await api.get<SyncReply>("v3/sync", { query, waitMs, signal });
  return { ...reply, start: since ?? reply.next_batch };
}

/** Undefined if the server asked to wait, which has been done. */
async function syncPatiently(context: SyncContext, since: string): Promise<SyncReply | undefined> {
  const { signal, tools } = context;
  try {
    return await sync(context, since, WAIT_MS);
  } catch (error) {
    if (signal.aborted) return undefined;
    if (!(error instanceof MatrixError) || error.status !== 429) throw error;
    const { retryAfterMs = 1_000 } = error;
    await new Promise<void>((resolve) => {
      const cancel = tools.clock.after(retryAfterMs, resolve);
      signal.addEventListener("abort", () => {
        cancel();
        resolve();
      });
    });
    return undefined;
  }
}

/** Events between `since` and a timeline that does not reach back to it, oldest first. */
async function readMissed(
  api: MatrixApi,
  id: string,
  { timeline }: JoinedRoom,
  since: string,
  signal: AbortSignal,
): Promise<readonly MatrixEvent[]> {
  const missed: MatrixEvent[] = [];
  let from = timeline?.limited === true ? timeline.prev_batch : undefined;
  for (let page = 0; from !== undefined && page < MAX_PAGES; page++) {
    const query = { dir: "b", from, to: since, limit: `${PAGE}` };
    const path = `v3/rooms/${encodeURIComponent(id)}/messages`;
    const found = await api.get<{ chunk: readonly MatrixEvent[]; end?: string }>(path, { query, signal });
    missed.push(...found.chunk);
    from = found.chunk.length === 0 ? undefined : found.end;
  }
  return missed.reverse();
}

function toPost(
  event: MatrixEvent,
  { members, name }: { readonly members: ReadonlyMap<string, string>; readonly name: string },
  self: string,
  threads: Map<string, string>,
  api: MatrixApi,
): Omit<Post, "cursor"> | undefined {
  const message = readMessage(event);
  if (message === undefined) return undefined;
  const { bot, file, ...rest } = message;
  const { event_id: id, origin_server_ts: at, sender } = event;
  const thread = message.thread ?? (message.edits === undefined ? undefined : threads.get(message.edits));
  if (message.thread !== undefined) threads.set(id, message.thread);
  const [oldest] = threads.keys();
  if (threads.size > MAX_THREADS && oldest !== undefined) threads.delete(oldest);
  return {
    id,
    room: name,
    direct: members.size === 2,
    sender: { id: sender, name: members.get(sender) ?? sender, bot, self: sender === self, verified: true },
    ...rest,
    ...(thread !== undefined && { thread }),
    files:
      file === undefined
        ? []
        : [{ ...file, read: (maxBytes: number, signal?: AbortSignal) => api.download(file.uri, maxBytes, signal) }],
    at,
  };
}

/** Tokens are those of the whole account, so that the newest one of any room is where reading continues. */
function newestToken(cursors: Cursors): string | undefined {
  const marks = [...cursors.values()].map((cursor) => {
    const [, at = "", token = ""] = /^(\d+) (.+)$/.exec(cursor) ?? [];
    return { at: Number(at), token };
  });
  const newest = marks.filter(({ token }) => token !== "").sort((a, b) => a.at - b.at);
  return newest.at(-1)?.token;
}
