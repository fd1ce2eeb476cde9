import { describe, expect, it } from "vitest";
import { promptly, settle } from "../../../../core/engine/testing/fake-clock.ts";
import {
  ADDRESS,
  CALLER,
  eventsOf,
  failureOf,
  HELPER,
  message,
  STRANGER,
  send,
  setUp,
  summaryOf,
  taskIdOf,
  WHERE,
} from "./testing/called-participant.ts";

describe("a message", () => {
  it("is a task with a marker of its own, and text that people can read", async () => {
    const { caller, helper } = await setUp();
    void caller.dispatch(message("Write a poem.\nAbout rain."), { hops: { hops: 1, ancestors: ["a"] } });
    const { room, text } = await helper.next();
    expect(room).toBe("lobby");
    expect(text).toMatch(/^\[A2A:task id=t-[\w-]{16} accept=json to=u-helper hops=2\]\nWrite a poem\.\nAbout rain\.$/);
  });

  it("names the skill, and carries files", async () => {
    const { caller, helper } = await setUp();
    const parts = [{ text: "Read it." }, { raw: "aGk=", filename: "../a.txt", mediaType: "text/plain" }, { data: [1] }];
    const metadata = { skill: "read" };
    void caller.dispatch({ kind: "stream", message: { messageId: "m", role: "ROLE_USER", parts, metadata } }, {});
    const { files, text } = await helper.next();
    expect(text).toContain(" skill=read ");
    expect(text.split("\n").slice(1)).toEqual(["Read it.", "```json", "[", "  1", "]", "```", "[附件: a.txt]"]);
    expect(files.map(({ bytes, name }) => [name, Buffer.from(bytes).toString()])).toEqual([["a.txt", "hi"]]);
  });

  it("is answered by events: ack, states with their texts, the result and its files", async () => {
    const { caller, helper } = await setUp();
    const frames = await caller.dispatch(message("Write."), {});
    const id = await helper.nextTask();
    helper.say(`[A2A:ack task=${id}]`);
    helper.say(`[A2A:status task=${id} state=accepted]`);
    const status = helper.say(`[A2A:status task=${id} state=working progress=10%]\nReading.`);
    helper.say(`[A2A:status task=${id} state=working progress=50%]\nWriting.`, { edits: status.id });
    helper.say(`[A2A:result task=${id} state=completed artifacts=rain.txt]\nHere it is.\n[附件: rain.txt]`, {
      files: [{ name: "rain.txt", mediaType: "text/plain", bytes: Buffer.from("Drip.") }],
    });
    const events = await promptly(eventsOf(frames));
    expect(summaryOf(events)).toEqual([
      "task SUBMITTED",
      "WORKING: Reading.",
      "WORKING: Writing.",
      "result: Here it is.",
      "file-1: rain.txt",
      "COMPLETED",
    ]);
    expect(events[4]).toMatchObject({
      artifactUpdate: {
        taskId: id,
        contextId: "c",
        artifact: { name: "rain.txt", parts: [{ raw: "RHJpcC4=", filename: "rain.txt", mediaType: "text/plain" }] },
      },
    });
    expect(await caller.dispatch({ kind: "get", id }, {})).toMatchObject({
      id,
      contextId: "c",
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ artifactId: "result" }, { artifactId: "file-1" }],
    });
    expect(summaryOf(await eventsOf(await caller.dispatch({ kind: "subscribe", id }, {})))).toEqual(["task COMPLETED"]);
  });

  it.each([
    ["failed", "FAILED"],
    ["rejected", "REJECTED"],
    ["cancelled", "CANCELED"],
  ])("may end as %s, with the reason", async (state, shown) => {
    const { caller, helper } = await setUp();
    const frames = await caller.dispatch(message("Write."), {});
    helper.say(`[A2A:result task=${await helper.nextTask()} state=${state}]\nBecause.`);
    expect(summaryOf(await promptly(eventsOf(frames)))).toEqual(["task SUBMITTED", `${shown}: Because.`]);
  });

  it("may end by a status: a refusal at once, anything else if no result follows", async () => {
    const { caller, clock, helper } = await setUp();
    const refused = await caller.dispatch(message("Write."), {});
    helper.say(`[A2A:status task=${await helper.nextTask()} state=rejected]\nNot for you.`);
    await clock.advance(0);
    expect(summaryOf(await promptly(eventsOf(refused)))).toEqual(["task SUBMITTED", "REJECTED: Not for you."]);
    const followed = await caller.dispatch(message("Write."), {});
    const id = await helper.nextTask();
    helper.say(`[A2A:status task=${id} state=completed]`);
    helper.say(`[A2A:status task=${id} state=working]`);
    helper.say(`[A2A:result task=${id} state=completed]\nDone.`);
    expect(summaryOf(await promptly(eventsOf(followed)))).toEqual(["task SUBMITTED", "result: Done.", "COMPLETED"]);
    const alone = await caller.dispatch(message("Write."), {});
    helper.say(`[A2A:status task=${await helper.nextTask()} state=failed]\nNo paper.`);
    await clock.advance(5_000);
    expect(summaryOf(await promptly(eventsOf(alone)))).toEqual(["task SUBMITTED", "FAILED: No paper."]);
  });

  it("is answered as a whole to those who want no stream, or at once to those who do not wait", async () => {
    const { caller, helper } = await setUp();
    const asked = caller.dispatch(send("Write."), {});
    const id = await helper.nextTask();
    helper.say(`[A2A:result task=${id} state=completed]\nDone.`);
    expect(await promptly(asked)).toMatchObject({
      task: { id, status: { state: "TASK_STATE_COMPLETED" }, artifacts: [{ parts: [{ text: "Done." }] }] },
    });
    const unasked = caller.dispatch({ ...send("Write."), configuration: { returnImmediately: true } }, {});
    expect(await promptly(unasked)).toMatchObject({ task: { status: { state: "TASK_STATE_SUBMITTED" } } });
  });

  it("is not answered by a text that was posted as a file, but by the text", async () => {
    const { caller, helper } = await setUp();
    const asked = caller.dispatch(send("Write."), {});
    const id = await helper.nextTask();
    const long = "A long text. ".repeat(500);
    helper.say(`[A2A:result task=${id} state=completed]\n${long.slice(0, 300)}…\n[附件: ${id}.md]`, {
      files: [{ name: `${id}.md`, mediaType: "text/markdown", bytes: Buffer.from(long) }],
    });
    expect(await promptly(asked)).toMatchObject({
      task: { artifacts: [{ artifactId: "result", parts: [{ text: long }] }] },
    });
  });

  it("that the network refuses fails, and names the room", async () => {
    const { stage } = await setUp();
    const caller = stage.carrier.peer?.("a2a-lite:memory/closed#u-helper");
    const error = await failureOf(caller!.dispatch(message("Write."), {}));
    expect(error.code).toBe("UNAVAILABLE");
    expect(error.message).toBe("The message for u-helper in closed on memory was not posted: There is no such room.");
  });

  it("is for peers of this network alone", async () => {
    const { stage } = await setUp();
    for (const address of ["a2a-lite:irc/lobby#u-helper", "a2a-lite:memory/lobby", "u-helper"]) {
      expect(stage.carrier.peer?.(address)).toBeUndefined();
    }
  });
});

