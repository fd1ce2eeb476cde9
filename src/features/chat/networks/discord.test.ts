import { afterEach, describe, expect, it } from "vitest";
import type { ChannelOptions } from "../../../core/wire/channel.ts";
import { discord } from "./discord.ts";
import { describeChannel, readPosts, SUITE_TOOLS, withText } from "./suite/channel-suite.ts";
import { type DiscordServer, startDiscord } from "./testing/discord-server.ts";

const ALPHA = { id: "1200000000000000001", username: "alpha", token: "alpha.token.secret", messageContent: true };
const BETA = { id: "1200000000000000002", username: "beta", token: "beta.token.secret", messageContent: true };
const BLIND = { id: "1200000000000000003", username: "blind", token: "blind.token.secret", messageContent: false };
const ANNA = { id: "1200000000000000009", username: "anna" };
const NOTHING_MISSED: ChannelOptions = { cursors: new Map(), signal: new AbortController().signal };

describeChannel("Discord", {
  abilities: { edits: true, history: true, lines: true, replies: true, seesBots: "all", files: true },
  has: { direct: true, credentials: true, foreignRoom: true, rateLimit: true, keys: true, deletes: true },
  async stage() {
    const server = await startDiscord([ALPHA, BETA]);
    const { api, foreignRoom, room } = server;
    const opened: { close(): void }[] = [];
    return {
      room,
      foreignRoom,
      join: (options) => discord.open({ token: ALPHA.token, api }, options, SUITE_TOOLS),
      async joinPeer() {
        const peer = await discord.open({ token: BETA.token, api }, NOTHING_MISSED, SUITE_TOOLS);
        opened.push(peer);
        return peer;
      },
      directRoom: (from, to) => server.directChannel(from.id, to.id),
      intruder: {
        secret: "wrong.token.secret",
        join: (options) => discord.open({ token: "wrong.token.secret", api }, options, SUITE_TOOLS),
      },
      limitRate: server.limitRate,
      stop: server.close,
      async close() {
        for (const channel of opened) channel.close();
        await server.close();
      },
    };
  },
});

