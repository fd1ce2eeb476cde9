/**
 * WeCom's side of the long connection of AI bots, with its rules: one connection per bot; replies only to a known
 * request; streams that expire; 20,480 bytes of text; 30 messages per minute and 1,000 per hour in a chat; pushes only to chats that wrote
 * before; uploads in chunks of 512 KB; in groups the bot gets what mentions it, and never posts of bots.
 */
import { createCipheriv, createHash } from "node:crypto";
import type { WebSocket } from "ws";
import type { PostDraft } from "../../../../core/wire/channel.ts";
import { createPostQueue } from "../post-queue.ts";
import type { Peer } from "../suite/channel-suite.ts";
import { startServer } from "./http-server.ts";

interface Frame {
  readonly cmd?: string;
  readonly headers: { readonly req_id: string };
  readonly body?: Readonly<Record<string, unknown>>;
}

interface UploadStart {
  readonly filename: string;
  readonly md5: string;
  readonly total_chunks: number;
  readonly total_size: number;
}

interface WecomMessageOnScreen {
  readonly id: string;
  readonly chat: string;
  text: string;
  finished: boolean;
  readonly file?: { readonly name: string; readonly bytes: Buffer };
  readonly pushed: boolean;
}

interface WecomServer {
  readonly url: string;
  /** A person in all groups; others see nothing of the direct chat. */
  person(name: string): Peer;
  /** Delivers a callback as it is. */
  callback(body: object): string;
  /** Offers an encrypted file of a person. */
  offerFile(bytes: Buffer, padding?: number): { readonly url: string; readonly aeskey: string };
  /** Requests before this call can no longer be answered. */
  expireRequests(): void;
  expireStreams(): void;
  limitNext(): void;
  readonly screen: readonly WecomMessageOnScreen[];
  close(): Promise<void>;
}

const MAX_TEXT = 20_480;
const CHUNK = 512 * 1024;
/**
 * Replies and pushes together (智能机器人长连接; quoted in several READMEs of bots). The codes of refusals are not
 * documented, but for stale requests and streams.
 */
const PER_MINUTE = 30;
const PER_HOUR = 1_000;

