import { afterEach, describe, expect, it } from "vitest";
import { describeChannel, readPosts, SUITE_TOOLS } from "./suite/channel-suite.ts";
import { startWecomServer } from "./testing/wecom-server.ts";
import { wecom } from "./wecom.ts";

const GROUP = "wr-group";
const BOT = { botId: "bot-1", secret: "secret-of-bot" };
const OPTIONS = () => ({ cursors: new Map<string, string>(), signal: new AbortController().signal });
const MENTION = [{ id: BOT.botId, name: "" }];

describeChannel("WeCom", {
  abilities: { edits: true, files: true, history: false, lines: true, replies: false, seesBots: "none" },
  has: { direct: true, credentials: true, foreignRoom: true, rateLimit: true },
  async stage() {
    const server = await startWecomServer({ ...BOT, groups: [GROUP], perMinute: 1_000 });
    const ann = server.person("ann");
    const settings = { ...BOT, url: server.url };
    return {
      room: GROUP,
      /** A post can be edited if it answers something. */
      async join(options) {
        const channel = await wecom.open(settings, options, SUITE_TOOLS);
        await ann.post({ room: GROUP, text: "hello", mentions: MENTION });
        await channel.posts[Symbol.asyncIterator]().next();
        return channel;
      },
      joinPeer: async () => ann,
      directRoom: () => "ann",
      intruder: {
        secret: "wrong-secret",
        join: (options) => wecom.open({ ...settings, secret: "wrong-secret" }, options, SUITE_TOOLS),
      },
      foreignRoom: "wr-elsewhere",
      limitRate: () => server.limitNext(),
      stop: () => server.close(),
      close: () => server.close(),
    };
  },
});

