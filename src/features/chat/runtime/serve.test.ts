import { beforeEach, describe, expect, test } from "vitest";
import { defineAgent } from "../../../core/agents/define.ts";
import { FakeClock, settle } from "../../../core/engine/testing/fake-clock.ts";
import { ChannelError } from "../../../core/wire/channel.ts";
import { asker, createCounter, echo } from "./testing/agents.ts";
import { directRoom, MemoryNetwork } from "./testing/memory-network.ts";
import { AGENT, ALICE, BOB, Stage } from "./testing/stage.ts";

/** As IRC is: one line, no files, edits or replies. */
const PLAIN = {
  text: { max: 400, unit: "bytes" },
  lines: false,
  maxFileBytes: 0,
  edits: false,
  replies: false,
} as const;

let clock: FakeClock;
let network: MemoryNetwork;

beforeEach(() => {
  clock = new FakeClock();
  network = new MemoryNetwork({ clock });
});

const posted = () => network.posts.filter(({ by }) => by === AGENT.id);
const texts = () => network.textsOf(AGENT.id);

/** Lets everything happen that needs no time. */
const rest = () => settle(60);

const open = (options: Omit<Parameters<typeof Stage.open>[1], "clock">) => Stage.open(network, { ...options, clock });

describe("discover", () => {
  test("is answered with the card, in prose and as JSON", async () => {
    await open({ agent: echo });
    const asked = network.say(ALICE, "[A2A:discover]");
    await rest();
    expect(posted()).toMatchObject([{ room: "lobby", replyTo: asked.id }]);
    expect(texts()[0]).toMatch(/^\[A2A:card\]\n.*Echo[\s\S]*Repeats what it is asked\.[\s\S]*```json\n/);
    const json = /```json\n([\s\S]*?)\n```/.exec(texts()[0] ?? "")?.[1] ?? "";
    expect(JSON.parse(json)).toMatchObject({ protocol: "a2a-lite/1.0", skills: [{ id: "repeat" }] });
  });
});

describe("a task", () => {
  test("is acknowledged, accepted and answered, as replies to its post", async () => {
    await open({ agent: echo });
    const asked = network.say(ALICE, "[A2A:task id=t1 skill=repeat]\nHello\nworld");
    await rest();
    expect(texts()).toEqual([
      "[A2A:ack task=t1]",
      "[A2A:status task=t1 state=accepted]",
      "[A2A:result task=t1 state=completed]\nrepeat: Hello\nworld",
    ]);
    expect(posted().every(({ replyTo }) => replyTo === asked.id)).toBe(true);
  });

  test("is answered in the thread and in the direct conversation that it was given in", async () => {
    await open({ agent: echo });
    network.say(ALICE, "[A2A:task id=t1] a", { thread: "th1" });
    network.say(ALICE, "[A2A:task id=t1] b", { room: directRoom(ALICE.id, AGENT.id) });
    await rest();
    const results = posted().filter(({ text }) => text.startsWith("[A2A:result"));
    expect(results).toMatchObject([
      { room: "lobby", thread: "th1", text: expect.stringMatching(/a$/) },
      { room: directRoom(ALICE.id, AGENT.id), text: expect.stringMatching(/b$/) },
    ]);
  });

  test("names who an answer is for where there are no replies", async () => {
    network = new MemoryNetwork({ clock, abilities: PLAIN });
    await open({ agent: echo });
    network.say(ALICE, "[A2A:task id=t1] Hello\\nworld");
    await rest();
    expect(texts()).toEqual([
      "[A2A:ack task=t1 to=alice]",
      "[A2A:status task=t1 state=accepted to=alice]",
      "[A2A:result task=t1 state=completed to=alice] Hello\\nworld",
    ]);
  });

  test("shows its progress in one post that is edited at most once a second", async () => {
    const { agent, step } = createCounter(4);
    await open({ agent });
    network.say(ALICE, "[A2A:task id=t1]\nCount");
    await rest();
    step();
    await clock.advance(100);
    step();
    await clock.advance(100);
    expect(texts()).toHaveLength(2);
    await clock.advance(800);
    const status = posted()[1];
    expect(posted().slice(2)).toMatchObject([
      { edits: status?.id, text: "[A2A:status task=t1 state=working progress=75%]\nStep 3 of 4, 75%" },
    ]);
    step();
    await clock.advance(1_000);
    step();
    await rest();
    expect(texts().slice(3)).toEqual([
      "[A2A:status task=t1 state=working progress=100%]\nStep 4 of 4, 100%",
      "[A2A:result task=t1 state=completed]\n4!",
    ]);
    expect(posted().map(({ edits }) => edits !== undefined)).toEqual([false, false, true, true, false]);
  });

  test("shows its progress in few posts where they cannot be edited", async () => {
    network = new MemoryNetwork({ clock, abilities: PLAIN });
    const { agent, step } = createCounter(50);
    await open({ agent });
    network.say(ALICE, "[A2A:task id=t1] Count");
    for (let count = 0; count < 50; count++) {
      await clock.advance(390);
      step();
    }
    await rest();
    expect(texts().map((text) => text.replace(/ to=.*/, ""))).toEqual([
      "[A2A:ack task=t1",
      "[A2A:status task=t1 state=accepted",
      "[A2A:status task=t1 state=working progress=2%",
      "[A2A:status task=t1 state=working progress=52%",
      "[A2A:result task=t1 state=completed",
    ]);
  });

  test("leaves room for its result where few posts are accepted", async () => {
    network = new MemoryNetwork({ clock, abilities: { rate: { posts: 20, perMs: 60_000 } } });
    const { agent, step } = createCounter(100);
    await open({ agent });
    network.say(ALICE, "[A2A:task id=t1]\nCount");
    for (let count = 0; count < 100; count++) {
      await clock.advance(1_000);
      step();
    }
    await clock.advance(1_000);
    expect(texts().at(-1)).toBe("[A2A:result task=t1 state=completed]\n100!");
    expect(texts().length).toBeLessThan(22);
  });

  test("gets a new status if the old one was deleted", async () => {
    const { agent, step } = createCounter();
    await open({ agent });
    network.say(ALICE, "[A2A:task id=t1]\nCount");
    await rest();
    network.failures.push(new ChannelError("refused", "Unknown message."));
    await clock.advance(2_000);
    step();
    await clock.advance(2_000);
    const [first, second] = posted().slice(2);
    expect(first).toMatchObject({ text: expect.stringContaining("Step 1 of 3") });
    expect(first).not.toHaveProperty("edits");
    expect(second).toMatchObject({ text: expect.stringContaining("Step 2 of 3"), edits: first?.id });
    expect(posted()).toHaveLength(4);
  });

  test("shows a status later that the network does not accept now", async () => {
    const { agent } = createCounter();
    await open({ agent });
    network.say(ALICE, "[A2A:task id=t1]\nCount");
    await rest();
    network.failures.push(new ChannelError("rate-limited", "Wait.", { retryAfterMs: 100 }));
    await clock.advance(1_000);
    expect(posted()).toHaveLength(2);
    await clock.advance(1_000);
    expect(posted().slice(2)).toMatchObject([{ text: expect.stringContaining("Step 1 of 3") }]);
  });

  test("shows streamed text in the status", async () => {
    const { agent, step } = createWriter();
    await open({ agent });
    network.say(ALICE, "[A2A:task id=t1]\nWrite");
    await clock.advance(1_000);
    step();
    await clock.advance(1_000);
    step();
    await clock.advance(1_000);
    expect(texts().slice(1)).toEqual([
      "[A2A:status task=t1 state=accepted]",
      "[A2A:status task=t1 state=working]\none ",
      "[A2A:status task=t1 state=working]\none two ",
      "[A2A:result task=t1 state=completed]\none two three",
    ]);
  });

  test("that asks is answered by its marker, and the same id of another peer is another task", async () => {
    await open({ agent: asker });
    network.say(ALICE, "[A2A:task id=t1]\nPaint");
    network.say(BOB, "[A2A:task id=t1]\nPaint");
    await rest();
    expect(texts().filter((text) => text.includes("Which colour?"))).toEqual([
      "[A2A:status task=t1 state=input-required]\nWhich colour?",
      "[A2A:status task=t1 state=input-required]\nWhich colour?",
    ]);
    const answer = network.say(BOB, "[A2A:task id=t1]\nblue");
    await rest();
    expect(posted().at(-1)).toMatchObject({
      text: "[A2A:result task=t1 state=completed]\nIt is blue.",
      replyTo: answer.id,
    });
    network.say(ALICE, "[A2A:task id=t1]\nred");
    await rest();
    expect(
      texts()
        .filter((text) => text.startsWith("[A2A:result"))
        .map((text) => text.split("\n")[1]),
    ).toEqual(["It is blue.", "It is red."]);
  });

  test.each([
    ["a reply", (question: string) => ({ replyTo: question })],
    ["a mention", () => ({ mentions: [AGENT.id] })],
  ])("that asks is answered by %s in plain language", async (_, more) => {
    await open({ agent: asker });
    network.say(ALICE, "[A2A:task id=t1]\nPaint");
    await rest();
    const question = posted().at(-1)?.id ?? "";
    network.say(BOB, "green", more(question));
    await rest();
    expect(texts().some((text) => text.includes("green"))).toBe(false);
    network.say(ALICE, "blue", more(question));
    await rest();
    expect(texts().at(-1)).toBe("[A2A:result task=t1 state=completed]\nIt is blue.");
  });

  test("that asks in a thread is answered there without a mention", async () => {
    await open({ agent: asker });
    network.say(ALICE, "[A2A:task id=t1]\nPaint", { thread: "th1" });
    await rest();
    network.say(ALICE, "not this", { thread: "th2" });
    network.say(ALICE, "blue", { thread: "th1" });
    await rest();
    expect(texts().at(-1)).toBe("[A2A:result task=t1 state=completed]\nIt is blue.");
  });

  test.each([
    ["the marker", "[A2A:task id=t1]\nblue"],
    ["plain language", "blue"],
  ])("that asks is answered by %s in a thread that begins at its request", async (_, text) => {
    await open({ agent: asker });
    const asked = network.say(ALICE, "[A2A:task id=t1]\nPaint");
    await rest();
    network.say(BOB, text, { thread: asked.id });
    await rest();
    expect(texts().some((one) => one.includes("It is blue."))).toBe(false);
    network.say(ALICE, text, { thread: asked.id });
    await rest();
    expect(posted().at(-1)).toMatchObject({
      text: "[A2A:result task=t1 state=completed]\nIt is blue.",
      thread: asked.id,
    });
  });

  test("is cancelled by the peer that gave it, and by no other", async () => {
    const { agent } = createCounter();
    await open({ agent });
    network.say(ALICE, "[A2A:task id=t1]\nCount");
    await rest();
    network.say(BOB, "[A2A:cancel task=t1]");
    await rest();
    expect(texts().at(-1)).toBe("[A2A:status task=t1 state=rejected]\nTask not found.");
    network.say(ALICE, "[A2A:cancel task=t1 reason=late]");
    await rest();
    expect(texts().at(-1)).toMatch(/^\[A2A:result task=t1 state=cancelled\]/);
    network.say(ALICE, "[A2A:cancel task=t1]");
    await rest();
    expect(texts().at(-1)).toBe("[A2A:status task=t1 state=cancelled]\nThe task cannot be cancelled: it has ended.");
  });

  test("is answered by its result alone where the network accepts few posts", async () => {
    network = new MemoryNetwork({
      clock,
      bucket: { burst: 10, perSecond: 0.2 },
      abilities: { rate: { posts: 10, perMs: 10_000 } },
    });
    await open({ agent: echo });
    for (let count = 0; count < 7; count++) {
      network.say(ALICE, `[A2A:task id=a${count}]\nTea`);
      network.say(BOB, `[A2A:task id=b${count}]\nTea`);
    }
    await clock.advance(25_000);
    expect(texts()).toHaveLength(14);
    expect(new Set(texts().map((text) => text.replace(/task=\w+/, "task")))).toEqual(
      new Set(["[A2A:result task state=completed]\nTea"]),
    );
  });

  test("is acknowledged, and its progress shown, where it takes long although the network accepts few posts", async () => {
    network = new MemoryNetwork({ clock, abilities: { rate: { posts: 1, perMs: 1_000 } } });
    const { agent, step } = createCounter(1);
    await open({ agent });
    network.say(ALICE, "[A2A:task id=t1]\nCount");
    await clock.advance(10_000);
    step();
    await clock.advance(1_000);
    expect(texts()).toEqual([
      "[A2A:ack task=t1]",
      "[A2A:status task=t1 state=working progress=100%]\nStep 1 of 1, 100%",
      "[A2A:result task=t1 state=completed]\n1!",
    ]);
  });

  test("that is given twice runs once; other text for it is a further message", async () => {
    const { agent, runs, step } = createCounter(1);
    await open({ agent });
    network.say(ALICE, "[A2A:task id=t1]\nCount");
    await rest();
    network.say(ALICE, "[A2A:task id=t1]\nCount");
    await rest();
    expect(texts().filter((text) => text === "[A2A:ack task=t1]")).toHaveLength(2);
    step();
    await clock.advance(1_000);
    expect(runs()).toBe(1);
    network.say(ALICE, "[A2A:task id=t1]\nCount");
    await rest();
    expect(texts().slice(-2)).toEqual(Array(2).fill("[A2A:result task=t1 state=completed]\n1!"));
    expect(runs()).toBe(1);
    network.say(ALICE, "[A2A:task id=t1]\nCount again");
    await rest();
    expect(runs()).toBe(2);
  });

  test("has the files of its post, and its result has files", async () => {
    await open({ agent: fileAgent });
    const bytes = new TextEncoder().encode("from alice");
    network.say(ALICE, "[A2A:task id=t1]\nRead\n[附件: in.txt]", {
      files: [{ name: "in.txt", mediaType: "text/plain", bytes }],
    });
    await rest();
    const result = posted().at(-1);
    expect(result?.text).toBe("[A2A:result task=t1 state=completed artifacts=out.txt]\nHere.\n[附件: out.txt]");
    expect(result?.files.map(({ bytes: sent, name }) => [name, Buffer.from(sent).toString()])).toEqual([
      ["out.txt", "in.txt: from alice"],
    ]);
  });

  test("has its text if the network refuses its files", async () => {
    await open({ agent: fileAgent });
    network.say(ALICE, "[A2A:task id=t1]\nRead");
    await settle(1);
    network.failures.push("keep", "keep", new ChannelError("refused", "No files today."));
    await rest();
    expect(texts().at(-1)).toBe("[A2A:result task=t1 state=completed]\nHere.\n\n(The network refuses out.txt.)");
  });

  test("has the text of its files where there are none, in pieces", async () => {
    network = new MemoryNetwork({ clock, abilities: PLAIN });
    await open({ agent: echo });
    const long = "word ".repeat(400).trim();
    network.say(ALICE, `[A2A:task id=t1 mid=m1 part=1/2] ${long.slice(0, 1_000)}`);
    network.say(ALICE, `[A2A:task id=t1 mid=m1 part=2/2] ${long.slice(1_000)}`);
    await rest();
    const pieces = texts().filter((text) => text.startsWith("[A2A:result"));
    expect(pieces.length).toBeGreaterThan(3);
    expect(pieces[0]).toMatch(/^\[A2A:result task=t1 state=completed to=alice mid=\S+ part=1\/\d+\] word/);
    expect(pieces.map((text) => text.slice(text.indexOf("] ") + 2)).join("")).toBe(long);
  });

  test("becomes a file if its result is long, where there are files", async () => {
    await open({ agent: echo });
    const long = "word ".repeat(3_000).trim();
    network.say(ALICE, `[A2A:task id=t1]\n${long}`);
    await rest();
    const result = posted().at(-1);
    expect(result?.text).toMatch(
      /^\[A2A:result task=t1 state=completed artifacts=t1\.md\]\nword word[\s\S]*…\n\[附件: t1\.md\]$/,
    );
    expect(Buffer.from(result?.files[0]?.bytes ?? []).toString()).toBe(long);
  });

  test("for another agent is ignored", async () => {
    await open({ agent: echo });
    network.say(ALICE, "[A2A:task id=t1 to=other]\nHello");
    network.say(ALICE, "[A2A:discover to=other]");
    network.say(ALICE, "[A2A:task id=t2]\nHello", { mentions: ["u-other"] });
    network.say(ALICE, "other: [A2A:task id=t2]\nHello");
    await rest();
    expect(texts()).toEqual([]);
    network.say(ALICE, "[A2A:task id=t3 to=agent from=someone]\nHello");
    await rest();
    expect(texts()).toHaveLength(3);
  });
});

const fileAgent = defineAgent({
  name: "Files",
  description: "Reads and makes files.",
  async *run(turn) {
    const [file] = turn.message.parts.flatMap((part) => ("raw" in part ? [part] : []));
    const text = `${file?.filename}: ${Buffer.from(file?.raw ?? "", "base64")}`;
    const raw = Buffer.from(text).toString("base64");
    yield turn.artifact({
      name: "out",
      parts: [{ text: "Here." }, { raw, filename: "out.txt", mediaType: "text/plain" }],
    });
  },
});

function createWriter() {
  const waiting: (() => void)[] = [];
  const agent = defineAgent({
    name: "Writer",
    description: "Writes.",
    async *run(turn) {
      for (const [index, text] of ["one ", "two ", "three"].entries()) {
        yield turn.artifact({ name: "text", text, append: index > 0 });
        if (index < 2) await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
  });
  return { agent, step: () => waiting.shift()?.() };
}
