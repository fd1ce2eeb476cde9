import { describe, expect, it } from "vitest";
import { agentOf, chunk, echo, inputText, status } from "../../engine/testing/agents.ts";
import { settle } from "../../engine/testing/fake-clock.ts";
import type { Message } from "../../model/message.ts";
import { createDeferred } from "../../wire/link.ts";
import type { PersistentMap } from "../xiaoyi/ports.ts";
import { RecordedNotifications } from "../xiaoyi/testing/recorded-notifications.ts";
import { message, Stage } from "./testing/stage.ts";

/** Says what it heard when it is let. */
function patient() {
  const gate = createDeferred();
  const agent = agentOf(async function* (turn) {
    yield status("TASK_STATE_WORKING");
    await gate.promise;
    yield chunk("answer", inputText(turn), false);
  });
  return { agent, gate };
}

describe("a phone that does not listen any more", () => {
  it("because another message came is told how the older task ends", async () => {
    const { agent, gate } = patient();
    const notifications = new RecordedNotifications();
    const stage = await Stage.open({ agent, notifications });
    const platform = stage.connect();
    await platform.say(message("one", { taskId: "t1" }));
    await platform.say(message("two", { taskId: "t2" }));
    expect(notifications.told).toEqual([["left", "t1", "session-1"]]);
    gate.resolve();
    await settle();
    await stage.clock.advance(60_000);
    expect(platform.story("t2").at(-1)).toBe("completed final");
    expect(notifications.told.slice(1)).toEqual([["seen", "t2"]]);
  });

  it("has nothing to be told of what it was told", async () => {
    const notifications = new RecordedNotifications();
    const stage = await Stage.open({ agent: echo(), notifications });
    const platform = stage.connect();
    await platform.say(message("one", { taskId: "t1" }));
    await stage.clock.advance(60_000);
    await platform.say(message("two", { taskId: "t2" }));
    await stage.clock.advance(60_000);
    expect(notifications.told).toEqual([
      ["seen", "t1"],
      ["seen", "t2"],
    ]);
  });

  it("is not told of a question that the next message answers", async () => {
    const notifications = new RecordedNotifications();
    const stage = await Stage.open({
      agent: agentOf(async function* (turn) {
        if (turn.history.length < 2) yield status("TASK_STATE_INPUT_REQUIRED", "Go on?");
        else yield chunk("answer", inputText(turn), false);
      }),
      notifications,
    });
    const platform = stage.connect();
    await platform.say(message("start", { taskId: "t1" }));
    await platform.say(message("yes", { taskId: "t2" }));
    await stage.clock.advance(60_000);
    expect(notifications.told).toEqual([["seen", "t1"]]);
  });

  it("because the link is down is told how the task ended, unless the link comes back soon", async () => {
    for (const awayMs of [29_000, 31_000]) {
      const { agent, gate } = patient();
      const notifications = new RecordedNotifications();
      const stage = await Stage.open({ agent, notifications });
      const first = stage.connect();
      await first.say(message("hello", { taskId: "t" }));
      await first.tear();
      gate.resolve();
      await settle();
      await stage.clock.advance(awayMs);
      expect(notifications.told).toEqual(awayMs < 30_000 ? [] : [["left", "t", "session-1"]]);
      const second = stage.connect();
      await settle();
      await stage.clock.advance(60_000);
      expect(second.story("t").at(-1)).toBe("completed final");
      expect(notifications.told.at(-1)).toEqual(["seen", "t"]);
    }
  });

  it("because the link is down is told of a question, also where the server stops", async () => {
    for (const stops of [false, true]) {
      const gate = createDeferred();
      const notifications = new RecordedNotifications();
      const stage = await Stage.open({
        agent: agentOf(async function* (turn) {
          if (turn.history.length >= 2) return yield chunk("answer", inputText(turn), false);
          yield status("TASK_STATE_WORKING");
          await gate.promise;
          yield status("TASK_STATE_INPUT_REQUIRED", "Go on?");
        }),
        notifications,
      });
      const first = stage.connect();
      await first.say(message("hello", { taskId: "t" }));
      await first.tear();
      gate.resolve();
      await settle(20);
      expect(notifications.told).toEqual([]);
      if (stops) stage.agent.close();
      else await stage.clock.advance(31_000);
      expect(notifications.told).toEqual([["left", "t", "session-1"]]);
      if (stops) continue;
      const second = stage.connect();
      await second.say(message("yes", { taskId: "t" }));
      await stage.clock.advance(60_000);
      expect(second.story("t").at(-1)).toBe("completed final");
      expect(notifications.told.slice(1)).toEqual([["seen", "t"]]);
    }
  });

  it("is not told on the link what an earlier process has left to a notification", async () => {
    const busy = agentOf(async function* ({ signal }) {
      yield status("TASK_STATE_WORKING");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    });
    const before = await Stage.open({ agent: busy });
    await before.connect().say(message("one", { taskId: "t" }));
    before.harness.crash();
    await before.clock.advance(20_000);
    const since = before.clock.now();
    const notifications = new RecordedNotifications();
    notifications.awaited.add("t");
    const stage = await Stage.open({ agent: busy, notifications, after: before });
    await stage.agent.resume(since, ["main"]);
    const platform = stage.connect();
    await settle(20);
    expect(platform.story("t")).toEqual([]);
  });

  it("is known from what it said", async () => {
    const notifications = new RecordedNotifications();
    const stage = await Stage.open({ agent: echo(), notifications });
    const variables = { kind: "data", data: { variables: { systemVariables: { push_id: "device" } } } };
    await stage.connect().say(message("", { parts: [variables, { kind: "text", text: "hi" }] }));
    expect(notifications.calls[0]).toEqual(["heard", "session-1", "device", undefined]);
  });
});

