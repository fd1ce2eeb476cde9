import { afterEach, describe, expect, it } from "vitest";
import { dingtalk } from "./dingtalk.ts";
import { describeChannel, readPosts, SUITE_TOOLS } from "./suite/channel-suite.ts";
import { startDingtalkServer } from "./testing/dingtalk-server.ts";

const GROUP = "cid-group";
const APP = { clientId: "ding-app", clientSecret: "secret-of-app" };
const OPTIONS = () => ({ cursors: new Map<string, string>(), signal: new AbortController().signal });
const MENTION = [{ id: APP.clientId, name: "" }];

describeChannel("DingTalk", {
  abilities: { edits: false, files: false, history: false, lines: true, replies: false, seesBots: "none" },
  has: { direct: true, credentials: true, foreignRoom: true, rateLimit: true },
  async stage() {
    const server = await startDingtalkServer({ ...APP, groups: [GROUP] });
    const ann = server.person("ann");
    const settings = { ...APP, api: server.url };
    return {
      room: GROUP,
      /** Mentions need the webhook of a conversation, which comes with a message. */
      async join(options) {
        const channel = await dingtalk.open(settings, options, SUITE_TOOLS);
        await ann.post({ room: GROUP, text: "hello", mentions: MENTION });
        await channel.posts[Symbol.asyncIterator]().next();
        return channel;
      },
      joinPeer: async () => ann,
      directRoom: () => "ann",
      intruder: {
        secret: "wrong-secret",
        join: (options) => dingtalk.open({ ...settings, clientSecret: "wrong-secret" }, options, SUITE_TOOLS),
      },
      foreignRoom: "cid-elsewhere",
      limitRate: () => server.limitNext(),
      stop: () => server.close(),
      close: () => server.close(),
    };
  },
});