describe("a question", () => {
  it("ends the stream, and its answer continues the task under the same id", async () => {
    const { caller, helper } = await setUp();
    const frames = await caller.dispatch(message("Book it."), {});
    const id = await helper.nextTask();
    helper.say(`[A2A:status task=${id} state=input-required]\nWhen?`);
    expect(summaryOf(await promptly(eventsOf(frames)))).toEqual(["task SUBMITTED", "INPUT_REQUIRED: When?"]);
    const answered = await caller.dispatch(message("Now.", id), {});
    const post = await helper.next();
    expect(post.text).toBe(`[A2A:task id=${id} accept=json to=u-helper]\nNow.`);
    helper.say(`[A2A:result task=${id} state=completed]\nBooked.`);
    expect(summaryOf(await promptly(eventsOf(answered)))).toEqual(["task WORKING", "result: Booked.", "COMPLETED"]);
  });

  it("is not asked of a task that has ended, or of another peer's", async () => {
    const { caller, helper, stage } = await setUp();
    const asked = caller.dispatch(send("Write."), {});
    const id = await helper.nextTask();
    helper.say(`[A2A:result task=${id} state=completed]\nDone.`);
    await asked;
    expect((await failureOf(caller.dispatch(message("More.", id), {}))).code).toBe("UNSUPPORTED_OPERATION");
    const other = stage.carrier.peer?.("a2a-lite:memory/lobby#u-other");
    expect((await failureOf(other!.dispatch({ kind: "get", id }, {}))).code).toBe("TASK_NOT_FOUND");
    expect((await failureOf(caller.dispatch({ kind: "get", id: "t-unknown" }, {}))).code).toBe("TASK_NOT_FOUND");
    expect((await failureOf(caller.dispatch({ kind: "list" }, {}))).code).toBe("UNSUPPORTED_OPERATION");
  });
});

