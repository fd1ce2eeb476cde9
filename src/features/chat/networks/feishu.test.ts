import { afterEach, describe, expect, it } from "vitest";
import { feishu } from "./feishu.ts";
import { describeChannel, readPosts, SUITE_TOOLS } from "./suite/channel-suite.ts";
import { SEES_BOTS, startFeishuServer } from "./testing/feishu-server.ts";

const AGENT = "cli_0123456789abcdef";
const OTHER = "cli_fedcba9876543210";
const GROUP = "oc_group";

async function startWithGroup(options?: Parameters<typeof startFeishuServer>[0]) {
  const server = await startFeishuServer(options ?? { rate: 1_000 });
  server.addApp({ id: AGENT, secret: "secret-of-agent", name: "Agent" });
  server.addApp({ id: OTHER, secret: "secret-of-other", name: "Other Bot", scopes: [SEES_BOTS] });
  server.addChat(GROUP, [AGENT, OTHER, "Ann"]);
  server.addChat("oc_pair", [AGENT, "Ann"], true);
  server.addChat("oc_elsewhere", ["Ann"]);
  const settings = { appId: AGENT, appSecret: "secret-of-agent", domain: server.url };
  return { server, settings };
}

describeChannel("Feishu", {
  abilities: { edits: true, files: true, history: false, lines: true, replies: true, seesBots: "mentions" },
  has: { direct: true, credentials: true, foreignRoom: true, rateLimit: true, keys: true, deletes: true },
  async stage() {
    const { server, settings } = await startWithGroup();
    return {
      room: GROUP,
      join: (options) => feishu.open(settings, options, SUITE_TOOLS),
      joinPeer: async () => server.person("Ann"),
      directRoom: () => "oc_pair",
      appearance: (of, to) => {
        if (to.id === "Ann") return { id: AGENT, name: "Agent" };
        return { id: server.openId(AGENT, of.id), name: of.name };
      },
      intruder: {
        secret: "wrong-secret",
        join: (options) => feishu.open({ ...settings, appSecret: "wrong-secret" }, options, SUITE_TOOLS),
      },
      foreignRoom: "oc_elsewhere",
      limitRate: () => server.limitNext(),
      stop: () => server.close(),
      close: () => server.close(),
    };
  },
});

