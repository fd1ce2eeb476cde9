/**
 * The Feishu platform: tokens, long connections, messages, files; with its rules: five messages per second in a chat,
 * shared by its bots; 30 KB of rich text and 150 KB of text; 30 MB of file; 20 edits; keys that are known again; open ids
 * that differ from app to app; in groups an app gets what mentions it, of other bots only with a scope for that.
 */
import type { WebSocket } from "ws";
import type { Participant, Post, PostDraft } from "../../../../core/wire/channel.ts";
import { createPostQueue } from "../post-queue.ts";
import type { Peer } from "../suite/channel-suite.ts";
import { decodeFrame, encodeFrame } from "./feishu-frames.ts";
import { type SimulatedReply, type SimulatedRequest, startServer } from "./http-server.ts";

interface App {
  readonly id: string;
  readonly secret: string;
  readonly name: string;
  readonly scopes: ReadonlySet<string>;
  readonly sockets: Set<WebSocket>;
}

interface Message {
  readonly id: string;
  readonly chat: Chat;
  /** An app or a person. */
  readonly sender: string;
  readonly type: string;
  content: string;
  readonly mentions: readonly string[];
  readonly parent?: Message | undefined;
  readonly thread?: string | undefined;
  readonly at: number;
  edits: number;
}

interface Chat {
  readonly id: string;
  readonly direct: boolean;
  readonly members: ReadonlySet<string>;
  readonly sent: number[];
}

interface FeishuServer {
  readonly url: string;
  addApp(app: { id: string; secret: string; name: string; scopes?: readonly string[] }): void;
  addChat(id: string, members: readonly string[], direct?: boolean): void;
  /** How a participant, an app or a person, appears to an app. */
  openId(viewer: string, principal: string): string;
  /** A member of chats who reads and writes like a person, by the names of the members. */
  person(name: string): Peer;
  /** Delivers raw content, as if this person had sent it. */
  send(chat: string, sender: string, type: string, content: object, more?: Partial<Message>): string;
  /** Delivers an event of this app once more, or any other. */
  deliver(app: string, event: object): void;
  readonly messages: readonly Message[];
  readonly events: readonly object[];
  /** The next message is one too many. */
  limitNext(): void;
  /** Closes the long connections. */
  disconnect(): void;
  close(): Promise<void>;
}

const MAX_RICH_TEXT = 30 * 1024;
const MAX_TEXT = 150 * 1024;
const MAX_FILE = 30 * 1024 * 1024;
/** 编辑消息 (open.feishu.cn, im-v1/message/update). */
const MAX_EDITS = 20;
const PER_SECOND = 5;
export const SEES_BOTS = "im:message.group_at_msg.include_bot:readonly";
const SEES_GROUP = "im:message.group_msg";

