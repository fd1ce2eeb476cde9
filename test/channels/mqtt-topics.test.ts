/** What the channel makes of topics and payloads, and which it publishes. */

import { connectAsync, type IClientOptions, type MqttClient } from "mqtt";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Channel } from "../../src/core/wire/channel.ts";
import { mqtt } from "../../src/features/chat/networks/mqtt.ts";
import { readPosts, SUITE_TOOLS, withText } from "../../src/features/chat/networks/suite/channel-suite.ts";
import { type ChatServer, hasServer, startMosquitto } from "./servers.ts";

describe.runIf(hasServer("mosquitto"))("topics of MQTT", () => {
  const cleanups: (() => unknown)[] = [];
  let server: ChatServer;

  beforeEach(async () => {
    server = await startMosquitto();
    cleanups.push(() => server.close());
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  const url = () => `mqtt://127.0.0.1:${server.port}`;

  async function join(): Promise<Channel> {
    const settings = mqtt.settings.parse({ url: url(), name: "agent", rooms: ["a/work"] });
    const channel = await mqtt.open(
      settings,
      { cursors: new Map(), signal: new AbortController().signal },
      SUITE_TOOLS,
    );
    cleanups.push(async () => {
      channel.close();
      await channel.closed;
    });
    return channel;
  }
  async function connectRaw(options: IClientOptions = {}): Promise<MqttClient> {
    const client = await connectAsync(url(), { reconnectPeriod: 0, ...options });
    cleanups.push(() => client.endAsync(true));
    return client;
  }

  it.each([
    ["@agent hello", ["agent"]],
    ["hello, @Agent!", ["agent"]],
    ["agent: hello", ["agent"]],
    ["agent：写", ["agent"]],
    ["x@agent", []],
    ["@agent-two and @bob.b.", ["agent-two", "bob.b"]],
  ])("mentions in %j are %j", async (text, mentions) => {
    const channel = await join();
    const raw = await connectRaw({ protocolVersion: 4 });
    await raw.publishAsync("a/work/bob", text, { qos: 1 });
    const sender = { id: "bob", name: "bob", bot: false, self: false, verified: false };
    expect(await readPosts(channel).next()).toMatchObject({ room: "a/work", direct: false, sender, text, mentions });
  });

  it("are the room and the own name", async () => {
    const raw = await connectRaw({ protocolVersion: 4 });
    await raw.subscribeAsync("#", { qos: 1 });
    const received = new Promise((resolve) => raw.once("message", (topic, text) => resolve([topic, String(text)])));
    const channel = await join();
    await channel.post({ room: "a/work", text: "hello", mentions: [{ id: "bob", name: "bob" }] });
    expect(await received).toEqual(["a/work/agent", "@bob hello"]);
  });

  it("with retained posts, other levels or payloads that are not UTF-8 are ignored", async () => {
    const raw = await connectRaw();
    await raw.publishAsync("a/work/bob", "retained", { qos: 1, retain: true });
    const channel = await join();
    await raw.publishAsync("a/work/bob", Buffer.from([0xff, 0xfe]), { qos: 1 });
    await raw.publishAsync("a/work/bob/deeper", "deeper", { qos: 1 });
    await raw.publishAsync("a/work/", "no name", { qos: 1 });
    await raw.publishAsync("a/work/bob", "valid", { qos: 1 });
    const inbox = readPosts(channel);
    await inbox.next(withText("valid"));
    expect(inbox.seen).toHaveLength(1);
  });

  it("have ids of their senders' own, which others cannot take", async () => {
    const channel = await join();
    const raw = await connectRaw({ protocolVersion: 5 });
    const properties = { userProperties: { id: "1" } };
    await raw.publishAsync("a/work/bob", "one", { qos: 1, properties });
    await raw.publishAsync("a/work/eve", "two", { qos: 1, properties });
    await raw.publishAsync("a/work/agent", "three", { qos: 1, properties: { userProperties: { id: ["1", "2"] } } });
    const inbox = readPosts(channel);
    await inbox.next(withText("three"));
    expect(new Set(inbox.seen.map(({ id }) => id)).size).toBe(3);
    expect(inbox.seen.map(({ sender }) => sender.self)).toEqual([false, false, true]);
  });

  it("keep posts for an agent that is away", async () => {
    const first = await join();
    first.close();
    await first.closed;
    const raw = await connectRaw();
    await raw.publishAsync("a/work/bob", "while away", { qos: 1 });
    const again = await join();
    expect((await readPosts(again).next()).text).toBe("while away");
  });
});
