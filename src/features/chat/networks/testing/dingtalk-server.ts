/**
 * DingTalk's stream gateway, webhooks of conversations and robot API, with their rules: a ticket opens one stream;
 * deliveries are repeated until they are acknowledged; webhooks expire; 20 messages per minute, then none for ten
 * minutes; 20,000 bytes of text by webhook, 15,000 bytes of parameters by API; in groups the robot gets what mentions it, and never posts of robots.
 */
import type { WebSocket } from "ws";
import type { PostDraft } from "../../../../core/wire/channel.ts";
import { createPostQueue } from "../post-queue.ts";
import type { Peer } from "../suite/channel-suite.ts";
import { type SimulatedReply, type SimulatedRequest, startServer } from "./http-server.ts";

interface DingtalkPost {
  readonly room: string;
  readonly text: string;
  readonly mentions: readonly string[];
  readonly by: "webhook" | "api";
}

interface DingtalkServer {
  readonly url: string;
  person(name: string): Peer;
  /** Delivers a message to the robot as it is. */
  deliver(data: object): void;
  /** A file that the robot may fetch with this code. */
  offerFile(code: string, bytes: Buffer): void;
  /** Delivers again what was not acknowledged. */
  redeliver(): void;
  readonly unacknowledged: number;
  expireWebhooks(): void;
  revokeTokens(): void;
  limitNext(): void;
  readonly screen: readonly DingtalkPost[];
  close(): Promise<void>;
}

/** Not documented for webhooks of conversations, nor are the codes of their refusals. */
const MAX_TEXT = 20_000;
/** The robot sends a group message (open.dingtalk.com). */
const MAX_PARAMETERS = 15_000;
/** 自定义机器人接入: 20 in a minute, then none for ten minutes. */
const PER_MINUTE = 20;
const TOPIC = "/v1.0/im/bot/messages/get";

