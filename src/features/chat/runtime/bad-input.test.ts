import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { FakeClock, settle } from "../../../core/engine/testing/fake-clock.ts";
import { cases } from "../../../core/model/testing/exploring.ts";
import { createCounter, echo } from "./testing/agents.ts";
import { directRoom, MemoryNetwork } from "./testing/memory-network.ts";
import { AGENT, ALICE, BOB, Stage } from "./testing/stage.ts";

let clock: FakeClock;
let network: MemoryNetwork;

beforeEach(() => {
  clock = new FakeClock();
  network = new MemoryNetwork({ clock });
});

const DIRECT = { room: directRoom(ALICE.id, AGENT.id) };
const texts = () => network.textsOf(AGENT.id);
const rest = () => settle(60);
const open = (options: Partial<Parameters<typeof Stage.open>[1]> = {}) =>
  Stage.open(network, { agent: echo, ...options, clock });

describe("a marker that cannot be used", () => {
  test.each([
    ["[A2A:task]\nHello", "[A2A:status task=unknown state=rejected]\ntask needs id"],
    ["[A2A:cancel]", "[A2A:status task=unknown state=rejected]\ncancel needs task"],
    ["[A2A:task id=t1 hops=many]\nHello", "[A2A:status task=t1 state=rejected]\nhops must be a number"],
    ["[A2A:task id=t1 id=t2]\nHello", expect.stringMatching(/^\[A2A:status task=t1 state=rejected\]\n/)],
    ["[A2A:task id=t1 mid=m part=1/9999]\nHello", "[A2A:status task=t1 state=rejected]\nmore than 256 pieces"],
    [`[A2A:task id=${"x".repeat(300)}]\nHello`, expect.stringMatching(/^\[A2A:status task=unknown state=rejected\]\n/)],
    ["[A2A:task id=t\u200b1]\nHello", expect.stringMatching(/^\[A2A:status task=unknown state=rejected\]\n/)],
    ["[A2A:task id=t1\u202e]\nHello", expect.stringMatching(/^\[A2A:status task=\S+ state=rejected\]\n/)],
  ])("is refused politely: %j", async (text, expected) => {
    await open();
    network.say(ALICE, text);
    await rest();
    expect(texts()).toEqual([expected]);
  });

  test.each(["[A2A:task to=bob]\nHello", "[A2A:task id=t1 to=@bob hops=many]", "[A2A:cancel to=bob to=agent]"])(
    "is ignored if it is for someone else: %j",
    async (text) => {
      await open();
      network.say(ALICE, text);
      await rest();
      expect(texts()).toEqual([]);
    },
  );

  test.each([
    "[A2A:task id=t1",
    "[A2A:dance id=t1]",
    "[A2A task id=t1]",
    "> [A2A:task id=t1]",
    "```\n[A2A:task id=t1]\n```",
  ])("is chat: %j", async (text) => {
    await open();
    network.say(ALICE, text);
    await rest();
    expect(texts()).toEqual([]);
    network.say(ALICE, text, DIRECT);
    await rest();
    expect(texts()).toHaveLength(1);
    expect(texts()[0]).not.toMatch(/^\[A2A:/);
  });
});

test("the id of another peer's task says nothing of that task", async () => {
  const { agent } = createCounter();
  await open({ agent });
  network.say(ALICE, "[A2A:task id=secret-1]\nCount");
  await rest();
  const before = texts().length;
  network.say(BOB, "[A2A:cancel task=secret-1]");
  network.say(BOB, "[A2A:cancel task=secret-2]");
  await rest();
  expect(texts().slice(before)).toEqual([
    "[A2A:status task=secret-1 state=rejected]\nTask not found.",
    "[A2A:status task=secret-2 state=rejected]\nTask not found.",
  ]);
});

describe("pieces", () => {
  const piece = (part: number, of = 3, text = `<${part}>`) => `[A2A:task id=t1 mid=m1 part=${part}/${of}]\n${text}`;

  test("are joined in any order, however often they come", async () => {
    await open();
    for (const part of [3, 3, 1, 3, 2, 2]) network.say(ALICE, piece(part));
    await rest();
    expect(texts().filter((text) => text.startsWith("[A2A:result"))).toEqual([
      "[A2A:result task=t1 state=completed]\n<1><2><3>",
    ]);
    expect(texts()).toHaveLength(3);
  });

  test("of a message that is too long are refused once", async () => {
    await open();
    for (let part = 1; part <= 30; part++) network.say(ALICE, piece(part, 30, "x".repeat(100_000)));
    await rest();
    expect(texts()).toEqual(["[A2A:status task=t1 state=rejected]\nthe message is too long"]);
  });

  test("of many messages that never end cause nothing", async () => {
    await open();
    for (let count = 0; count < 10_000; count++) {
      network.say(ALICE, `[A2A:task id=t${count} mid=m${count} part=1/200]\n${"x".repeat(1_000)}`);
    }
    await rest();
    expect(texts()).toEqual([]);
    network.say(ALICE, piece(1, 1));
    await rest();
    expect(texts()).toHaveLength(3);
  });
});

test("a message of 10,000 lines is served", async () => {
  await open();
  const long = Array.from({ length: 10_000 }, (_, line) => `line ${line}`).join("\n");
  network.say(ALICE, `[A2A:task id=t1]\n${long}`);
  await rest();
  const result = network.posts.at(-1);
  expect(result?.text).toMatch(/^\[A2A:result task=t1 state=completed artifacts=t1\.md\]\n/);
  expect(Buffer.from(result?.files[0]?.bytes ?? []).toString()).toBe(long);
});

test("whatever is posted, the agent survives and posts a bounded number of answers", async () => {
  const word = fc.constantFrom(
    "[A2A:",
    "task",
    "cancel",
    "discover",
    "status",
    " id=",
    " task=",
    "t1",
    "]",
    "\n",
    "part=1/2",
    " mid=m",
    "@agent ",
    '"',
    "\u202e",
    "［Ａ２Ａ：",
    " state=completed",
  );
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.array(word, { maxLength: 12 }).map((words) => words.join("")),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ text, direct: fc.boolean(), bob: fc.boolean() }), { maxLength: 30 }),
      async (said) => {
        clock = new FakeClock();
        network = new MemoryNetwork({ clock });
        const stage = await open();
        for (const { bob, direct, text: one } of said) {
          network.say(bob ? BOB : ALICE, one, direct && !bob ? DIRECT : { mentions: [AGENT.id] });
        }
        await settle(40);
        expect(texts().length).toBeLessThanOrEqual(2 * (3 * 10 + 1));
        expect(stage.lines.filter((line) => line.startsWith("A post could not be served."))).toEqual([]);
        network.say({ ...BOB, id: "u-new" }, "[A2A:task id=still-there]\nHello");
        await rest();
        expect(texts().at(-1)).toBe("[A2A:result task=still-there state=completed]\nHello");
        await stage.stop();
      },
    ),
    { numRuns: cases(1_000, 30) },
  );
});