describe("DingTalk", () => {
  const cleanups: (() => unknown)[] = [];

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function meet(options: { readonly webhookLifeMs?: number } = {}) {
    const server = await startDingtalkServer({ ...APP, groups: [GROUP], ...options });
    cleanups.push(() => server.close());
    const channel = await dingtalk.open({ ...APP, api: server.url }, OPTIONS(), SUITE_TOOLS);
    cleanups.push(() => channel.close());
    return { server, channel, inbox: readPosts(channel), ann: server.person("ann") };
  }

  it("answers by the webhook of the conversation, with mentions", async () => {
    const { ann, channel, inbox, server } = await meet();
    await ann.post({ room: GROUP, text: "[A2A:discover]", mentions: MENTION });
    expect(await inbox.next()).toMatchObject({
      text: "[A2A:discover]",
      room: GROUP,
      direct: false,
      sender: { id: "ann", name: "ann", bot: false },
      mentions: [APP.clientId],
    });
    await channel.post({ room: GROUP, text: "[A2A:card]", mentions: [{ id: "ann", name: "Ann" }] });
    expect(server.screen).toEqual([{ room: GROUP, text: "@ann [A2A:card]", mentions: ["ann"], by: "webhook" }]);
  });

  it("uses the API without a webhook, after its time, and when it is refused", async () => {
    const { ann, channel, inbox, server } = await meet();
    await channel.post({ room: GROUP, text: "first" });
    await channel.post({ room: "ann", text: "first" });
    await ann.post({ room: "ann", text: "hello" });
    expect(await inbox.next()).toMatchObject({ room: "ann", direct: true, mentions: [] });
    await channel.post({ room: "ann", text: "answer" });
    server.expireWebhooks();
    await channel.post({ room: "ann", text: "late answer" });
    expect(server.screen.map(({ by, room, text }) => [room, text, by])).toEqual([
      [GROUP, "first", "api"],
      ["ann", "first", "api"],
      ["ann", "answer", "webhook"],
      ["ann", "late answer", "api"],
    ]);
    const short = await meet({ webhookLifeMs: 5_000 });
    await short.ann.post({ room: "ann", text: "hello" });
    await short.inbox.next();
    await short.channel.post({ room: "ann", text: "answer" });
    expect(short.server.screen).toMatchObject([{ by: "api" }]);
  });

  it("gets a new token when the old one is refused", async () => {
    const { channel, server } = await meet();
    await channel.post({ room: GROUP, text: "1" });
    server.revokeTokens();
    await expect(channel.post({ room: GROUP, text: "2" })).rejects.toThrow("access_token");
    await channel.post({ room: GROUP, text: "2" });
    expect(server.screen).toHaveLength(2);
  });

  it("acknowledges what it received", async () => {
    const { ann, inbox, server } = await meet();
    await ann.post({ room: "ann", text: "once" });
    await inbox.next();
    await expect.poll(() => server.unacknowledged).toBe(0);
    server.redeliver();
    await ann.post({ room: "ann", text: "twice" });
    expect((await inbox.next()).text).toBe("twice");
  });

  it("posts a text of the maximum also where the webhook has expired, with what its lines take in JSON", async () => {
    const { ann, channel, inbox, server } = await meet();
    await ann.post({ room: GROUP, text: "hello", mentions: MENTION });
    await inbox.next();
    server.expireWebhooks();
    const text = "line\n".repeat(channel.abilities.text.max / 5);
    await channel.post({ room: GROUP, text });
    expect(server.screen).toMatchObject([{ by: "api", text }]);
  });

  it("waits ten minutes after too many messages", async () => {
    const { ann, channel, inbox } = await meet();
    await ann.post({ room: GROUP, text: "hello", mentions: MENTION });
    await inbox.next();
    for (let count = 0; count < 20; count++) await channel.post({ room: GROUP, text: `${count}` });
    const attempt = channel.post({ room: GROUP, text: "one too many" });
    await expect(attempt).rejects.toMatchObject({ code: "rate-limited", retryAfterMs: 600_000 });
  });

  it("reads files, rich text and voice", async () => {
    const { inbox, server } = await meet();
    server.offerFile("code-1", Buffer.from("content"));
    const base = { conversationId: GROUP, conversationType: "2", senderStaffId: "ann", senderNick: "Ann" };
    server.deliver({ ...base, msgId: "m1", msgtype: "file", content: { downloadCode: "code-1", fileName: "a.txt" } });
    const [file] = (await inbox.next()).files;
    expect(file?.name).toBe("a.txt");
    expect(Buffer.from((await file?.read(7)) ?? []).toString()).toBe("content");
    await expect(file?.read(6)).rejects.toThrow("larger");
    const richText = [{ text: "see " }, { type: "picture", downloadCode: "code-2" }, { text: "this" }];
    server.deliver({ ...base, msgId: "m2", msgtype: "richText", content: { richText } });
    expect(await inbox.next()).toMatchObject({ text: "see this", files: [{ name: "m2-2" }] });
    server.deliver({ ...base, msgId: "m3", msgtype: "audio", content: { recognition: "voice", duration: 1 } });
    expect(await inbox.next()).toMatchObject({ text: "voice" });
  });

  it("ignores what it cannot read", async () => {
    const { ann, inbox, server } = await meet();
    const base = { conversationId: GROUP, conversationType: "2", senderStaffId: "ann", msgId: "m" };
    for (const data of [
      {},
      [],
      base,
      { ...base, msgtype: "text", text: 7 },
      { ...base, msgtype: "richText", content: { richText: 1 } },
    ])
      server.deliver(data);
    await ann.post({ room: "ann", text: "fine" });
    expect((await inbox.next()).text).toBe("fine");
  });

  it("names the fields of wrong credentials", async () => {
    const { server } = await meet();
    const attempt = dingtalk.open({ ...APP, clientSecret: "wrong", api: server.url }, OPTIONS(), SUITE_TOOLS);
    await expect(attempt).rejects.toMatchObject({
      failure: "refused",
      status: 401,
      message: expect.stringContaining("Client ID, Client Secret"),
    });
  });
});