describe("a channel of Discord", () => {
  const cleanups: (() => unknown)[] = [];

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function start(): Promise<DiscordServer> {
    const server = await startDiscord([ALPHA, BETA, BLIND]);
    cleanups.push(server.close);
    return server;
  }

  async function join({ api }: DiscordServer, more: Partial<ChannelOptions> = {}) {
    const channel = await discord.open({ token: ALPHA.token, api }, { ...NOTHING_MISSED, ...more }, SUITE_TOOLS);
    cleanups.push(async () => {
      channel.close();
      await channel.closed;
    });
    return { channel, inbox: readPosts(channel) };
  }

  it("notifies those whom the draft names and no one else", async () => {
    const server = await start();
    const { channel } = await join(server);
    const text = `@everyone <@${ANNA.id}> look`;
    await channel.post({ room: server.room, text, mentions: [{ id: BETA.id, name: "beta" }] });
    expect(server.messages).toMatchObject([
      { content: `<@${BETA.id}> @everyone <@${ANNA.id}> look`, mentions: [{ id: BETA.id }] },
    ]);
  });

  it("shows who wrote: people, bots, itself, and webhooks, whose names prove nothing", async () => {
    const server = await start();
    const { channel, inbox } = await join(server);
    server.say(ANNA, server.room, { content: "a person" });
    server.say({ id: BETA.id, username: "beta", bot: true }, server.room, { content: "a bot" });
    server.say({ id: "1200000000000000077", username: "anna" }, server.room, { content: "a hook", webhook: true });
    await channel.post({ room: server.room, text: "myself" });
    await inbox.next(withText("myself"));
    expect(inbox.seen.map(({ sender, text }) => ({ text, ...sender }))).toEqual([
      { text: "a person", id: ANNA.id, name: "anna", bot: false, self: false, verified: true },
      { text: "a bot", id: BETA.id, name: "beta", bot: true, self: false, verified: true },
      { text: "a hook", id: "1200000000000000077", name: "anna", bot: true, self: false, verified: false },
      { text: "myself", id: ALPHA.id, name: "alpha", bot: true, self: true, verified: true },
    ]);
  });

  it("has a thread as a conversation within the room", async () => {
    const server = await start();
    const { channel, inbox } = await join(server);
    const thread = server.createThread("details");
    const { id } = server.say(ANNA, thread, { content: "in the thread" });
    expect(await inbox.next()).toMatchObject({ id, room: server.room, thread, direct: false });
    await channel.post({ room: server.room, thread, text: "answer", replyTo: id });
    expect(server.messages.at(-1)).toMatchObject({ channel_id: thread, message_reference: { message_id: id } });
  });

  it("receives direct messages", async () => {
    const server = await start();
    const { inbox } = await join(server);
    const room = server.directChannel(ANNA.id, ALPHA.id);
    server.say(ANNA, room, { content: "between us" });
    expect(await inbox.next()).toMatchObject({ text: "between us", direct: true, room, sender: { id: ANNA.id } });
  });

  it("reads all that it missed in the room and its threads, oldest first", async () => {
    const server = await start();
    const thread = server.createThread("details");
    const { id } = server.say(ANNA, server.room, { content: "known" });
    for (let number = 1; number <= 130; number++) server.say(ANNA, server.room, { content: `missed ${number}` });
    server.say(ANNA, thread, { content: "missed in the thread" });
    server.say(ANNA, server.room, { content: "missed last" });
    const { inbox } = await join(server, { cursors: new Map([[server.room, id]]) });
    await inbox.next(withText("missed last"));
    const expected = Array.from({ length: 130 }, (_, index) => `missed ${index + 1}`);
    expect(inbox.seen.map(({ text }) => text)).toEqual([...expected, "missed in the thread", "missed last"]);
    expect(inbox.seen[130]).toMatchObject({ room: server.room, thread });
    expect(inbox.seen[129]?.cursor).toBe(inbox.seen[129]?.id);
  });

  it("does not take the preview of a link for an edit", async () => {
    const server = await start();
    const { inbox } = await join(server);
    const { id } = server.say(ANNA, server.room, { content: "https://example.com" });
    server.unfurl(id);
    server.edit(id, "changed");
    server.edit(id, "changed again");
    await inbox.next(withText("changed again"));
    expect(inbox.seen.map(({ edits, text }) => [text, edits])).toEqual([
      ["https://example.com", undefined],
      ["changed", id],
      ["changed again", id],
    ]);
  });

  it("posts a draft of the same key once", async () => {
    const server = await start();
    const { channel } = await join(server);
    const draft = { room: server.room, text: "once", key: "task-1/result" };
    const first = await channel.post(draft);
    expect(await channel.post(draft)).toEqual(first);
    expect(server.messages).toHaveLength(1);
  });

  it("does not turn a room's name into another request", async () => {
    const server = await start();
    const { channel } = await join(server);
    const attempt = channel.post({ room: `${server.room}/../${server.foreignRoom}`, text: "hello" });
    await expect(attempt).rejects.toMatchObject({ name: "ChannelError", code: "no-access" });
  });

  it("resumes its session after an interruption, without a gap", async () => {
    const server = await start();
    const { inbox } = await join(server);
    server.gateway.drop(4000);
    server.say(ANNA, server.room, { content: "during the interruption" });
    expect((await inbox.next()).text).toBe("during the interruption");
    expect(server.gateway.counts).toMatchObject({ identified: 1, resumed: 1 });
  });

  it("closes if the session has ended, so that the next connection reads what was missed", async () => {
    const server = await start();
    const { channel } = await join(server);
    server.gateway.forgetSessions();
    server.gateway.drop(4009);
    expect(await channel.closed).toMatchObject({ code: 1006 });
  });

  it("closes with the reason if the token is no longer accepted", async () => {
    const server = await start();
    const { channel } = await join(server);
    server.gateway.drop(4004);
    expect(await channel.closed).toEqual({ code: 4004, reason: expect.stringContaining("Bot → Token") });
  });

  it.each([
    ["a wrong token", "wrong", /Developer Portal → Bot → Token/],
    ["a missing intent", BLIND.token, /Privileged Gateway Intents → Message Content Intent/],
  ])("explains %s", async (_, token, explanation) => {
    const { api } = await start();
    const attempt = discord.open({ token, api }, NOTHING_MISSED, SUITE_TOOLS);
    await expect(attempt).rejects.toMatchObject({
      name: "DialError",
      failure: "refused",
      message: expect.stringMatching(explanation),
    });
  });
});
