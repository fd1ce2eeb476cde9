/** Feishu and Lark over the long connection of their library. */

import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { z } from "zod";
import {
  type Channel,
  type ChannelAbilities,
  ChannelError,
  type ChannelOptions,
  type DraftFile,
  type Post,
  type PostDraft,
} from "../../../core/wire/channel.ts";
import { ABNORMAL_CLOSURE } from "../../../core/wire/connection.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import { checkDraft } from "./check-draft.ts";
import { type FeishuEvent, type FeishuFile, readContent, toRichText } from "./feishu/content.ts";
import { FeishuError, fromLibrary, toDialError, toPostError } from "./feishu/errors.ts";
import { loadPackage } from "./load-package.ts";
import type { ChannelTools, Network } from "./network.ts";
import { createPostQueue } from "./post-queue.ts";
import { readAtMost } from "./read-at-most.ts";

const settingsSchema = z.strictObject({
  appId: z
    .string()
    .regex(/^cli_[0-9a-fA-F]{16}$/, "an App ID: cli_ and 16 hexadecimal digits")
    .describe("App ID of the app (应用凭证)."),
  appSecret: z.string().min(1).describe("App Secret of the app (应用凭证)."),
  domain: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("Base URL of the platform; default: `https://open.feishu.cn`, for Lark `https://open.larksuite.com`."),
  rooms: z
    .array(z.string().min(1))
    .optional()
    .describe("Chat ids (`oc_…`) of groups; default: every group that the bot is added to."),
});

type FeishuSettings = z.infer<typeof settingsSchema>;

const ABILITIES: ChannelAbilities = {
  // A rich text has 30 KB with its JSON.
  text: { max: 24_000, unit: "bytes" },
  lines: true,
  maxFileBytes: 30 * 1024 * 1024,
  edits: true,
  replies: true,
  seesBots: "mentions",
  // A file is a message of its own, which cannot mention anyone.
  hidesFilesFromBots: true,
  // Five per second, which all bots of a group share.
  rate: { posts: 2, perMs: 1_000 },
  history: false,
};

export const feishu: Network<FeishuSettings> = {
  name: "feishu",
  title: "Feishu/Lark",
  exclusive: true,
  packages: ["@larksuiteoapi/node-sdk"],
  settings: settingsSchema,
  account: ({ appId }) => appId,
  secrets: ({ appSecret }) => [appSecret],
  rooms: ({ rooms }) => rooms,
  setup: [
    "开发者后台 (https://open.feishu.cn/app) → 创建企业自建应用 (Create custom app), then 添加应用能力 → 机器人 (Bot).",
    "凭证与基础信息 → 应用凭证 (Credentials): copy App ID into `appId` and App Secret into `appSecret`.",
    "权限管理 (Permissions & Scopes): add im:message:send_as_bot, im:message.p2p_msg:readonly, im:message.group_at_msg:readonly and im:resource; for other bots that @mention this one, im:message.group_at_msg.include_bot:readonly; for files and posts in groups without an @mention, im:message.group_msg.",
    "Start the agent, so that it is connected; then 事件与回调 → 事件配置 → 订阅方式 (Subscription mode): 使用长连接接收事件 (Receive events through persistent connection), and 添加事件 im.message.receive_v1 (接收消息).",
    "版本管理与发布 (Version Management & Release): 创建版本 and publish it; nothing above is in force before.",
    "In a group: 设置 → 群机器人 → 添加机器人. Its chat id is 设置 → 会话 ID, for `rooms`.",
  ],
  abilities: ABILITIES,
  open,
};

const REQUEST_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 20_000;
/** What the library logs would contain requests and tickets. */
const SILENT = { error() {}, warn() {}, info() {}, debug() {}, trace() {} };

type Library = typeof import("@larksuiteoapi/node-sdk");
type Request = Parameters<InstanceType<Library["Client"]>["request"]>[0];

