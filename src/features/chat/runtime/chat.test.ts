import { beforeEach, describe, expect, test } from "vitest";
import { defineAgent } from "../../../core/agents/define.ts";
import { FakeClock, settle } from "../../../core/engine/testing/fake-clock.ts";
import { ChannelError } from "../../../core/wire/channel.ts";
import { asker, createCounter, echo } from "./testing/agents.ts";
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

const posted = () => network.posts.filter(({ by }) => by === AGENT.id);
const texts = () => network.textsOf(AGENT.id);
const rest = () => settle(60);
const open = (options: Omit<Parameters<typeof Stage.open>[1], "clock">) => Stage.open(network, { ...options, clock });

/** Answers with the name of its conversation. */
const context = defineAgent({
  name: "Context",
  description: "Names its conversation.",
  async *run(turn) {
    yield turn.completed(turn.task.contextId);
  },
});

describe("plain language", () => {
  test("is answered if it is a direct message, a mention or a reply, and ignored if not", async () => {
    await open({ agent: echo });
    network.say(ALICE, "Who is there?");
    const direct = network.say(ALICE, "Hello", DIRECT);
    await rest();
    const mention = network.say(ALICE, "<@u-agent> Hello again", MENTION);
    await rest();
    const reply = network.say(BOB, "Me too", { replyTo: posted().at(-1)?.id });
    network.say(BOB, "Not you", { replyTo: direct.id });
    await rest();
    expect(posted().map(({ replyTo, room, text }) => [room, text, replyTo])).toEqual([
      [DIRECT.room, "Hello", direct.id],
      ["lobby", "Hello again", mention.id],
      ["lobby", "Me too", reply.id],
    ]);
  });

  test("is answered with what the agent wrote while it worked, if it asks or ends without a message", async () => {
    const agent = defineAgent({
      name: "Worker",
      description: "Writes all of its answer into statuses.",
      async *run(turn) {
        yield turn.working(`About ${turn.text}:`);
        yield turn.working("it is 330 m.");
        if (turn.history.length === 0) yield { ...turn.inputRequired(""), message: undefined };
      },
    });
    await open({ agent });
    const asked = network.say(ALICE, "Eiffel", DIRECT);
    await rest();
    network.say(ALICE, "again", { ...DIRECT, replyTo: asked.id });
    await rest();
    expect(texts()).toEqual(["About Eiffel:\nit is 330 m.", "About again:\nit is 330 m."]);
  });

  test("is for the agent if it replies to one's own request, and not if to another's", async () => {
    await open({ agent: echo });
    const asked = network.say(ALICE, "<@u-agent> Hello", MENTION);
    await rest();
    network.say(BOB, "I agree", { replyTo: asked.id });
    network.say(ALICE, "And again", { replyTo: asked.id });
    await rest();
    expect(texts()).toEqual(["Hello", "And again"]);
  });

  test("is read without the agent's name, and with a longer one that begins with it", async () => {
    await open({ agent: echo });
    for (const text of ["@agent: Hello", "agent, Hello", "@agents: Hello", "agent：写", "@agent写", "agent，写"])
      network.say(ALICE, text, MENTION);
    await rest();
    expect(texts()).toEqual(["Hello", "Hello", "@agents: Hello", "写", "写", "写"]);
  });

  test("is answered with text, without the data beside it; data alone is shown, and agents that accept it get both", async () => {
    const outline = defineAgent({
      name: "Outline",
      description: "Has text and data.",
      async *run(turn) {
        const data = { data: { points: [1] } };
        yield turn.artifact({ parts: turn.text === "data" ? [data] : [{ text: "1. Tea" }, data] });
      },
    });
    await open({ agent: outline });
    network.say(ALICE, "Tea", DIRECT);
    network.say(ALICE, "data", DIRECT);
    network.say(ALICE, "[A2A:task id=t1]\nTea");
    network.say(ALICE, "[A2A:task id=t2 accept=json]\nTea");
    await rest();
    const block = '```json\n{\n  "points": [\n    1\n  ]\n}\n```';
    expect(texts().filter((text) => !/A2A:(ack|status)/.test(text))).toEqual([
      "1. Tea",
      block,
      "[A2A:result task=t1 state=completed]\n1. Tea",
      `[A2A:result task=t2 state=completed]\n1. Tea\n${block}`,
    ]);
  });

  test("is answered in pages where there are no files, and `more` shows the next one", async () => {
    const rate = { posts: 2, perMs: 5_000 };
    network = new MemoryNetwork({ clock, abilities: { lines: false, maxFileBytes: 0, edits: false, rate } });
    await open({ agent: echo });
    const lines = Array.from({ length: 9 }, (_, index) => `line ${index + 1}`);
    const say = async (text: string) => {
      network.say(ALICE, text, DIRECT);
      await clock.advance(60_000);
      return texts();
    };
    const first = await say(lines.join("\n"));
    expect(first).toEqual([...lines.slice(0, 4), "(5 more posts: write “more” to me.)"]);
    expect((await say("more")).slice(5)).toEqual([...lines.slice(4, 8), "(1 more post: write “more” to me.)"]);
    expect((await say("More!")).slice(10)).toEqual(["line 9"]);
    expect((await say("more")).slice(11)).toEqual(["more"]);
  });

  test("shows a page again that could not be posted, and one page for two requests at a time", async () => {
    const rate = { posts: 2, perMs: 5_000 };
    network = new MemoryNetwork({ clock, abilities: { lines: false, maxFileBytes: 0, edits: false, rate } });
    await open({ agent: echo });
    const lines = Array.from({ length: 9 }, (_, index) => `line ${index + 1}`);
    const say = async (...said: readonly string[]) => {
      const before = texts().length;
      for (const text of said) network.say(ALICE, text, DIRECT);
      await clock.advance(60_000);
      return texts().slice(before);
    };
    await say(lines.join("\n"));
    network.failures.push(new ChannelError("refused", "No."));
    expect(await say("more")).toEqual([]);
    expect(await say("more", "more")).toEqual([...lines.slice(4, 8), expect.stringContaining("1 more post")]);
    expect(await say("more")).toEqual(["line 9"]);
  });

  test("with nothing but a name is ignored", async () => {
    await open({ agent: echo });
    network.say(ALICE, "@agent", MENTION);
    await rest();
    expect(texts()).toEqual([]);
  });

  test("belongs to the conversation of its thread, its peer, or the post that it replies to", async () => {
    await open({ agent: context });
    const say = async (...[by, more]: [typeof ALICE, Parameters<MemoryNetwork["say"]>[2]]) => {
      network.say(by, "Hello", more);
      await rest();
      return texts().at(-1);
    };
    const room = await say(ALICE, MENTION);
    expect(await say(ALICE, MENTION)).toBe(room);
    expect(await say(BOB, { replyTo: posted().at(-1)?.id })).toBe(room);
    const bob = await say(BOB, MENTION);
    const thread = await say(ALICE, { ...MENTION, thread: "th1" });
    expect(await say(BOB, { ...MENTION, thread: "th1" })).toBe(thread);
    const direct = await say(ALICE, DIRECT);
    expect(new Set([room, bob, thread, direct]).size).toBe(4);
  });

  test("can be a question, and what the same person writes next is the answer", async () => {
    await open({ agent: asker });
    network.say(ALICE, "Paint", DIRECT);
    network.say(BOB, "Paint", MENTION);
    await rest();
    expect(texts()).toEqual(["Which colour?", "Which colour?"]);
    network.say(ALICE, "red", DIRECT);
    await rest();
    expect(posted().at(-1)).toMatchObject({ text: "It is red.", room: DIRECT.room });
    network.say(BOB, "blue", { replyTo: posted()[1]?.id });
    await rest();
    expect(posted().at(-1)).toMatchObject({ text: "It is blue.", room: "lobby" });
  });

  test("of someone else does not answer a question, and ends nothing", async () => {
    await open({ agent: asker });
    const asked = network.say(ALICE, "Paint", MENTION);
    await rest();
    const question = posted()[0]?.id;
    for (const text of ["blue", "cancel"]) network.say(BOB, text, { replyTo: question });
    await rest();
    expect(posted().filter(({ replyTo }) => replyTo === asked.id)).toHaveLength(1);
    network.say(ALICE, "red", { replyTo: question });
    await rest();
    expect(texts().at(-1)).toBe("It is red.");
  });

  test("is answered by all agents that it mentions, each in conversations of its own", async () => {
    await open({ agent: asker });
    await open({ agent: asker, as: ROBOT });
    const [both, one] = [
      network.say(ALICE, "Both of you", { mentions: [AGENT.id, ROBOT.id, AGENT.id] }),
      network.say(BOB, "And I", { mentions: [ROBOT.id] }),
    ];
    await rest();
    const questions = network.posts.filter(({ text }) => text === "Which colour?");
    expect(questions.map(({ by, replyTo }) => [by, replyTo]).sort()).toEqual([
      [AGENT.id, both.id],
      [ROBOT.id, both.id],
      [ROBOT.id, one.id],
    ]);
    for (const { by, id, replyTo } of questions) {
      network.say(replyTo === both.id ? ALICE : BOB, `${by}-${replyTo}`, { replyTo: id });
    }
    await rest();
    const answers = network.posts.filter(({ text }) => text.startsWith("It is "));
    expect(answers.map(({ by, text }) => [by, text]).sort()).toEqual([
      [AGENT.id, `It is ${AGENT.id}-${both.id}.`],
      [ROBOT.id, `It is ${ROBOT.id}-${both.id}.`],
      [ROBOT.id, `It is ${ROBOT.id}-${one.id}.`],
    ]);
  });

  test.each(["cancel", "Cancel.", "取消"])("of %j ends what the agent does", async (word) => {
    const { agent } = createCounter();
    await open({ agent });
    const asked = network.say(ALICE, "Count", MENTION);
    await rest();
    network.say(BOB, word, { replyTo: asked.id });
    await rest();
    const before = posted().length;
    network.say(ALICE, word, { replyTo: asked.id });
    await rest();
    expect(texts().slice(before)).toEqual(["Cancelled."]);
  });

  test("of a cancellation is a message if there is nothing to cancel", async () => {
    await open({ agent: echo });
    network.say(ALICE, "cancel", DIRECT);
    await rest();
    expect(texts()).toEqual(["cancel"]);
  });

  test("gets progress in one post that is edited, then the answer", async () => {
    const { agent, step } = createCounter(2);
    await open({ agent });
    const asked = network.say(ALICE, "Count", MENTION);
    await clock.advance(1_000);
    step();
    await clock.advance(1_000);
    step();
    await clock.advance(1_000);
    expect(posted().map(({ edits, replyTo, text }) => [text, replyTo, edits])).toEqual([
      ["Step 1 of 2, 50%", asked.id, undefined],
      ["Step 2 of 2, 100%", asked.id, posted()[0]?.id],
      ["2!", asked.id, undefined],
    ]);
  });

  test("gets the answer alone where posts cannot be edited, with the name of who asked", async () => {
    network = new MemoryNetwork({ clock, abilities: { edits: false, replies: false, lines: false, maxFileBytes: 0 } });
    const { agent, step } = createCounter(2);
    await open({ agent });
    network.say(ALICE, "agent: Count", MENTION);
    await rest();
    step();
    await rest();
    step();
    await rest();
    expect(posted()).toMatchObject([{ text: "2!", mentions: [ALICE.id] }]);
  });

  test("is never answered with a marker, whatever the agent writes", async () => {
    await open({ agent: echo });
    network.say(ALICE, "say [A2A:cancel task=t1]", DIRECT);
    network.say(ALICE, "\\[A2A:cancel task=t1]", DIRECT);
    await rest();
    expect(texts()).toEqual(["say \\[A2A:cancel task=t1]", "\\[A2A:cancel task=t1]"]);
  });

  test("gets a sentence if the agent fails", async () => {
    const agent = defineAgent({
      name: "Broken",
      description: "Breaks.",
      // biome-ignore lint/correctness/useYield: it fails before it has anything to say.
      async *run() {
        throw new Error("secret");
      },
    });
    await open({ agent });
    network.say(ALICE, "Hello", DIRECT);
    await rest();
    expect(texts()).toEqual(["The agent failed while it worked on this message."]);
  });

  test("in an edit is not answered once more", async () => {
    await open({ agent: echo });
    const first = network.say(ALICE, "Hello", DIRECT);
    network.say(ALICE, "Hallo", { ...DIRECT, edits: first.id });
    await rest();
    expect(texts()).toEqual(["Hello"]);
  });
});
