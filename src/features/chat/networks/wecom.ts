/**
 * AI bots of WeCom (企业微信智能机器人) over their long connection. A post in a chat that has written to the bot is a
 * stream reply to its newest message, which can be edited while the stream is open; elsewhere it is pushed.
 */

import { z } from "zod";
import {
  type Channel,
  type ChannelAbilities,
  ChannelError,
  type ChannelOptions,
  type Post,
  type PostDraft,
} from "../../../core/wire/channel.ts";
import { ABNORMAL_CLOSURE } from "../../../core/wire/connection.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import { checkDraft } from "./check-draft.ts";
import { download } from "./download.ts";
import { loadPackage } from "./load-package.ts";
import type { ChannelTools, Network } from "./network.ts";
import { createPostQueue } from "./post-queue.ts";

const settingsSchema = z.strictObject({
  botId: z.string().min(1).describe("Bot ID of the bot (API 配置)."),
  secret: z.string().min(1).describe("Secret of the long connection (API 配置 → 使用长连接)."),
  url: z
    .url({ protocol: /^wss?$/ })
    .optional()
    .describe("WebSocket URL of a private deployment; default: `wss://openws.work.weixin.qq.com`."),
});

type WecomSettings = z.infer<typeof settingsSchema>;

const ABILITIES: ChannelAbilities = {
  // 20,480 bytes with the mentions.
  text: { max: 20_000, unit: "bytes" },
  lines: true,
  maxFileBytes: 20 * 1024 * 1024,
  edits: true,
  // A quotation does not say which post it quotes.
  replies: false,
  seesBots: "none",
  rate: { posts: 30, perMs: 60_000 },
  history: false,
};

export const wecom: Network<WecomSettings> = {
  name: "wecom",
  title: "WeCom",
  exclusive: true,
  packages: ["@wecom/aibot-node-sdk"],
  settings: settingsSchema,
  account: ({ botId }) => botId,
  secrets: ({ secret }) => [secret],
  rooms: () => undefined,
  setup: [
    "企业微信管理后台 → 安全与管理 → 管理工具 → 智能机器人 (or 工作台 → 智能机器人 in the client): 创建机器人 → 手动创建 → API 模式创建.",
    "API 配置: choose 使用长连接 (long connection), copy Bot ID into `botId` and Secret into `secret`.",
    "可使用成员 (visible to): choose who may talk to the bot.",
    "In a group: 添加群成员 → 智能机器人. People address it with @; it does not see posts of other bots.",
    "A bot has one long connection: a second one closes the first.",
  ],
  abilities: ABILITIES,
  open,
};

const MIN_FILE_BYTES = 5;
const CONNECT_TIMEOUT_MS = 20_000;
/** A post that was not edited for so long is finished: until then, people see that it may grow. */
const STREAM_IDLE_MS = 20_000;
const MAX_CHATS = 1_000;
const RATE_LIMITED: ReadonlySet<number> = new Set([45009, 45033, 846607]);
const STALE_REQUEST = 846605;
const SILENT = { error() {}, warn() {}, info() {}, debug() {} };

type Library = typeof import("@wecom/aibot-node-sdk");
type Client = InstanceType<Library["WSClient"]>;

/** The part of a callback that a reply needs. */
interface Callback {
  readonly headers: { readonly req_id: string };
}

interface Stream {
  readonly callback: Callback;
  text: string;
  cancelTimer: () => void;
}

async function open(settings: WecomSettings, { signal }: ChannelOptions, tools: ChannelTools): Promise<Channel> {
  const library = await loadPackage(wecom, () => import("@wecom/aibot-node-sdk"));
  const client = new library.WSClient({
    botId: settings.botId,
    secret: settings.secret,
    logger: SILENT,
    maxReconnectAttempts: 0,
    maxAuthFailureAttempts: 0,
    ...(settings.url !== undefined && { wsUrl: settings.url }),
  });
  const channel = new WecomChannel(client, library, settings.botId, tools);
  await connect(client, signal, tools);
  return channel;
}

function connect(client: Client, signal: AbortSignal, { clock }: ChannelTools): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: DialError): void => {
      release();
      client.disconnect();
      reject(error);
    };
    const stop = (): void => fail(new DialError("stopped", "The dialling was stopped."));
    const onError = (error: Error): void => fail(toDialError(error));
    const onOpen = (): void => {
      release();
      resolve();
    };
    const cancel = clock.after(CONNECT_TIMEOUT_MS, () =>
      fail(new DialError("timeout", `There was no connection within ${CONNECT_TIMEOUT_MS / 1000} s.`)),
    );
    const release = (): void => {
      cancel();
      signal.removeEventListener("abort", stop);
      client.off("error", onError);
      client.off("authenticated", onOpen);
    };
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop);
    client.on("error", onError);
    client.on("authenticated", onOpen);
    client.connect();
  });
}

