/** Messages of Discord as posts, live and from the history. */

import type { APIMessage, Client } from "discord.js";
import type { Participant, Post } from "../../../../core/wire/channel.ts";
import { download } from "../download.ts";
import { addTextMention } from "../mentions.ts";

export const SNOWFLAKE = /^\d{1,20}$/;
const PAGE = 100;
const MAX_PAGES = 10;
/** Messages of people and bots; the others are notices of Discord itself. */
const DEFAULT_TYPE = 0;
const REPLY_TYPE = 19;

/** What was posted after the cursors in these rooms and their threads, in the order of time. */
export async function readMissed(
  client: Client,
  toRoute: (channel: string) => `/${string}`,
  cursors: ReadonlyMap<string, string>,
  receive: (message: APIMessage) => Promise<void>,
  onError: (error: unknown) => void,
): Promise<void> {
  for (const [room, cursor] of cursors) {
    if (!SNOWFLAKE.test(room) || !SNOWFLAKE.test(cursor)) continue;
    const threads = client.channels.cache.filter((channel) => channel.isThread() && channel.parentId === room);
    const missed: APIMessage[] = [];
    for (const id of [room, ...threads.keys()]) {
      await readSince(client, toRoute(id), cursor, missed).catch(onError);
    }
    // The ids of all channels follow one clock.
    missed.sort((one, other) => (BigInt(one.id) < BigInt(other.id) ? -1 : 1));
    for (const message of missed) await receive(message);
  }
}

async function readSince(client: Client, route: `/${string}`, cursor: string, into: APIMessage[]): Promise<void> {
  let after = cursor;
  for (let page = 0; page < MAX_PAGES; page++) {
    const query = new URLSearchParams({ after, limit: String(PAGE) });
    const messages = (await client.rest.get(route, { query })) as APIMessage[];
    into.push(...messages);
    // Newest first.
    const [last] = messages;
    if (last === undefined || messages.length < PAGE) return;
    after = last.id;
  }
}

type Place = Pick<Post, "room" | "thread" | "direct">;

/** Undefined: the channel cannot be seen. */
export async function locate(
  client: Client,
  { channel_id: id, guild_id }: APIMessage & { readonly guild_id?: string },
): Promise<Place | undefined> {
  const channel = client.channels.cache.get(id) ?? (await client.channels.fetch(id).catch(() => null));
  if (channel?.isThread() === true && channel.parentId !== null) {
    return { room: channel.parentId, thread: id, direct: false };
  }
  if (channel === null && guild_id !== undefined) return undefined;
  return { room: id, direct: channel?.isDMBased() ?? true };
}

export function toPost(message: APIMessage, edited: boolean, place: Place, self: Participant): Post | undefined {
  const { attachments, author, content, edited_timestamp, id, mentions, message_reference, timestamp, type } = message;
  if (type !== DEFAULT_TYPE && type !== REPLY_TYPE) return undefined;
  // Discord itself updates messages too, e.g. to add previews of links.
  if (edited && typeof edited_timestamp !== "string") return undefined;
  const replyTo = type === REPLY_TYPE ? message_reference?.message_id : undefined;
  return {
    ...place,
    ...(edited
      ? { id: `${id}:${Date.parse(edited_timestamp ?? "")}`, edits: id, at: Date.parse(edited_timestamp ?? "") }
      : { id, at: Date.parse(timestamp), cursor: id }),
    sender: {
      id: author.id,
      name: author.username,
      bot: author.bot === true || message.webhook_id !== undefined,
      self: author.id === self.id,
      // One webhook may post for many senders, under any name.
      verified: message.webhook_id === undefined,
    },
    text: content,
    mentions: addTextMention(
      mentions.map((user) => user.id),
      content,
      self.id,
      self.name,
    ),
    ...(replyTo === undefined ? {} : { replyTo }),
    files: attachments.map(({ content_type, filename, size, url }) => ({
      name: filename,
      mediaType: content_type ?? "application/octet-stream",
      size,
      read: (maxBytes, signal) => download(url, { maxBytes, signal }),
    })),
  };
}
