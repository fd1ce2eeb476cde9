/** Real servers of ours and real libraries of the networks, on platforms that enforce the vendors' rules. */
import { describe, expect, it } from "vitest";
import type { Post } from "../../src/core/wire/channel.ts";
import { matrix } from "../../src/features/chat/networks/matrix.ts";
import { type Peer, readPosts, SUITE_TOOLS, withText } from "../../src/features/chat/networks/suite/channel-suite.ts";
import { startDingtalkServer } from "../../src/features/chat/networks/testing/dingtalk-server.ts";
import { startFeishuServer } from "../../src/features/chat/networks/testing/feishu-server.ts";
import { startMatrixServer } from "../../src/features/chat/networks/testing/matrix-server.ts";
import { startWecomServer } from "../../src/features/chat/networks/testing/wecom-server.ts";
import { createCounter } from "../../src/features/chat/runtime/testing/agents.ts";
import type { ChannelEntryOptions } from "../../src/features/chat/server/entries.ts";
import { closeLater } from "../support/lifecycle.ts";
import { followScript, reporter } from "./script.ts";
import { startInRoom } from "./stage.ts";

const startAgent = (channel: ChannelEntryOptions) => startInRoom({ agents: { reporter }, channels: [channel] });

const markersOf = (posts: readonly Post[]) =>
  posts.flatMap(({ edits, text }) => {
    const [, type = "", rest = ""] = /\[A2A:(\w+)([^\]]*)\]/.exec(text) ?? [];
    const state = /state=([\w-]+)/.exec(rest)?.[1];
    return type === "" ? [] : [`${edits === undefined ? "" : "edit "}${type}${state === undefined ? "" : ` ${state}`}`];
  });

/** What says only that the task runs may come or not, as the pace of the network has it. */
const COURSE = ["card", "status input-required", "result completed", "result cancelled"];
const withoutWorking = (markers: readonly string[]) =>
  markers.filter((marker) => !/^(ack|.*status working)$/.test(marker));

describe("the script of agents in a chat room", () => {
  it("runs on Matrix", async () => {
    const server = await startMatrixServer({ rate: { burst: 1_000, perSecond: 1_000 } });
    closeLater(() => server.close());
    const room = "!team:sim";
    const settings = { homeserver: server.url, token: server.register("agent", "Agent"), rooms: [room] };
    const token = server.register("person", "Person");
    server.createRoom({ id: room, members: ["@agent:sim", "@person:sim", "@third:sim"] });
    const options = { cursors: new Map<string, string>(), signal: new AbortController().signal };
    const screen = await matrix.open({ ...settings, token }, options, SUITE_TOOLS);
    closeLater(() => screen.close());
    await startAgent({ matrix: settings, agent: "reporter", allowPeers: ["@person:sim"] });
    const peer: Peer = {
      self: screen.self,
      posts: screen.posts,
      async post({ mentions = [], text }) {
        const content = { msgtype: "m.text", body: text, "m.mentions": { user_ids: mentions.map(({ id }) => id) } };
        return { id: server.send(room, "@person:sim", content) };
      },
    };
    const posts = await followScript({ peer, room, agent: { id: "@agent:sim", name: "Agent" }, files: true });
    expect(withoutWorking(markersOf(posts))).toEqual(COURSE);
    expect(markersOf(posts)).toContain("status working");
    // The file is the result's own, and every answer names what it answers.
    expect(posts.find(({ files }) => files.length > 0)?.text).toContain("[A2A:result");
    expect(posts.filter(({ edits }) => edits === undefined).every(({ replyTo }) => replyTo !== undefined)).toBe(true);
  });

  it("runs on Feishu", async () => {
    const server = await startFeishuServer();
    closeLater(() => server.close());
    const app = { appId: "cli_0123456789abcdef", appSecret: "secret-of-app" };
    server.addApp({ id: app.appId, secret: app.appSecret, name: "Agent" });
    server.addChat("oc_group", [app.appId, "Ann"]);
    await startAgent({
      feishu: { ...app, domain: server.url, rooms: ["oc_group"] },
      agent: "reporter",
      allowPeers: [server.openId(app.appId, "Ann")],
    });
    const agent = { id: app.appId, name: "Agent" };
    const posts = await followScript({ peer: server.person("Ann"), room: "oc_group", agent, files: true });
    expect(withoutWorking(markersOf(posts))).toEqual(COURSE);
    expect(markersOf(posts)).toContain("status working");
    const sent = server.messages.filter(({ sender }) => sender === app.appId);
    expect(sent.filter(({ type }) => type === "file")).toHaveLength(1);
    expect(sent.every(({ parent }) => parent?.sender === "Ann")).toBe(true);
  });

  it("runs on WeCom", async () => {
    const bot = { botId: "bot-1", secret: "secret-of-bot" };
    const server = await startWecomServer({ ...bot, groups: ["wr-group"] });
    closeLater(() => server.close());
    await startAgent({ wecom: { ...bot, url: server.url }, agent: "reporter", allowPeers: ["ann"] });
    const agent = { id: bot.botId, name: bot.botId };
    const posts = await followScript({ peer: server.person("ann"), room: "wr-group", agent, files: true });
    expect(withoutWorking(markersOf(posts))).toEqual(COURSE);
    expect(markersOf(posts)).toContain("status working");
    expect(server.screen.every(({ pushed }) => !pushed)).toBe(true);
    expect(server.screen.filter(({ file }) => file !== undefined)).toHaveLength(1);
  });

  it("shows a status again that WeCom no longer edits", async () => {
    const bot = { botId: "bot-1", secret: "secret-of-bot" };
    const server = await startWecomServer({ ...bot, groups: ["wr-group"] });
    closeLater(() => server.close());
    const { agent: counter, step } = createCounter(2);
    const entry = { wecom: { ...bot, url: server.url }, agent: "counter", allowPeers: ["ann"] };
    await startInRoom({ agents: { counter }, channels: [entry] });
    const ann = server.person("ann");
    const screen = readPosts(ann);
    await ann.post({ room: "wr-group", text: "[A2A:task id=t1]\nwait", mentions: [{ id: bot.botId, name: "" }] });
    const first = await screen.next(withText("Step 1"));
    server.expireStreams();
    step();
    const second = await screen.next(withText("Step 2"));
    expect([second.edits, second.id === first.id]).toEqual([undefined, false]);
    await ann.post({ room: "wr-group", text: "[A2A:cancel task=t1]", mentions: [{ id: bot.botId, name: "" }] });
    await screen.next(withText("state=cancelled"));
  });

  it("runs on DingTalk, where the file becomes text", async () => {
    const app = { clientId: "ding-app", clientSecret: "secret-of-app" };
    const server = await startDingtalkServer({ ...app, groups: ["cid-group"] });
    closeLater(() => server.close());
    await startAgent({ dingtalk: { ...app, api: server.url }, agent: "reporter", allowPeers: ["ann"] });
    const agent = { id: app.clientId, name: app.clientId };
    const posts = await followScript({ peer: server.person("ann"), room: "cid-group", agent, files: false });
    expect(withoutWorking(markersOf(posts))).toEqual(COURSE);
    expect(server.screen.every(({ by }) => by === "webhook")).toBe(true);
  });
});