export async function startDingtalkServer(options: {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly groups: readonly string[];
  readonly perMinute?: number;
  readonly webhookLifeMs?: number;
}): Promise<DingtalkServer> {
  const { clientId, clientSecret, groups, perMinute = PER_MINUTE, webhookLifeMs = 5_400_000 } = options;
  const tickets = new Set<string>();
  const sockets = new Set<WebSocket>();
  const webhooks = new Map<string, { readonly room: string; until: number }>();
  const tokens = new Set<string>();
  const people = new Set<string>();
  const files = new Map<string, Buffer>();
  const pending = new Map<string, string>();
  const screen: DingtalkPost[] = [];
  const watchers = new Set<(post: DingtalkPost, index: number) => void>();
  const sent = new Map<string, number[]>();
  const blocked = new Map<string, number>();
  let limited = false;
  let ids = 0;

  const fail = (status: number, code: string, message: string): SimulatedReply => ({ status, body: { code, message } });

  function isTooOften(room: string): boolean {
    const now = Date.now();
    const times = (sent.get(room) ?? []).filter((at) => at > now - 60_000);
    if (limited || times.length >= perMinute) blocked.set(room, now + 600_000);
    limited = false;
    sent.set(room, [...times, now]);
    return (blocked.get(room) ?? 0) > now;
  }

  function show(post: DingtalkPost): void {
    screen.push(post);
    for (const watch of watchers) watch(post, screen.length);
  }

  function bySession({ json = {}, query }: SimulatedRequest): SimulatedReply {
    const webhook = webhooks.get(query.get("session") ?? "");
    if (webhook === undefined || webhook.until <= Date.now())
      return { body: { errcode: 300001, errmsg: "session expired" } };
    const { at, msgtype, text } = json as {
      at?: { atUserIds?: string[] };
      msgtype?: string;
      text?: { content?: string };
    };
    const content = text?.content;
    if (msgtype !== "text" || content === undefined)
      return { body: { errcode: 400105, errmsg: "unsupported msgtype" } };
    if (Buffer.byteLength(content) > MAX_TEXT) return { body: { errcode: 460101, errmsg: "message too long" } };
    if (isTooOften(webhook.room))
      return { body: { errcode: 130101, errmsg: "send too fast, exceed 20 times per minute" } };
    // Those who are named in the text are notified.
    const mentions = (at?.atUserIds ?? []).filter((id) => content.includes(`@${id}`));
    show({ room: webhook.room, text: content, mentions, by: "webhook" });
    return { body: { errcode: 0, errmsg: "ok" } };
  }

  function byRobot(path: string, { headers, json = {} }: SimulatedRequest): SimulatedReply {
    if (!tokens.has(`${headers["x-acs-dingtalk-access-token"]}`))
      return fail(401, "InvalidAuthentication", "不合法的access_token");
    if (json.robotCode !== clientId) return fail(400, "robot.notExist", "robot not found");
    if (path === "messageFiles/download") {
      const code = `${json.downloadCode}`;
      return files.has(code)
        ? { body: { downloadUrl: `${server.url}/files/${code}` } }
        : fail(400, "invalidCode", "unknown code");
    }
    const { content = "" } = JSON.parse(`${json.msgParam ?? "{}"}`) as { content?: string };
    if (Buffer.byteLength(`${json.msgParam}`) > MAX_PARAMETERS)
      return fail(400, "invalidParameter.msgParam.invalid", "msgParam is longer than 15000 bytes");
    if (json.msgKey !== "sampleText" || content === "") return fail(400, "invalidParameter", "msgKey or msgParam");
    if (path === "groupMessages/send") {
      const room = `${json.openConversationId}`;
      if (!groups.includes(room)) return fail(403, "Forbidden.robotNotInGroup", "robot not in the group");
      if (isTooOften(room)) return fail(429, "Throttling.User", "too many requests");
      show({ room, text: content, mentions: [], by: "api" });
      return { body: { processQueryKey: `key${screen.length}` } };
    }
    const userIds = (json.userIds as string[]) ?? [];
    const known = userIds.filter((id) => people.has(id));
    for (const room of known) show({ room, text: content, mentions: [], by: "api" });
    const invalidStaffIdList = userIds.filter((id) => !people.has(id));
    return { body: { processQueryKey: `key${screen.length}`, invalidStaffIdList, flowControlledStaffIdList: [] } };
  }

  function answer(request: SimulatedRequest): SimulatedReply {
    const { json = {}, path } = request;
    if (path === "/v1.0/gateway/connections/open") {
      if (json.clientId !== clientId || json.clientSecret !== clientSecret) return fail(401, "authFailed", "鉴权失败");
      const ticket = `ticket${++ids}`;
      tickets.add(ticket);
      return { body: { endpoint: `${server.url.replace("http", "ws")}/connect`, ticket } };
    }
    if (path === "/v1.0/oauth2/accessToken") {
      if (json.appKey !== clientId || json.appSecret !== clientSecret)
        return fail(400, "invalidClientIdOrSecret", "无效的clientId或者clientSecret");
      const accessToken = `token${++ids}`;
      tokens.add(accessToken);
      return { body: { accessToken, expireIn: 7200 } };
    }
    if (path === "/robot/sendBySession") return bySession(request);
    if (path.startsWith("/v1.0/robot/")) return byRobot(path.slice("/v1.0/robot/".length), request);
    const bytes = files.get(path.slice("/files/".length));
    return bytes === undefined ? fail(404, "notFound", "not found") : { body: bytes };
  }

  function connect(socket: WebSocket, url: URL): void {
    if (!tickets.delete(url.searchParams.get("ticket") ?? "")) {
      socket.close();
      return;
    }
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("message", (data) => {
      const { headers } = JSON.parse(data.toString()) as { headers: { messageId: string } };
      pending.delete(headers.messageId);
    });
    socket.send(JSON.stringify({ specVersion: "1.0", type: "SYSTEM", headers: { topic: "CONNECTED" }, data: "{}" }));
    const ping = { topic: "ping", messageId: "ping", contentType: "application/json", time: "0" };
    socket.send(JSON.stringify({ specVersion: "1.0", type: "SYSTEM", headers: ping, data: '{"opaque":"1"}' }));
  }

  function push(messageId: string, data: string): void {
    const headers = {
      appId: "1",
      connectionId: "1",
      contentType: "application/json",
      messageId,
      time: "0",
      topic: TOPIC,
    };
    const [socket] = sockets;
    socket?.send(JSON.stringify({ specVersion: "1.0", type: "CALLBACK", headers, data }));
  }

  function deliver(data: object): void {
    const messageId = `delivery${++ids}`;
    pending.set(messageId, JSON.stringify(data));
    push(messageId, JSON.stringify(data));
  }

  const server = await startServer({ answer, connect });

  function person(name: string): Peer {
    people.add(name);
    const queue = createPostQueue(() => {});
    watchers.add(({ mentions, room, text }, index) => {
      if (room !== name && !groups.includes(room)) return;
      queue.push({
        id: `post${index}`,
        room,
        direct: room === name,
        sender: { id: clientId, name: clientId, bot: true, self: false, verified: true },
        text,
        mentions,
        files: [],
        at: Date.now(),
      });
    });
    return {
      self: { id: name, name },
      posts: queue.posts,
      async post({ mentions = [], room, text }: PostDraft) {
        const id = `msg${++ids}`;
        const direct = room === name;
        if (!direct && !mentions.some((one) => one.id === clientId)) return { id };
        const session = `session${++ids}`;
        const until = Date.now() + webhookLifeMs;
        webhooks.set(session, { room, until });
        deliver({
          conversationId: direct ? `cid-of-${name}` : room,
          conversationType: direct ? "1" : "2",
          msgId: id,
          senderId: `$:LWCP:${name}`,
          senderStaffId: name,
          senderNick: name,
          chatbotUserId: "$:LWCP:robot",
          robotCode: clientId,
          isInAtList: !direct,
          atUsers: direct ? [] : [{ dingtalkId: "$:LWCP:robot" }],
          sessionWebhook: `${server.url}/robot/sendBySession?session=${session}`,
          sessionWebhookExpiredTime: until,
          createAt: Date.now(),
          msgtype: "text",
          text: { content: direct ? text : ` ${text}` },
        });
        return { id };
      },
    };
  }

  return {
    url: server.url,
    person,
    deliver,
    offerFile: (code, bytes) => void files.set(code, bytes),
    redeliver() {
      for (const [id, data] of pending) push(id, data);
    },
    get unacknowledged() {
      return pending.size;
    },
    expireWebhooks() {
      for (const webhook of webhooks.values()) webhook.until = 0;
    },
    revokeTokens: () => tokens.clear(),
    limitNext() {
      limited = true;
    },
    screen,
    close: () => server.close(),
  };
}
