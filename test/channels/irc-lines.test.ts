/** What the channel makes of lines of IRC, and which lines it sends. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client.ts";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import type { Channel } from "../../src/core/wire/channel.ts";
import { irc } from "../../src/features/chat/networks/irc.ts";
import { readPosts, SUITE_TOOLS, withText } from "../../src/features/chat/networks/suite/channel-suite.ts";
import { serve } from "../../src/index.ts";
import { openRawIrc, type RawIrc } from "./raw-irc.ts";
import { type ChatServer, hasServer, startNgircd } from "./servers.ts";

describe.runIf(hasServer("ngircd"))("lines of IRC", () => {
  const cleanups: (() => unknown)[] = [];
  let server: ChatServer;

  beforeEach(async () => {
    server = await startNgircd();
    cleanups.push(() => server.close());
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function join(more: Record<string, unknown> = {}, { signal } = new AbortController()): Promise<Channel> {
    const settings = irc.settings.parse({
      host: "127.0.0.1",
      port: server.port,
      nick: "agent",
      channels: ["work"],
      ...more,
    });
    const channel = await irc.open(settings, { cursors: new Map(), signal }, SUITE_TOOLS);
    cleanups.push(async () => {
      channel.close();
      await channel.closed;
    });
    return channel;
  }
  async function joinRaw(nick: string, channel = "#work"): Promise<RawIrc> {
    const raw = await openRawIrc(server.port, { nick, channel });
    cleanups.push(() => raw.close());
    return raw;
  }

  it.each([
    ["agent: hello", ["agent"]],
    ["Agent, hello", ["agent"]],
    ["hello @agent!", ["agent"]],
    ["bob, agent: hello", ["agent"]],
    ["agents: hello", []],
    ["mail to x@agent please", []],
    ["the agent: hello", []],
    ["@agent2 hello", ["agent2"]],
  ])("mentions in %j are %j", async (line, mentions) => {
    const channel = await join();
    const raw = await joinRaw("bob");
    raw.send(`PRIVMSG #work :${line}`);
    const sender = { id: "bob", name: "bob", bot: false, self: false, verified: false };
    expect(await readPosts(channel).next()).toMatchObject({
      room: "#work",
      direct: false,
      sender,
      text: line,
      mentions,
    });
  });

  it("are sent with the mention that people write, once", async () => {
    const channel = await join();
    const raw = await joinRaw("bob");
    const mentions = [{ id: "bob", name: "bob" }];
    await channel.post({ room: "#work", text: "[A2A:ack task=1]", mentions });
    expect(await raw.next(/PRIVMSG/)).toMatch(/^:agent!\S+ PRIVMSG #work :bob: \[A2A:ack task=1\]$/);
    await channel.post({ room: "#work", text: "bob: hello", mentions });
    expect(await raw.next(/PRIVMSG/)).toMatch(/ PRIVMSG #work :bob: hello$/);
    await channel.post({ room: "bob", text: "between us", mentions });
    expect(await raw.next(/PRIVMSG/)).toMatch(/ PRIVMSG bob :between us$/);
  });

  it("that are notices, CTCP or from the server are not posts, and not answered", async () => {
    const channel = await join();
    const raw = await joinRaw("bob");
    for (const line of ["NOTICE #work :[A2A:discover]", "NOTICE agent :hi", "PRIVMSG agent :\u0001VERSION\u0001"])
      raw.send(line);
    for (const line of ["PRIVMSG #work :\u0001ACTION waves\u0001", "PRIVMSG agent :\u0001PING 1\u0001"]) raw.send(line);
    raw.send("PRIVMSG agent :now");
    const inbox = readPosts(channel);
    expect(await inbox.next()).toMatchObject({ text: "now", direct: true, room: "bob" });
    await channel.post({ room: "bob", text: "done" });
    await raw.next(/ PRIVMSG bob :done$/);
    expect(raw.lines.filter((line) => line.startsWith(":agent!"))).toHaveLength(1);
  });

  it("lose colours and control characters", async () => {
    const channel = await join();
    const raw = await joinRaw("bob");
    raw.send("PRIVMSG #work :\u000304,12red\u0003 \u0002bold\u000f \u0003\u001ditalic\u001d 5\u0004ff0000,00ff00hex");
    expect((await readPosts(channel).next()).text).toBe("red bold italic 5hex");
    await channel.post({ room: "#work", text: "\u0001ACTION x\u0001 \u0000y" });
    expect(await raw.next(/PRIVMSG/)).toMatch(/ :.ACTION x {3}y$/);
  });

  it("never have more than 512 bytes, however long nicks are", async () => {
    const nick = `a${"n".repeat(29)}`;
    const peer = `b${"p".repeat(29)}`;
    const channel = await join({ nick });
    const raw = await joinRaw(peer);
    const { max } = channel.abilities.text;
    for (const text of ["x".repeat(max), "é".repeat(Math.floor(max / 2))]) {
      await channel.post({ room: "#work", text, mentions: [{ id: peer, name: peer }] });
      const line = await raw.next(/PRIVMSG/);
      expect(line.endsWith(text)).toBe(true);
      expect(Buffer.byteLength(line)).toBeLessThanOrEqual(510);
    }
    expect(max).toBeGreaterThan(300);
  });

  it.each(["#work\r\nQUIT", "#work,#other", "", ":x", "a b"])("cannot be made of a room like %j", async (room) => {
    const channel = await join();
    await expect(channel.post({ room, text: "x" })).rejects.toMatchObject({ code: "no-access" });
  });

  it("report a nick that is in use, and one that is not allowed", async () => {
    await joinRaw("agent");
    await expect(join()).rejects.toMatchObject({
      failure: "refused",
      status: 409,
      message: "The nick agent is in use.",
    });
    await expect(join({ nick: `a${"x".repeat(40)}` })).rejects.toMatchObject({ failure: "refused" });
  });

  it("join channels with keys, and report a wrong one without it", async () => {
    const raw = await joinRaw("bob", "#secret");
    raw.send("MODE #secret +k opensesame");
    await raw.next(/MODE #secret \+k/);
    const error = await join({ channels: [{ name: "secret", key: "wrong-key" }] }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ failure: "refused", message: expect.stringContaining("#secret") });
    expect(String(error)).not.toContain("wrong-key");
    const channel = await join({ channels: ["work", { name: "#secret", key: "opensesame" }] });
    raw.send("PRIVMSG #secret :hello");
    expect(await readPosts(channel).next(withText("hello"))).toMatchObject({ room: "#secret" });
  });

  it("end the channel when the participant is kicked or killed", async () => {
    const raw = await joinRaw("bob");
    const channel = await join();
    raw.send("KICK #work agent :enough");
    expect(await channel.closed).toMatchObject({ code: 1006, reason: "Kicked from #work: enough" });
    await expect(channel.post({ room: "#work", text: "x" })).rejects.toMatchObject({ code: "closed" });
  });

  it("are sent at the stated rate without loss where the server slows clients down", async () => {
    const slow = await startNgircd({ floodControl: true });
    cleanups.push(() => slow.close());
    const channel = await join({ port: slow.port });
    const raw = await openRawIrc(slow.port, { nick: "bob", channel: "#work" });
    cleanups.push(() => raw.close());
    const texts = Array.from({ length: channel.abilities.rate.posts }, (_, index) => `number ${index}`);
    await Promise.all(texts.map((text) => channel.post({ room: "#work", text })));
    for (const text of texts) expect(await raw.next(/PRIVMSG/)).toContain(` :${text}`);
  });

  it("has names that are the same whatever their case", async () => {
    const channel = await join({ nick: "Agent", channels: ["#WORK"] });
    const raw = await joinRaw("Ada");
    raw.send("PRIVMSG #work :AGENT: hello");
    const post = await readPosts(channel).next(withText("hello"));
    expect(post).toMatchObject({ room: "#WORK", mentions: [channel.self.id], sender: { id: "ada", name: "Ada" } });
  });

  it("lets peers give work, and be called, whatever the case of their names", async () => {
    const settings = { host: "127.0.0.1", port: server.port, channels: ["#work"] };
    const ada = await joinRaw("Ada");
    const agents = { echo: createEchoAgent() };
    const channels = [{ irc: { ...settings, nick: "agent" }, agent: "echo", allowPeers: ["ADA"] }];
    const served = await serve({ agents, channels, port: 0, grpcPort: false });
    cleanups.push(() => served.close());
    await ada.next(/^:agent!\S+ JOIN/);
    ada.send("PRIVMSG #work :[A2A:task id=t1] Hello");
    expect(await ada.next(/A2A:(?:result|status task=t1 state=rejected)/)).toContain("[A2A:result task=t1");
    const connecting = connect("a2a-lite:irc/#work#ADA", { channels: [{ irc: { ...settings, nick: "caller" } }] });
    await ada.next(/A2A:discover/);
    ada.send("PRIVMSG #work :[A2A:card to=caller] I am Ada. I write.");
    const client = await connecting;
    cleanups.push(() => client.close());
    expect(client.card.name).toBe("Ada");
  });
});
