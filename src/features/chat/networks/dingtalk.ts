/**
 * Robots of DingTalk in stream mode. Answers go to the webhook of the conversation that wrote last, which is valid for
 * about an hour and a half, and after that through the API. Sending files is not supported: the API accepts a few
 * office formats only, not the text files that agents write.
 */

import type { DWClientDownStream } from "dingtalk-stream";
import { z } from "zod";
import {
  type Channel,
  type ChannelAbilities,
  ChannelError,
  type ChannelOptions,
  type Post,
  type PostDraft,
} from "../../../core/wire/channel.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import type { Link } from "../../../core/wire/link.ts";
import { checkDraft } from "./check-draft.ts";
import { createDingtalkApi, type DingtalkApi, DingtalkError, toPostError } from "./dingtalk/api.ts";
import { type DingtalkMessage, readMessage } from "./dingtalk/message.ts";
import { loadPackage } from "./load-package.ts";
import type { ChannelTools, Network } from "./network.ts";
import { createPostQueue, type PostQueue } from "./post-queue.ts";

const settingsSchema = z.strictObject({
  clientId: z.string().min(1).describe("Client ID of the app (原 AppKey)."),
  clientSecret: z.string().min(1).describe("Client Secret of the app (原 AppSecret)."),
  api: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("Base URL of the API; default: `https://api.dingtalk.com`."),
});

type DingtalkSettings = z.infer<typeof settingsSchema>;

const ABILITIES: ChannelAbilities = {
  // 15,000 bytes as JSON, where the webhook of the conversation has expired.
  text: { max: 12_000, unit: "bytes" },
  lines: true,
  maxFileBytes: 0,
  edits: false,
  replies: false,
  seesBots: "none",
  // More are refused for ten minutes.
  rate: { posts: 20, perMs: 60_000 },
  history: false,
};

export const dingtalk: Network<DingtalkSettings> = {
  name: "dingtalk",
  title: "DingTalk",
  exclusive: true,
  packages: ["dingtalk-stream"],
  settings: settingsSchema,
  account: ({ clientId }) => clientId,
  secrets: ({ clientSecret }) => [clientSecret],
  rooms: () => undefined,
  setup: [
    "钉钉开放平台 (https://open-dev.dingtalk.com) → 应用开发 → 企业内部应用 → 创建应用.",
    "凭证与基础信息 (Credentials): copy Client ID (原 AppKey) into `clientId` and Client Secret (原 AppSecret) into `clientSecret`.",
    "添加应用能力 → 机器人 (Robot) → 机器人配置: 消息接收模式 (message receiving mode) must be Stream 模式; 发布.",
    "权限管理 (Permissions): 企业内机器人发送消息权限, for answers that take longer than the webhook of a conversation lives.",
    "版本管理与发布: 创建新版本 and publish it.",
    "In a group: 群设置 → 机器人 → 添加机器人 → 企业机器人. People address it with @; it does not see posts of other bots.",
  ],
  abilities: ABILITIES,
  open,
};

const CONNECT_TIMEOUT_MS = 20_000;
const PING = { everyMs: 30_000, deadlineMs: 20_000 };
const PROTOCOL_ERROR = 1002;
const MAX_CONVERSATIONS = 1_000;
/** A webhook that ends within this time is not used. */
const WEBHOOK_MARGIN_MS = 10_000;

type Client = InstanceType<typeof import("dingtalk-stream")["DWClient"]>;

async function open(settings: DingtalkSettings, { signal }: ChannelOptions, tools: ChannelTools): Promise<Channel> {
  const library = await loadPackage(dingtalk, () => import("dingtalk-stream"));
  const { clientId, clientSecret } = settings;
  const { clock } = tools;
  const api = createDingtalkApi(settings, clock);
  const client = new library.DWClient({ clientId, clientSecret });
  client.registerCallbackListener(library.TOPIC_ROBOT, () => {});
  try {
    const address = await api.openStream(client.config.subscriptions, signal);
    const connectTimeoutMs = CONNECT_TIMEOUT_MS;
    const { dialWebSocket } = await import("../../../core/wire/websocket-dial.ts");
    const link = await dialWebSocket(address, { clock, headers: {}, connectTimeoutMs, ping: PING, signal });
    const channel = new DingtalkChannel(link, api, clientId, tools);
    client.on(library.TOPIC_ROBOT, ({ data, headers }: DWClientDownStream) => {
      client.socketCallBackResponse(headers.messageId, "");
      channel.receive(data);
    });
    void readFrames(client, link);
    return channel;
  } catch (error) {
    throw toDialError(error, signal);
  }
}

