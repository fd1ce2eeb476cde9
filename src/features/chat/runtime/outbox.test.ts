import { beforeEach, describe, expect, test } from "vitest";
import { FakeClock, settle } from "../../../core/engine/testing/fake-clock.ts";
import { type Channel, type ChannelAbilities, ChannelError } from "../../../core/wire/channel.ts";
import type { Outgoing } from "../a2a-lite/message.ts";
import { ChannelOutbox } from "./outbox.ts";
import { MemoryNetwork } from "./testing/memory-network.ts";
import { AGENT } from "./testing/stage.ts";

const PEER = { id: "u-alice", name: "alice" };

let clock: FakeClock;
let network: MemoryNetwork;
let outbox: ChannelOutbox;
let channel: Channel;
const lines: string[] = [];

function open(abilities: Partial<ChannelAbilities> = {}, keys = false): void {
  network = new MemoryNetwork({ clock, abilities, keys });
  channel = network.open(AGENT);
  outbox.attach(channel);
}

beforeEach(() => {
  clock = new FakeClock();
  let made = 0;
  lines.length = 0;
  const note = (fields: object, message: string): void => void lines.push(message + JSON.stringify(fields));
  const log = { debug: note, info: note, warn: note, error: note };
  outbox = new ChannelOutbox({ clock, log, uniqueId: () => `key-${++made}` });
});

const chat = (content: string, room = "lobby"): Outgoing => ({ to: { room, peer: PEER, direct: true }, content });

function status(progress: string, task = "t1"): Outgoing {
  const message = { type: "status", task, state: "working", progress, body: "", attachments: [], others: {} } as const;
  return { to: { room: "lobby", peer: PEER, direct: true }, content: message };
}

/** A reconnection, after a loss of the connection. */
function reconnect(): void {
  outbox.detach(channel);
  channel = network.open(AGENT);
  outbox.attach(channel);
}

const texts = () => network.textsOf(AGENT.id);

test("posts in order and at the pace of the network, each room by itself", async () => {
  open({ rate: { posts: 2, perMs: 1_000 } });
  const sent = ["1", "2", "3", "4", "5"].map((text) => outbox.send(chat(text)));
  void outbox.send(chat("other", "kitchen"));
  await settle();
  expect(texts()).toEqual(["1", "other", "2"]);
  await clock.advance(999);
  expect(texts()).toHaveLength(3);
  await clock.advance(1);
  expect(texts()).toEqual(["1", "other", "2", "3", "4"]);
  await clock.advance(1_000);
  expect(await Promise.all(sent)).toEqual(["p1", "p3", "p4", "p5", "p6"].map((id) => ({ id })));
});

const LINES = { lines: false, maxFileBytes: 0, text: { max: 40, unit: "bytes" } } as const;

function about(type: "ack" | "result", task: string, body = "", peer = PEER): Outgoing {
  const more = type === "ack" ? { type } : { type, state: "completed" as const, artifacts: [] };
  const message = { ...more, task, body, attachments: [], others: {} };
  return { to: { room: "lobby", peer, direct: true }, content: message };
}

test("what is short overtakes the rest of a long message, and participants take turns", async () => {
  open({ ...LINES, text: { max: 80, unit: "bytes" }, rate: { posts: 1, perMs: 1_000 } });
  const bob = { id: "u-bob", name: "bob" };
  void outbox.send(about("result", "t1", "word ".repeat(30)));
  void outbox.send(about("result", "t2", "word ".repeat(30), bob));
  void outbox.send(about("ack", "t3"));
  void outbox.send({ ...chat("hello"), to: { room: "lobby", peer: bob, direct: true } });
  await clock.advance(20_000);
  const seen = texts().map((text) => text.replace(/ state=completed mid=.* part=/, " ").replace(/\].*/, ""));
  expect(seen.slice(0, 6)).toEqual([
    "[A2A:result task=t1 1/8",
    "[A2A:result task=t2 1/8",
    "hello",
    "[A2A:ack task=t3",
    "[A2A:result task=t2 2/8",
    "[A2A:result task=t1 2/8",
  ]);
  expect(seen).toHaveLength(18);
});

test("a result takes the place of what was to be posted before it, and statuses give way where the network refuses posts", async () => {
  open();
  network.failures.push(new ChannelError("rate-limited", "slow", { retryAfterMs: 1_000 }));
  void outbox.send(chat("1"));
  await settle();
  const dropped = [status("10%"), status("20%", "t2")].map((one) =>
    outbox.send(one).catch(({ code }: ChannelError) => code),
  );
  void outbox.send(about("ack", "t1"));
  void outbox.send(about("result", "t1", "Done."));
  await clock.advance(1_000);
  expect(await Promise.all(dropped)).toEqual(["rate-limited", "rate-limited"]);
  expect(texts()).toEqual(["1", "[A2A:result task=t1 state=completed]\nDone."]);
});

test("a status is posted where the network has refused posts, if nothing else waits", async () => {
  open();
  network.failures.push(new ChannelError("rate-limited", "slow", { retryAfterMs: 1_000 }));
  void outbox.send(chat("1"));
  await clock.advance(1_000);
  expect(outbox.isSlow("lobby")).toBe(true);
  void outbox.send(status("10%"));
  await expect(outbox.send(status("20%", "t2"))).rejects.toMatchObject({ code: "rate-limited" });
  await settle();
  expect(texts()).toEqual(["1", expect.stringContaining("10%")]);
});

