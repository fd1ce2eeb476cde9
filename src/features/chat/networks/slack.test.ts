import { afterEach, describe, expect, it } from "vitest";
import type { ChannelOptions } from "../../../core/wire/channel.ts";
import { slack } from "./slack.ts";
import { describeChannel, readPosts, SUITE_TOOLS, withText } from "./suite/channel-suite.ts";
import { type SlackServer, startSlack } from "./testing/slack-server.ts";

const scopes = ["chat:write", "channels:history", "im:history", "users:read", "files:read", "files:write"];
const app = (name: string) => ({
  userId: `U0${name.toUpperCase()}`,
  botId: `B0${name.toUpperCase()}`,
  name,
  botToken: `xoxb-${name}-secret`,
  appToken: `xapp-${name}-secret`,
  scopes,
});
const ALPHA = app("alpha");
const BETA = app("beta");
const MUTE = { ...app("mute"), scopes: ["channels:history"] };
const ANNA = { id: "U0ANNA", name: "anna" };
const NEW: ChannelOptions = { cursors: new Map(), signal: new AbortController().signal };

describeChannel("Slack", {
  abilities: { edits: true, history: true, lines: true, replies: false, seesBots: "all", files: true },
  // Bots cannot write to each other in private.
  has: { direct: false, credentials: true, foreignRoom: true, rateLimit: true, deletes: true },
  async stage() {
    const server = await startSlack([ALPHA, BETA]);
    const { apiUrl, foreignRoom, room } = server;
    const { appToken, botToken } = ALPHA;
    const opened: { close(): void; closed: Promise<unknown> }[] = [];
    return {
      room,
      foreignRoom,
      join: (options) => slack.open({ appToken, botToken, apiUrl }, options, SUITE_TOOLS),
      async joinPeer() {
        const peer = await slack.open({ appToken: BETA.appToken, botToken: BETA.botToken, apiUrl }, NEW, SUITE_TOOLS);
        opened.push(peer);
        return peer;
      },
      intruder: {
        secret: "xoxb-wrong-secret",
        join: (options) => slack.open({ appToken, botToken: "xoxb-wrong-secret", apiUrl }, options, SUITE_TOOLS),
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

describe("a channel of Slack", () => {
  const cleanups: (() => unknown)[] = [];

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function start(): Promise<SlackServer> {
    const server = await startSlack([ALPHA, BETA, MUTE]);
    server.addPerson(ANNA);
    cleanups.push(server.close);
    return server;
  }

  async function join({ apiUrl }: SlackServer, more: Partial<ChannelOptions> = {}) {
    const { appToken, botToken } = ALPHA;
    const channel = await slack.open({ appToken, botToken, apiUrl }, { ...NEW, ...more }, SUITE_TOOLS);
    cleanups.push(async () => {
      channel.close();
      await channel.closed;
    });
    return { channel, inbox: readPosts(channel) };
  }

  it("notifies those whom the draft names and no one else", async () => {
    const server = await start();
    const { channel } = await join(server);
    const text = "<!channel> <@U0ANNA> & <b>";
    await channel.post({ room: server.room, text, mentions: [{ id: BETA.userId, name: "beta" }] });
    expect(server.messages[0]?.text).toBe("<@U0BETA> &lt;!channel&gt; &lt;@U0ANNA&gt; &amp; &lt;b&gt;");
  });

  it("shows who wrote, and leaves out the notices of Slack", async () => {
    const server = await start();
    const { channel, inbox } = await join(server);
    server.say({ user: ANNA.id }, server.room, "has joined", { subtype: "channel_join" });
    server.say({ user: ANNA.id }, server.room, "a person");
    server.say({ user: BETA.userId, bot_id: BETA.botId }, server.room, "a bot");
    server.say({ bot_id: "B0HOOK", username: "anna" }, server.room, "a hook", { subtype: "bot_message" });
    await channel.post({ room: server.room, text: "myself" });
    await inbox.next(withText("myself"));
    expect(inbox.seen.map(({ sender: { bot, id, name, self }, text }) => [text, id, name, bot, self])).toEqual([
      ["a person", "U0ANNA", "anna", false, false],
      ["a bot", "U0BETA", "beta", true, false],
      ["a hook", "B0HOOK", "anna", true, false],
      ["myself", "U0ALPHA", "alpha", true, true],
    ]);
  });

  it("has a thread as a conversation within the room", async () => {
    const server = await start();
    const { channel, inbox } = await join(server);
    const { ts: thread } = server.say({ user: ANNA.id }, server.room, "a question");
    server.say({ user: ANNA.id }, server.room, "more of it", { thread_ts: thread });
    expect((await inbox.next()).thread).toBeUndefined();
    expect(await inbox.next()).toMatchObject({ room: server.room, thread, replyTo: thread });
    await channel.post({ room: server.room, thread, text: "an answer" });
    expect(server.messages.at(-1)).toMatchObject({ text: "an answer", thread_ts: thread });
  });

  it("receives direct messages", async () => {
    const server = await start();
    const { channel, inbox } = await join(server);
    const room = server.directChannel(ALPHA.userId, ANNA.id);
    server.say({ user: ANNA.id }, room, "between us");
    expect(await inbox.next()).toMatchObject({ text: "between us", direct: true, room });
    await channel.post({ room, text: "understood" });
    expect(server.messages.at(-1)).toMatchObject({ channel: room, text: "understood" });
  });

  it("does not take the preview of a link for an edit", async () => {
    const server = await start();
    const { inbox } = await join(server);
    const { ts } = server.say({ user: ANNA.id }, server.room, "<https://example.com>");
    server.unfurl(ts);
    server.edit(ts, "changed &amp; well");
    await inbox.next(withText("changed"));
    expect(inbox.seen.map(({ edits, text }) => [text, edits])).toEqual([
      ["https://example.com", undefined],
      ["changed & well", ts],
    ]);
  });

  it("reads all that it missed in the room and its threads, oldest first", async () => {
    const server = await start();
    const { ts } = server.say({ user: ANNA.id }, server.room, "known");
    for (let number = 1; number <= 120; number++) server.say({ user: ANNA.id }, server.room, `missed ${number}`);
    server.say({ user: ANNA.id }, server.room, "missed in the thread", { thread_ts: ts });
    const { inbox } = await join(server, { cursors: new Map([[server.room, ts]]) });
    await inbox.next(withText("in the thread"));
    const expected = Array.from({ length: 120 }, (_, index) => `missed ${index + 1}`);
    expect(inbox.seen.map(({ text }) => text)).toEqual([...expected, "missed in the thread"]);
    expect(inbox.seen.at(-1)).toMatchObject({ room: server.room, thread: ts });
  });

  it("gives a post with files the id that Slack shows it under", async () => {
    const server = await start();
    const { channel } = await join(server);
    const files = ["a.txt", "b.txt"].map((name) => ({ name, mediaType: "text/plain", bytes: Buffer.from(name) }));
    const { id } = await channel.post({ room: server.room, text: "two files", files });
    expect(server.messages).toMatchObject([
      { ts: id, text: "two files", files: [{ name: "a.txt" }, { name: "b.txt" }] },
    ]);
  });

  it("does not send its token to whoever keeps a linked file", async () => {
    const server = await start();
    const { inbox } = await join(server);
    const file = { id: "F9", name: "a.txt", mode: "external", url_private: "https://files.slack.com.example/a.txt" };
    server.say({ user: ANNA.id }, server.room, "look", { files: [file], subtype: "file_share" });
    await expect((await inbox.next()).files[0]?.read(10)).rejects.toThrow("not kept by Slack");
  });

  it("acknowledges events, and closes when Slack asks for another connection", async () => {
    const server = await start();
    const { channel, inbox } = await join(server);
    server.say({ user: ANNA.id }, server.room, "hello");
    await inbox.next();
    server.refresh();
    expect(await channel.closed).toMatchObject({ code: 1006 });
    expect(server.unacknowledged()).toBe(0);
  });

  it.each([
    ["a wrong bot token", { botToken: "xoxb-wrong" }, /Bot User OAuth Token/],
    ["a wrong app token", { appToken: "xapp-wrong" }, /App-Level Tokens/],
    ["exchanged tokens", { appToken: ALPHA.botToken }, /App-Level Tokens/],
    ["a missing scope", { botToken: MUTE.botToken }, /chat:write: add it in OAuth & Permissions/],
  ])("explains %s", async (_, tokens, explanation) => {
    const { apiUrl } = await start();
    const { appToken, botToken } = ALPHA;
    const attempt = slack.open({ appToken, botToken, apiUrl, ...tokens }, NEW, SUITE_TOOLS);
    await expect(attempt).rejects.toMatchObject({ failure: "refused", message: expect.stringMatching(explanation) });
  });
});