/**
 * The library reads and acknowledges frames. It does not connect: its own socket has a fixed URL, writes to the console
 * and does not say when it closes.
 */
async function readFrames(client: Client, link: Link): Promise<void> {
  Reflect.set(client, "socket", { send: (text: string) => void link.send(text) });
  for await (const text of link.messages) {
    try {
      client.onDownStream(text);
    } catch {
      link.close(PROTOCOL_ERROR, "DingTalk sent a frame that cannot be read.");
    }
  }
}

function toDialError(error: unknown, signal: AbortSignal): DialError {
  if (error instanceof DialError) return error;
  if (signal.aborted) return new DialError("stopped", "The dialling was stopped.");
  if (!(error instanceof DingtalkError)) {
    const { cause, message } = error as Error;
    const reason = cause instanceof Error ? cause.message || message : message;
    return new DialError("unreachable", `DingTalk could not be reached: ${reason}`);
  }
  const fields =
    "Copy `clientId` and `clientSecret` from 凭证与基础信息 (Client ID, Client Secret), and set 机器人 → 消息接收模式 to Stream 模式.";
  return new DialError("refused", `DingTalk does not accept the app: ${error.message}. ${fields}`, error.status);
}

interface Conversation {
  readonly webhook: string;
  readonly until: number;
}

class DingtalkChannel implements Channel {
  readonly abilities = ABILITIES;
  readonly self: Channel["self"];
  readonly posts: Channel["posts"];
  readonly closed: Channel["closed"];
  readonly #api: DingtalkApi;
  readonly #tools: ChannelTools;
  readonly #conversations = new Map<string, Conversation>();
  readonly #closing = new AbortController();
  readonly #queue: PostQueue;

  constructor(link: Link, api: DingtalkApi, id: string, tools: ChannelTools) {
    this.#queue = createPostQueue(() => {
      this.#closing.abort();
      link.close();
    });
    void link.closed.then(({ code, reason }) => this.close(code, reason));
    this.self = { id, name: id };
    this.posts = this.#queue.posts;
    this.closed = this.#queue.closed;
    this.#api = api;
    this.#tools = tools;
  }

  close(code?: number, reason?: string): void {
    this.#queue.end(code, reason);
  }

  async post(draft: PostDraft): Promise<{ readonly id: string }> {
    if (this.#queue.ended) throw new ChannelError("closed", "The channel has closed.");
    checkDraft(draft, this.abilities);
    const { mentions = [], room, text } = draft;
    const ids = mentions.map(({ id }) => id);
    const content = ids.map((id) => `@${id} `).join("") + text;
    const { signal } = this.#closing;
    try {
      const webhook = this.#webhook(room);
      const isSent = webhook !== undefined && (await this.#api.sendBySession(webhook, content, ids, signal));
      if (!isSent) await this.#api.sendText(room, content, signal);
    } catch (error) {
      throw toPostError(error);
    }
    // The platform does not tell.
    return { id: this.#tools.uniqueId() };
  }

  receive(data: string): void {
    const message = readMessage(data);
    if (message === undefined) return;
    const { room, sessionWebhook: webhook, sessionWebhookExpiredTime: until = 0 } = message;
    if (webhook !== undefined) {
      this.#conversations.delete(room);
      this.#conversations.set(room, { webhook, until });
      const [oldest] = this.#conversations.keys();
      if (this.#conversations.size > MAX_CONVERSATIONS && oldest !== undefined) this.#conversations.delete(oldest);
    }
    if (message.text !== "" || message.files.length > 0) this.#queue.push(this.#toPost(message));
  }

  #webhook(room: string): string | undefined {
    const { until = 0, webhook } = this.#conversations.get(room) ?? {};
    return until - WEBHOOK_MARGIN_MS > this.#tools.clock.now() ? webhook : undefined;
  }

  #toPost({ at, direct, files, id, mentions, room, sender, text }: DingtalkMessage): Post {
    return {
      id,
      room,
      direct,
      sender: { ...sender, bot: false, self: false, verified: true },
      text,
      // In a group, the robot gets what mentions it, without the mention.
      mentions: direct ? mentions : [this.self.id, ...mentions],
      files: files.map(({ code, name }) => ({
        name,
        mediaType: "application/octet-stream",
        read: (maxBytes: number, signal = this.#closing.signal) => this.#api.download(code, maxBytes, signal),
      })),
      at: at ?? this.#tools.clock.now(),
    };
  }
}
