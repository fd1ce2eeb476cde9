import { afterEach, describe, expect, it } from "vitest";
import type { ChannelOptions } from "../../../core/wire/channel.ts";
import { describeChannel, readPosts, SUITE_TOOLS, withText } from "./suite/channel-suite.ts";
import { telegram } from "./telegram.ts";
import { startTelegram, type TelegramServer } from "./testing/telegram-server.ts";

const ALPHA = { id: 7001, username: "alpha_bot", token: "7001:alpha-secret", privacy: true, botToBot: true };
const BETA = { id: 7002, username: "beta_bot", token: "7002:beta-secret", privacy: true, botToBot: true };
const OPEN = { id: 7003, username: "open_bot", token: "7003:open-secret", privacy: false, botToBot: false };
const ANNA = { id: 42, first_name: "Anna Maria" };
const NEW: ChannelOptions = { cursors: new Map(), signal: new AbortController().signal };

describeChannel("Telegram", {
  abilities: { edits: true, history: true, lines: true, replies: true, seesBots: "mentions", files: true },
  has: { direct: true, credentials: true, foreignRoom: true, rateLimit: true, acknowledgements: true, deletes: true },
  async stage() {
    const server = await startTelegram([ALPHA, BETA]);
    const { apiRoot, foreignRoom, room } = server;
    const opened: { close(): void; closed: Promise<unknown> }[] = [];
    return {
      room,
      foreignRoom,
      join: (options) => telegram.open({ token: ALPHA.token, apiRoot }, options, SUITE_TOOLS),
      async joinPeer() {
        const peer = await telegram.open({ token: BETA.token, apiRoot }, NEW, SUITE_TOOLS);
        opened.push(peer);
        return peer;
      },
      directRoom: (_, to) => to.id,
      intruder: {
        secret: "7001:wrong-secret",
        join: (options) => telegram.open({ token: "7001:wrong-secret", apiRoot }, options, SUITE_TOOLS),
      },
      limitRate: server.limitRate,
      stop: server.close,
      async close() {
        for (const channel of opened) channel.close();
        await Promise.all(opened.map(({ closed }) => closed));
        await server.close();
      },
    };
  },
});

