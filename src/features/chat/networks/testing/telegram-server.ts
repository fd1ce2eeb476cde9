/** A Telegram that follows the documented rules of the Bot API: one forum group, private chats, bots and people. */

import { setTimeout as delay } from "node:timers/promises";
import { type SimulatedReply, type SimulatedRequest, startServer } from "./http-server.ts";
import { type MultipartFile, parseMultipart } from "./multipart.ts";
import { createRateLimiter } from "./rate-limiter.ts";
import {
  type Fields,
  fail,
  findEntities,
  isVisible,
  refuseFile,
  refuseText,
  succeed,
  type TelegramBot,
  type TelegramEntity,
  type TelegramMessage,
  type TelegramPerson,
  type TelegramSender,
} from "./telegram-rules.ts";

const MAX_DOWNLOAD = 20 * 1024 * 1024;
/** Bots FAQ: My bot is hitting limits, how do I avoid this? */
const GROUP_PER_MINUTE = 20;
/** The FAQ has one per second, with short bursts that are tolerated for a while: how many is not documented. */
const BURST_PER_SECOND = 5;
const KEPT_MS = 24 * 60 * 60 * 1_000;

interface Update {
  readonly update_id: number;
  readonly at: number;
  readonly message?: TelegramMessage;
  readonly edited_message?: TelegramMessage;
}

interface Draft {
  readonly text?: string;
  readonly caption?: string;
  readonly file?: Pick<MultipartFile, "name" | "bytes">;
  readonly replyTo?: number;
  readonly topic?: number;
  readonly entities?: readonly TelegramEntity[];
  readonly album?: string;
}

export interface TelegramServer {
  /** For `client.apiRoot`. */
  readonly apiRoot: string;
  readonly room: string;
  /** A group that the bots are not members of. */
  readonly foreignRoom: string;
  /** A topic of the room. */
  readonly topic: string;
  readonly messages: readonly TelegramMessage[];
  /** A person writes: to the room, or to a bot in private. */
  say(person: TelegramPerson, chat: string, draft: Draft): TelegramMessage;
  edit(id: number, text: string): void;
  /** The next message of a bot is one too many. */
  limitRate(): void;
  setWebhook(active: boolean): void;
  close(): Promise<void>;
}

