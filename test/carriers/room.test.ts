/** Two people and three agents in one room; what is compared is what the room's server has sent to the people. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../src/model/ports.ts";
import { systemClock } from "../../src/server/clock-and-ids.ts";
import { openStore } from "../../src/store/open.ts";
import { Participant } from "./participant.ts";
import { RoomServer } from "./room-server.ts";
import { openRoomStage, type RoomStage } from "./stage.ts";

let room: RoomServer;
let stage: RoomStage;
let ada: Participant;
let bob: Participant;

beforeEach(async () => {
  room = await RoomServer.open();
  [ada, bob] = await Promise.all([Participant.join(room, "ada"), Participant.join(room, "bob")]);
  stage = await openRoomStage(room);
  await room.joined("ghost");
});

afterEach(async () => {
  await stage.close();
  await room.close();
});

describe("an agent in a room", () => {
  it("answers a post that mentions it by a reply in its own name", async () => {
    const asked = await ada.say("Please choose.", { mentions: ["asker"] });
    const { from, mentions, text } = await ada.answerTo(asked, "asker");
    expect(text).toBe("Which colour?");
    expect(from).toEqual({ id: "asker", name: "asker", bot: true });
    expect(mentions).toEqual([]);
    expect((await bob.answerTo(asked, "asker")).text).toBe("Which colour?");
  });

  it("shows how far it has come by editing one post", async () => {
    const asked = await ada.say("Count!", { mentions: ["counter"] });
    await ada.answerTo(asked, "counter", (text) => text === "1  …");
    stage.step();
    await ada.answerTo(asked, "counter", (text) => text === "1 2  …");
    stage.step();
    await ada.answerTo(asked, "counter", (text) => text === "1 2 3  …");
    stage.step();
    expect((await ada.answerTo(asked, "counter")).text).toBe("1 2 3 ");
    expect(ada.answersTo(asked)).toHaveLength(1);
  });

  it("takes files, and answers with them", async () => {
    const base64 = Buffer.from("from Ada").toString("base64");
    const files = [{ name: "a.txt", mediaType: "text/plain", base64 }];
    const sent = await ada.say("Read this.", { mentions: ["asker"], files });
    expect((await ada.answerTo(sent, "asker")).text).toBe("a.txt says: from Ada");
    const asked = await ada.say("A file, please.", { mentions: ["asker"] });
    const answer = await ada.answerTo(asked, "asker");
    expect(answer).toMatchObject({ text: "Here.", files: [{ name: "note.txt", mediaType: "text/plain" }] });
    expect(await (await fetch(answer.files[0]?.url ?? "")).text()).toBe("made here");
  });

  it("attaches what is too long for a post", async () => {
    const asked = await ada.say("Tell me much.", { mentions: ["asker"] });
    const answer = await ada.answerTo(asked, "asker", (text) => text.startsWith("long"));
    expect(answer.text).toHaveLength(400);
    const attached = await bob.post(({ edits, files, id }) => (edits ?? id) === answer.id && files.length > 0);
    expect(await (await fetch(attached.files[0]?.url ?? "")).text()).toBe("long ".repeat(200));
  });

  it("is one of several that a post mentions", async () => {
    const asked = await ada.say("Both of you!", { mentions: ["asker", "counter", "asker"] });
    for (let step = 0; step < 3; step++) stage.step();
    const answers = await Promise.all([ada.answerTo(asked, "asker"), ada.answerTo(asked, "counter")]);
    expect(answers.map(({ text }) => text)).toEqual(["Which colour?", "1 2 3 "]);
    expect(ada.answersTo(asked)).toHaveLength(2);
  });
});

describe("a reply", () => {
  it("to a question is its answer, from the one who was asked", async () => {
    const asked = await ada.say("Choose.", { mentions: ["asker"] });
    const question = await ada.answerTo(asked, "asker");
    const stranger = await bob.say("blue", { replyTo: question.id });
    expect((await bob.answerTo(stranger, "asker")).text).toBe("Task not found.");
    const answer = await ada.say("green", { replyTo: question.id });
    expect((await ada.answerTo(answer, "asker")).text).toBe("It is green.");
  });

  it("cancels the task, if it is the caller's own", async () => {
    const asked = await ada.say("Count!", { mentions: ["counter"] });
    const working = await ada.answerTo(asked, "counter", (text) => text.startsWith("1"));
    const stranger = await bob.say("cancel", { replyTo: working.id });
    expect((await bob.answerTo(stranger, "counter")).text).toBe("Task not found.");
    await ada.say("cancel", { replyTo: working.id });
    const ended = await ada.answerTo(asked, "counter");
    expect(ended.text).toMatch(/^1 /);
    expect(ada.answersTo(asked)).toHaveLength(1);
  });

  it("to someone else's post is ignored", async () => {
    const talk = await ada.say("Nice weather.");
    await bob.say("Indeed.", { replyTo: talk });
    const asked = await ada.say("Choose.", { mentions: ["asker"] });
    await ada.answerTo(asked, "asker");
    expect(ada.answersTo(talk)).toMatchObject([{ from: { id: "bob" } }]);
  });
});

describe("two people", () => {
  it("talk to two agents at once, each in a conversation of their own", async () => {
    const [counted, chosen] = await Promise.all([
      ada.say("Count!", { mentions: ["counter"] }),
      bob.say("Choose.", { mentions: ["asker"] }),
    ]);
    const question = await bob.answerTo(chosen, "asker");
    const [other] = await Promise.all([ada.say("Choose.", { mentions: ["asker"] }), stage.step()]);
    const second = await ada.answerTo(other, "asker");
    const [red, blue] = await Promise.all([
      bob.say("red", { replyTo: question.id }),
      ada.say("blue", { replyTo: second.id }),
    ]);
    expect((await bob.answerTo(red, "asker")).text).toBe("It is red.");
    expect((await ada.answerTo(blue, "asker")).text).toBe("It is blue.");
    stage.step();
    stage.step();
    expect((await ada.answerTo(counted, "counter")).text).toBe("1 2 3 ");
  });
});

describe("a peer", () => {
  it("is asked over the connection that serves, and its edits are waited for", async () => {
    const oracle = await Participant.join(room, "oracle", true);
    const asked = await ada.say("What is the answer?", { mentions: ["scout"] });
    const question = await oracle.post(({ mentions }) => mentions.includes("oracle"));
    expect(question).toMatchObject({ from: { id: "scout" }, text: "What is the answer?" });
    const draft = await oracle.say("Let me think …", { replyTo: question.id });
    await bob.say("I know it!", { replyTo: question.id });
    await oracle.say("42", { replyTo: question.id, edits: draft });
    expect((await ada.answerTo(asked, "scout")).text).toBe("42");
    oracle.leave();
  });

  it("may answer while the connection is down", async () => {
    const oracle = await Participant.join(room, "oracle", true);
    const asked = await ada.say("And now?", { mentions: ["scout"] });
    const question = await oracle.post(({ mentions }) => mentions.includes("oracle"));
    room.cut("scout");
    await oracle.say("Still 42", { replyTo: question.id });
    expect((await ada.answerTo(asked, "scout")).text).toBe("Still 42");
    oracle.leave();
  });
});

describe("a connection that is lost", () => {
  it("in the middle of an answer is opened again, and the same post is edited on", async () => {
    const asked = await ada.say("Count!", { mentions: ["counter"] });
    await ada.answerTo(asked, "counter", (text) => text.startsWith("1"));
    room.cut("counter");
    const missed = await bob.say("Choose.", { mentions: ["asker"] });
    for (let step = 0; step < 3; step++) stage.step();
    expect((await ada.answerTo(asked, "counter")).text).toBe("1 2 3 ");
    expect((await bob.answerTo(missed, "asker")).text).toBe("Which colour?");
    expect(ada.answersTo(asked)).toHaveLength(1);
    expect(bob.answersTo(missed)).toHaveLength(1);
    expect(stage.lines.filter((line) => line === "Connected to the room lobby.")).toHaveLength(2);
  });
});

describe("a server that restarts", () => {
  it("shows in the same post how a task ended while the room could not be reached", async () => {
    const folder = await mkdtemp(join(tmpdir(), "room-"));
    const open = () =>
      openStore(`sqlite:${join(folder, "tasks.db")}`, { baseDirectory: folder, clock: systemClock, log: SILENT_LOG });
    await stage.close();
    await room.left("ghost");
    stage = await openRoomStage(room, await open());
    await room.joined("ghost");
    const asked = await ada.say("Count!", { mentions: ["counter"] });
    const { id } = await ada.answerTo(asked, "counter", (text) => text.startsWith("1"));
    room.isFull = true;
    room.cut("counter");
    for (let step = 0; step < 3; step++) stage.step();
    await stage.close(60_000);
    room.isFull = false;
    stage = await openRoomStage(room, await open());
    expect(await ada.answerTo(asked, "counter")).toMatchObject({ id, text: "1 2 3 " });
    expect(ada.answersTo(asked)).toHaveLength(1);
    await stage.close();
    await rm(folder, { recursive: true });
    stage = await openRoomStage(room);
  });
});

describe("what cannot be answered", () => {
  it("a mention of someone who is not an agent here is left alone, one of an agent that is gone is refused", async () => {
    const unknown = await ada.say("Are you there?", { mentions: ["carol"] });
    const gone = await ada.say("Are you there?", { mentions: ["ghost"] });
    expect((await ada.answerTo(gone, "ghost")).text).toBe("Agent not found.");
    expect(ada.answersTo(unknown)).toEqual([]);
  });

  it("is sent to the one who asked when an agent fails", async () => {
    const asked = await ada.say("Be broken.", { mentions: ["asker"] });
    expect((await ada.answerTo(asked, "asker")).text).not.toContain("broken");
    const empty = await ada.say("", { mentions: ["asker"] });
    expect((await ada.answerTo(empty, "asker")).text).not.toBe("");
  });

  it.each([
    "",
    "{",
    "null",
    "[]",
    '{"post":null}',
    '{"post":{"id":1}}',
    '{"post":{"id":"x","text":"y"}}',
    '{"other":1}',
  ])("%j in place of a post does no harm", async (frame) => {
    room.inject("asker", frame);
    const asked = await ada.say("Choose.", { mentions: ["asker"] });
    expect((await ada.answerTo(asked, "asker")).text).toBe("Which colour?");
    expect(stage.carriers.states().get("room")).toEqual(["up"]);
  });
});