function toDialError({ message }: Error): DialError {
  if (!message.startsWith("Authentication failed")) {
    return new DialError("unreachable", `WeCom could not be reached: ${message}`);
  }
  const fields = "Copy `botId` and `secret` from 智能机器人 → API 配置 → 使用长连接 (Bot ID, Secret).";
  return new DialError("refused", `WeCom does not accept the bot. ${message}. ${fields}`, 401);
}

class WecomChannel implements Channel {
  readonly abilities = ABILITIES;
  readonly self: Channel["self"];
  readonly posts: Channel["posts"];
  readonly closed: Channel["closed"];
  readonly #client: Client;
  readonly #library: Library;
  readonly #tools: ChannelTools;
  /** The newest callback of each chat. */
  readonly #callbacks = new Map<string, Callback>();
  /** Posts that can be edited. */
  readonly #streams = new Map<string, Stream>();
  readonly #queue = createPostQueue(() => {
    for (const { cancelTimer } of this.#streams.values()) cancelTimer();
    this.#client.disconnect();
  });

  constructor(client: Client, library: Library, id: string, tools: ChannelTools) {
    this.self = { id, name: id };
    this.posts = this.#queue.posts;
    this.closed = this.#queue.closed;
    this.#client = client;
    this.#library = library;
    this.#tools = tools;
    client.on("message", (frame) => this.#receive(frame));
    client.on("disconnected", (reason) => this.close(ABNORMAL_CLOSURE, reason));
    client.on("error", () => {});
  }

  close(code?: number, reason?: string): void {
    this.#queue.end(code, reason);
  }

  async post(draft: PostDraft): Promise<{ readonly id: string }> {
    this.#check(draft);
    const { files = [], room } = draft;
    if (files.some(({ bytes }) => bytes.byteLength < MIN_FILE_BYTES)) {
      throw new ChannelError("refused", `WeCom does not accept files of less than ${MIN_FILE_BYTES} bytes.`);
    }
    let id = "";
    // A message is a text or a file. The text comes last, so that its files are there when it arrives.
    for (const { bytes, name } of files) {
      const media = await this.#attempt(() =>
        this.#client.uploadMedia(Buffer.from(bytes), { type: "file", filename: name }),
      );
      const { headers } = await this.#reply(
        room,
        (callback) => this.#client.replyMedia(callback, "file", media.media_id),
        () => this.#client.sendMediaMessage(room, "file", media.media_id),
      );
      id = headers.req_id;
    }
    return { id: draft.text === "" ? id : await this.#postText(draft) };
  }

  async edit(id: string, draft: PostDraft): Promise<void> {
    this.#check(draft);
    const stream = this.#streams.get(id);
    if (stream === undefined) throw new ChannelError("refused", "The post can no longer be edited.");
    const text = toMarkdown(draft);
    try {
      await this.#attempt(() => this.#client.replyStream(stream.callback, id, text, false));
    } catch (error) {
      if (error instanceof ChannelError && error.code === "refused") this.#forget(id);
      throw error;
    }
    stream.text = text;
    this.#finishLater(id, stream);
  }

  async #postText(draft: PostDraft): Promise<string> {
    const text = toMarkdown(draft);
    const id = this.#tools.uniqueId();
    const { headers } = await this.#reply(
      draft.room,
      async (callback) => {
        await this.#client.replyStream(callback, id, text, false);
        const stream = { callback, text, cancelTimer() {} };
        this.#streams.set(id, stream);
        this.#finishLater(id, stream);
        return { headers: { req_id: id } };
      },
      () => this.#client.sendMessage(draft.room, { msgtype: "markdown", markdown: { content: text } }),
    );
    return headers.req_id;
  }

  /** Answers the newest message of the chat, or pushes if there is none that can still be answered. */
  async #reply(room: string, answer: (to: Callback) => Promise<Callback>, push: () => Promise<Callback>) {
    const callback = this.#callbacks.get(room);
    if (callback === undefined) return this.#attempt(push);
    return this.#attempt(() =>
      answer(callback).catch((error: unknown) => {
        if (codeOf(error) !== STALE_REQUEST) throw error;
        this.#callbacks.delete(room);
        return push();
      }),
    );
  }

  #finishLater(id: string, stream: Stream): void {
    stream.cancelTimer();
    if (this.#queue.ended) return;
    stream.cancelTimer = this.#tools.clock.after(STREAM_IDLE_MS, () => {
      this.#streams.delete(id);
      // If it fails, the platform finishes it.
      this.#client.replyStream(stream.callback, id, stream.text, true).catch(() => {});
    });
  }

  #forget(id: string): void {
    this.#streams.get(id)?.cancelTimer();
    this.#streams.delete(id);
  }

  #check(draft: PostDraft): void {
    if (this.#queue.ended) throw new ChannelError("closed", "The channel has closed.");
    checkDraft(draft, this.abilities);
  }

  /** The library rejects with the frame of a refusal, and with an error if no answer came. */
  async #attempt<T>(send: () => Promise<T>): Promise<T> {
    try {
      return await send();
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw error;
      const message = `${(error as { errmsg?: string }).errmsg ?? "refused"} (code ${code})`;
      if (RATE_LIMITED.has(code)) throw new ChannelError("rate-limited", message, { retryAfterMs: 10_000 });
      throw new ChannelError("refused", message);
    }
  }

  #receive(frame: { readonly headers: { readonly req_id: string }; readonly body?: unknown }): void {
    const body = (frame.body ?? {}) as WecomMessage;
    const { chatid, chattype, create_time, from, msgid } = body;
    const direct = chattype === "single";
    const sender = from?.userid;
    const room = direct ? sender : chatid;
    if (room === undefined || sender === undefined || msgid === undefined) return;
    this.#callbacks.delete(room);
    this.#callbacks.set(room, { headers: { req_id: frame.headers.req_id } });
    const [oldest] = this.#callbacks.keys();
    if (this.#callbacks.size > MAX_CHATS && oldest !== undefined) this.#callbacks.delete(oldest);
    const items = body.msgtype === "mixed" ? (body.mixed?.msg_item ?? []) : [body];
    const texts = items.flatMap(({ text, voice }) => text?.content ?? voice?.content ?? []);
    const files = items.flatMap((item) => [item.file, item.image, item.video].filter((one) => one?.url !== undefined));
    if (texts.length + files.length === 0) return;
    this.#queue.push({
      id: msgid,
      room,
      direct,
      sender: { id: sender, name: sender, bot: false, self: false, verified: true },
      text: texts.join("\n"),
      // In a group, the bot gets what mentions it.
      mentions: direct ? [] : [this.self.id],
      files: files.map((file, index) => this.#toPostFile(`${msgid}-${index + 1}`, file ?? {})),
      at: create_time === undefined ? this.#tools.clock.now() : create_time * 1000,
    });
  }

  #toPostFile(id: string, { aeskey, filename, url = "" }: WecomFile): Post["files"][number] {
    return {
      name: filename ?? id,
      mediaType: "application/octet-stream",
      read: async (maxBytes, signal) => {
        // Encrypted files are padded to blocks of 32 bytes.
        const bytes = await download(url, { maxBytes: maxBytes + 32, signal });
        const content = aeskey === undefined ? bytes : this.#library.decryptFile(Buffer.from(bytes), aeskey);
        if (content.length > maxBytes) throw new Error(`The file is larger than ${maxBytes} bytes.`);
        return content;
      },
    };
  }
}

interface WecomItem {
  readonly text?: { readonly content?: string };
  readonly voice?: { readonly content?: string };
  readonly image?: WecomFile;
  readonly file?: WecomFile;
  readonly video?: WecomFile;
}

interface WecomFile {
  readonly url?: string;
  readonly aeskey?: string;
  readonly filename?: string;
}

/** As far as it is used; nothing of it is certain. */
interface WecomMessage extends WecomItem {
  readonly msgid?: string;
  readonly chatid?: string;
  readonly chattype?: string;
  readonly create_time?: number;
  readonly from?: { readonly userid?: string };
  readonly msgtype?: string;
  readonly mixed?: { readonly msg_item?: readonly WecomItem[] };
}

function toMarkdown({ mentions = [], text }: PostDraft): string {
  return mentions.map(({ id }) => `<@${id}> `).join("") + text;
}

function codeOf(error: unknown): number | undefined {
  const code = typeof error === "object" && error !== null && "errcode" in error ? error.errcode : undefined;
  return typeof code === "number" ? code : undefined;
}