export async function startFeishuServer({ rate = PER_SECOND } = {}): Promise<FeishuServer> {
  const apps = new Map<string, App>();
  const chats = new Map<string, Chat>();
  const messages = new Map<string, Message>();
  const files = new Map<string, { readonly name: string; readonly bytes: Buffer }>();
  const tokens = new Map<string, App>();
  const uuids = new Map<string, string>();
  const watchers = new Set<(message: Message, edited: boolean) => void>();
  const events: object[] = [];
  let limited = false;
  let ids = 0;

  const refuse = (status: number, code: number, msg: string, headers = {}): SimulatedReply => ({
    status,
    headers,
    body: { code, msg },
  });
  const openId = (viewer: string, principal: string): string => `ou_${viewer.slice(-4)}_${principal}`;
  const nameOf = (principal: string): string => apps.get(principal)?.name ?? principal;

  /** The content as the app gets it: mentions are placeholders, which the event explains. */
  function toEvent(app: App, message: Message): object {
    const { at, chat, content, id, parent, sender, thread, type } = message;
    const keys = message.mentions.map((_, index) => `@_user_${index + 1}`);
    return {
      sender: {
        sender_id: { open_id: openId(app.id, sender), union_id: `on_${sender}` },
        sender_type: apps.has(sender) ? "app" : "user",
      },
      message: {
        message_id: id,
        ...(parent !== undefined && { parent_id: parent.id, root_id: parent.parent?.id ?? parent.id }),
        ...(thread !== undefined && { thread_id: thread }),
        create_time: `${at}`,
        chat_id: chat.id,
        chat_type: chat.direct ? "p2p" : "group",
        message_type: type,
        content,
        mentions: message.mentions.map((principal, index) => ({
          key: keys[index],
          id: { open_id: openId(app.id, principal) },
          name: nameOf(principal),
        })),
      },
    };
  }

  function isVisible(app: App, { chat, mentions, sender }: Message): boolean {
    if (!chat.members.has(app.id) || sender === app.id) return false;
    if (chat.direct) return true;
    if (apps.has(sender)) return mentions.includes(app.id) && app.scopes.has(SEES_BOTS);
    return mentions.includes(app.id) || app.scopes.has(SEES_GROUP);
  }

  function push(app: App, event: object): void {
    events.push(event);
    const envelope = {
      schema: "2.0",
      header: { event_id: `event-${events.length}`, event_type: "im.message.receive_v1" },
    };
    const payload = Buffer.from(JSON.stringify({ ...envelope, event }));
    // One of the connections of an app gets an event, in as many frames as it takes.
    const [socket] = app.sockets;
    const half = Math.ceil(payload.length / 2);
    [payload.subarray(0, half), payload.subarray(half)].forEach((part, seq) => {
      const headers = { type: "event", message_id: `m-${events.length}`, trace_id: "t", sum: "2", seq: `${seq}` };
      socket?.send(encodeFrame({ service: 1, method: 1, headers, payload: part }));
    });
  }

  function store(message: Omit<Message, "id" | "at" | "edits">): string {
    const id = `om_${++ids}`;
    const stored: Message = { ...message, id, at: Date.now(), edits: 0 };
    messages.set(id, stored);
    for (const app of apps.values()) if (isVisible(app, stored)) push(app, toEvent(app, stored));
    for (const watch of watchers) watch(stored, false);
    return id;
  }

  /** What other apps get of a rich text: placeholders for mentions, which are ids of the sender's view. */
  function readRichText(app: App, content: string): { readonly content: string; readonly mentions: string[] } {
    const rich = Object.values(JSON.parse(content) as Record<string, RichText>)[0];
    const mentions: string[] = [];
    const everyone = [...apps.keys(), ...[...chats.values()].flatMap(({ members }) => [...members])];
    const lines = (rich?.content ?? []).map((line) =>
      line.map((element) => {
        if (element.tag !== "at") return element;
        const principal = everyone.find((one) => openId(app.id, one) === element.user_id);
        if (principal === undefined) throw new Error("invalid at user_id");
        mentions.push(principal);
        return { tag: "at", user_id: `@_user_${mentions.length}`, user_name: nameOf(principal) };
      }),
    );
    return { content: JSON.stringify({ title: rich?.title ?? "", content: lines }), mentions };
  }

  function isTooOften(chat: Chat): boolean {
    const now = Date.now();
    while (chat.sent[0] !== undefined && chat.sent[0] <= now - 1_000) chat.sent.shift();
    if (!limited && chat.sent.length < rate) {
      chat.sent.push(now);
      return false;
    }
    limited = false;
    return true;
  }

  function check(app: App, chat: Chat, type: string, content: string): SimulatedReply | undefined {
    if (!chat.members.has(app.id)) return refuse(400, 230002, "Bot/User can NOT be out of the chat.");
    if (isTooOften(chat)) return refuse(400, 230020, "This operation triggers the frequency limit.");
    const max = type === "text" ? MAX_TEXT : MAX_RICH_TEXT;
    return Buffer.byteLength(content) > max
      ? refuse(400, 230025, "The length of the message content reaches its limit.")
      : undefined;
  }

  function sendMessage(app: App, request: SimulatedRequest, chat: Chat, parent?: Message): SimulatedReply {
    const { content = "", msg_type: type = "", reply_in_thread, uuid } = request.json as Record<string, string>;
    const known = uuids.get(`${app.id} ${uuid}`);
    if (known !== undefined) return { body: { code: 0, data: { message_id: known } } };
    const refusal = check(app, chat, type, content);
    if (refusal !== undefined) return refusal;
    const thread = reply_in_thread ? (parent?.thread ?? `omt_${parent?.id}`) : parent?.thread;
    const named = type === "post" ? readRichText(app, content) : { content, mentions: [] };
    const file = files.get((JSON.parse(content) as { file_key?: string }).file_key ?? "");
    const body =
      file === undefined
        ? named
        : { ...named, content: JSON.stringify({ ...JSON.parse(content), file_name: file.name }) };
    const id = store({ chat, sender: app.id, type, ...body, parent, thread });
    if (uuid !== undefined) uuids.set(`${app.id} ${uuid}`, id);
    return { body: { code: 0, data: { message_id: id } } };
  }

  function editMessage(app: App, { json }: SimulatedRequest, message: Message): SimulatedReply {
    const { content = "", msg_type: type = "" } = json as Record<string, string>;
    if (message.sender !== app.id) return refuse(400, 230071, "The operator is not the sender of the message.");
    if (message.edits >= MAX_EDITS)
      return refuse(400, 230072, "The message has reached the number of times it can be edited.");
    const refusal = check(app, message.chat, type, content);
    if (refusal !== undefined) return refusal;
    message.content = readRichText(app, content).content;
    message.edits++;
    for (const watch of watchers) watch(message, true);
    return { body: { code: 0, data: { message_id: message.id } } };
  }

  async function upload({ bytes, headers }: SimulatedRequest): Promise<SimulatedReply> {
    const form = await new Response(new Uint8Array(bytes), {
      headers: { "content-type": headers["content-type"] ?? "" },
    }).formData();
    const file = form.get("file");
    if (!(file instanceof Blob) || typeof form.get("file_name") !== "string")
      return refuse(400, 234001, "Invalid request param.");
    if (file.size === 0) return refuse(400, 234010, "File's size can't be 0.");
    if (file.size > MAX_FILE) return refuse(400, 234006, "The file size exceed the max value.");
    const file_key = `file_${files.size + 1}`;
    files.set(file_key, { name: String(form.get("file_name")), bytes: Buffer.from(await file.arrayBuffer()) });
    return { body: { code: 0, data: { file_key } } };
  }

  async function answer(request: SimulatedRequest): Promise<SimulatedReply> {
    const { headers, json = {}, method, path, query } = request;
    if (path === "/open-apis/auth/v3/tenant_access_token/internal") {
      const app = apps.get(String(json.app_id));
      if (app === undefined) return { body: { code: 10003, msg: "invalid param" } };
      if (app.secret !== json.app_secret) return { body: { code: 10014, msg: "app secret invalid" } };
      const token = `t-${tokens.size}`;
      tokens.set(token, app);
      return { body: { code: 0, msg: "ok", tenant_access_token: token, expire: 7200 } };
    }
    if (path === "/callback/ws/endpoint") {
      const app = apps.get(String(json.AppID));
      if (app === undefined || app.secret !== json.AppSecret)
        return { body: { code: 514, msg: "auth failed", data: {} } };
      const URL = `${server.url.replace("http", "ws")}/ws?device_id=d1&service_id=1&app=${app.id}`;
      const ClientConfig = { ReconnectCount: -1, ReconnectInterval: 120, ReconnectNonce: 30, PingInterval: 120 };
      return { body: { code: 0, msg: "", data: { URL, ClientConfig } } };
    }
    const app = tokens.get(headers.authorization?.replace("Bearer ", "") ?? "");
    if (app === undefined) return refuse(400, 99991663, "Invalid access token for authorization.");
    if (path === "/open-apis/bot/v3/info") {
      return { body: { code: 0, msg: "ok", bot: { app_name: app.name, open_id: openId(app.id, app.id) } } };
    }
    if (path === "/open-apis/im/v1/files" && method === "POST") return upload(request);
    if (path === "/open-apis/im/v1/messages" && method === "POST") {
      const chat = query.get("receive_id_type") === "chat_id" ? chats.get(String(json.receive_id)) : undefined;
      if (chat === undefined) {
        return refuse(400, 230001, "Your request contains an invalid request parameter, ext=invalid receive_id.");
      }
      return sendMessage(app, request, chat);
    }
    const [, id = "", rest = ""] = /^\/open-apis\/im\/v1\/messages\/([^/]+)(.*)$/.exec(path) ?? [];
    const message = messages.get(id);
    if (message === undefined)
      return refuse(400, 230001, "Your request contains an invalid request parameter, ext=invalid message_id.");
    if (rest === "/reply") return sendMessage(app, request, message.chat, message);
    if (rest === "" && method === "PUT") return editMessage(app, request, message);
    if (rest === "" && method === "DELETE") {
      if (message.sender !== app.id) return refuse(400, 230026, "No permission to recall this message.");
      messages.delete(id);
      return { body: { code: 0, data: {} } };
    }
    const file = files.get(rest.replace("/resources/", ""));
    if (file !== undefined && message.chat.members.has(app.id)) return { body: file.bytes };
    return refuse(400, 234003, "File not in msg.");
  }

  function connect(socket: WebSocket, url: URL): void {
    const app = apps.get(url.searchParams.get("app") ?? "");
    app?.sockets.add(socket);
    socket.on("close", () => app?.sockets.delete(socket));
    socket.on("message", (data: Buffer) => {
      const frame = decodeFrame(data);
      if (frame.method !== 0 || frame.headers.type !== "ping") return;
      const config = { ReconnectCount: -1, ReconnectInterval: 120, ReconnectNonce: 30, PingInterval: 120 };
      const payload = Buffer.from(JSON.stringify(config));
      socket.send(encodeFrame({ service: 1, method: 0, headers: { type: "pong" }, payload }));
    });
  }

  const server = await startServer({ answer, connect });

  function person(name: string): Peer {
    const queue = createPostQueue(() => {});
    watchers.add((message, edited) => {
      const { at, chat, id, mentions, parent, sender } = message;
      if (!chat.members.has(name)) return;
      const { files: found, text } = show(message);
      queue.push({
        id,
        room: chat.id,
        direct: chat.direct,
        sender: { id: sender, name: nameOf(sender), bot: apps.has(sender), self: sender === name, verified: true },
        text,
        mentions,
        ...(parent !== undefined && { replyTo: parent.id }),
        ...(edited && { edits: id }),
        files: found,
        at,
      });
    });
    return {
      self: { id: name, name },
      posts: queue.posts,
      async post({ mentions = [], replyTo, room, text }: PostDraft) {
        const chat = chats.get(room);
        if (chat === undefined) throw new Error("no such chat");
        const keys = mentions.map((_, index) => `@_user_${index + 1} `).join("");
        const content = JSON.stringify({ text: keys + text });
        const parent = messages.get(replyTo ?? "");
        const named = mentions.map(({ id }: Participant) => id);
        return { id: store({ chat, sender: name, type: "text", content, mentions: named, parent }) };
      },
    };
  }

  /** As a person sees it. */
  function show({ content, type }: Message): Pick<Post, "text" | "files"> {
    const body = JSON.parse(content) as RichText & { text?: string; file_key?: string; file_name?: string };
    if (type === "text") return { text: body.text ?? "", files: [] };
    const file = files.get(body.file_key ?? "");
    if (file !== undefined) {
      const read = async (maxBytes: number): Promise<Uint8Array> => {
        if (file.bytes.length > maxBytes) throw new Error("too large");
        return file.bytes;
      };
      return { text: "", files: [{ name: file.name, mediaType: "application/octet-stream", read }] };
    }
    const lines = body.content?.map((line) =>
      line.map(({ tag, text, user_name }) => (tag === "at" ? `@${user_name}` : text)).join(""),
    );
    return { text: lines?.join("\n") ?? "", files: [] };
  }

  return {
    url: server.url,
    addApp({ id, name, scopes = [], secret }) {
      apps.set(id, { id, secret, name, scopes: new Set(scopes), sockets: new Set() });
    },
    addChat(id, members, direct = false) {
      chats.set(id, { id, direct, members: new Set(members), sent: [] });
    },
    openId,
    person,
    send(chatId, sender, type, content, more = {}) {
      const chat = chats.get(chatId);
      if (chat === undefined) throw new Error("no such chat");
      return store({ chat, sender, type, content: JSON.stringify(content), mentions: [], ...more });
    },
    deliver(id, event) {
      const app = apps.get(id);
      if (app !== undefined) push(app, event);
    },
    get messages() {
      return [...messages.values()];
    },
    events,
    limitNext() {
      limited = true;
    },
    disconnect() {
      for (const { sockets } of apps.values()) for (const socket of sockets) socket.terminate();
    },
    close: () => server.close(),
  };
}

interface RichText {
  readonly title?: string;
  readonly content?: readonly (readonly {
    readonly tag: string;
    readonly text?: string;
    readonly user_id?: string;
    readonly user_name?: string;
  }[])[];
}