describe("a cancellation", () => {
  it("is confirmed by the result", async () => {
    const { caller, helper } = await setUp();
    const frames = await caller.dispatch(message("Write."), {});
    const id = await helper.nextTask();
    const cancelled = caller.dispatch({ kind: "cancel", id }, {});
    expect((await helper.next()).text).toBe(`[A2A:cancel task=${id} to=u-helper]`);
    helper.say(`[A2A:result task=${id} state=cancelled]`);
    expect(await promptly(cancelled)).toMatchObject({ id, status: { state: "TASK_STATE_CANCELED" } });
    expect(summaryOf(await promptly(eventsOf(frames)))).toEqual(["task SUBMITTED", "CANCELED"]);
    expect((await failureOf(caller.dispatch({ kind: "cancel", id }, {}))).code).toBe("TASK_NOT_CANCELABLE");
  });

  it("may come too late, or not be confirmed", async () => {
    const { caller, clock, helper } = await setUp();
    void caller.dispatch(message("Write."), {});
    const id = await helper.nextTask();
    const late = failureOf(caller.dispatch({ kind: "cancel", id }, {}));
    await helper.next();
    helper.say(`[A2A:result task=${id} state=completed]\nDone.`);
    expect((await promptly(late)).code).toBe("TASK_NOT_CANCELABLE");
    void caller.dispatch(message("Write."), {});
    const other = await helper.nextTask();
    const ignored = failureOf(caller.dispatch({ kind: "cancel", id: other }, {}));
    await helper.next();
    await clock.advance(30_000);
    expect(await promptly(ignored)).toMatchObject({
      code: "UNAVAILABLE",
      message: `${WHERE} did not confirm the cancellation within 30 s.`,
    });
  });
});