describe("Feishu", () => {
  const cleanups: (() => unknown)[] = [];

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function meet({ rate = 1_000 } = {}) {
    const { server, settings } = await startWithGroup({ rate });
    cleanups.push(() => server.close());
    const open = async (appId: string, appSecret: string) => {
      const options = { cursors: new Map<string, string>(), signal: new AbortController().signal };
      const channel = await feishu.open({ ...settings, appId, appSecret }, options, SUITE_TOOLS);
      cleanups.push(() => channel.close());
      return channel;
    };
    const channel = await open(AGENT, "secret-of-agent");
    return { server, channel, inbox: readPosts(channel), openOther: () => open(OTHER, "secret-of-other") };
  }

  it("replaces placeholders of mentions by names, and keeps those before the text", async () => {
    const { inbox, server } = await meet();
    const mentions = [AGENT, "Ann", OTHER];
    server.send(GROUP, "Ann", "text", { text: "@_user_1 ask @_user_3 or @_user_2, not @_user_4" }, { mentions });
    expect(await inbox.next()).toMatchObject({
      text: "@_user_1 ask @Other Bot or @Ann, not @_user_4",
      mentions: mentions.map((one) => server.openId(AGENT, one)),
      sender: { id: server.openId(AGENT, "Ann"), bot: false, verified: true },
    });
  });

  it("reads rich text with its title, links, mentions and images", async () => {
    const { inbox, server } = await meet();
    const content = [
      [
        { tag: "at", user_id: "@_user_1", user_name: "Agent" },
        { tag: "text", text: " see " },
        { tag: "a", text: "this", href: "https://x.example" },
      ],
      [{ tag: "img", image_key: "img_1" }],
      [{ tag: "text", text: "end" }],
    ];
    server.send(GROUP, "Ann", "post", { title: "News", content }, { mentions: [AGENT] });
    const post = await inbox.next();
    expect(post).toMatchObject({ text: "News\n@Agent see this\n\nend", files: [{ name: "img_1.png" }] });
  });

  it("posts text that Feishu does not interpret", async () => {
    const { channel, server } = await meet();
    const text = '[A2A:card](x) <at user_id="all">all</at> <b>no</b>';
    await channel.post({ room: GROUP, text, mentions: [{ id: server.openId(AGENT, "Ann"), name: "Ann" }] });
    const elements = [
      { tag: "at", user_id: "@_user_1", user_name: "Ann" },
      { tag: "text", text: " " },
      { tag: "text", text },
    ];
    const [message] = server.messages;
    expect(message).toMatchObject({ type: "post", mentions: ["Ann"] });
    expect(JSON.parse(message?.content ?? "")).toEqual({ title: "", content: [elements] });
  });

  it("is seen by another bot that it mentions, if that has the scope", async () => {
    const { channel, inbox, openOther, server } = await meet();
    const other = await openOther();
    const reader = readPosts(other);
    await channel.post({ room: GROUP, text: "not for bots" });
    await channel.post({
      room: GROUP,
      text: "[A2A:discover]",
      mentions: [{ id: server.openId(AGENT, OTHER), name: "" }],
    });
    const post = await reader.next();
    expect(post).toMatchObject({
      text: "@_user_1 [A2A:discover]",
      sender: { id: server.openId(OTHER, AGENT), bot: true, self: false },
      mentions: [other.self.id],
    });
    // The scope is the receiver's: this app has not been given it.
    await other.post({ room: GROUP, text: "[A2A:card]", mentions: [{ id: post.sender.id, name: "" }] });
    await server.person("Ann").post({ room: GROUP, text: "and you?", mentions: [{ id: AGENT, name: "" }] });
    expect((await inbox.next()).text).toContain("and you?");
  });

  it("continues threads, and replies outside of them", async () => {
    const { channel, inbox, server } = await meet();
    const root = server.send(GROUP, "Ann", "text", { text: "root" }, { mentions: [AGENT], thread: "omt_1" });
    const parent = server.messages.find(({ id }) => id === root);
    server.send(GROUP, "Ann", "text", { text: "second" }, { mentions: [AGENT], thread: "omt_1", parent });
    expect(await inbox.next()).toMatchObject({ thread: root });
    const second = await inbox.next();
    expect(second).toMatchObject({ thread: root, replyTo: root });
    await channel.post({ room: GROUP, text: "in the thread", thread: root });
    await channel.post({ room: GROUP, text: "a reply", replyTo: second.id });
    expect(server.messages.slice(-2).map((one) => [one.parent?.id, one.thread])).toEqual([
      [root, "omt_1"],
      [second.id, "omt_1"],
    ]);
  });

  it("gives a repeated event the same id", async () => {
    const { inbox, server } = await meet();
    await server.person("Ann").post({ room: GROUP, text: "once", mentions: [{ id: AGENT, name: "" }] });
    const first = await inbox.next();
    server.deliver(AGENT, server.events[0] ?? {});
    expect((await inbox.next()).id).toBe(first.id);
  });

  it("posts a repeated key once", async () => {
    const { channel, server } = await meet();
    const draft = {
      room: GROUP,
      text: "once",
      key: "a key of more than fifty characters, which is too long for Feishu",
    };
    expect(await channel.post(draft)).toEqual(await channel.post(draft));
    expect(server.messages).toHaveLength(1);
  });

  it("reads files of people", async () => {
    const { channel, inbox, server } = await meet();
    await channel.post({
      room: "oc_pair",
      text: "",
      files: [{ name: "a.bin", mediaType: "x/y", bytes: Buffer.from("abc") }],
    });
    server.send("oc_pair", "Ann", "file", { file_key: "file_1", file_name: "back.bin" });
    const [file] = (await inbox.next()).files;
    expect(file?.name).toBe("back.bin");
    expect(Buffer.from((await file?.read(3)) ?? []).toString()).toBe("abc");
    const empty = { name: "a", mediaType: "x/y", bytes: new Uint8Array() };
    await expect(channel.post({ room: GROUP, text: "", files: [empty] })).rejects.toMatchObject({ code: "refused" });
  });

  it("says which limits it met: the rate of the chat and the number of edits", async () => {
    const fast = await meet({ rate: 2 });
    await fast.channel.post({ room: GROUP, text: "1" });
    const { id } = await fast.channel.post({ room: "oc_pair", text: "1" });
    await fast.channel.post({ room: GROUP, text: "2" });
    const tooMany = fast.channel.post({ room: GROUP, text: "3" });
    await expect(tooMany).rejects.toMatchObject({ code: "rate-limited", retryAfterMs: 1_000 });
    expect(id).not.toBe("");
    const { channel } = await meet();
    const edited = await channel.post({ room: GROUP, text: "0" });
    for (let count = 1; count <= 20; count++) await channel.edit?.(edited.id, { room: GROUP, text: `${count}` });
    await expect(channel.edit?.(edited.id, { room: GROUP, text: "21" })).rejects.toMatchObject({ code: "refused" });
  });

  it("closes when the long connection breaks", async () => {
    const { channel, server } = await meet();
    server.disconnect();
    expect(await channel.closed).toMatchObject({ code: 1006 });
  });

  it("ignores what it cannot read", async () => {
    const { inbox, server } = await meet();
    const event = { sender: { sender_id: { open_id: "ou_1" } }, message: { message_id: "om", chat_id: "oc" } };
    for (const message of [{}, event.message, { ...event.message, message_type: "text", content: "{" }])
      server.deliver(AGENT, { ...event, message });
    server.deliver(AGENT, {});
    for (const content of [{}, { content: 7 }, { content: [7, [7, { tag: "at" }]] }])
      server.send(GROUP, "Ann", "post", content, { mentions: [AGENT] });
    server.send(GROUP, "Ann", "sticker", { file_key: "x" }, { mentions: [AGENT] });
    server.send(GROUP, "Ann", "text", { text: "fine" }, { mentions: [AGENT] });
    expect(await inbox.next(({ text }) => text !== "@")).toMatchObject({ text: "fine" });
  });

  it("names the fields of wrong credentials", async () => {
    const { server, settings } = await startWithGroup();
    cleanups.push(() => server.close());
    const options = { cursors: new Map<string, string>(), signal: new AbortController().signal };
    for (const wrong of [{ appSecret: "no" }, { appId: "cli_0000000000000000" }]) {
      await expect(feishu.open({ ...settings, ...wrong }, options, SUITE_TOOLS)).rejects.toMatchObject({
        failure: "refused",
        status: 401,
        message: expect.stringContaining("应用凭证 (App ID, App Secret)"),
      });
    }
  });
});
