import { beforeEach, describe, expect, test } from "vitest";
import { FakeClock, settle } from "../../../core/engine/testing/fake-clock.ts";
import { ChannelError } from "../../../core/wire/channel.ts";
import { echo } from "./testing/agents.ts";
import { directRoom, MemoryNetwork } from "./testing/memory-network.ts";
import { AGENT, ALICE, BOB, ROBOT, Stage } from "./testing/stage.ts";

let clock: FakeClock;
let network: MemoryNetwork;

beforeEach(() => {
  clock = new FakeClock();
  network = new MemoryNetwork({ clock });
});

const DIRECT = { room: directRoom(ALICE.id, AGENT.id) };
const MENTION = { mentions: [AGENT.id] };
const REFUSAL = "I only work for participants that my owner has allowed.";

const texts = () => network.textsOf(AGENT.id);
const results = () => texts().filter((text) => text.startsWith("[A2A:result"));
const rest = () => settle(60);
const open = (options: Partial<Parameters<typeof Stage.open>[1]>) =>
  Stage.open(network, { agent: echo, ...options, clock });

describe("an unknown peer", () => {
  test("gets the card, one refusal and no work", async () => {
    await open({ allowPeers: [] });
    network.say(ALICE, "[A2A:discover]");
    await rest();
    expect(texts()).toEqual([expect.stringMatching(/^\[A2A:card\]/)]);
    network.say(ALICE, "[A2A:task id=t1]\nHello");
    await rest();
    network.say(ALICE, "[A2A:task id=t2]\nHello");
    network.say(ALICE, "[A2A:cancel task=t1]\nHello");
    network.say(ALICE, "Hello", DIRECT);
    network.say(BOB, "<@u-agent> Hello", MENTION);
    await rest();
    expect(texts().slice(1)).toEqual([`[A2A:status task=t1 state=rejected]\n${REFUSAL}`, REFUSAL]);
    await clock.advance(10 * 60_000);
    network.say(ALICE, "Hello", DIRECT);
    await rest();
    expect(texts().slice(3)).toEqual([REFUSAL]);
  });

  test("is one of many: not all of them are refused at once", async () => {
    await open({ allowPeers: [] });
    for (let count = 0; count < 500; count++) {
      network.say({ id: `u-${count}`, name: `n-${count}`, bot: false }, "[A2A:task id=t1]\nHello");
    }
    await settle(600);
    expect(texts()).toHaveLength(10);
  });

  test("gets no card while many others ask for it, and those who are allowed do", async () => {
    await open({ allowPeers: [ALICE.id] });
    const discover = (count: number) =>
      network.say({ id: `u-${count}`, name: `n-${count}`, bot: false }, "[A2A:discover]");
    for (let count = 0; count < 500; count++) discover(count);
    await clock.advance(30_000);
    expect(texts()).toHaveLength(20);
    network.say(ALICE, "[A2A:discover]");
    await clock.advance(30_000);
    expect(texts()).toHaveLength(21);
    discover(500);
    await rest();
    expect(texts()).toHaveLength(22);
  });
});

test("posts that find no room in the queue are logged once", async () => {
  const stage = await open({ allowPeers: ["*"] });
  network.failures.push(new ChannelError("rate-limited", "Wait.", { retryAfterMs: 60_000 }));
  for (let count = 0; count < 500; count++) {
    network.say({ id: `u-${count}`, name: `n-${count}`, bot: false }, "[A2A:discover]");
  }
  await settle(600);
  expect(stage.lines).toEqual([expect.stringContaining('"why":"busy"')]);
});

describe("allowPeers", () => {
  test("has ids; a name counts only where no one is authenticated", async () => {
    await open({ allowPeers: ["u-alice", "bob"] });
    network.say(ALICE, "[A2A:task id=t1]\nHello");
    network.say(BOB, "[A2A:task id=t2]\nHello");
    await rest();
    expect(results()).toEqual(["[A2A:result task=t1 state=completed]\nHello"]);
    network = new MemoryNetwork({ clock, verified: false });
    await open({ allowPeers: ["u-alice", "bob"] });
    network.say(BOB, "[A2A:task id=t2 from=u-alice]\nHello");
    network.say({ ...BOB, id: "u-other", name: "other" }, "[A2A:task id=t3 from=u-alice]\nHello");
    await rest();
    expect(results()).toEqual(["[A2A:result task=t2 state=completed]\nHello"]);
  });
});