describe("a notification that was tapped", () => {
  const trigger = { header: { namespace: "Common", name: "Trigger" }, payload: { dataMap: { pushDataId: "p" } } };
  const tap = (taskId: string) => message("", { taskId, parts: [{ kind: "data", data: { events: [trigger] } }] });

  it("is answered with what it stood for, in one artifact that is the end", async () => {
    const notifications = new RecordedNotifications();
    notifications.answer = "All of it.";
    const stage = await Stage.open({ agent: echo(), notifications });
    const platform = stage.connect();
    await platform.say(tap("t"));
    expect(platform.story("t")).toEqual(["=All of it. final"]);
    expect(notifications.told).toEqual([["recall", "p"]]);
    expect(platform.answers.at(-1)?.detail.error.code).toBe(0);
  });

  it("leaves what was under way to another one", async () => {
    const { agent, gate } = patient();
    const notifications = new RecordedNotifications();
    const stage = await Stage.open({ agent, notifications });
    const platform = stage.connect();
    await platform.say(message("one", { taskId: "t1" }));
    await platform.say(tap("t2"));
    gate.resolve();
    await settle();
    expect(platform.story("t1")).toEqual(["working", "=()"]);
    expect(platform.story("t2")).toEqual(["=This is no longer available. final"]);
    expect(notifications.told).toEqual([
      ["left", "t1", "session-1"],
      ["recall", "p"],
    ]);
    await platform.say(message("three", { taskId: "t3" }));
    expect(platform.story("t3").at(-1)).toBe("completed final");
  });

  it("is answered also where there are no notifications", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    await platform.say(tap("t"));
    expect(platform.story("t")).toEqual(["=This is no longer available. final"]);
  });
});

describe("a message with files", () => {
  it("is put to the agent when they have come; that somebody is there is said before", async () => {
    const gate = createDeferred();
    const stage = await Stage.open({
      agent: echo(),
      intake: {
        hasFiles: ({ parts }: Message) => parts.some((part) => "url" in part),
        download: async (given: Message) => {
          await gate.promise;
          return { ...given, parts: [{ text: "What was in it." }] };
        },
      },
    });
    const platform = stage.connect();
    const file = { kind: "file", file: { name: "a.txt", mimeType: "txt", uri: "https://files.example/a" } };
    await platform.say(message("", { taskId: "t", parts: [file] }));
    expect(platform.story("t")).toEqual(["working", "=()"]);
    gate.resolve();
    await settle();
    await stage.clock.advance(1_000);
    expect(platform.story("t").slice(2)).toEqual(["=What was in it.", "completed final"]);
  });
});

/** What is owed, as a file keeps it: nothing is there before the gate is open. */
function createNotes(kept = createDeferred()) {
  const noted = new Map<string, string>();
  const notes: PersistentMap = {
    entries: async () => [...noted],
    get: async (id) => noted.get(id),
    set: async (id, value) => {
      await kept.promise;
      noted.set(id, value);
    },
    delete: async (id) => void noted.delete(id),
  };
  return { kept, noted, notes };
}

describe("an answer that is owed", () => {
  it("is noted before the agent is asked, and until it has come", async () => {
    const { kept, noted, notes } = createNotes();
    const asked: unknown[] = [];
    const agent = agentOf(async function* (turn) {
      asked.push([inputText(turn), ...noted.keys()]);
      yield chunk("answer", "done", false);
    });
    const stage = await Stage.open({ agent, unanswered: notes });
    const platform = stage.connect();
    await platform.say(message("go", { taskId: "t" }));
    expect(asked).toEqual([]);
    kept.resolve();
    await settle();
    expect(asked).toEqual([["go", "t"]]);
    await stage.clock.advance(2_000);
    expect(platform.story("t").at(-1)).toBe("completed final");
    expect(noted.size).toBe(0);
  });

  it("by a process that died is said over the link, or told of if there is none", async () => {
    for (const isBack of [true, false]) {
      const { kept, notes } = createNotes();
      kept.resolve();
      const stage = await Stage.open({ agent: echo(), unanswered: notes });
      const first = stage.connect();
      first.sleep();
      await first.say(message("hello", { taskId: "t" }));
      await first.tear();
      stage.harness.crash();
      await stage.clock.advance(20_000);
      const notifications = new RecordedNotifications();
      const next = await Stage.open({ agent: echo(), after: stage, notifications, unanswered: notes });
      await next.agent.resume(stage.clock.now(), ["main"]);
      const platform = isBack ? next.connect() : undefined;
      await next.clock.advance(31_000);
      expect(platform?.story("t").at(-1)).toBe(isBack ? "completed final" : undefined);
      expect(notifications.told).toEqual([[...(isBack ? ["seen", "t"] : ["left", "t", "session-1"])]]);
      expect(await notes.entries()).toEqual([]);
    }
  });
});
