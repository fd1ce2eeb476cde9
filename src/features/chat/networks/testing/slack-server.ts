/** A Slack that follows the documented rules of the Web API and of Socket Mode: a channel and direct messages. */

import type { WebSocket } from "ws";
import { type SimulatedReply, type SimulatedRequest, startServer } from "./http-server.ts";
import { parseMultipart } from "./multipart.ts";
import { createRateLimiter } from "./rate-limiter.ts";
import { createSlackSockets } from "./slack-sockets.ts";

const MAX_TEXT = 40_000;
const MAX_PAGE = 999;
/**
 * "One message per second per channel", with short bursts that are not guaranteed (docs.slack.dev: Rate limits). How
 * short is not documented; this is a guess on the strict side.
 */
const BURST = 5;
const BURST_MS = 5_000;

export interface SlackApp {
  readonly userId: string;
  readonly botId: string;
  readonly name: string;
  readonly botToken: string;
  readonly appToken: string;
  readonly scopes: readonly string[];
}

interface SlackPerson {
  readonly id: string;
  readonly name: string;
}

interface SlackEvent {
  readonly type: "message";
  readonly channel: string;
  readonly channel_type: "channel" | "im";
  readonly ts: string;
  readonly text: string;
  readonly user?: string;
  readonly bot_id?: string;
  readonly username?: string;
  readonly thread_ts?: string;
  readonly subtype?: string;
  readonly files?: readonly object[];
  readonly edited?: { readonly user: string; readonly ts: string };
}

type Fields = Readonly<Record<string, string>>;

export interface SlackServer {
  /** For `slackApiUrl`. */
  readonly apiUrl: string;
  readonly room: string;
  /** A channel that the apps were not added to. */
  readonly foreignRoom: string;
  readonly messages: readonly SlackEvent[];
  /** Raw text, as Slack sends it. */
  say(
    from: Partial<Pick<SlackEvent, "user" | "bot_id" | "username">>,
    channel: string,
    text: string,
    more?: Partial<SlackEvent>,
  ): SlackEvent;
  edit(ts: string, text: string): void;
  /** Slack adds the preview of a link, which nobody has edited. */
  unfurl(ts: string): void;
  /** A direct message channel of an app and a person. */
  directChannel(app: string, person: string): string;
  addPerson(person: SlackPerson): void;
  /** The next message of an app is one too many. */
  limitRate(): void;
  /** Slack moves the connections to another of its servers. */
  refresh(): void;
  /** Envelopes that were not acknowledged. */
  readonly unacknowledged: () => number;
  close(): Promise<void>;
}