describe("a peer without the protocol", () => {
  it("is answered for by its reply, after a quiet time, as not verified", async () => {
    const { caller, clock, helper, network } = await setUp();
    const frames = await caller.dispatch(message("Write."), {});
    const { id: post } = await helper.next();
    network.say(HELPER, "Something else, to someone else.");
    const reply = helper.say("It drips", { replyTo: post });
    await clock.advance(4_000);
    helper.say("It drips and drips.", { edits: reply.id });
    await clock.advance(4_999);
    helper.say("And that is all.", { replyTo: post });
    await clock.advance(5_000);
    const events = await promptly(eventsOf(frames));
    expect(summaryOf(events)).toEqual(["task SUBMITTED", "result: It drips and drips.\nAnd that is all.", "COMPLETED"]);
    const uri = "urn:dragoman:ext:unverified:v1";
    expect(events[1]).toMatchObject({ artifactUpdate: { artifact: { metadata: { [uri]: true }, extensions: [uri] } } });
  });

  it("may mention the caller, or write to it directly", async () => {
    const { caller, clock, helper } = await setUp();
    for (const how of [{ mentions: [CALLER] }, { room: `dm:${CALLER},u-helper` }]) {
      const asked = caller.dispatch(send("Write."), {});
      await helper.next();
      helper.say(`<@${CALLER}> It drips.`, how);
      await settle();
      await clock.advance(5_000);
      expect(await promptly(asked)).toMatchObject({ task: { artifacts: [{ parts: [{ text: "It drips." }] }] } });
    }
  });

  it("only has to write something where there are no replies", async () => {
    const { caller, clock, helper } = await setUp({ abilities: { replies: false } });
    const asked = caller.dispatch(send("Write."), {});
    await helper.next();
    helper.say("It drips.");
    await settle();
    await clock.advance(5_000);
    expect(await promptly(asked)).toMatchObject({ task: { artifacts: [{ parts: [{ text: "It drips." }] }] } });
  });

  it("is one that only comments on its work if it sends markers", async () => {
    const { caller, clock, helper } = await setUp();
    const asked = caller.dispatch(send("Write."), {});
    const post = await helper.next();
    helper.say("Sure!", { replyTo: post.id });
    helper.say(`[A2A:ack task=${taskIdOf(post)}]`);
    helper.say("Looking for paper.", { replyTo: post.id });
    await clock.advance(60_000);
    helper.say(`[A2A:result task=${taskIdOf(post)} state=completed]\nDone.`);
    expect(await promptly(asked)).toMatchObject({ task: { artifacts: [{ parts: [{ text: "Done." }] }] } });
  });
});

describe("a peer that is silent", () => {
  it("fails the call, which names it and its room", async () => {
    const { caller, clock, helper } = await setUp();
    const asked = failureOf(caller.dispatch(send("Write."), {}));
    await helper.next();
    await clock.advance(120_000);
    expect(await promptly(asked)).toMatchObject({
      code: "UNAVAILABLE",
      message: `${WHERE} did not answer within 120 s.`,
    });
  });

  it("fails its task if it was at work", async () => {
    const { caller, clock, helper } = await setUp({ limits: { timeoutMs: 60_000 } });
    const frames = await caller.dispatch(message("Write."), {});
    const id = await helper.nextTask();
    helper.say(`[A2A:ack task=${id}]`);
    await clock.advance(59_000);
    helper.say(`[A2A:status task=${id} state=working]`);
    await clock.advance(60_000);
    expect(summaryOf(await promptly(eventsOf(frames)))).toEqual([
      "task SUBMITTED",
      "WORKING",
      `FAILED: ${WHERE} sent nothing more about the task for 60 s.`,
    ]);
  });

  it("may answer while the connection is down", async () => {
    const { caller, helper, network, stage } = await setUp();
    const asked = caller.dispatch(send("Write."), {});
    const id = await helper.nextTask();
    // What the caller has read before is where the next connection continues.
    helper.say(`[A2A:ack task=${id}]`);
    await settle(40);
    stage.isReachable = false;
    network.break(CALLER);
    helper.say(`[A2A:result task=${id} state=completed]\nDone.`);
    await settle();
    stage.isReachable = true;
    expect(await promptly(asked)).toMatchObject({ task: { id, artifacts: [{ parts: [{ text: "Done." }] }] } });
  });

  it("cannot be called without a connection, and a message that is given up is not sent later", async () => {
    const { caller, clock, network, stage } = await setUp();
    stage.isReachable = false;
    network.break(CALLER);
    const asked = failureOf(caller.dispatch(message("Write."), {}));
    const abort = new AbortController();
    const left = failureOf(caller.dispatch(message("Write."), { signal: abort.signal }));
    await settle();
    abort.abort();
    expect((await promptly(left)).message).toBe("The caller did not wait for the answer.");
    await clock.advance(60_000);
    expect(await promptly(asked)).toMatchObject({
      code: "UNAVAILABLE",
      message: `The message for ${WHERE} could not be posted within 60 s.`,
    });
    stage.isReachable = true;
    await settle(40);
    expect(network.posts).toEqual([]);
  });
});