describe("bots", () => {
  test.each([
    [false, []],
    ["mentions", ["[A2A:result task=t2 state=completed]\nb", "[A2A:result task=t3 state=completed]\nc"]],
    [
      true,
      [
        "[A2A:result task=t1 state=completed]\na",
        "[A2A:result task=t2 state=completed]\nb",
        "[A2A:result task=t3 state=completed]\nc",
      ],
    ],
  ] as const)("with allowBots: %j are served accordingly", async (allowBots, expected) => {
    await open({ allowBots });
    network.say(ROBOT, "[A2A:task id=t1]\na");
    await rest();
    network.say(ROBOT, "[A2A:task id=t2]\nb", MENTION);
    await rest();
    network.say(ROBOT, "[A2A:task id=t3 to=agent]\nc");
    network.say(ROBOT, "unmarked");
    await rest();
    expect(results()).toEqual(expected);
  });

  test("that chat with each other stop by themselves, with and without a network that marks them", async () => {
    for (const verified of [true, false]) {
      network = new MemoryNetwork({ clock, verified, abilities: { replies: false, edits: false } });
      const other = { id: "u-other", name: "other", bot: true };
      await open({ allowBots: true });
      await open({ allowBots: true, as: other });
      network.say(other, "Hello", MENTION);
      for (let minute = 0; minute < 9; minute++) await clock.advance(60_000);
      const count = network.posts.length;
      expect(count).toBeGreaterThan(4);
      expect(count).toBeLessThan(25);
    }
  });

  test("never get an answer to an answer", async () => {
    await open({ allowBots: true });
    for (const text of [
      "[A2A:ack task=t1]",
      "[A2A:status task=t1 state=working]\nHello",
      "[A2A:status task=t1 state=input-required]\nWhich?",
      "[A2A:status task=t1]",
      "[A2A:result task=t1 state=completed]\nHello",
      "[A2A:result task=t1 state=odd]",
      "[A2A:card]\nI am someone.",
    ]) {
      network.say(ROBOT, text, MENTION);
    }
    await rest();
    expect(texts()).toEqual([]);
  });
});

describe("too many messages", () => {
  test("of one peer are served up to ten in ten seconds, with one notice", async () => {
    await open({});
    for (let count = 0; count < 10_000; count++) network.say(ALICE, `[A2A:task id=t${count}]\nHello`);
    await settle(2_000);
    expect(results()).toHaveLength(10);
    expect(texts().filter((text) => text.includes("state=rejected"))).toEqual([
      "[A2A:status task=t10 state=rejected]\nToo many messages: 10 in 10 s are served. Please wait.",
    ]);
    expect(texts()).toHaveLength(31);
    network.say(BOB, "[A2A:task id=b]\nHello");
    await rest();
    expect(results()).toHaveLength(11);
    await clock.advance(10_000);
    network.say(ALICE, "[A2A:task id=again]\nHello");
    await rest();
    expect(results()).toHaveLength(12);
  });

  test.each([
    ["quickly", 2_000, 9, 1],
    ["at the pace of people", 30_000, 40, 5],
  ])(
    "of one person who chats %s are answered up to a limit, with one notice",
    async (_how, everyMs, most, pauseMin) => {
      await open({});
      for (let count = 0; count < most + 5; count++) {
        network.say(ALICE, `Hello ${count}`, DIRECT);
        await clock.advance(everyMs);
      }
      expect(texts()).toHaveLength(most + 1);
      expect(texts().at(-1)).toMatch(
        `stop now, in case two programs talk to each other. I answer again after ${pauseMin} min`,
      );
      await clock.advance(pauseMin * 60_000);
      network.say(ALICE, "Hello again", DIRECT);
      await rest();
      expect(texts().at(-1)).toBe("Hello again");
    },
  );

  test("that came through too many agents are refused", async () => {
    await open({});
    network.say(ALICE, "[A2A:task id=t1 hops=8]\nHello");
    await rest();
    expect(results()).toHaveLength(1);
    network.say(ALICE, "[A2A:task id=t2 hops=9]\nHello");
    await rest();
    expect(texts().at(-1)).toBe(
      "[A2A:status task=t2 state=rejected]\nThe request came through 9 agents, more than the 8 allowed.",
    );
  });
});
