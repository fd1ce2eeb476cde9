/** Updates of the Bot API as posts. */

import type { Api } from "grammy";
import type { Message, MessageEntity, PhotoSize, Update, UserFromGetMe } from "grammy/types";
import type { Post, PostFile } from "../../../../core/wire/channel.ts";
import { download } from "../download.ts";
import { addTextMention } from "../mentions.ts";

export interface TelegramReader {
  readonly me: UserFromGetMe;
  readonly api: Pick<Api, "getFile">;
  /** Base URL of files; has the token in it. */
  readonly fileRoot: string;
}

export interface ReceivedPost {
  readonly post: Post;
  readonly updateId: number;
}

/** The files of an album are messages of their own, in a row; here they are one post. */
export function toPosts(updates: readonly Update[], reader: TelegramReader): ReceivedPost[] {
  const found: (ReceivedPost & { readonly album: string | undefined })[] = [];
  for (const { edited_message, message, update_id: updateId } of updates) {
    const source = message ?? edited_message;
    const post = source === undefined ? undefined : toPost(source, edited_message && updateId, reader);
    if (source === undefined || post === undefined) continue;
    const { media_group_id: album } = source;
    const last = found.at(-1);
    if (last !== undefined && album !== undefined && last.album === album && message !== undefined) {
      const joined = { ...last.post, files: [...last.post.files, ...post.files] };
      found[found.length - 1] = { post: joined, updateId, album };
    } else found.push({ post, updateId, album: message === undefined ? undefined : album });
  }
  return found;
}

/** Undefined: it is a notice of Telegram itself. `edit` tells edits of one message apart. */
function toPost(message: Message, edit: number | undefined, reader: TelegramReader): Post | undefined {
  const { chat, date, edit_date, is_topic_message, message_id, message_thread_id, reply_to_message } = message;
  const text = message.text ?? message.caption ?? "";
  const files = toFiles(message, reader);
  if (text === "" && files.length === 0) return undefined;
  // Messages of a topic refer to the notice that it was created.
  const replied = reply_to_message?.forum_topic_created === undefined ? reply_to_message?.message_id : undefined;
  const id = String(message_id);
  return {
    id: edit === undefined ? id : `${id}:${edit}`,
    ...(edit === undefined ? {} : { edits: id }),
    room: String(chat.id),
    ...(is_topic_message === true && message_thread_id !== undefined ? { thread: String(message_thread_id) } : {}),
    direct: chat.type === "private",
    sender: toSender(message, reader.me),
    text,
    mentions: addTextMention(
      findMentions(text, message.entities ?? message.caption_entities ?? [], reader.me),
      text,
      String(reader.me.id),
      reader.me.username,
    ),
    ...(replied === undefined ? {} : { replyTo: String(replied) }),
    files,
    at: (edit === undefined ? date : (edit_date ?? date)) * 1_000,
  };
}

function toSender({ from, sender_chat }: Message, me: UserFromGetMe): Post["sender"] {
  // Administrators who write as the group itself share its id.
  if (sender_chat !== undefined || from === undefined) {
    const { id = 0, title = "" } = sender_chat ?? {};
    return { id: String(id), name: title, bot: false, self: false, verified: false };
  }
  const name = from.username ?? from.first_name;
  return { id: String(from.id), name, bot: from.is_bot, self: from.id === me.id, verified: true };
}

/** The ids of other users than this bot are not known from their names. */
function findMentions(text: string, entities: readonly MessageEntity[], me: UserFromGetMe): string[] {
  const found = new Set<string>();
  for (const entity of entities) {
    const written = text.slice(entity.offset, entity.offset + entity.length).toLowerCase();
    if (entity.type === "text_mention") found.add(String(entity.user.id));
    else if (entity.type !== "mention" && entity.type !== "bot_command") continue;
    else if (written.endsWith(`@${me.username.toLowerCase()}`)) found.add(String(me.id));
  }
  return [...found];
}

interface TelegramFile {
  readonly file_id: string;
  readonly file_size?: number;
  readonly file_name?: string;
  readonly mime_type?: string;
}

function toFiles(message: Message, { api, fileRoot }: TelegramReader): PostFile[] {
  const { animation, audio, document, photo, video, voice } = message;
  const found: [TelegramFile | undefined, string, string][] = [
    [document ?? animation, "file", "application/octet-stream"],
    [largest(photo), "photo.jpg", "image/jpeg"],
    [audio, "audio.mp3", "audio/mpeg"],
    [voice, "voice.ogg", "audio/ogg"],
    [video, "video.mp4", "video/mp4"],
  ];
  return found.flatMap(([file, name, mediaType]) => {
    if (file === undefined) return [];
    return {
      name: file.file_name ?? name,
      mediaType: file.mime_type ?? mediaType,
      ...(file.file_size === undefined ? {} : { size: file.file_size }),
      async read(maxBytes, signal) {
        if (file.file_size !== undefined && file.file_size > maxBytes) {
          throw new Error(`The file is larger than ${maxBytes} bytes.`);
        }
        const { file_path } = await api.getFile(file.file_id);
        return await download(`${fileRoot}/${file_path}`, { maxBytes, signal });
      },
    };
  });
}

/** A photo comes in several sizes, the largest last. */
function largest(sizes: readonly PhotoSize[] | undefined): PhotoSize | undefined {
  return sizes?.at(-1);
}
