/** A Discord that follows the documented rules of REST v10 and the gateway: one server ("guild") and direct messages. */

import { createGateway, type Gateway, type GatewayBot, INTENTS } from "./discord-gateway.ts";
import { type SimulatedReply, type SimulatedRequest, startServer } from "./http-server.ts";
import { type MultipartFile, parseMultipart } from "./multipart.ts";

const MAX_CONTENT = 2_000;
const MAX_FILES = 10;
/** Of each file, without boosts (API Reference: Uploading Files). */
const MAX_UPLOAD = 10 * 1024 * 1024;
const MAX_NONCE = 25;
const WINDOW_MS = 5_000;
const REQUESTS_PER_WINDOW = 5;

interface DiscordUser {
  readonly id: string;
  readonly username: string;
  readonly bot?: boolean;
}

interface DiscordMessage {
  readonly id: string;
  readonly channel_id: string;
  readonly author: DiscordUser;
  readonly content: string;
  readonly timestamp: string;
  readonly edited_timestamp: string | null;
  readonly mentions: readonly DiscordUser[];
  readonly attachments: readonly object[];
  readonly type: number;
  readonly nonce?: string;
  readonly message_reference?: { readonly message_id: string; readonly channel_id: string };
  readonly webhook_id?: string;
  readonly embeds: readonly object[];
}

interface DiscordChannel {
  readonly id: string;
  readonly type: 0 | 1 | 11;
  readonly name: string;
  readonly parent_id?: string;
  /** Absent: all of the server. */
  readonly members?: readonly string[];
}

interface Draft {
  readonly content?: string | undefined;
  readonly files?: readonly MultipartFile[];
  readonly replyTo?: string | undefined;
  readonly mentions?: readonly string[];
  readonly nonce?: string | undefined;
  readonly webhook?: boolean;
}

export interface DiscordServer {
  /** For `rest.api`. */
  readonly api: string;
  readonly room: string;
  /** A channel that the bots are not members of. */
  readonly foreignRoom: string;
  readonly gateway: Gateway;
  /** All messages in the order of their creation, as they are now. */
  readonly messages: readonly DiscordMessage[];
  /** A person or a webhook writes. */
  say(author: DiscordUser, channel: string, draft: Draft): DiscordMessage;
  edit(id: string, content: string): void;
  /** Discord adds the preview of a link, which nobody has edited. */
  unfurl(id: string): void;
  createThread(name: string): string;
  directChannel(one: string, other: string): string;
  /** The next message of a bot is one too many. */
  limitRate(): void;
  close(): Promise<void>;
}

