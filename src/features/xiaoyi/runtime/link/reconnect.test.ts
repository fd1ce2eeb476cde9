import { describe, expect, it } from "vitest";
import type { Agent } from "../../../../core/engine/agent.ts";
import { agentOf, chunk, createGate, echo, inputText, status } from "../../../../core/engine/testing/agents.ts";
import { settle } from "../../../../core/engine/testing/fake-clock.ts";
import { DEFAULT_LINK_TIMES } from "./options.ts";
import { AGENT_ID, message, Stage } from "./testing/stage.ts";

/** Says one word after the other, each when it is told to. */
function speaker(words: readonly string[], onCrash: Agent["onCrash"] = "fail") {
  const gates = words.map(() => createGate());
  const agent = agentOf(
    async function* () {
      for (const [index, word] of words.entries()) {
        await gates[index]?.pass();
        yield chunk("out", word, index > 0);
      }
    },
    { onCrash },
  );
  return {
    agent,
    say: async (index: number) => {
      gates[index]?.open();
      await settle(20);
    },
  };
}

const finals = (story: readonly string[]) => story.filter((line) => line.endsWith("final"));

describe("a link that closes", () => {
  it("loses nothing that is sent meanwhile: the next one introduces itself and continues", async () => {
    const { agent, say } = speaker(["a", "b", "c", "d"]);
    const stage = await Stage.open({ agent });
    const first = stage.connect();
    await first.say(message("go", { taskId: "t" }));
    await say(0);
    await stage.clock.advance(5_000);
    await first.close();
    await say(1);
    await say(2);
    const second = stage.connect();
    await settle();
    expect(second.raw[0]).toBe(`{"msgType":"clawd_bot_init","agentId":"${AGENT_ID}"}`);
    expect(second.story("t")).toEqual(["=abc"]);
    await say(3);
    await stage.clock.advance(1_000);
    expect(second.story("t")).toEqual(["=abc", "=abcd", "completed final"]);
  });

  it("with the end of an answer unconfirmed sends all of it again, however it closed", async () => {
    for (const code of [1000, 1001, 1006]) {
      const stage = await Stage.open({ agent: echo() });
      const first = stage.connect();
      await settle();
      first.sleep();
      await first.say(message("hello", { taskId: "t" }));
      expect(finals(first.story("t"))).toEqual([]);
      await first.close(code);
      const second = stage.connect();
      await stage.clock.advance(1_000);
      expect(second.story("t")).toEqual(["working", "=()", "=hello", "completed final"]);
    }
  });

  it("does not repeat what the platform has confirmed", async () => {
    const stage = await Stage.open({ agent: echo() });
    const first = stage.connect();
    await first.say(message("hello", { taskId: "t" }));
    await stage.clock.advance(50);
    await first.tear();
    const second = stage.connect();
    await stage.clock.advance(60_000);
    expect(finals(first.story("t"))).toEqual(["completed final"]);
    expect(second.answers).toEqual([]);
  });

  it("in the middle of an answer that is longer than a frame tells it from its beginning", async () => {
    const { agent, say } = speaker(["x".repeat(3_000), "y".repeat(3_000), "z".repeat(3_000)]);
    const stage = await Stage.open({ agent });
    const first = stage.connect();
    await first.say(message("go", { taskId: "t" }));
    await say(0);
    await stage.clock.advance(2_000);
    first.sleep();
    await say(1);
    await first.tear();
    const second = stage.connect();
    await say(2);
    await stage.clock.advance(1_000);
    const story = second.story("t").filter((line) => /^[=+][xyz]/.test(line));
    const shown = story.reduce((text, line) => (line.startsWith("=") ? line.slice(1) : text + line.slice(1)), "");
    expect(shown).toBe("x".repeat(3_000) + "y".repeat(3_000) + "z".repeat(3_000));
    expect(finals(second.story("t"))).toEqual(["completed final"]);
  });

  it("repeats cards only if their delivery is unconfirmed", async () => {
    const card = (id: string) => ({
      artifactId: id,
      parts: [{ data: { cardsInfo: [{ cardName: id, cardData: {} }] } }],
    });
    const gates = [createGate(), createGate()];
    const stage = await Stage.open({
      agent: agentOf(async function* () {
        yield { artifact: card("one") };
        await gates[0]?.pass();
        // The last that is read.
        yield chunk("out", "text", false);
        yield { artifact: card("two") };
        await gates[1]?.pass();
        yield { artifact: { ...card("one"), artifactId: "once more" } };
      }),
    });
    const first = stage.connect();
    await first.say(message("go", { taskId: "t" }));
    await stage.clock.advance(10);
    first.sleep();
    gates[0]?.open();
    await settle(20);
    await first.close();
    const second = stage.connect();
    await settle(20);
    gates[1]?.open();
    await stage.clock.advance(1_000);
    const cards = (story: readonly string[]) => story.filter((line) => line.includes("cardName"));
    expect(cards(first.story("t")).join()).toContain("one");
    expect(cards(second.story("t"))).toEqual([expect.stringContaining("two"), expect.stringContaining("one")]);
    expect(finals(second.story("t"))).toEqual(["completed final"]);
  });

  it("before the engine has even taken the message in loses nothing either", async () => {
    const stage = await Stage.open({ agent: echo() });
    const first = stage.connect();
    first.send(message("hello", { taskId: "t" }));
    await settle(1);
    await first.tear();
    const second = stage.connect();
    await stage.clock.advance(2_000);
    expect(finals([...first.story("t"), ...second.story("t")])).toEqual(["completed final"]);
  });

  it("repeats a refusal", async () => {
    const agent = echo();
    const stage = await Stage.open({ agent: { ...agent, profile: { ...agent.profile, inputModes: ["text/plain"] } } });
    const first = stage.connect();
    await settle();
    first.sleep();
    const picture = { kind: "file", file: { name: "a.png", mimeType: "image/png", uri: "https://example.com/a.png" } };
    await first.say(message("", { taskId: "t", parts: [picture] }));
    await first.tear();
    const second = stage.connect();
    await settle(20);
    expect(finals(second.story("t"))).toEqual(["failed final"]);
    expect(second.answers.at(-1)?.detail.error.code).toBe(-32602);
  });

  it("while a question waits asks it again, and takes the answer on the next", async () => {
    const stage = await Stage.open({
      agent: agentOf(async function* (turn) {
        if (turn.history.length < 2) yield status("TASK_STATE_INPUT_REQUIRED", "Sure?");
        else yield chunk("out", inputText(turn), false);
      }),
    });
    const first = stage.connect();
    await settle();
    first.sleep();
    await first.say(message("go", { taskId: "t", id: "r" }));
    await first.tear();
    const second = stage.connect();
    await settle(20);
    expect(second.story("t").slice(-2)).toEqual(["=Sure?", "input-required: "]);
    await second.say(message("yes", { taskId: "t", id: "r" }));
    expect(second.story("t").slice(-2)).toEqual(["=Sure?\n\nyes", "completed final"]);
  });

  it("long after a question was asked takes the answer all the same", async () => {
    const stage = await Stage.open({
      agent: agentOf(async function* (turn) {
        if (turn.history.length < 2) yield status("TASK_STATE_INPUT_REQUIRED", "Sure?");
        else yield chunk("out", inputText(turn), false);
      }),
    });
    const first = stage.connect();
    await first.say(message("go", { taskId: "t", id: "r" }));
    await stage.clock.advance(3_600_000);
    expect(first.answers.at(-1)?.detail.result.status.state).toBe("input-required");
    await first.close();
    await stage.clock.advance(60_000);
    const second = stage.connect();
    await settle(20);
    expect(second.answers).toEqual([]);
    second.send(message("yes", { taskId: "t", id: "r" }));
    await settle(1);
    await second.tear();
    const third = stage.connect();
    await settle(20);
    expect(finals([...second.story("t"), ...third.story("t")])).toEqual(["completed final"]);
    const texts = [...second.story("t"), ...third.story("t")].filter((line) => line.startsWith("="));
    expect(texts.at(-1)).toMatch(/yes$/);
  });

  it("gives a second server nothing of what came over the first", async () => {
    const { agent, say } = speaker(["a", "b"]);
    const stage = await Stage.open({ agent });
    const main = stage.connect("main");
    const backup = stage.connect("backup");
    await main.say(message("go", { taskId: "t" }));
    await stage.clock.advance(1_000);
    await main.close();
    await say(0);
    await say(1);
    await stage.clock.advance(5_000);
    expect(backup.answers).toEqual([]);
    const again = stage.connect("main");
    await settle(20);
    expect(again.story("t")).toEqual(["=ab", "completed final"]);
  });

  it("has all of an answer that continued without a reader, however long it is", async () => {
    const pieces = Array.from({ length: 5_000 }, (_, piece) => `${piece};`);
    const stage = await Stage.open({
      mode: "spec",
      agent: agentOf(async function* () {
        for (const [index, piece] of pieces.entries()) yield chunk("out", piece, index > 0);
      }),
    });
    const first = stage.connect();
    await settle();
    first.sleep();
    await first.say(message("go", { taskId: "t" }));
    await settle(500);
    await first.tear();
    const second = stage.connect();
    await stage.clock.advance(2_000);
    const texts = second.story("t").filter((line) => /^[=+]\d/.test(line));
    const shown = texts.reduce((text, line) => (line.startsWith("=") ? line.slice(1) : text + line.slice(1)), "");
    expect(shown).toBe(pieces.join(""));
    expect(finals([...first.story("t"), ...second.story("t")])).toEqual(["completed final"]);
  });
});

