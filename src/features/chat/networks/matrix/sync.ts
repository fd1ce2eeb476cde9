/** Reads events of rooms by `/sync`, from where an earlier connection stopped. */

import { sleep } from "../../../../core/model/backoff.ts";
import type { ChannelOptions, Post } from "../../../../core/wire/channel.ts";
import { addTextMention } from "../mentions.ts";
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

/** Resolves with where reading begins; what came before it is read from the cursors. */
export async function findStart(context: Pick<SyncContext, "api" | "rooms" | "signal">): Promise<string> {
  return (await sync(context, undefined, 0)).next_batch;
}

/** Resolves when aborted; rejects if the connection has failed. */
export async function syncRooms(context: SyncContext, start: string, cursors: Cursors): Promise<void> {
  const { api, queue, rooms, signal } = context;
  const reader = createReader(context);
  for (const [name, cursor] of cursors) await readFrom(context, reader, name, cursor, start);
  let since = start;
  while (!signal.aborted) {
    const reply = await syncPatiently(context, since);
    if (reply === undefined) continue;
    for (const id of Object.keys(reply.rooms?.invite ?? {})) {
      const room = rooms.byId(id);
      if (room !== undefined) await rooms.join(room, signal);
    }
    for (const [id, joined] of Object.entries(reply.rooms?.join ?? {})) {
      const room = rooms.byId(id);
      if (room === undefined) continue;
      const missed = await readMissed(api, id, joined, since, signal);
      const events = [...missed, ...(joined.timeline?.events ?? [])];
      for (const event of [...(joined.state?.events ?? []), ...events]) rooms.apply(room, event);
      for (const post of reader(room, events, since, reply.next_batch)) queue.push(post);
    }
    since = reply.next_batch;
  }
}

type Room = NonNullable<ReturnType<MatrixRooms["byId"]>>;
type Reader = (room: Room, events: readonly MatrixEvent[], before: string, after: string) => Post[];

/** Posts of a batch of events, which is between two tokens. Reading continues after whole batches only. */
function createReader({ api, self }: SyncContext): Reader {
  const threads = new Map<string, string>();
  return (room, events, before, after) => {
    if (room.encrypted) return [];
    const posts = events.flatMap((event) => toPost(event, room, self, threads, api) ?? []);
    return posts.map((post, index) => ({ ...post, cursor: index === posts.length - 1 ? after : before }));
  };
}

/** What was posted in a room between a cursor and the start. */
async function readFrom(
  { api, queue, rooms, signal, tools }: SyncContext,
  reader: Reader,
  name: string,
  cursor: string,
  to: string,
) {
  const room = rooms.find(name);
  let from: string | undefined = cursor;
  try {
    for (let page = 0; room !== undefined && from !== undefined && page < MAX_PAGES; page++) {
      const query: Record<string, string> = { dir: "f", from, to, limit: `${PAGE}` };
      const { chunk, end } = await readPage(api, room.id, query, signal);
      for (const post of reader(room, chunk, from, end ?? to)) queue.push(post);
      from = chunk.length === 0 ? undefined : end;
    }
  } catch (error) {
    // A token of another account or server.
    if (!(error instanceof MatrixError) || error.status !== 400) throw error;
    tools.log.warn({ room: name }, `The homeserver does not know where reading ended in ${name}; it begins now.`);
  }
}

function sync(
  { api, rooms, signal }: Pick<SyncContext, "api" | "rooms" | "signal">,
  since: string | undefined,
  waitMs: number,
): Promise<SyncReply> {
  const none = { types: [] };
  const timeline = { limit: since === undefined ? 0 : PAGE };
  const room = { rooms: rooms.ids, timeline, state: { types: ["m.room.member", "m.room.encryption"] } };
  const filter = { presence: none, account_data: none, room: { ...room, ephemeral: none, account_data: none } };
  const query = { filter: JSON.stringify(filter), timeout: `${waitMs}`, ...(since !== undefined && { since }) };
  return api.get<SyncReply>("v3/sync", { query, waitMs, signal });
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
    // The caller sees by the signal that it is over.
    await sleep(tools.clock, retryAfterMs, signal).catch(() => {});
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
    const { chunk, end } = await readPage(api, id, query, signal);
    missed.push(...chunk);
    from = chunk.length === 0 ? undefined : end;
  }
  return missed.reverse();
}

interface Page {
  readonly chunk: readonly MatrixEvent[];
  /** Absent on the last one. */
  readonly end?: string;
}

function readPage(api: MatrixApi, id: string, query: Readonly<Record<string, string>>, signal: AbortSignal) {
  return api.get<Page>(`v3/rooms/${encodeURIComponent(id)}/messages`, { query, signal });
}

function toPost(
  event: MatrixEvent,
  { members, name }: { readonly members: ReadonlyMap<string, string>; readonly name: string },
  self: string,
  threads: Map<string, string>,
  api: MatrixApi,
): Post | undefined {
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
    // People type a name without choosing it from the list, and then it is only text.
    mentions: addTextMention(
      message.mentions,
      message.text,
      self,
      self.slice(1),
      localPart(self),
      members.get(self) ?? "",
    ),
    thread,
    files:
      file === undefined
        ? []
        : [{ ...file, read: (maxBytes: number, signal?: AbortSignal) => api.download(file.uri, maxBytes, signal) }],
    at,
  };
}

/** `helper` of `@helper:example.org`. */
function localPart(id: string): string {
  return id.slice(1).split(":", 1)[0] ?? "";
}