export async function startDiscord(
  bots: readonly GatewayBot[],
  { heartbeatMs = 41_250 }: { readonly heartbeatMs?: number } = {},
): Promise<DiscordServer> {
  let ids = 0;
  const newId = (): string => String(1_300_000_000_000_000_000n + BigInt(++ids));
  const guild = newId();
  const text = (name: string, members?: readonly string[]): DiscordChannel => {
    return { id: newId(), type: 0, name, ...(members === undefined ? {} : { members }) };
  };
  const [room, foreign] = [text("general"), text("elsewhere", [])];
  const channels = new Map([room, foreign].map((channel) => [channel.id, channel]));
  const users = new Map<string, DiscordUser>(bots.map(({ id, username }) => [id, { id, username, bot: true }]));
  const messages: DiscordMessage[] = [];
  const uploads = new Map<string, Buffer>();
  const windows = new Map<string, { used: number; until: number }>();
  let limitNext = false;

  const sees = ({ members }: DiscordChannel, user: string): boolean => members?.includes(user) ?? true;
  const server = await startServer({ answer, connect: (socket) => gateway.connect(socket) });
  const gateway = createGateway({
    bots,
    heartbeatMs,
    url: () => server.url.replace("http", "ws"),
    guilds: (bot) => [
      toGuild(
        guild,
        [...channels.values()].filter((channel) => sees(channel, bot.id)),
      ),
    ],
  });

  function publish(type: string, message: DiscordMessage): void {
    const channel = channels.get(message.channel_id) as DiscordChannel;
    const direct = channel.type === 1;
    gateway.dispatch(type, (bot, intents) => {
      const wanted = direct ? INTENTS.directMessages : INTENTS.guildMessages;
      if (!sees(channel, bot.id) || (intents & wanted) === 0) return undefined;
      const addressed = direct || message.author.id === bot.id || message.mentions.some(({ id }) => id === bot.id);
      const visible = addressed || (intents & INTENTS.messageContent) !== 0;
      const shown = visible ? message : { ...message, content: "", attachments: [], embeds: [] };
      return direct ? shown : { ...shown, guild_id: guild, member: { roles: [] } };
    });
  }

  function create(author: DiscordUser, channel_id: string, draft: Draft): DiscordMessage {
    users.set(author.id, author);
    const { content = "", files = [], mentions, nonce, replyTo } = draft;
    const original = messages.find(({ id }) => id === replyTo);
    const written = [...content.matchAll(/<@!?(\d+)>/g)].map(([, id = ""]) => id);
    const notified = new Set(mentions === undefined ? written : written.filter((id) => mentions.includes(id)));
    if (original !== undefined) notified.add(original.author.id);
    const message: DiscordMessage = {
      id: newId(),
      channel_id,
      author,
      content,
      timestamp: new Date().toISOString(),
      edited_timestamp: null,
      mentions: [...notified].flatMap((id) => users.get(id) ?? []),
      attachments: files.map((file) => upload(channel_id, file)),
      type: original === undefined ? 0 : 19,
      embeds: [],
      ...(nonce === undefined ? {} : { nonce }),
      ...(original === undefined ? {} : { message_reference: { message_id: original.id, channel_id } }),
      ...(draft.webhook === true ? { webhook_id: author.id } : {}),
    };
    messages.push(message);
    publish("MESSAGE_CREATE", message);
    return message;
  }

  function upload(channel: string, { bytes, mediaType, name }: MultipartFile): object {
    const id = newId();
    const filename = name.replaceAll(/\s/g, "_");
    const path = `/attachments/${channel}/${id}/${encodeURIComponent(filename)}`;
    uploads.set(path, bytes);
    return { id, filename, content_type: mediaType, size: bytes.length, url: server.url + path, proxy_url: "" };
  }

  function change(id: string, fields: Partial<DiscordMessage>): DiscordMessage {
    const at = messages.findIndex((message) => message.id === id);
    const changed = { ...(messages[at] as DiscordMessage), ...fields };
    messages[at] = changed;
    publish("MESSAGE_UPDATE", changed);
    return changed;
  }

  function answer(request: SimulatedRequest): SimulatedReply {
    const file = uploads.get(request.path);
    if (file !== undefined) return { body: file };
    const bot = bots.find(({ token }) => request.headers.authorization === `Bot ${token}`);
    if (bot === undefined) return fail(401, 0, "401: Unauthorized");
    const [version, ...path] = request.path.replace(/^\/api\//, "").split("/");
    if (version !== "v10") return fail(400, 50_041, "Invalid API version");
    if (path.join("/") === "gateway/bot") {
      const session_start_limit = { total: 1000, remaining: 1000, reset_after: 0, max_concurrency: 1 };
      return { body: { url: server.url.replace("http", "ws"), shards: 1, session_start_limit } };
    }
    const channel = channels.get(path[1] ?? "");
    if (path[0] !== "channels" || channel === undefined) return fail(404, 10_003, "Unknown Channel");
    if (!sees(channel, bot.id)) return fail(403, 50_001, "Missing Access");
    if (path.length === 2) return { body: toChannel(channel, guild) };
    const limit = takeTurn(`${bot.id}:${request.method}:${channel.id}`, request.method);
    if (limit.reply !== undefined) return limit.reply;
    const author = { id: bot.id, username: bot.username, bot: true };
    const reply =
      path.length === 3 ? answerMessages(request, channel, author) : answerMessage(request, path[3], author);
    return { ...reply, headers: limit.headers };
  }

  function answerMessages(request: SimulatedRequest, channel: DiscordChannel, author: DiscordUser): SimulatedReply {
    if (request.method === "GET") return { body: readPage(request.query, channel.id) };
    const draft = readDraft(request);
    const { problem } = draft;
    if (problem !== undefined) return problem;
    const repeated = messages.find((one) => one.author.id === author.id && one.nonce === draft.nonce);
    if (draft.enforce && draft.nonce !== undefined && repeated !== undefined) return { body: repeated };
    const known = messages.some(({ id }) => id === draft.replyTo);
    if (draft.replyTo !== undefined && !known && draft.mustExist) return invalidForm("message_reference");
    return { body: create(author, channel.id, draft) };
  }

  function answerMessage(request: SimulatedRequest, id: string | undefined, author: DiscordUser): SimulatedReply {
    const message = messages.find((one) => one.id === id);
    if (message === undefined) return fail(404, 10_008, "Unknown Message");
    if (request.method === "GET") return { body: message };
    if (message.author.id !== author.id) {
      return request.method === "DELETE"
        ? fail(403, 50_013, "Missing Permissions")
        : fail(403, 50_005, "Cannot edit a message authored by another user");
    }
    if (request.method === "DELETE") {
      messages.splice(messages.indexOf(message), 1);
      return { status: 204, body: new Uint8Array() };
    }
    const { content, problem } = readDraft(request);
    return (
      problem ?? { body: change(message.id, { content: content ?? "", edited_timestamp: new Date().toISOString() }) }
    );
  }

  function readPage(query: URLSearchParams, channel: string): DiscordMessage[] {
    const limit = Number(query.get("limit") ?? 50);
    const all = messages.filter(({ channel_id }) => channel_id === channel);
    const after = query.get("after");
    const page =
      after === null ? all.slice(-limit) : all.filter(({ id }) => BigInt(id) > BigInt(after)).slice(0, limit);
    return page.reverse();
  }

  /** One of the requests that the bucket of this route allows, and the headers that report it. */
  function takeTurn(bucket: string, method: string): { headers: Record<string, string>; reply?: SimulatedReply } {
    const now = Date.now();
    const current = windows.get(bucket);
    const window = current === undefined || current.until <= now ? { used: 0, until: now + WINDOW_MS } : current;
    windows.set(bucket, window);
    const forced = limitNext && method === "POST";
    if (forced) {
      limitNext = false;
      window.used = REQUESTS_PER_WINDOW;
    }
    const exceeded = window.used >= REQUESTS_PER_WINDOW;
    if (!exceeded) window.used++;
    const seconds = (window.until - now) / 1_000;
    const headers = {
      "x-ratelimit-limit": String(REQUESTS_PER_WINDOW),
      "x-ratelimit-remaining": String(REQUESTS_PER_WINDOW - window.used),
      "x-ratelimit-reset": String(window.until / 1_000),
      "x-ratelimit-reset-after": String(seconds),
      "x-ratelimit-bucket": Buffer.from(bucket.split(":")[1] ?? "").toString("hex"),
    };
    if (!exceeded) return { headers };
    const body = { message: "You are being rate limited.", retry_after: seconds, global: false };
    const scope = { "retry-after": String(Math.ceil(seconds)), "x-ratelimit-scope": "user" };
    return { headers, reply: { status: 429, headers: { ...headers, ...scope }, body } };
  }

  return {
    api: `${server.url}/api`,
    room: room.id,
    foreignRoom: foreign.id,
    gateway,
    messages,
    say: create,
    edit: (id, content) => void change(id, { content, edited_timestamp: new Date().toISOString() }),
    unfurl: (id) => void change(id, { embeds: [{ type: "link", url: "https://example.com" }] }),
    createThread(name) {
      const thread: DiscordChannel = { id: newId(), type: 11, name, parent_id: room.id };
      channels.set(thread.id, thread);
      gateway.dispatch("THREAD_CREATE", () => toChannel(thread, guild));
      return thread.id;
    },
    directChannel(one, other) {
      const known = [...channels.values()].find(
        ({ members, type }) => type === 1 && members?.includes(one) === true && members.includes(other),
      );
      const channel: DiscordChannel = known ?? { id: newId(), type: 1, name: "", members: [one, other] };
      channels.set(channel.id, channel);
      return channel.id;
    },
    limitRate() {
      limitNext = true;
    },
    close: server.close,
  };
}

interface ReadDraft extends Draft {
  readonly enforce: boolean;
  readonly mustExist: boolean;
  readonly problem?: SimulatedReply;
}

function readDraft({ bytes, headers, json }: SimulatedRequest): ReadDraft {
  const form = parseMultipart(headers["content-type"], bytes);
  const body = form === undefined ? (json ?? {}) : JSON.parse(form.fields.payload_json ?? "{}");
  const { allowed_mentions, content, enforce_nonce, message_reference, nonce } = body;
  const files = form?.files ?? [];
  return {
    content,
    files,
    nonce,
    enforce: enforce_nonce === true,
    replyTo: message_reference?.message_id,
    mustExist: message_reference?.fail_if_not_exists !== false,
    ...(allowed_mentions === undefined ? {} : { mentions: allowed_mentions.users ?? [] }),
    ...findProblem(content ?? "", files, nonce),
  };
}

function findProblem(content: string, files: readonly MultipartFile[], nonce?: string): { problem?: SimulatedReply } {
  if (content.length > MAX_CONTENT) return { problem: invalidForm("content") };
  if (files.length > MAX_FILES) return { problem: invalidForm("files") };
  if (nonce !== undefined && nonce.length > MAX_NONCE) return { problem: invalidForm("nonce") };
  if (files.some(({ bytes }) => bytes.length > MAX_UPLOAD)) {
    return { problem: fail(413, 40_005, "Request entity too large") };
  }
  if (content.trim() === "" && files.length === 0)
    return { problem: fail(400, 50_006, "Cannot send an empty message") };
  return {};
}

function fail(status: number, code: number, message: string): SimulatedReply {
  return { status, body: { code, message } };
}

function invalidForm(field: string): SimulatedReply {
  const errors = {
    [field]: { _errors: [{ code: "BASE_TYPE_BAD_LENGTH", message: "Must be 2000 or fewer in length." }] },
  };
  return { status: 400, body: { code: 50_035, message: "Invalid Form Body", errors } };
}

function toChannel({ id, name, parent_id, type }: DiscordChannel, guild: string): object {
  if (type === 1) return { id, type, recipients: [], last_message_id: null };
  const thread = {
    archived: false,
    auto_archive_duration: 1440,
    archive_timestamp: new Date(0).toISOString(),
    locked: false,
  };
  const common = { id, type, name, guild_id: guild, position: 0, permission_overwrites: [] };
  return type === 11 ? { ...common, parent_id, thread_metadata: thread, member_count: 1, message_count: 0 } : common;
}

function toGuild(id: string, channels: readonly DiscordChannel[]): { readonly id: string } {
  const none = { members: [], emojis: [], stickers: [], presences: [], voice_states: [], stage_instances: [] };
  return {
    ...none,
    ...{ id, name: "simulated", unavailable: false, owner_id: "1", features: [], guild_scheduled_events: [] },
    ...{ roles: [{ id, name: "@everyone", permissions: "0", position: 0, tags: null }] },
    ...{ channels: channels.filter(({ type }) => type === 0).map((channel) => toChannel(channel, id)) },
    ...{ threads: channels.filter(({ type }) => type === 11).map((channel) => toChannel(channel, id)) },
  };
}