test("learns from refusals how often the network accepts a post", async () => {
  network = new MemoryNetwork({ clock, bucket: { burst: 2, perSecond: 0.2 } });
  channel = network.open(AGENT);
  let attempts = 0;
  const post: Channel["post"] = (draft) => {
    attempts++;
    return channel.post(draft);
  };
  outbox.attach({ ...channel, abilities: channel.abilities, post });
  for (let count = 1; count <= 10; count++) void outbox.send(chat(`${count}`));
  await clock.advance(40_000);
  expect(texts()).toHaveLength(10);
  expect(attempts).toBeLessThanOrEqual(12);
});

test("waits as long as the network asks it to", async () => {
  open();
  network.failures.push(new ChannelError("rate-limited", "slow", { retryAfterMs: 7_000 }));
  void outbox.send(chat("1"));
  void outbox.send(chat("2"));
  await clock.advance(6_999);
  expect(texts()).toEqual([]);
  await clock.advance(1);
  expect(texts()).toEqual(["1", "2"]);
});

test("waits for the first connection, and for the next one when one breaks", async () => {
  const first = outbox.send(chat("1"));
  await settle();
  open();
  await first;
  network.break(AGENT.id);
  void outbox.send(chat("2"));
  void outbox.send(chat("3"));
  await clock.advance(60_000);
  expect(texts()).toEqual(["1"]);
  reconnect();
  await settle();
  expect(texts()).toEqual(["1", "2", "3"]);
});

test("a post that is refused does not hold up the next, and is logged", async () => {
  open({ text: { max: 20, unit: "characters" } });
  network.failures.push(new ChannelError("refused", "no"));
  const refused = outbox.send(chat("1"));
  const next = outbox.send(chat("2"));
  await expect(refused).rejects.toThrow(ChannelError);
  await next;
  await expect(outbox.send(chat("3", "closed"))).rejects.toMatchObject({ code: "no-access" });
  expect(texts()).toEqual(["2"]);
  expect(lines).toHaveLength(2);
});

test("leaves room beside files where a network has less of it there", async () => {
  open({ text: { max: 2_000, unit: "characters", maxWithFiles: 200 } });
  const files = [{ name: "a.txt", mediaType: "text/plain", bytes: Buffer.from("a") }];
  const body = Array.from({ length: 8 }, (_, line) => `line ${line} ${"x".repeat(40)}`).join("\n");
  await outbox.send(chat(body));
  await outbox.send({ ...chat(body), files });
  expect(texts()[0]).toBe(body);
  expect(texts().slice(1).join("\n")).toBe(body);
  expect(texts().slice(1)).toHaveLength(2);
  expect(
    Math.max(
      ...texts()
        .slice(1)
        .map(({ length }) => length),
    ),
  ).toBeLessThanOrEqual(200);
});

test("posts again under the same key when it is not known whether a post has arrived", async () => {
  open({}, true);
  network.failures.push("lost", new Error("unknown"));
  const sent = outbox.send(chat("1"));
  await clock.advance(10_000);
  expect(await sent).toEqual({ id: "p1" });
  expect(texts()).toEqual(["1"]);
  network.failures.push(...Array.from({ length: 4 }, () => new Error("broken")));
  const failed = expect(outbox.send(chat("2"))).rejects.toThrow("broken");
  await clock.advance(60_000);
  await failed;
});

describe("a status that waits", () => {
  test("gives way to a newer one and to the result, whose post stands for both", async () => {
    open({ rate: { posts: 1, perMs: 1_000 } });
    void outbox.send(chat("1"));
    const statuses = ["10%", "20%"].map((progress) => outbox.send(status(progress)));
    const other = outbox.send(status("1%", "t2"));
    const result = outbox.send({
      to: { room: "lobby", peer: PEER, direct: true },
      content: { type: "result", task: "t1", state: "completed", artifacts: [], body: "", attachments: [], others: {} },
    });
    await clock.advance(5_000);
    expect(texts()).toEqual([
      "1",
      "[A2A:result task=t1 state=completed]",
      "[A2A:status task=t2 state=working progress=1%]",
    ]);
    expect(await Promise.all([...statuses, other, result])).toEqual(["p2", "p2", "p3", "p2"].map((id) => ({ id })));
  });

  test("gives way to anything when too much waits; then nothing more is accepted", async () => {
    const first = outbox.send(chat("first"));
    const dropped = expect(outbox.send(status("10%"))).rejects.toMatchObject({ code: "rate-limited" });
    const sent = Array.from({ length: 199 }, (_, index) => outbox.send(chat(String(index))));
    await dropped;
    await expect(outbox.send(chat("more"))).rejects.toMatchObject({ code: "rate-limited" });
    open({ rate: { posts: 1_000, perMs: 1 } });
    await Promise.all([first, ...sent]);
    expect(texts()).toHaveLength(200);
  });
});

test("what is stopped is not posted, and what waits at the end is rejected", async () => {
  const stop = new AbortController();
  const stopped = outbox.send(chat("1"), stop.signal);
  const waiting = outbox.send(chat("2"));
  stop.abort();
  await expect(stopped).rejects.toMatchObject({ code: "closed" });
  const settled = outbox.settle(1_000);
  await clock.advance(1_000);
  await settled;
  outbox.close();
  await expect(waiting).rejects.toMatchObject({ code: "closed" });
  await expect(outbox.send(chat("3"))).rejects.toMatchObject({ code: "closed" });
});

test("names who plain chat is for where there are no replies, within the limit", async () => {
  open({ replies: false, text: { max: 60, unit: "bytes" }, lines: false });
  const { id } = await outbox.send({
    to: { room: "lobby", peer: PEER, replyTo: "p9" },
    content: `${"é".repeat(40)}\nb`,
  });
  expect(network.posts.map(({ mentions, text }) => [mentions, text])).toEqual([
    [["u-alice"], "é".repeat(22)],
    [["u-alice"], "é".repeat(18)],
    [["u-alice"], "b"],
  ]);
  expect(id).toBe("p3");
});