async function open(settings: FeishuSettings, options: ChannelOptions, tools: ChannelTools): Promise<Channel> {
  const library = await loadPackage(feishu, () => import("@larksuiteoapi/node-sdk"));
  const { signal } = options;
  const app = {
    appId: settings.appId,
    appSecret: settings.appSecret,
    logger: SILENT,
    ...(settings.domain !== undefined && { domain: settings.domain.replace(/\/+$/, "") }),
  };
  const client = new library.Client({ ...app, cache: new library.DefaultCache() });
  const call: Call = async (request, during) => {
    try {
      const limited = { timeout: REQUEST_TIMEOUT_MS, signal: during, ...request };
      const reply: unknown = await (request.data instanceof FormData
        ? sendForm(client, limited)
        : client.request(limited));
      if (request.responseType === "stream") return reply;
      const { code, msg = "" } = reply as { code?: number; msg?: string };
      if (code !== 0) throw new FeishuError(msg, code);
      return reply;
    } catch (error) {
      throw error instanceof FeishuError ? error : fromLibrary(error);
    }
  };
  try {
    const { bot } = (await call({ method: "GET", url: "/open-apis/bot/v3/info" }, signal)) as BotInfo;
    const channel = new FeishuChannel(call, bot, tools);
    const events = new library.EventDispatcher({ logger: SILENT }).register({
      "im.message.receive_v1": (event: FeishuEvent) => channel.receive(event),
    });
    channel.onClose = await connect(library, app, events, () => channel.close(ABNORMAL_CLOSURE, ""), options, tools);
    return channel;
  } catch (error) {
    throw toDialError(error, signal);
  }
}

/** The library copies the data of a request, and a form does not survive that. */
async function sendForm(client: InstanceType<Library["Client"]>, { url, ...request }: Request): Promise<unknown> {
  const { headers } = await client.formatPayload();
  return client.httpInstance.request({ ...request, url: `${client.domain}${url}`, headers });
}

type Call = (request: Request, signal: AbortSignal) => Promise<unknown>;

interface BotInfo {
  readonly bot: { readonly open_id: string; readonly app_name: string };
}

/** Resolves with what disconnects. */
function connect(
  library: Library,
  app: { readonly appId: string; readonly appSecret: string },
  eventDispatcher: InstanceType<Library["EventDispatcher"]>,
  onLost: () => void,
  { signal }: ChannelOptions,
  { clock }: ChannelTools,
): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: Error): void => {
      cancel();
      signal.removeEventListener("abort", stop);
      if (error === undefined) resolve(() => socket.close());
      else {
        socket.close({ force: true });
        reject(error);
      }
    };
    const socket = new library.WSClient({
      ...app,
      handshakeTimeoutMs: CONNECT_TIMEOUT_MS,
      wsConfig: { pingTimeout: 30 },
      onReady: () => settle(),
      onError: (error) => settle(fromLibrary(error)),
      onReconnecting() {
        onLost();
        // It has yet to set the timer of its next attempt, which this cancels.
        queueMicrotask(() => socket.close());
      },
    });
    const stop = (): void => settle(new DialError("stopped", "The dialling was stopped."));
    const cancel = clock.after(CONNECT_TIMEOUT_MS, () =>
      settle(new DialError("timeout", `There was no connection within ${CONNECT_TIMEOUT_MS / 1000} s.`)),
    );
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop);
    void socket.start({ eventDispatcher });
  });
}

