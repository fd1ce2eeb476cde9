import { inspect } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import type { Log } from "../../../core/model/ports.ts";
import type { Channel, ChannelOptions } from "../../../core/wire/channel.ts";
import { matrix } from "./matrix.ts";
import { describeChannel, readPosts, SUITE_TOOLS, withText } from "./suite/channel-suite.ts";
import { type MatrixServer, startMatrixServer } from "./testing/matrix-server.ts";

const FAST = { burst: 1_000, perSecond: 1_000 };
const ROOM = "!team:sim";
const AGENT = "@agent:sim";
const PERSON = "@person:sim";

describeChannel("Matrix", {
  abilities: { edits: true, files: true, history: true, lines: true, replies: true, seesBots: "all" },
  has: { direct: true, credentials: true, foreignRoom: true, rateLimit: true, keys: true, deletes: true },
  async stage() {
    const server = await startMatrixServer({ rate: FAST });
    const settings = { homeserver: server.url, token: server.register("agent", "Agent"), rooms: [ROOM, "!pair:sim"] };
    const peer = { ...settings, token: server.register("peer", "Peer") };
    server.register("person");
    server.createRoom({ id: ROOM, members: [AGENT, "@peer:sim", PERSON] });
    server.createRoom({ id: "!pair:sim", members: [AGENT, "@peer:sim"] });
    server.createRoom({ id: "!elsewhere:sim", members: [PERSON] });
    const opened: Channel[] = [];
    return {
      room: ROOM,
      join: (options) => matrix.open(settings, options, SUITE_TOOLS),
      async joinPeer() {
        const channel = await matrix.open(
          peer,
          { cursors: new Map(), signal: new AbortController().signal },
          SUITE_TOOLS,
        );
        opened.push(channel);
        return channel;
      },
      directRoom: () => "!pair:sim",
      intruder: {
        secret: "syt_wrong_token",
        join: (options) => matrix.open({ ...settings, token: "syt_wrong_token" }, options, SUITE_TOOLS),
      },
      foreignRoom: "!elsewhere:sim",
      limitRate: () => server.limitNext(2_500),
      stop: () => server.close(),
      async close() {
        for (const channel of opened) channel.close();
        await server.close();
      },
    };
  },
});

