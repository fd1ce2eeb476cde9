/** Messages of Slack as posts. */

import { canParseUrl } from "../../../../core/model/url.ts";
import type { Post, PostFile } from "../../../../core/wire/channel.ts";
import { download } from "../download.ts";
import { addTextMention } from "../mentions.ts";
import { findMentions, unescapeText } from "./text.ts";

/** The fields that are read, of an event or of a message from the history. */
export interface SlackMessage {
  readonly ts?: string;
  readonly channel?: string;
  readonly user?: string;
  readonly bot_id?: string;
  readonly username?: string;
  readonly text?: string;
  readonly subtype?: string;
  readonly thread_ts?: string;
  readonly latest_reply?: string;
  readonly files?: readonly SlackFile[];
  /** The new version, in an event `message_changed`. */
  readonly message?: SlackMessage;
  readonly previous_message?: SlackMessage;
}

interface SlackFile {
  readonly id?: string;
  readonly name?: string | null;
  readonly mimetype?: string;
  readonly size?: number;
  /** `external`: somewhere else; `tombstone`: deleted. */
  readonly mode?: string;
  readonly url_private_download?: string;
  readonly url_private?: string;
}

export interface SlackReader {
  readonly self: { readonly userId: string; readonly botId: string };
  readonly nameOf: (user: string) => Promise<string>;
  /** Headers for files of this address; undefined: it is not an address of Slack. */
  readonly authorize: (url: URL) => Readonly<Record<string, string>> | undefined;
}

/** Subtypes of messages that somebody wrote; the others are notices of Slack itself. */
const WRITTEN: readonly (string | undefined)[] = [
  undefined,
  "bot_message",
  "file_share",
  "me_message",
  "thread_broadcast",
];

/** Undefined: it is a notice of Slack itself. */
export async function toPost(event: SlackMessage, reader: SlackReader): Promise<Post | undefined> {
  const changed = event.subtype === "message_changed" ? event.message : undefined;
  const message = changed ?? event;
  const { bot_id, channel: room = event.channel, subtype, thread_ts, ts, user } = message;
  const senderId = user ?? bot_id;
  if (room === undefined || ts === undefined || senderId === undefined || !WRITTEN.includes(subtype)) return undefined;
  // Slack itself changes messages too, e.g. to add previews of links.
  if (changed !== undefined && changed.text === event.previous_message?.text) return undefined;
  const thread = thread_ts === undefined || thread_ts === ts ? {} : { thread: thread_ts, replyTo: thread_ts };
  const { botId, userId } = reader.self;
  const text = unescapeText(message.text ?? "");
  return {
    ...(changed === undefined ? { id: ts, cursor: ts } : { id: `${ts}:${event.ts}`, edits: ts }),
    room,
    ...thread,
    direct: room.startsWith("D"),
    sender: {
      id: senderId,
      name: user === undefined ? (message.username ?? senderId) : await reader.nameOf(user),
      bot: bot_id !== undefined,
      self: senderId === userId || bot_id === botId,
      verified: true,
    },
    text,
    mentions: addTextMention(findMentions(message.text ?? ""), text, userId, await reader.nameOf(userId)),
    files: (message.files ?? []).flatMap((file) => toFile(file, reader) ?? []),
    at: Math.floor(Number((changed === undefined ? ts : event.ts) ?? ts) * 1_000),
  };
}

function toFile(file: SlackFile, { authorize }: SlackReader): PostFile | undefined {
  const address = file.url_private_download ?? file.url_private;
  if (address === undefined || file.mode === "tombstone" || !canParseUrl(address)) return undefined;
  return {
    name: file.name ?? "file",
    mediaType: file.mimetype ?? "application/octet-stream",
    ...(file.size === undefined ? {} : { size: file.size }),
    async read(maxBytes, signal) {
      // The token must not be sent to whoever holds a file that is only linked.
      const headers = authorize(new URL(address));
      if (headers === undefined) throw new Error("The file is not kept by Slack.");
      return await download(address, { headers, maxBytes, signal });
    },
  };
}