class FeishuChannel implements Channel {
  readonly abilities = ABILITIES;
  readonly self: Channel["self"];
  readonly posts: Channel["posts"];
  readonly closed: Channel["closed"];
  onClose: () => void = () => {};
  readonly #call: Call;
  readonly #tools: ChannelTools;
  readonly #closing = new AbortController();
  readonly #queue = createPostQueue(() => {
    this.#closing.abort();
    this.onClose();
  });

  constructor(call: Call, { app_name: name, open_id: id }: BotInfo["bot"], tools: ChannelTools) {
    this.self = { id, name };
    this.posts = this.#queue.posts;
    this.closed = this.#queue.closed;
    this.#call = call;
    this.#tools = tools;
  }

  close(code?: number, reason?: string): void {
    this.#queue.end(code, reason);
  }

  async post(draft: PostDraft): Promise<{ readonly id: string }> {
    this.#check(draft);
    const { files = [], key = this.#tools.uniqueId(), mentions = [], text } = draft;
    const { signal } = this.#closing;
    try {
      let id = "";
      // A message is a text or a file. The text comes last, so that its files are there when it arrives.
      for (const [index, file] of files.entries()) {
        const file_key = await this.#upload(file, signal);
        id = await this.#send(draft, "file", JSON.stringify({ file_key }), `${key}.${index}`);
      }
      if (text !== "") id = await this.#send(draft, "post", toRichText(text, mentions), key);
      return { id };
    } catch (error) {
      throw toPostError(error);
    }
  }

  async edit(id: string, draft: PostDraft): Promise<void> {
    this.#check(draft);
    const data = { msg_type: "post", content: toRichText(draft.text, draft.mentions ?? []) };
    const request = { method: "PUT", url: `/open-apis/im/v1/messages/${encodeURIComponent(id)}`, data };
    try {
      await this.#call(request, this.#closing.signal);
    } catch (error) {
      throw toPostError(error);
    }
  }

  async delete(id: string): Promise<void> {
    const request: Request = { method: "DELETE", url: `/open-apis/im/v1/messages/${encodeURIComponent(id)}` };
    try {
      await this.#call(request, this.#closing.signal);
    } catch (error) {
      throw toPostError(error);
    }
  }

  receive({ message = {}, sender = {} }: FeishuEvent): void {
    const { chat_id: room, chat_type, content, mentions = [], message_id: id, message_type: type } = message;
    const from = sender.sender_id?.open_id;
    if (room === undefined || id === undefined || type === undefined || from === undefined) return;
    const direct = chat_type === "p2p";
    const { files, text } = readContent(type, content ?? "", mentions);
    if (text === "" && files.length === 0) return;
    const { create_time, parent_id, root_id, thread_id } = message;
    this.#queue.push({
      id,
      room,
      // The first message of a thread: replies to it continue the thread.
      ...(thread_id !== undefined && { thread: root_id || id }),
      direct,
      sender: { id: from, name: from, bot: sender.sender_type !== "user", self: from === this.self.id, verified: true },
      text,
      mentions: mentions.flatMap((mention) => mention.id?.open_id ?? []),
      ...(parent_id !== undefined && parent_id !== "" && { replyTo: parent_id }),
      files: files.map((file) => this.#toPostFile(id, file)),
      at: Number(create_time) || this.#tools.clock.now(),
    });
  }

  #check(draft: PostDraft): void {
    if (this.#queue.ended) throw new ChannelError("closed", "The channel has closed.");
    checkDraft(draft, this.abilities);
    if (draft.files?.some(({ bytes }) => bytes.byteLength === 0) === true) {
      throw new ChannelError("refused", "Feishu does not accept empty files.");
    }
  }

  async #send({ replyTo, room, thread }: PostDraft, msg_type: string, content: string, key: string): Promise<string> {
    // The platform knows a key for an hour, and up to 50 characters of it.
    const uuid = createHash("sha256").update(key).digest("hex").slice(0, 40);
    const message = { msg_type, content, uuid };
    const answered = replyTo ?? thread;
    const request =
      answered === undefined
        ? {
            url: "/open-apis/im/v1/messages",
            params: { receive_id_type: "chat_id" },
            data: { receive_id: room, ...message },
          }
        : {
            url: `/open-apis/im/v1/messages/${encodeURIComponent(answered)}/reply`,
            data: { ...message, reply_in_thread: thread !== undefined },
          };
    const reply = await this.#call({ method: "POST", ...request }, this.#closing.signal);
    return (reply as { data: { message_id: string } }).data.message_id;
  }

  async #upload({ bytes, name }: DraftFile, signal: AbortSignal): Promise<string> {
    const data = new FormData();
    data.set("file_type", "stream");
    data.set("file_name", name);
    data.set("file", new Blob([new Uint8Array(bytes)]), name);
    const reply = await this.#call({ method: "POST", url: "/open-apis/im/v1/files", data }, signal);
    return (reply as { data: { file_key: string } }).data.file_key;
  }

  #toPostFile(message: string, { key, name, type }: FeishuFile): Post["files"][number] {
    const url = `/open-apis/im/v1/messages/${encodeURIComponent(message)}/resources/${encodeURIComponent(key)}`;
    return {
      name,
      mediaType: type === "image" ? "image/png" : "application/octet-stream",
      read: async (maxBytes, signal = this.#closing.signal) => {
        const request: Request = { method: "GET", url, params: { type }, responseType: "stream" };
        return readAtMost((await this.#call(request, signal)) as Readable, maxBytes);
      },
    };
  }
}