describe("a channel of Telegram", () => {
  const cleanups: (() => unknown)[] = [];

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function start(): Promise<TelegramServer> {
    const server = await startTelegram([ALPHA, BETA, OPEN]);
    cleanups.push(server.close);
    return server;
  }

  async function join({ apiRoot }: TelegramServer, { token } = ALPHA) {
    const channel = await telegram.open({ token, apiRoot }, NEW, SUITE_TOOLS);
    cleanups.push(async () => {
      channel.close();
      await channel.closed;
    });
    return { channel, inbox: readPosts(channel) };
  }

  it("addresses a bot by a command and a person by the id", async () => {
    const server = await start();
    const { channel } = await join(server);
    const mentions = [
      { id: "7002", name: "beta_bot" },
      { id: "42", name: "Anna Maria" },
    ];
    await channel.post({ room: server.room, text: "[A2A:discover]", mentions });
    expect(server.messages[0]).toMatchObject({
      text: "/a2a@beta_bot @Anna_Maria [A2A:discover]",
      entities: expect.arrayContaining([
        { type: "bot_command", offset: 0, length: 13 },
        { type: "text_mention", offset: 14, length: 11, user: expect.objectContaining({ id: 42 }) },
      ]),
    });
  });

  it("sees in privacy mode what addresses it, and what Telegram says of the sender", async () => {
    const server = await start();
    const { channel, inbox } = await join(server);
    const { id } = await channel.post({ room: server.room, text: "hello" });
    server.say(ANNA, server.room, { text: "not addressed" });
    server.say(ANNA, server.room, { text: "/a2a@alpha_bot do it" });
    server.say(ANNA, server.room, { text: "and this", replyTo: Number(id) });
    expect(await inbox.next()).toMatchObject({
      text: "/a2a@alpha_bot do it",
      mentions: ["7001"],
      sender: { id: "42", name: "Anna Maria", bot: false, self: false, verified: true },
    });
    expect(await inbox.next()).toMatchObject({ text: "and this", replyTo: id, mentions: [] });
  });

  it("has a topic as a conversation within the room", async () => {
    const server = await start();
    const { channel, inbox } = await join(server, OPEN);
    server.say(ANNA, server.room, { text: "in the topic", topic: Number(server.topic) });
    expect(await inbox.next()).toMatchObject({ room: server.room, thread: server.topic, direct: false });
    await channel.post({ room: server.room, thread: server.topic, text: "answer" });
    expect(server.messages.at(-1)).toMatchObject({ text: "answer", message_thread_id: Number(server.topic) });
  });

  it("receives private messages", async () => {
    const server = await start();
    const { channel, inbox } = await join(server);
    server.say(ANNA, String(ALPHA.id), { text: "between us" });
    expect(await inbox.next()).toMatchObject({ text: "between us", room: "42", direct: true });
    await channel.post({ room: "42", text: "understood", mentions: [{ id: "42", name: "Anna Maria" }] });
    expect(server.messages.at(-1)).toMatchObject({ chat: { id: 42, type: "private" }, text: "understood" });
  });

  it("receives the edits of a message as different posts", async () => {
    const server = await start();
    const { inbox } = await join(server, OPEN);
    const { message_id } = server.say(ANNA, server.room, { text: "first" });
    server.edit(message_id, "second");
    server.edit(message_id, "third");
    await inbox.next(withText("third"));
    expect(inbox.seen.map(({ edits, text }) => [text, edits])).toEqual([
      ["first", undefined],
      ["second", String(message_id)],
      ["third", String(message_id)],
    ]);
    expect(new Set(inbox.seen.map(({ id }) => id)).size).toBe(3);
  });

  it("does not mind an edit that changes nothing, and edits captions", async () => {
    const server = await start();
    const { channel } = await join(server);
    const draft = { room: server.room, text: "working" };
    const { id } = await channel.post(draft);
    await channel.edit?.(id, draft);
    const files = [{ name: "a.txt", mediaType: "text/plain", bytes: Buffer.from("a") }];
    const withFile = await channel.post({ ...draft, files });
    await channel.edit?.(withFile.id, { ...draft, text: "done" });
    expect(server.messages).toMatchObject([{ text: "working" }, { caption: "done" }]);
  });

  it("carries a marker in the caption of a document, whatever its name", async () => {
    const server = await start();
    const { channel } = await join(server);
    const { inbox } = await join(server, BETA);
    const text = "[A2A:result task=t1 state=completed]";
    const files = [{ name: 'the "final" report; v2.md', mediaType: "text/markdown", bytes: Buffer.from("# Report") }];
    await channel.post({ room: server.room, text, files, mentions: [{ id: "7002", name: "beta_bot" }] });
    const post = await inbox.next();
    expect(post).toMatchObject({ text: `/a2a@beta_bot ${text}`, mentions: ["7002"] });
    expect(post.files.map(({ name, size }) => ({ name, size }))).toEqual([
      { name: "the__final__report_v2.md", size: 8 },
    ]);
    expect(Buffer.from((await post.files[0]?.read(8)) ?? []).toString()).toBe("# Report");
  });

  it("sends several files as one post", async () => {
    const server = await start();
    const { channel } = await join(server);
    const { inbox } = await join(server, OPEN);
    const files = ["a.txt", "b.txt"].map((name) => ({ name, mediaType: "text/plain", bytes: Buffer.from(name) }));
    server.say(ANNA, server.room, { text: "before" });
    await inbox.next();
    const { id } = await channel.post({ room: server.room, text: "two files", files, replyTo: "1" });
    expect(server.messages.slice(1)).toMatchObject([{ caption: "two files" }, { document: { file_name: "b.txt" } }]);
    expect(String(server.messages[1]?.message_id)).toBe(id);
  });

  it("refuses a text that is too long for a caption", async () => {
    const server = await start();
    const { channel } = await join(server);
    const files = [{ name: "a.txt", mediaType: "text/plain", bytes: Buffer.from("a") }];
    const { maxWithFiles = 0 } = channel.abilities.text;
    const draft = { room: server.room, files, mentions: [{ id: "7002", name: "beta_bot" }] };
    await channel.post({ ...draft, text: "x".repeat(maxWithFiles) });
    const attempt = channel.post({ ...draft, text: "x".repeat(maxWithFiles + 1) });
    await expect(attempt).rejects.toMatchObject({ code: "refused" });
    expect(server.messages).toHaveLength(1);
  });

  it("confirms a post when it is acknowledged, so that what was not handled comes again", async () => {
    const server = await start();
    const { channel } = await join(server, OPEN);
    const inbox = readPosts({ posts: channel.posts });
    server.say(ANNA, server.room, { text: "one" });
    channel.acknowledge?.(await inbox.next(withText("one")));
    server.say(ANNA, server.room, { text: "two" });
    await inbox.next(withText("two"));
    channel.close();
    await channel.closed;
    server.say(ANNA, server.room, { text: "three" });
    const second = await join(server, OPEN);
    await second.inbox.next(withText("three"));
    expect(second.inbox.seen.map(({ text }) => text)).toEqual(["two", "three"]);
  });

  it("explains a conflict to the process that loses it", async () => {
    const server = await start();
    const first = await join(server);
    const second = await join(server);
    const { reason } = await Promise.race([first.channel.closed, second.channel.closed]);
    expect(reason).toMatch(/Another process receives the posts of this bot/);
  });

  it("explains a webhook", async () => {
    const server = await start();
    server.setWebhook(true);
    const attempt = telegram.open({ token: ALPHA.token, apiRoot: server.apiRoot }, NEW, SUITE_TOOLS);
    await expect(attempt).rejects.toMatchObject({
      failure: "refused",
      message: expect.stringMatching(/deleteWebhook/),
    });
  });

  it.each(["7001:wrong", "not a token"])("explains the wrong token %j", async (token) => {
    const { apiRoot } = await start();
    const attempt = telegram.open({ token, apiRoot }, NEW, SUITE_TOOLS);
    await expect(attempt).rejects.toMatchObject({ failure: "refused", message: expect.stringMatching(/BotFather/) });
  });

  it("shows no token in errors of the network", async () => {
    const server = await start();
    await server.close();
    const attempt = telegram.open({ token: ALPHA.token, apiRoot: server.apiRoot }, NEW, SUITE_TOOLS);
    const error = await attempt.catch((reason: unknown) => reason);
    expect(error).toMatchObject({ failure: "unreachable", message: expect.stringContaining("ECONNREFUSED") });
    expect(String(error)).not.toContain("alpha-secret");
  });
});
