/** What Telegram accepts, and which messages it shows to a bot. */

import type { SimulatedReply } from "./http-server.ts";
import type { MultipartFile } from "./multipart.ts";

const MAX_TEXT = 4_096;
const MAX_CAPTION = 1_024;
const MAX_UPLOAD = 50 * 1024 * 1024;

export interface TelegramBot {
  readonly id: number;
  readonly username: string;
  readonly token: string;
  /** `/setprivacy` of BotFather. */
  readonly privacy: boolean;
  /** Bot-to-Bot Communication Mode. */
  readonly botToBot: boolean;
}

export interface TelegramPerson {
  readonly id: number;
  readonly first_name: string;
  readonly username?: string;
}

export type Fields = Readonly<Record<string, unknown>>;

export interface TelegramSender extends TelegramPerson {
  readonly is_bot: boolean;
}

export interface TelegramEntity {
  readonly type: string;
  readonly offset: number;
  readonly length: number;
  readonly user?: { readonly id: number };
}

export interface TelegramMessage {
  readonly message_id: number;
  readonly date: number;
  readonly edit_date?: number;
  readonly from: TelegramSender;
  readonly chat: { readonly id: number; readonly type: "private" | "supergroup"; readonly is_forum?: boolean };
  readonly text?: string;
  readonly entities?: readonly TelegramEntity[];
  readonly caption?: string;
  readonly caption_entities?: readonly TelegramEntity[];
  readonly document?: { readonly file_id: string; readonly file_name: string; readonly file_size: number };
  readonly media_group_id?: string;
  readonly message_thread_id?: number;
  readonly is_topic_message?: boolean;
  readonly reply_to_message?: TelegramMessage;
}

/** Privacy mode, and what bots see of each other (core.telegram.org/api/bots/bot-to-bot). */
export function isVisible(message: TelegramMessage, bot: TelegramBot, bots: readonly TelegramBot[]): boolean {
  const { chat, from, reply_to_message } = message;
  if (from.id === bot.id) return false;
  if (chat.id > 0) return chat.id === bot.id;
  const text = message.text ?? message.caption ?? "";
  const entities = message.entities ?? message.caption_entities ?? [];
  const commanded = entities.some(
    ({ length, offset, type }) =>
      type === "bot_command" &&
      text
        .slice(offset, offset + length)
        .toLowerCase()
        .endsWith(`@${bot.username.toLowerCase()}`),
  );
  const addressed = commanded || reply_to_message?.from.id === bot.id;
  if (!from.is_bot) return addressed || !bot.privacy;
  const sender = bots.find(({ id }) => id === from.id);
  if (addressed) return bot.botToBot || sender?.botToBot === true;
  return bot.botToBot && !bot.privacy;
}

export function findEntities(text: string): TelegramEntity[] {
  const found: TelegramEntity[] = [];
  for (const { 0: match, 1: before = "", index } of text
    .trim()
    .matchAll(/(^|\s)(?:\/\w{1,32}(?:@\w+)?|@\w{5,32})\b/g)) {
    const offset = index + before.length;
    const length = match.length - before.length;
    found.push({ type: match.trimStart().startsWith("/") ? "bot_command" : "mention", offset, length });
  }
  return found;
}

export function refuseText(text: string): SimulatedReply | undefined {
  if (text.trim() === "") return fail(400, "Bad Request: message text is empty");
  return text.length > MAX_TEXT ? fail(400, "Bad Request: message is too long") : undefined;
}

export function refuseFile(
  file: Pick<MultipartFile, "name" | "bytes"> | undefined,
  caption: string,
): SimulatedReply | undefined {
  if (file === undefined) return fail(400, "Bad Request: there is no document in the request");
  if (file.bytes.length > MAX_UPLOAD) return fail(413, "Request TelegramEntity Too Large");
  return caption.length > MAX_CAPTION ? fail(400, "Bad Request: message caption is too long") : undefined;
}

export function succeed(result: unknown): SimulatedReply {
  return { body: { ok: true, result } };
}

export function fail(error_code: number, description: string, more: object = {}): SimulatedReply {
  return { status: error_code, body: { ok: false, error_code, description, ...more } };
}