export async function startTelegram(bots: readonly TelegramBot[]): Promise<TelegramServer> {
  const room = -1_001_000_000_001;
  const foreign = -1_001_000_000_002;
  const topic = 77;
  const messages: TelegramMessage[] = [];
  const files = new Map<string, { readonly path: string; readonly bytes: Buffer }>();
  const updates = new Map<number, Update[]>(bots.map(({ id }) => [id, []]));
  const polls = new Map<number, { wake(): void; conflict(): void }>();
  const met = new Set<string>();
  let ids = 0;
  const perGroup = createRateLimiter(GROUP_PER_MINUTE, 60_000);
  const perChat = createRateLimiter(BURST_PER_SECOND, 1_000);
  let updateIds = 100_000;
  let limitNext = false;
  let webhook = false;
  const server = await startServer({ answer });

  function create(from: TelegramSender, chat: number, draft: Draft): TelegramMessage {
    const { album, caption, entities = [], file, text, topic: thread } = draft;
    const original = messages.find((one) => one.message_id === draft.replyTo);
    const document = file === undefined ? undefined : store(file);
    const message: TelegramMessage = {
      message_id: ++ids,
      date: Math.floor(Date.now() / 1_000),
      from,
      chat: chat < 0 ? { id: chat, type: "supergroup", is_forum: true } : { id: chat, type: "private" },
      ...(text === undefined ? {} : { text: text.trim(), entities: [...entities, ...findEntities(text)] }),
      ...(caption === undefined
        ? {}
        : { caption: caption.trim(), caption_entities: [...entities, ...findEntities(caption)] }),
      ...(document === undefined ? {} : { document }),
      ...(album === undefined ? {} : { media_group_id: album }),
      ...(thread === undefined ? {} : { message_thread_id: thread, is_topic_message: true }),
      ...(original === undefined ? {} : { reply_to_message: original }),
    };
    messages.push(message);
    publish("message", message);
    return message;
  }

  function store({ bytes, name }: Pick<MultipartFile, "name" | "bytes">) {
    const file_id = `file-${files.size + 1}`;
    files.set(file_id, { path: `documents/file_${files.size + 1}`, bytes });
    return { file_id, file_unique_id: file_id, file_name: name, file_size: bytes.length };
  }

  function publish(kind: "message" | "edited_message", message: TelegramMessage): void {
    for (const bot of bots) {
      if (!isVisible(message, bot, bots)) continue;
      const shown = message.chat.id < 0 ? message : { ...message, chat: { ...message.chat, id: message.from.id } };
      updates.get(bot.id)?.push({ update_id: ++updateIds, at: Date.now(), [kind]: shown });
      polls.get(bot.id)?.wake();
    }
  }

  async function answer(request: SimulatedRequest): Promise<SimulatedReply> {
    const [, token = "", method = ""] = /^\/(?:file\/)?bot([^/]+)\/(.+)$/.exec(request.path) ?? [];
    if (!/^\d+:[\w-]+$/.test(token)) return fail(404, "Not Found");
    const bot = bots.find((one) => one.token === token);
    if (bot === undefined) return fail(401, "Unauthorized");
    if (request.path.startsWith("/file/")) {
      const file = [...files.values()].find(({ path }) => path === method);
      return file === undefined ? fail(404, "Not Found") : { body: file.bytes };
    }
    const form = parseMultipart(request.headers["content-type"], request.bytes);
    const fields: Fields = form?.fields ?? request.json ?? {};
    if (method === "getMe") return succeed(toSelf(bot));
    if (method === "getUpdates") return await poll(bot, fields, request.signal);
    if (method === "getFile") return describeFile(String(fields.file_id));
    if (method.startsWith("edit")) return change(bot, method, fields);
    if (method === "deleteMessage") return remove(bot, Number(fields.message_id));
    return send(bot, method, fields, form?.files ?? []);
  }

  async function poll(bot: TelegramBot, fields: Fields, signal: AbortSignal): Promise<SimulatedReply> {
    if (webhook) {
      return fail(
        409,
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
      );
    }
    polls.get(bot.id)?.conflict();
    const offset = Number(fields.offset ?? 0);
    const pending = (): Update[] => {
      const kept = (updates.get(bot.id) ?? []).filter(
        (one) => one.update_id >= offset && one.at > Date.now() - KEPT_MS,
      );
      updates.set(bot.id, kept);
      return kept;
    };
    const timeout = Number(fields.timeout ?? 0);
    if (pending().length === 0 && timeout > 0 && (await wait(bot.id, timeout * 1_000, signal)) === "conflict") {
      return fail(
        409,
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
      );
    }
    const wanted = fields.allowed_updates as readonly string[] | undefined;
    const shown = pending().filter((update) => wanted === undefined || wanted.some((kind) => kind in update));
    return succeed(shown.slice(0, Number(fields.limit ?? 100)).map(({ at: _, ...update }) => update));
  }

  async function wait(bot: number, milliseconds: number, gone: AbortSignal): Promise<"update" | "conflict"> {
    const over = new AbortController();
    const outcome = await new Promise<"update" | "conflict">((resolve) => {
      polls.set(bot, { wake: () => resolve("update"), conflict: () => resolve("conflict") });
      gone.addEventListener("abort", () => resolve("update"));
      const elapsed = delay(milliseconds, undefined, { signal: over.signal, ref: false });
      elapsed.then(
        () => resolve("update"),
        () => {},
      );
    });
    over.abort();
    if (outcome === "update") polls.delete(bot);
    return outcome;
  }

  function send(bot: TelegramBot, method: string, fields: Fields, parts: readonly MultipartFile[]): SimulatedReply {
    const chat = Number(fields.chat_id);
    const refusal = refuseChat(bot, chat) ?? limitRate(bot, chat) ?? refuseReply(fields);
    if (refusal !== undefined) return refusal;
    const from: TelegramSender = { id: bot.id, is_bot: true, first_name: bot.username, username: bot.username };
    const common = { ...toPlace(fields), entities: toEntities(fields.entities ?? fields.caption_entities) };
    const find = (reference: unknown) => parts.find(({ field }) => `attach://${field}` === reference);
    if (method === "sendMessage") {
      const text = String(fields.text ?? "");
      return refuseText(text) ?? succeed(create(from, chat, { text, ...common }));
    }
    const media = method === "sendDocument" ? [{ media: fields.document, caption: fields.caption }] : toMedia(fields);
    if (method === "sendMediaGroup" && (media.length < 2 || media.length > 10)) {
      return fail(400, "Bad Request: wrong number of messages in the album");
    }
    const album = method === "sendMediaGroup" ? { album: `album-${ids}` } : {};
    const drafts = media.map(({ caption, media: reference }) => ({
      caption: String(caption ?? ""),
      file: find(reference),
    }));
    const problem = drafts.map(({ caption, file }) => refuseFile(file, caption)).find((one) => one !== undefined);
    if (problem !== undefined) return problem;
    const sent = drafts.map(({ caption, file }) =>
      create(from, chat, {
        ...(caption === "" ? {} : { caption }),
        ...(file === undefined ? {} : { file }),
        ...album,
        ...common,
      }),
    );
    return succeed(method === "sendDocument" ? sent[0] : sent);
  }

  function refuseChat(bot: TelegramBot, chat: number): SimulatedReply | undefined {
    if (chat === foreign) return fail(403, "Forbidden: bot is not a member of the supergroup chat");
    if (chat === room) return undefined;
    const other = bots.find(({ id }) => id === chat);
    if (other !== undefined) {
      return bot.botToBot && other.botToBot ? undefined : fail(403, "Forbidden: bot can't send messages to bots");
    }
    return met.has(`${bot.id}:${chat}`) ? undefined : fail(400, "Bad Request: chat not found");
  }

  function limitRate(bot: TelegramBot, chat: number): SimulatedReply | undefined {
    const key = `${bot.id}:${chat}`;
    const wait = limitNext ? 3_000 : perChat.take(key) || (chat < 0 ? perGroup.take(key) : 0);
    limitNext = false;
    if (wait === 0) return undefined;
    const retry_after = Math.ceil(wait / 1_000);
    return fail(429, `Too Many Requests: retry after ${retry_after}`, { parameters: { retry_after } });
  }

  function refuseReply(fields: Fields): SimulatedReply | undefined {
    const { allow_sending_without_reply: lenient, message_id } = toObject(fields.reply_parameters);
    if (message_id === undefined || lenient === true) return undefined;
    if (messages.some((one) => one.message_id === message_id)) return undefined;
    return fail(400, "Bad Request: message to be replied not found");
  }

  /** Own messages, in groups that the bot does not administrate. */
  function remove(bot: TelegramBot, id: number): SimulatedReply {
    const at = messages.findIndex(({ message_id }) => message_id === id);
    if (at === -1) return fail(400, "Bad Request: message to delete not found");
    if (messages[at]?.from.id !== bot.id) return fail(400, "Bad Request: message can't be deleted");
    messages.splice(at, 1);
    return succeed(true);
  }

  function change(bot: TelegramBot, method: string, fields: Fields): SimulatedReply {
    const at = messages.findIndex(({ message_id }) => message_id === Number(fields.message_id));
    const message = messages[at];
    if (message === undefined) return fail(400, "Bad Request: message to edit not found");
    if (message.from.id !== bot.id) return fail(400, "Bad Request: message can't be edited");
    const key = method === "editMessageText" ? "text" : "caption";
    if (key === "text" && message.text === undefined) {
      return fail(400, "Bad Request: there is no text in the message to edit");
    }
    const text = String(fields[key] ?? "").trim();
    const problem = key === "text" ? refuseText(text) : refuseFile({ name: "", bytes: Buffer.alloc(0) }, text);
    if (problem !== undefined) return problem;
    if (text === message[key]) {
      return fail(
        400,
        "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
      );
    }
    const limited = limitRate(bot, message.chat.id);
    return limited ?? succeed(replace(at, key, text, toEntities(fields.entities)));
  }

  function replace(
    at: number,
    key: "text" | "caption",
    text: string,
    entities: readonly TelegramEntity[],
  ): TelegramMessage {
    const changed = {
      ...(messages[at] as TelegramMessage),
      [key]: text,
      [key === "text" ? "entities" : "caption_entities"]: [...entities, ...findEntities(text)],
      edit_date: Math.floor(Date.now() / 1_000),
    };
    messages[at] = changed;
    publish("edited_message", changed);
    return changed;
  }

  function describeFile(file_id: string): SimulatedReply {
    const file = files.get(file_id);
    if (file === undefined) return fail(400, "Bad Request: invalid file_id");
    if (file.bytes.length > MAX_DOWNLOAD) return fail(400, "Bad Request: file is too big");
    return succeed({ file_id, file_unique_id: file_id, file_size: file.bytes.length, file_path: file.path });
  }

  return {
    apiRoot: server.url,
    room: String(room),
    foreignRoom: String(foreign),
    topic: String(topic),
    messages,
    say(person, chat, draft) {
      met.add(`${chat}:${person.id}`);
      return create({ ...person, is_bot: false }, Number(chat), draft);
    },
    edit: (id, text) =>
      void replace(
        messages.findIndex(({ message_id }) => message_id === id),
        "text",
        text,
        [],
      ),
    limitRate() {
      limitNext = true;
    },
    setWebhook(active) {
      webhook = active;
      for (const { conflict } of polls.values()) conflict();
    },
    close: server.close,
  };
}

function toPlace(fields: Fields): Pick<Draft, "replyTo" | "topic"> {
  const { message_id } = toObject(fields.reply_parameters);
  const topic = fields.message_thread_id;
  return {
    ...(message_id === undefined ? {} : { replyTo: Number(message_id) }),
    ...(topic === undefined ? {} : { topic: Number(topic) }),
  };
}

/** Objects are JSON text in a form. */
function toObject(value: unknown): Fields {
  return (typeof value === "string" ? JSON.parse(value) : (value ?? {})) as Fields;
}

function toEntities(value: unknown): readonly TelegramEntity[] {
  return (typeof value === "string" ? JSON.parse(value) : (value ?? [])) as TelegramEntity[];
}

function toMedia(fields: Fields): readonly { readonly media?: unknown; readonly caption?: unknown }[] {
  return Object.values(toObject(fields.media)) as { readonly media?: unknown; readonly caption?: unknown }[];
}

function toSelf({ id, privacy, username }: TelegramBot): object {
  const groups = { can_join_groups: true, can_read_all_group_messages: !privacy };
  return { id, is_bot: true, first_name: username, username, ...groups, supports_inline_queries: false };
}