export async function startWecomServer(options: {
  readonly botId: string;
  readonly secret: string;
  readonly groups: readonly string[];
  readonly perMinute?: number;
}): Promise<WecomServer> {
  const { botId, groups, perMinute = PER_MINUTE, secret } = options;
  const requests = new Map<string, string>();
  const streams = new Map<string, WecomMessageOnScreen>();
  const screen: WecomMessageOnScreen[] = [];
  const contacted = new Set<string>();
  const uploads = new Map<string, { name: string; size: number; md5: string; chunks: Buffer[] }>();
  const media = new Map<string, { readonly name: string; readonly bytes: Buffer }>();
  const offered = new Map<string, Buffer>();
  const watchers = new Set<(message: WecomMessageOnScreen, edited: boolean) => void>();
  const sent = new Map<string, number[]>();
  let bot: WebSocket | undefined;
  let limited = false;
  let ids = 0;

  type Answer = { readonly errcode: number; readonly errmsg: string; readonly body?: object };
  const ok = (body?: object): Answer => ({ errcode: 0, errmsg: "ok", ...(body !== undefined && { body }) });
  const refuse = (errcode: number, errmsg: string): Answer => ({ errcode, errmsg });

  function isTooOften(chat: string): boolean {
    const times = (sent.get(chat) ?? []).filter((at) => at > Date.now() - 3_600_000);
    const lastMinute = times.filter((at) => at > Date.now() - 60_000);
    const tooOften = limited || lastMinute.length >= perMinute || times.length >= PER_HOUR;
    limited = false;
    sent.set(chat, tooOften ? times : [...times, Date.now()]);
    return tooOften;
  }

  function show(message: WecomMessageOnScreen, edited = false): Answer {
    if (!edited) screen.push(message);
    for (const watch of watchers) watch(message, edited);
    return ok();
  }

  function respond(chat: string, id: string, body: Readonly<Record<string, unknown>>, pushed: boolean): Answer {
    const { msgtype } = body;
    if (msgtype === "stream" && !pushed) {
      const {
        content = "",
        finish,
        id: stream = "",
      } = body.stream as { id?: string; content?: string; finish?: boolean };
      if (Buffer.byteLength(content) > MAX_TEXT) return refuse(40058, "content exceed max length");
      const known = streams.get(stream);
      if (known?.finished === true) return refuse(846608, "stream message update expired");
      if (known === undefined && isTooOften(chat)) return refuse(846607, "aibot send msg frequency limit exceeded");
      const message = known ?? { id: stream, chat, text: "", finished: false, pushed };
      message.text = content;
      message.finished = finish === true;
      streams.set(stream, message);
      return show(message, known !== undefined);
    }
    if (isTooOften(chat)) return refuse(846607, "aibot send msg frequency limit exceeded");
    if (msgtype === "markdown") {
      const { content = "" } = body.markdown as { content?: string };
      if (Buffer.byteLength(content) > MAX_TEXT) return refuse(40058, "content exceed max length");
      return show({ id, chat, text: content, finished: true, pushed });
    }
    const file = msgtype === "file" ? media.get((body.file as { media_id?: string }).media_id ?? "") : undefined;
    if (file === undefined) return refuse(msgtype === "file" ? 40007 : 40008, "invalid message type or media_id");
    return show({ id, chat, text: "", finished: true, pushed, file });
  }

  function upload(cmd: string, body: Readonly<Record<string, unknown>>): Answer {
    if (cmd === "aibot_upload_media_init") {
      const { filename = "", md5 = "", total_chunks, total_size = 0 } = body as Partial<UploadStart>;
      if (total_size < 5 || total_size > 20 * 1024 * 1024 || total_chunks !== Math.ceil(total_size / CHUNK))
        return refuse(40009, "invalid media size");
      const upload_id = `upload${uploads.size}`;
      uploads.set(upload_id, { name: filename, size: total_size, md5, chunks: [] });
      return ok({ upload_id });
    }
    const { base64_data = "", chunk_index, upload_id } = body as Record<string, string>;
    const known = uploads.get(upload_id ?? "");
    if (known === undefined) return refuse(40007, "invalid upload_id");
    if (cmd === "aibot_upload_media_chunk") {
      const chunk = Buffer.from(base64_data, "base64");
      if (chunk.length > CHUNK) return refuse(40009, "chunk too large");
      known.chunks[Number(chunk_index)] = chunk;
      return ok();
    }
    const bytes = Buffer.concat(known.chunks);
    if (createHash("md5").update(bytes).digest("hex") !== known.md5) return refuse(40009, "md5 mismatch");
    const media_id = `media${media.size}`;
    media.set(media_id, { name: known.name, bytes });
    return ok({ type: "file", media_id, created_at: "0" });
  }

  function answer(socket: WebSocket, { body = {}, cmd = "", headers: { req_id } }: Frame): Answer {
    if (cmd === "aibot_subscribe") {
      if (body.bot_id !== botId || body.secret !== secret) return refuse(853000, "invalid bot_id or secret");
      if (bot !== undefined && bot !== socket) {
        push({ msgtype: "event", event: { eventtype: "disconnected_event" } }, "aibot_event_callback");
        bot.close();
      }
      bot = socket;
      return ok();
    }
    if (socket !== bot) return refuse(853001, "not subscribed");
    if (cmd === "ping") return ok();
    if (cmd === "aibot_respond_msg") {
      const chat = requests.get(req_id);
      return chat === undefined ? refuse(846605, "invalid req_id") : respond(chat, req_id, body, false);
    }
    if (cmd === "aibot_send_msg") {
      const chat = String(body.chatid);
      return contacted.has(chat) ? respond(chat, req_id, body, true) : refuse(93006, "invalid chatid");
    }
    return upload(cmd, body);
  }

  function push(body: object, cmd = "aibot_msg_callback"): string {
    const req_id = `req${++ids}`;
    bot?.send(JSON.stringify({ cmd, headers: { req_id }, body }));
    return req_id;
  }

  const server = await startServer({
    answer({ path }) {
      const bytes = offered.get(path);
      return bytes === undefined ? { status: 404, body: {} } : { body: bytes };
    },
    connect(socket) {
      socket.on("message", (data) => {
        const frame = JSON.parse(data.toString()) as Frame;
        const { body, ...result } = answer(socket, frame);
        socket.send(JSON.stringify({ headers: frame.headers, ...result, ...(body !== undefined && { body }) }));
      });
    },
  });

  function callback(body: Readonly<Record<string, unknown>>): string {
    const { chatid, chattype, from } = body as { chatid?: string; chattype?: string; from?: { userid?: string } };
    const chat = (chattype === "single" ? from?.userid : chatid) ?? "";
    contacted.add(chat);
    const request = push(body);
    requests.set(request, chat);
    return request;
  }

  function person(name: string): Peer {
    const queue = createPostQueue(() => {});
    for (const group of groups) contacted.add(group);
    contacted.add(name);
    watchers.add(({ chat, file, id, text }, edited) => {
      if (chat !== name && !groups.includes(chat)) return;
      queue.push({
        id,
        room: chat,
        direct: chat === name,
        sender: { id: botId, name: botId, bot: true, self: false, verified: true },
        text,
        mentions: [...text.matchAll(/<@([^>]+)>/g)].map(([, one = ""]) => one),
        ...(edited && { edits: id }),
        files:
          file === undefined ? [] : [{ name: file.name, mediaType: "x/y", read: (max) => readAll(file.bytes, max) }],
        at: Date.now(),
      });
    });
    return {
      self: { id: name, name },
      posts: queue.posts,
      async post({ mentions = [], room, text }: PostDraft) {
        const id = `msg${++ids}`;
        const single = room === name || room === botId;
        // The bot gets posts of groups that mention it.
        if (single || mentions.some((one) => one.id === botId)) {
          callback({
            msgid: id,
            aibotid: botId,
            ...(single ? { chattype: "single" } : { chattype: "group", chatid: room }),
            from: { userid: name },
            create_time: Math.floor(Date.now() / 1000),
            msgtype: "text",
            text: { content: single ? text : `@Bot ${text}` },
          });
        }
        return { id };
      },
    };
  }

  return {
    url: server.url.replace("http", "ws"),
    person,
    callback: (body) => callback(body as Record<string, unknown>),
    offerFile(bytes) {
      const key = createHash("sha256").update("key").digest();
      const pad = 32 - (bytes.length % 32);
      const cipher = createCipheriv("aes-256-cbc", key, key.subarray(0, 16)).setAutoPadding(false);
      const path = `/files/${offered.size}`;
      offered.set(path, Buffer.concat([cipher.update(Buffer.concat([bytes, Buffer.alloc(pad, pad)])), cipher.final()]));
      return { url: `${server.url}${path}`, aeskey: key.toString("base64") };
    },
    expireRequests: () => requests.clear(),
    expireStreams() {
      for (const stream of streams.values()) stream.finished = true;
    },
    limitNext() {
      limited = true;
    },
    screen,
    close: () => server.close(),
  };
}

async function readAll(bytes: Buffer, maxBytes: number): Promise<Uint8Array> {
  if (bytes.length > maxBytes) throw new Error("too large");
  return bytes;
}