describe("answers that do not count", () => {
  it("are those of others, of other tasks and after the end", async () => {
    const { caller, dropped, helper, network } = await setUp();
    const frames = await caller.dispatch(message("Write."), {});
    const id = await helper.nextTask();
    network.say(STRANGER, `[A2A:result task=${id} state=completed]\nForged.`);
    helper.say("[A2A:result task=t-other state=completed]\nOther.");
    helper.say(`[A2A:status task=${id} state=working]\nBusy.`);
    helper.say(`[A2A:status task=${id} state=accepted]\nBack again.`);
    helper.say(`[A2A:status task=${id} state=sleeping]`);
    helper.say(`[A2A:result task=${id} state=completed]\nDone.`);
    helper.say(`[A2A:result task=${id} state=failed]\nNo, failed.`);
    helper.say(`[A2A:status task=${id} state=working]\nStill busy.`);
    expect(summaryOf(await promptly(eventsOf(frames)))).toEqual([
      "task SUBMITTED",
      "WORKING: Busy.",
      "result: Done.",
      "COMPLETED",
    ]);
    await settle();
    expect(dropped()).toBe(5);
  });

  it("are statuses of a flood", async () => {
    const { caller, dropped, helper } = await setUp();
    const frames = await caller.dispatch(message("Write."), {});
    const id = await helper.nextTask();
    for (let at = 0; at < 5_000; at++) helper.say(`[A2A:status task=${id} state=working]\nStep ${at}.`);
    helper.say(`[A2A:result task=${id} state=completed]\nDone.`);
    expect(await promptly(eventsOf(frames))).toHaveLength(103);
    expect(dropped()).toBe(4_900);
  });
});

describe("a card", () => {
  it("is asked for, and read from the text", async () => {
    const { caller, helper } = await setUp();
    const asked = caller.dispatch({ kind: "extended-card" }, {});
    const again = caller.dispatch({ kind: "extended-card" }, {});
    expect((await helper.next()).text).toBe("[A2A:discover to=u-helper]\nWhat can you do?");
    const skills = [{ id: "poem", name: "Poems", description: "Writes poems." }];
    const card = { protocol: "a2a-lite/1.0", agent: { id: "h", name: "Helper", version: "2" }, skills };
    helper.say(`[A2A:card]\nI write.\n\`\`\`json\n${JSON.stringify(card)}\n\`\`\``);
    expect(await promptly(asked)).toMatchObject({
      name: "Helper",
      skills: [{ id: "poem", name: "Poems" }],
      supportedInterfaces: [{ url: ADDRESS }],
    });
    expect(await promptly(again)).toBe(await asked);
    expect(caller.card).toBe(await asked);
  });

  it("may be a file, or prose", async () => {
    const { caller, helper } = await setUp();
    const asked = caller.dispatch({ kind: "extended-card" }, {});
    await helper.next();
    const card = { protocol: "a2a-lite/1.0", agent: { id: "h", name: "Helper" } };
    const bytes = Buffer.from(JSON.stringify(card));
    helper.say("[A2A:card]\nI write.", { files: [{ name: "agent-card.json", mediaType: "application/json", bytes }] });
    expect((await promptly(asked)).name).toBe("Helper");
    const described = caller.dispatch({ kind: "extended-card" }, {});
    const { id: replyTo } = await helper.next();
    helper.say("<@u-agent> I am Ada. I write:\n- Poems (poem): about rain", { replyTo });
    expect(await promptly(described)).toMatchObject({ name: "Ada", skills: [{ id: "poem" }] });
  });

  it("is missed after a while", async () => {
    const { caller, clock, helper } = await setUp();
    const asked = failureOf(caller.dispatch({ kind: "extended-card" }, {}));
    await helper.next();
    await clock.advance(30_000);
    expect(await promptly(asked)).toMatchObject({
      code: "UNAVAILABLE",
      message: `${WHERE} did not send a card within 30 s.`,
    });
    void caller.dispatch({ kind: "extended-card" }, {}).catch(() => {});
    expect((await helper.next()).text).toContain("[A2A:discover");
  });
});