describe("WeCom", () => {
  const cleanups: (() => unknown)[] = [];

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function meet(perMinute?: number) {
    const server = await startWecomServer({ ...BOT, groups: [GROUP], ...(perMinute !== undefined && { perMinute }) });
    cleanups.push(() => server.close());
    const timers = new Set<() => void>();
    const clock = {
      ...SUITE_TOOLS.clock,
      after(ms: number, run: () => void) {
        timers.add(run);
        const cancel = SUITE_TOOLS.clock.after(ms, run);
        return () => {
          timers.delete(run);
          cancel();
        };
      },
    };
    const channel = await wecom.open({ ...BOT, url: server.url }, OPTIONS(), { ...SUITE_TOOLS, clock });
    cleanups.push(() => channel.close());
    return { server, channel, inbox: readPosts(channel), ann: server.person("ann"), timers };
  }

  it("answers the newest request by a stream, which is finished when it is no longer edited", async () => {
    const { ann, channel, inbox, server, timers } = await meet();
    await ann.post({ room: "ann", text: "hello" });
    expect(await inbox.next()).toMatchObject({
      room: "ann",
      direct: true,
      mentions: [],
      sender: { id: "ann", bot: false },
    });
    const { id } = await channel.post({ room: "ann", text: "10%" });
    await channel.edit?.(id, { room: "ann", text: "50%" });
    expect(server.screen).toEqual([{ id, chat: "ann", text: "50%", finished: false, pushed: false }]);
    expect(timers.size).toBe(1);
    for (const run of timers) run();
    await expect.poll(() => server.screen[0]?.finished).toBe(true);
    expect(server.screen[0]?.text).toBe("50%");
    await expect(channel.edit?.(id, { room: "ann", text: "60%" })).rejects.toMatchObject({ code: "refused" });
  });

  it("refuses edits of a stream that has expired", async () => {
    const { ann, channel, inbox, server, timers } = await meet();
    await ann.post({ room: "ann", text: "hello" });
    await inbox.next();
    const { id } = await channel.post({ room: "ann", text: "10%" });
    server.expireStreams();
    const attempt = channel.edit?.(id, { room: "ann", text: "50%" });
    await expect(attempt).rejects.toMatchObject({ code: "refused", message: expect.stringContaining("846608") });
    expect(timers.size).toBe(0);
  });

  it("pushes where no request can be answered", async () => {
    const { ann, channel, inbox, server } = await meet();
    await channel.post({ room: GROUP, text: "nobody asked" });
    await ann.post({ room: GROUP, text: "hello", mentions: MENTION });
    await inbox.next();
    await channel.post({ room: GROUP, text: "answer" });
    server.expireRequests();
    await channel.post({ room: GROUP, text: "late answer", mentions: [{ id: "ann", name: "Ann" }] });
    await channel.post({ room: GROUP, text: "later" });
    expect(server.screen.map(({ pushed, text }) => [text, pushed])).toEqual([
      ["nobody asked", true],
      ["answer", false],
      ["<@ann> late answer", true],
      ["later", true],
    ]);
  });

  it("sends files in chunks, before the text", async () => {
    const { channel, server } = await meet();
    const bytes = Buffer.alloc(1_300_000, "abc");
    await channel.post({ room: GROUP, text: "done", files: [{ name: "a.bin", mediaType: "x/y", bytes }] });
    expect(server.screen.map(({ file, text }) => [text, file?.name])).toEqual([
      ["", "a.bin"],
      ["done", undefined],
    ]);
    expect(server.screen[0]?.file?.bytes.equals(bytes)).toBe(true);
    const small = { name: "a", mediaType: "x/y", bytes: Buffer.from("abc") };
    await expect(channel.post({ room: GROUP, text: "", files: [small] })).rejects.toMatchObject({ code: "refused" });
  });

  it("reads files, pictures between texts, and voice as text", async () => {
    const { inbox, server } = await meet();
    const content = Buffer.from("some bytes of a file");
    const base = { chattype: "group", chatid: GROUP, from: { userid: "ann" } };
    server.callback({ ...base, msgid: "m1", msgtype: "file", file: server.offerFile(content) });
    const [file] = (await inbox.next()).files;
    expect(Buffer.from((await file?.read(content.length)) ?? []).equals(content)).toBe(true);
    await expect(file?.read(content.length - 1)).rejects.toThrow("larger");
    const text = (words: string) => ({ msgtype: "text", text: { content: words } });
    const image = { msgtype: "image", image: server.offerFile(content) };
    server.callback({ ...base, msgid: "m2", msgtype: "mixed", mixed: { msg_item: [text("a"), image, text("b")] } });
    expect(await inbox.next()).toMatchObject({ text: "a\nb", files: [{ name: "m2-1" }], mentions: ["bot-1"] });
    server.callback({ ...base, msgid: "m3", msgtype: "voice", voice: { content: "spoken" } });
    expect(await inbox.next()).toMatchObject({ text: "spoken" });
  });

  it("closes when another connection takes its place", async () => {
    const { channel, server } = await meet();
    const second = await wecom.open({ ...BOT, url: server.url }, OPTIONS(), SUITE_TOOLS);
    cleanups.push(() => second.close());
    expect(await channel.closed).toMatchObject({ code: 1006, reason: expect.stringContaining("New connection") });
  });

  it("says that the chat had too many messages", async () => {
    const { channel } = await meet(2);
    await channel.post({ room: GROUP, text: "1" });
    await channel.post({ room: GROUP, text: "2" });
    await expect(channel.post({ room: GROUP, text: "3" })).rejects.toMatchObject({ code: "rate-limited" });
  });

  it("ignores what it cannot read", async () => {
    const { ann, inbox, server } = await meet();
    const base = { msgtype: "text", msgid: "m", chattype: "group", chatid: GROUP, from: { userid: "ann" } };
    for (const body of [{ msgtype: "text" }, { ...base, from: {} }, base, { ...base, msgtype: "mixed", mixed: {} }])
      server.callback(body);
    await ann.post({ room: GROUP, text: "fine", mentions: MENTION });
    expect((await inbox.next()).text).toContain("fine");
  });

  it("names the fields of wrong credentials", async () => {
    const { server } = await meet();
    const attempt = wecom.open({ botId: "bot-1", secret: "wrong", url: server.url }, OPTIONS(), SUITE_TOOLS);
    await expect(attempt).rejects.toMatchObject({ failure: "refused", message: expect.stringContaining("API 配置") });
  });
});