describe("a process that begins", () => {
  it("takes up tasks of the one before and answers them", async () => {
    const before = speaker(["a", "b"], "resume");
    const stage = await Stage.open({ agent: before.agent });
    const first = stage.connect();
    await first.say(message("go", { taskId: "t1", sessionId: "s1", id: "r1" }));
    await first.say(message("go", { taskId: "t2", sessionId: "s2", id: "r2", deviceId: "desktop" }));
    await before.say(0);
    stage.harness.crash();
    await stage.clock.advance(30_000);
    const after = speaker(["c", "d"], "resume");
    const next = await Stage.open({ agent: after.agent, after: stage });
    const platform = next.connect();
    await after.say(0);
    await after.say(1);
    await next.clock.advance(2_000);
    for (const [taskId, id] of [
      ["t1", "r1"],
      ["t2", "r2"],
    ] as const) {
      expect(finals(platform.story(taskId))).toEqual(["completed final"]);
      expect(platform.answers.find((answer) => answer.taskId === taskId)?.detail.id).toBe(id);
    }
  });

  it("knows the frames that the one before has taken in, while they are answered and soon after", async () => {
    const texts: string[] = [];
    const go = createGate();
    const agent = agentOf(
      async function* (turn) {
        texts.push(inputText(turn));
        await go.pass();
        yield chunk("out", "done", false);
      },
      { onCrash: "resume" },
    );
    const stage = await Stage.open({ agent });
    const frame = message("go", { taskId: "t", id: "r" });
    await stage.connect().say(frame);
    stage.harness.crash();
    await stage.clock.advance(30_000);
    const next = await Stage.open({ agent, after: stage });
    const platform = next.connect();
    await platform.say(frame);
    go.open();
    await next.clock.advance(2_000);
    await platform.say(frame);
    expect(texts).toEqual(["go", "go"]);
    expect(finals(platform.story("t"))).toEqual(["completed final"]);
    await next.clock.advance(10_000);
    await platform.say(frame);
    expect(texts).toEqual(["go", "go", "go"]);
  });

  it("tells of those that cannot be taken up", async () => {
    const { agent } = speaker(["a"]);
    const stage = await Stage.open({ agent });
    await stage.connect("gone").say(message("go", { taskId: "t" }));
    stage.harness.crash();
    await stage.clock.advance(30_000);
    const next = await Stage.open({ agent, after: stage });
    const platform = next.connect("main");
    await settle(20);
    expect(finals(platform.story("t"))).toEqual(["failed final"]);
  });

  it("sends nothing of what had ended, waits for an answer, is another agent's, or came another way", async () => {
    const { agent } = speaker(["a"], "resume");
    const stage = await Stage.open({ agent: echo() });
    await stage.connect().say(message("done", { taskId: "t1" }));
    stage.harness.crash();
    const second = await Stage.open({ agent, after: stage, agentId: "another" });
    await second.connect().say({ ...message("go", { taskId: "t2", sessionId: "s2" }), agentId: "another" });
    await second.harness.begin("hi");
    second.harness.crash();
    await stage.clock.advance(30_000);
    const next = await Stage.open({ agent, after: stage });
    const platform = next.connect();
    await next.clock.advance(5_000);
    expect(platform.answers).toEqual([]);
  });

  it("answers only the newest message of a session", async () => {
    const { agent } = speaker(["a"], "resume");
    const stage = await Stage.open({ agent });
    const first = stage.connect();
    await first.say(message("one", { taskId: "t1" }));
    await stage.clock.advance(1_000);
    await first.say(message("two", { taskId: "t2" }));
    stage.harness.crash();
    await stage.clock.advance(30_000);
    const after = speaker(["b"], "resume");
    const next = await Stage.open({ agent: after.agent, after: stage });
    const platform = next.connect();
    await after.say(0);
    await next.clock.advance(2_000);
    expect(platform.story("t1")).toEqual([]);
    expect(finals(platform.story("t2"))).toEqual(["completed final"]);
  });
});

describe("an agent that stops", () => {
  it("sends the answers that are complete, and nothing more", async () => {
    const stage = await Stage.open({ agent: echo(), times: DEFAULT_LINK_TIMES });
    const platform = stage.connect();
    await platform.say(message("hello", { taskId: "t1", sessionId: "s1" }));
    const settled = stage.agent.settle(1_000);
    await stage.clock.advance(400);
    await settled;
    expect(finals(platform.story("t1"))).toEqual(["completed final"]);
    stage.agent.close();
    await platform.say(message("hello", { taskId: "t2", sessionId: "s2" }));
    await stage.clock.advance(60_000);
    expect(platform.story("t2")).toEqual([]);
  });
});