describe("Matrix", () => {
  const cleanups: (() => unknown)[] = [];

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function start(options?: Parameters<typeof startMatrixServer>[0]): Promise<{
    readonly server: MatrixServer;
    readonly warnings: string[];
    open(rooms?: readonly string[], more?: Partial<ChannelOptions>): Promise<Channel>;
  }> {
    const server = await startMatrixServer(options ?? { rate: FAST });
    cleanups.push(() => server.close());
    const token = server.register("agent", "Agent");
    server.register("person", "Person");
    server.createRoom({ id: ROOM, alias: "#team:sim", members: [AGENT, PERSON, "@third:sim"] });
    const warnings: string[] = [];
    const log: Log = { debug() {}, info() {}, warn: (_, text) => void warnings.push(text), error() {} };
    return {
      server,
      warnings,
      async open(rooms = [ROOM], more = {}) {
        const defaults = { cursors: new Map<string, string>(), signal: new AbortController().signal };
        const settings = { homeserver: `${server.url}/`, token, rooms: [...rooms] };
        const channel = await matrix.open(settings, { ...defaults, ...more }, { ...SUITE_TOOLS, log });
        cleanups.push(() => channel.close());
        return channel;
      },
    };
  }

  const text = (body: string, more: object = {}) => ({ msgtype: "m.text", body, ...more });

  it("names rooms as they are configured", async () => {
    const { open, server } = await start();
    const channel = await open(["#team:sim"]);
    server.send(ROOM, PERSON, text("hello"));
    expect(await readPosts(channel).next()).toMatchObject({
      room: "#team:sim",
      sender: { id: PERSON, name: "Person" },
    });
    await channel.post({ room: "#team:sim", text: "hello" });
    expect(server.messages.at(-1)).toMatchObject({ room_id: ROOM, sender: AGENT });
  });

  it("removes the quotation of a reply and names what it answers", async () => {
    const { open, server } = await start();
    const inbox = readPosts(await open());
    const relation = { "m.relates_to": { "m.in_reply_to": { event_id: "$asked" } } };
    server.send(ROOM, PERSON, text("> <@agent:sim> Which\n> one?\n\nThe first.\n> a quotation", relation));
    server.send(ROOM, PERSON, text("> <@agent:sim> not a reply"));
    expect(await inbox.next()).toMatchObject({ text: "The first.\n> a quotation", replyTo: "$asked" });
    expect(await inbox.next()).toMatchObject({ text: "> <@agent:sim> not a reply" });
  });

  it("reads threads, and edits within them", async () => {
    const { open, server } = await start();
    const inbox = readPosts(await open());
    const thread = { rel_type: "m.thread", event_id: "$root" };
    const fallback = { ...thread, is_falling_back: true, "m.in_reply_to": { event_id: "$last" } };
    const id = server.send(ROOM, PERSON, text("in a thread", { "m.relates_to": fallback }));
    const reply = { ...thread, is_falling_back: false, "m.in_reply_to": { event_id: "$other" } };
    server.send(ROOM, PERSON, text("reply in a thread", { "m.relates_to": reply }));
    const edit = { "m.new_content": text("better"), "m.relates_to": { rel_type: "m.replace", event_id: id } };
    server.send(ROOM, PERSON, text("* better", edit));
    const first = await inbox.next();
    expect(first).toMatchObject({ text: "in a thread", thread: "$root" });
    expect(first.replyTo).toBeUndefined();
    expect(await inbox.next()).toMatchObject({ thread: "$root", replyTo: "$other" });
    expect(await inbox.next()).toMatchObject({ text: "better", edits: id, thread: "$root" });
  });

  it("posts into threads", async () => {
    const { open, server } = await start();
    const channel = await open();
    await channel.post({ room: ROOM, text: "a", thread: "$root" });
    await channel.post({ room: ROOM, text: "b", thread: "$root", replyTo: "$asked" });
    expect(server.messages.map(({ content }) => content["m.relates_to"])).toEqual([
      { rel_type: "m.thread", event_id: "$root", is_falling_back: true, "m.in_reply_to": { event_id: "$root" } },
      { rel_type: "m.thread", event_id: "$root", is_falling_back: false, "m.in_reply_to": { event_id: "$asked" } },
    ]);
  });

  it("counts notices and automated posts as posts of bots, and marks its own", async () => {
    const { open, server } = await start();
    const channel = await open();
    const inbox = readPosts(channel);
    server.send(ROOM, PERSON, { msgtype: "m.notice", body: "[A2A:discover]" });
    server.send(ROOM, PERSON, text("hello"));
    expect(await inbox.next()).toMatchObject({ text: "[A2A:discover]", sender: { bot: true } });
    expect(await inbox.next()).toMatchObject({ text: "hello", sender: { bot: false } });
    await channel.post({ room: ROOM, text: "from the agent" });
    expect(await inbox.next()).toMatchObject({ sender: { bot: true, self: true } });
    expect(server.messages.at(-1)?.content.msgtype).toBe("m.text");
  });

  it("reads mentions by name and from links", async () => {
    const { open, server } = await start();
    const inbox = readPosts(await open());
    server.send(ROOM, PERSON, text("Agent: hi", { "m.mentions": { user_ids: [AGENT, 7] } }));
    const link =
      '<a href="https://matrix.to/#/%40agent%3Asim">Agent</a>: hi <a href="https://matrix.to/#/!r:sim">r</a>';
    server.send(ROOM, PERSON, text("Agent: hi", { format: "org.matrix.custom.html", formatted_body: link }));
    server.send(ROOM, PERSON, text("hi", { "m.mentions": {}, formatted_body: link }));
    expect([await inbox.next(), await inbox.next(), await inbox.next()].map(({ mentions }) => mentions)).toEqual([
      [AGENT],
      [AGENT],
      [],
    ]);
  });

  it.each([
    ["@agent write", [AGENT]],
    ["@agent：写一首诗", [AGENT]],
    ["agent，写", [AGENT]],
    ["please, @agent:sim", [AGENT]],
    ["@agent:sim: write", [AGENT]],
    ["@agents write", []],
    ["the agent: writes", []],
  ])("reads names that are only text: %s", async (written, expected) => {
    const { open, server } = await start();
    const inbox = readPosts(await open());
    server.send(ROOM, PERSON, text(written, { "m.mentions": {} }));
    expect((await inbox.next()).mentions).toEqual(expected);
  });

  it("reads files of other clients, with and without a caption", async () => {
    const { open, server } = await start();
    const channel = await open();
    const inbox = readPosts(channel);
    const files = [
      { name: "a.txt", mediaType: "text/plain", bytes: Buffer.from("first") },
      { name: "b.txt", mediaType: "text/plain", bytes: Buffer.from("second") },
    ];
    await channel.post({ room: ROOM, text: "two files", files });
    const [b, a] = [await inbox.next(), await inbox.next()];
    expect([b, a].map(({ files: [file], text }) => [text, file?.name, file?.mediaType, file?.size])).toEqual([
      ["", "b.txt", "text/plain", 6],
      ["two files", "a.txt", "text/plain", 5],
    ]);
    expect(Buffer.from((await a.files[0]?.read(10)) ?? []).toString()).toBe("first");
    server.send(ROOM, PERSON, { msgtype: "m.image", body: "x.png", url: "https://elsewhere.example/x.png" });
    server.send(ROOM, PERSON, { msgtype: "m.image", body: "y.png", url: "mxc://sim/none" });
    const image = await inbox.next();
    expect(image).toMatchObject({ text: "", files: [{ name: "y.png" }] });
    await expect(image.files[0]?.read(10)).rejects.toThrow("M_FORBIDDEN");
  });

  it("accepts invitations to configured rooms only", async () => {
    const { open, server, warnings } = await start();
    for (const id of ["!later:sim", "!unwanted:sim"]) server.createRoom({ id, members: [PERSON] });
    const channel = await open(["!later:sim", "!unknown:sim", "#unknown:sim"]);
    expect(warnings).toEqual([
      expect.stringContaining("@agent:sim may not join the Matrix room !later:sim"),
      expect.stringContaining("may not join the Matrix room !unknown:sim"),
      expect.stringContaining("does not know the Matrix room #unknown:sim"),
    ]);
    await expect(channel.post({ room: "!later:sim", text: "hello" })).rejects.toMatchObject({ code: "no-access" });
    server.invite("!unwanted:sim", AGENT);
    server.invite("!later:sim", AGENT);
    const inbox = readPosts(channel);
    await expect.poll(() => server.membership("!later:sim", AGENT)).toBe("join");
    server.send("!later:sim", PERSON, text("welcome"));
    expect(await inbox.next(withText("welcome"))).toMatchObject({ room: "!later:sim", direct: true });
    expect(server.membership("!unwanted:sim", AGENT)).toBe("invite");
  });

  it("explains encrypted rooms and does not use them", async () => {
    const { open, server, warnings } = await start();
    server.createRoom({ id: "!secret:sim", members: [AGENT, PERSON], encrypted: true });
    const channel = await open([ROOM, "!secret:sim"]);
    expect(warnings).toEqual([expect.stringContaining("The Matrix room !secret:sim is encrypted")]);
    const attempt = channel.post({ room: "!secret:sim", text: "hello" });
    await expect(attempt).rejects.toMatchObject({ code: "no-access", message: expect.stringContaining("encrypted") });
    server.send(ROOM, PERSON, text("last words"));
    server.send(ROOM, PERSON, {}, "m.room.encryption");
    await expect.poll(() => warnings.length).toBe(2);
    await expect(channel.post({ room: ROOM, text: "hello" })).rejects.toMatchObject({ code: "no-access" });
  });

  it("reads pages that it missed, in order, each room from its own cursor", async () => {
    const { open, server } = await start();
    server.createRoom({ id: "!second:sim", members: [AGENT, PERSON] });
    const rooms = [ROOM, "!second:sim"];
    const channel = await open(rooms);
    const inbox = readPosts(channel);
    server.send("!second:sim", PERSON, text("served"));
    const { cursor: second = "" } = await inbox.next();
    server.send(ROOM, PERSON, text("first"));
    const { cursor: first = "" } = await inbox.next();
    server.send("!second:sim", PERSON, text("not served"));
    channel.close();
    for (let index = 0; index < 250; index++) server.send(ROOM, PERSON, text(`missed ${index}`));
    const cursors = new Map([
      [ROOM, first],
      ["!second:sim", second],
    ]);
    const again = readPosts(await open(rooms, { cursors }));
    const posts = [];
    for (let index = 0; index < 251; index++) posts.push(await again.next());
    const missed = Array.from({ length: 250 }, (_, index) => `missed ${index}`);
    expect(posts.map(({ text: body }) => body)).toEqual([...missed, "not served"]);
    // Reading continues after whole pages.
    expect(new Set(posts.slice(0, 99).map(({ cursor }) => cursor))).toEqual(new Set([first]));
    expect(new Set(posts.slice(99, 199).map(({ cursor }) => cursor)).size).toBe(1);
    server.send(ROOM, PERSON, text("now"));
    expect((await again.next()).text).toBe("now");
  });

  it("reads what a long poll left out", async () => {
    const { open, server } = await start();
    const inbox = readPosts(await open());
    for (let index = 0; index < 250; index++) server.send(ROOM, PERSON, text(`${index}`));
    for (let index = 0; index < 250; index++) expect((await inbox.next()).text).toBe(`${index}`);
  });

  it("begins now if the server does not know the cursor", async () => {
    const { open, server, warnings } = await start();
    server.send(ROOM, PERSON, text("old"));
    const inbox = readPosts(await open([ROOM], { cursors: new Map([[ROOM, "of-another-server"]]) }));
    server.send(ROOM, PERSON, text("new"));
    expect((await inbox.next()).text).toBe("new");
    expect(warnings).toEqual([expect.stringContaining("it begins now")]);
  });

  it("posts a repeated key once", async () => {
    const { open, server } = await start();
    const channel = await open();
    const draft = { room: ROOM, text: "once", key: "task/1" };
    expect(await channel.post(draft)).toEqual(await channel.post(draft));
    expect(server.messages).toHaveLength(1);
  });

  it("says how long to wait, and what is too large", async () => {
    const { open } = await start({ rate: { burst: 1, perSecond: 0.2 } });
    const channel = await open();
    await channel.post({ room: ROOM, text: "one" });
    const error: unknown = await channel.post({ room: ROOM, text: "two" }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "rate-limited" });
    expect((error as { retryAfterMs: number }).retryAfterMs).toBeGreaterThan(1_000);
  });

  it("closes when the token is revoked, without showing it", async () => {
    const { open, server } = await start();
    const channel = await open();
    server.revoke("syt_agent_secret");
    expect(await channel.closed).toMatchObject({ code: 1006, reason: expect.stringContaining("M_UNKNOWN_TOKEN") });
    const error: unknown = await channel.post({ room: ROOM, text: "hello" }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "closed" });
    expect(inspect(error, { depth: 8 })).not.toContain("syt_agent_secret");
  });

  it("names the field of a wrong token", async () => {
    const { server } = await start();
    const options = { cursors: new Map<string, string>(), signal: new AbortController().signal };
    const settings = { homeserver: server.url, token: "wrong", rooms: [ROOM] };
    await expect(matrix.open(settings, options, SUITE_TOOLS)).rejects.toMatchObject({
      failure: "refused",
      status: 401,
      message: expect.stringContaining("Access Token"),
    });
  });

  it("ignores what it cannot read", async () => {
    const { open, server } = await start();
    const inbox = readPosts(await open());
    for (const content of [
      {},
      { body: 7, msgtype: "m.text" },
      { msgtype: "m.location", body: "x" },
      { "m.relates_to": 5 },
    ])
      server.send(ROOM, PERSON, content);
    server.send(ROOM, PERSON, {
      body: "x",
      msgtype: "m.text",
      "m.relates_to": { rel_type: "m.replace", event_id: "$1" },
    });
    server.send(ROOM, PERSON, text("fine", { "m.mentions": { user_ids: "all" }, "m.relates_to": [] }));
    expect(await inbox.next()).toMatchObject({ text: "fine", mentions: [] });
  });
});