export async function startSlack(apps: readonly SlackApp[]): Promise<SlackServer> {
  const room = "C0ROOM";
  const foreign = "C0ELSEWHERE";
  const direct = new Map<string, readonly [app: string, person: string]>();
  const people = new Map(apps.map(({ name, userId }) => [userId, name]));
  const messages: SlackEvent[] = [];
  const files = new Map<string, { readonly name: string; bytes: Buffer }>();
  const rate = createRateLimiter(BURST, BURST_MS);
  const sockets = createSlackSockets();
  let ticks = 0;
  let limitNext = false;
  const server = await startServer({
    answer,
    connect: (socket: WebSocket, url: URL) => sockets.connect(socket, url.searchParams.get("ticket") ?? ""),
  });

  const newTs = (): string => `${Math.floor(Date.now() / 1_000)}.${String(++ticks).padStart(6, "0")}`;
  const isMember = (app: SlackApp, channel: string): boolean =>
    channel === room || direct.get(channel)?.[0] === app.userId;

  function publish(channel: string, event: object): void {
    const scope = channel.startsWith("D") ? "im:history" : "channels:history";
    for (const app of apps) {
      if (isMember(app, channel) && app.scopes.includes(scope)) sockets.deliver(app.appToken, event);
    }
  }

  function create(fields: Partial<SlackEvent> & { readonly channel: string; readonly text: string }): SlackEvent {
    const channel_type = fields.channel.startsWith("D") ? "im" : "channel";
    const message: SlackEvent = { type: "message", channel_type, ts: newTs(), ...fields };
    messages.push(message);
    publish(message.channel, message);
    return message;
  }

  function change(ts: string, fields: Partial<SlackEvent>): void {
    const at = messages.findIndex((one) => one.ts === ts);
    const previous_message = messages[at] as SlackEvent;
    const message = { ...previous_message, ...fields };
    messages[at] = message;
    const { channel, channel_type } = message;
    publish(channel, {
      type: "message",
      subtype: "message_changed",
      channel,
      channel_type,
      ts: newTs(),
      message,
      previous_message,
    });
  }

  function answer(request: SimulatedRequest): SimulatedReply {
    const token = request.headers.authorization?.replace(/^Bearer /, "") ?? "";
    if (request.path.startsWith("/upload/")) return receiveUpload(request);
    if (request.path.startsWith("/files/")) return sendFile(request.path, token);
    const method = request.path.replace(/^\/api\//, "");
    const fields = toFields(request);
    const owner = apps.find(({ appToken, botToken }) => token === appToken || token === botToken);
    if (owner === undefined) return fail("invalid_auth");
    if (method === "apps.connections.open") {
      if (token !== owner.appToken) return fail("not_allowed_token_type");
      const url = `${server.url.replace("http", "ws")}/link?ticket=${sockets.issueTicket(owner.appToken)}`;
      return succeed({ url });
    }
    if (token !== owner.botToken) return fail("not_allowed_token_type");
    const call = METHODS[method];
    if (call === undefined) return fail("unknown_method");
    const [scope, run] = call;
    const headers = { "x-oauth-scopes": owner.scopes.join(",") };
    if (scope !== undefined && !owner.scopes.includes(scope)) {
      return { ...fail("missing_scope", { needed: scope, provided: owner.scopes.join(",") }), headers };
    }
    const reply = run(owner, fields);
    return { ...reply, headers: { ...headers, ...reply.headers } };
  }

  const METHODS: Readonly<
    Record<string, readonly [string | undefined, (app: SlackApp, fields: Fields) => SimulatedReply]>
  > = {
    "auth.test": [
      undefined,
      ({ botId, name, userId }) =>
        succeed({ user_id: userId, user: name, bot_id: botId, team_id: "T0", url: server.url }),
    ],
    "users.info": [
      "users:read",
      (_, { user = "" }) => {
        const name = people.get(user);
        return name === undefined ? fail("user_not_found") : succeed({ user: { id: user, name } });
      },
    ],
    "chat.postMessage": ["chat:write", post],
    "chat.update": ["chat:write", update],
    "chat.delete": ["chat:write", remove],
    "conversations.history": ["channels:history", readHistory],
    "conversations.replies": ["channels:history", readReplies],
    "files.getUploadURLExternal": [
      "files:write",
      (_, { filename = "", length = "" }) => {
        if (filename === "" || !(Number(length) > 0)) return fail("invalid_arguments");
        const file_id = `F${files.size + 1}`;
        files.set(file_id, { name: filename, bytes: Buffer.alloc(0) });
        return succeed({ file_id, upload_url: `${server.url}/upload/${file_id}` });
      },
    ],
    "files.completeUploadExternal": ["files:write", completeUpload],
  };

  function refuse(app: SlackApp, channel: string): SimulatedReply | undefined {
    if (channel === foreign) return fail("not_in_channel");
    if (apps.some(({ userId }) => userId === channel)) return fail("cannot_dm_bot");
    if (!isMember(app, channel)) return fail("channel_not_found");
    const wait = limitNext ? BURST_MS : rate.take(`${app.userId}:${channel}`);
    limitNext = false;
    if (wait === 0) return undefined;
    const headers = { "retry-after": String(Math.ceil(wait / 1_000)) };
    return { status: 429, headers, body: { ok: false, error: "ratelimited" } };
  }

  function post(app: SlackApp, { channel = "", text = "", thread_ts }: Fields): SimulatedReply {
    if (text === "") return fail("no_text");
    const refusal = refuse(app, channel);
    if (refusal !== undefined) return refusal;
    const thread = thread_ts === undefined ? {} : { thread_ts };
    const message = create({
      channel,
      text: linkify(text.slice(0, MAX_TEXT)),
      user: app.userId,
      bot_id: app.botId,
      ...thread,
    });
    return succeed({ channel, ts: message.ts, message });
  }

  function update(app: SlackApp, { channel = "", text = "", ts = "" }: Fields): SimulatedReply {
    const message = messages.find((one) => one.ts === ts && one.channel === channel);
    if (message === undefined) return fail("message_not_found");
    if (message.user !== app.userId) return fail("cant_update_message");
    if (text === "") return fail("no_text");
    if (text.length > MAX_TEXT) return fail("msg_too_long");
    change(ts, { text: linkify(text), edited: { user: app.userId, ts: newTs() } });
    return succeed({ channel, ts, text });
  }

  function remove(app: SlackApp, { channel = "", ts = "" }: Fields): SimulatedReply {
    const at = messages.findIndex((one) => one.ts === ts && one.channel === channel);
    if (at === -1) return fail("message_not_found");
    if (messages[at]?.user !== app.userId) return fail("cant_delete_message");
    messages.splice(at, 1);
    return succeed({ channel, ts });
  }

  function readHistory(
    app: SlackApp,
    { channel = "", cursor = "0", limit = "100", oldest = "0" }: Fields,
  ): SimulatedReply {
    if (!isMember(app, channel)) return fail("not_in_channel");
    const all = messages.filter((one) => one.channel === channel && Number(one.ts) > Number(oldest));
    const roots = all.filter(({ thread_ts }) => thread_ts === undefined).reverse();
    const start = Number(cursor || "0");
    const end = start + Math.min(Number(limit), MAX_PAGE);
    const page = roots.slice(start, end).map((root) => {
      const replies = messages.filter(({ thread_ts }) => thread_ts === root.ts);
      const last = replies.at(-1);
      return last === undefined
        ? root
        : { ...root, thread_ts: root.ts, reply_count: replies.length, latest_reply: last.ts };
    });
    const next_cursor = end < roots.length ? String(end) : "";
    return succeed({
      messages: page.map(({ channel: _, ...shown }) => shown),
      has_more: next_cursor !== "",
      response_metadata: { next_cursor },
    });
  }

  function readReplies(app: SlackApp, { channel = "", oldest = "0", ts = "" }: Fields): SimulatedReply {
    if (!isMember(app, channel)) return fail("not_in_channel");
    const replies = messages.filter((one) => one.thread_ts === ts && Number(one.ts) > Number(oldest));
    return succeed({ messages: [...messages.filter((one) => one.ts === ts), ...replies], has_more: false });
  }

  function completeUpload(app: SlackApp, fields: Fields): SimulatedReply {
    const { channel_id = "", initial_comment = "", thread_ts } = fields;
    const ids = (JSON.parse(fields.files ?? "[]") as { readonly id: string }[]).map(({ id }) => id);
    if (ids.some((id) => !files.has(id))) return fail("file_not_found");
    const refusal = refuse(app, channel_id);
    if (refusal !== undefined) return refusal;
    const shared = ids.map((id) => {
      const { bytes, name } = files.get(id) ?? { name: "", bytes: Buffer.alloc(0) };
      const url_private = `${server.url}/files/${id}`;
      return { id, name, mimetype: "application/octet-stream", size: bytes.length, mode: "hosted", url_private };
    });
    // Slack shares the files when its jobs have processed them, after the reply.
    setImmediate(() => {
      const thread = thread_ts === undefined ? {} : { thread_ts };
      const sender = { user: app.userId, bot_id: app.botId, subtype: "file_share" };
      create({ channel: channel_id, text: linkify(initial_comment), files: shared, ...sender, ...thread });
    });
    return succeed({ files: ids.map((id) => ({ id })) });
  }

  function receiveUpload({ bytes, headers, path }: SimulatedRequest): SimulatedReply {
    const file = files.get(path.replace("/upload/", ""));
    if (file === undefined) return { status: 404, body: {} };
    file.bytes = parseMultipart(headers["content-type"], bytes)?.files[0]?.bytes ?? bytes;
    return { body: Buffer.from(`OK - ${file.bytes.length}`) };
  }

  function sendFile(path: string, token: string): SimulatedReply {
    const app = apps.find(({ botToken }) => botToken === token);
    // Others are sent to the page where people log in.
    if (app?.scopes.includes("files:read") !== true) return { status: 302, headers: { location: "/login" }, body: {} };
    const file = files.get(path.replace("/files/", ""));
    return file === undefined ? { status: 404, body: {} } : { body: file.bytes };
  }

  return {
    apiUrl: `${server.url}/api/`,
    room,
    foreignRoom: foreign,
    messages,
    say: (from, channel, text, more = {}) => create({ channel, text, ...from, ...more }),
    edit: (ts, text) => change(ts, { text, edited: { user: "U0EDITOR", ts: newTs() } }),
    unfurl: (ts) => change(ts, {}),
    directChannel(app, person) {
      const id = `D0${app}${person}`;
      direct.set(id, [app, person]);
      return id;
    },
    addPerson: ({ id, name }) => void people.set(id, name),
    limitRate() {
      limitNext = true;
    },
    refresh: sockets.refresh,
    unacknowledged: sockets.unacknowledged,
    close: server.close,
  };
}

function toFields({ bytes, headers, json, query }: SimulatedRequest): Fields {
  if (headers["content-type"]?.startsWith("application/json") === true) {
    return Object.fromEntries(
      Object.entries(json ?? {}).map(([key, value]) => [
        key,
        typeof value === "string" ? value : JSON.stringify(value),
      ]),
    );
  }
  const form = parseMultipart(headers["content-type"], bytes)?.fields;
  return form ?? Object.fromEntries([...query, ...new URLSearchParams(bytes.toString("utf8"))]);
}

/** Slack makes links of what looks like one, outside those that are marked as links. */
function linkify(text: string): string {
  return text
    .replaceAll(/(?<![<|\w])https?:\/\/[^\s<>|]+/g, (url) => `<${url}>`)
    .replaceAll(/(?<![<|:\w])[\w.]+@[\w-]+\.\w+/g, (mail) => `<mailto:${mail}|${mail}>`);
}

function succeed(fields: object): SimulatedReply {
  return { body: { ok: true, ...fields } };
}

function fail(error: string, more: object = {}): SimulatedReply {
  return { body: { ok: false, error, ...more } };
}
