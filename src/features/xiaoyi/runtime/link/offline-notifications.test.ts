import { describe, expect, it } from "vitest";
import type { Agent } from "../../../../core/engine/agent.ts";
import { agentOf, chunk, echo, inputText, status } from "../../../../core/engine/testing/agents.ts";
import { settle } from "../../../../core/engine/testing/fake-clock.ts";
import type { Message } from "../../../../core/model/message.ts";
import { createDeferred } from "../../../../core/wire/link.ts";
import { RecordedNotifications } from "../../codec/testing/recorded-notifications.ts";
import { message, ROUTE, Stage } from "./testing/stage.ts";

/** Repeats the message when the gate opens. */
function patient(onCrash: Agent["onCrash"] = "fail") {
  const gate = createDeferred();
  const agent = agentOf(
    async function* (turn) {
      yield status("TASK_STATE_WORKING");
      await gate.promise;
      yield chunk("answer", inputText(turn), false);
    },
    { onCrash },
  );
  return { agent, gate };
}

describe("a user who has left", () => {
  it("because another message came is notified of how the older task ends", async () => {
    const { agent, gate } = patient();
    const notifications = new RecordedNotifications();
    const stage = await Stage.open({ agent, notifications });
    const platform = stage.connect();
    await platform.say(message("one", { taskId: "t1" }));
    await platform.say(message("two", { taskId: "t2" }));
    expect(notifications.notified).toEqual([]);
    gate.resolve();
    await settle(20);
    await stage.clock.advance(60_000);
    expect(platform.story("t2").at(-1)).toBe("completed final");
    expect(notifications.notified).toEqual([["t1", "session-1"]]);
  });

  it("because another message came before the first was stored is notified, too", async () => {
    const gate = createDeferred();
    const notifications = new RecordedNotifications();
    const intake = {
      hasFiles: ({ parts }: Message) => parts.some((part) => "url" in part),
      download: async (given: Message) => {
        await gate.promise;
        return { ...given, parts: [{ text: "The content." }] };
      },
    };
    const stage = await Stage.open({ agent: echo(), notifications, intake });
    const platform = stage.connect();
    const file = { kind: "file", file: { name: "a.txt", mimeType: "txt", uri: "https://files.example/a" } };
    await platform.say(message("", { taskId: "t1", parts: [file] }));
    await platform.say(message("two", { taskId: "t2" }));
    gate.resolve();
    await settle(20);
    await stage.clock.advance(1_000);
    expect(notifications.notified).toEqual([["t1", "session-1"]]);
    expect(platform.story("t1")).toEqual(["working", "=()"]);
    expect(platform.story("t2").at(-1)).toBe("completed final");
  });

  it("is not notified of what was delivered", async () => {
    const notifications = new RecordedNotifications();
    const stage = await Stage.open({ agent: echo(), notifications });
    const platform = stage.connect();
    await platform.say(message("one", { taskId: "t1" }));
    await stage.clock.advance(60_000);
    await platform.say(message("two", { taskId: "t2" }));
    await stage.clock.advance(60_000);
    expect(notifications.notified).toEqual([]);
    expect([await stage.owed("t1"), await stage.owed("t2")]).toEqual([undefined, undefined]);
  });

  it("is not notified of a question that the next message answers", async () => {
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
    expect(platform.story("t2").at(-1)).toBe("completed final");
    expect(notifications.notified).toEqual([]);
    expect(await stage.owed("t1")).toBeUndefined();
  });

  it("because the link is down is notified of how the task ended, unless the link comes back soon", async () => {
    for (const awayMs of [29_000, 31_000]) {
      const { agent, gate } = patient();
      const notifications = new RecordedNotifications();
      const stage = await Stage.open({ agent, notifications });
      const first = stage.connect();
      await first.say(message("hello", { taskId: "t" }));
      await first.tear();
      gate.resolve();
      await settle(20);
      await stage.clock.advance(awayMs);
      const expected = awayMs < 30_000 ? [] : [["t", "session-1"]];
      expect(notifications.notified).toEqual(expected);
      const second = stage.connect();
      await settle();
      await stage.clock.advance(60_000);
      expect(second.story("t").at(-1)).toBe("completed final");
      expect(notifications.notified).toEqual(expected);
      expect(await stage.owed("t")).toBeUndefined();
    }
  });

  it.each([false, true])("because the link is down is notified of a question (server stops: %s)", async (stops) => {
    const gate = createDeferred();
    const agent = agentOf(async function* (turn) {
      if (turn.history.length >= 2) return yield chunk("answer", inputText(turn), false);
      yield status("TASK_STATE_WORKING");
      await gate.promise;
      yield status("TASK_STATE_INPUT_REQUIRED", "Go on?");
    });
    const notifications = new RecordedNotifications();
    const stage = await Stage.open({ agent, notifications });
    const first = stage.connect();
    await first.say(message("hello", { taskId: "t" }));
    await first.tear();
    gate.resolve();
    await settle(20);
    expect(notifications.notified).toEqual([]);
    let last = stage;
    if (stops) {
      stage.agent.close();
      await stage.endRoute();
      stage.harness.crash();
      await stage.clock.advance(30_000);
      last = await Stage.open({ agent, notifications, after: stage });
    }
    await last.clock.advance(31_000);
    await settle(20);
    expect(notifications.notified).toEqual([["t", "session-1"]]);
    const second = last.connect();
    await second.say(message("yes", { taskId: "t" }));
    await last.clock.advance(60_000);
    expect(second.story("t").at(-1)).toBe("completed final");
    expect(notifications.notified).toHaveLength(1);
    expect(await last.owed("t")).toBeUndefined();
  });

  it("without a device is answered over the next link, however late it comes", async () => {
    const { agent, gate } = patient();
    const notifications = new RecordedNotifications();
    notifications.isReachable = async () => false;
    const stage = await Stage.open({ agent, notifications });
    const first = stage.connect();
    await first.say(message("hello", { taskId: "t" }));
    await first.tear();
    gate.resolve();
    await stage.clock.advance(120_000);
    expect(await stage.owed("t")).toBe(ROUTE);
    const second = stage.connect();
    await stage.clock.advance(1_000);
    expect(second.story("t").at(-1)).toBe("completed final");
    expect(notifications.notified).toEqual([]);
    expect(await stage.owed("t")).toBeUndefined();
  });

  it("in an earlier process is not answered over the link", async () => {
    const { agent, gate } = patient("resume");
    const before = await Stage.open({ agent, notifications: new RecordedNotifications() });
    const platform = before.connect();
    await platform.say(message("one", { taskId: "t1" }));
    await platform.say(message("two", { taskId: "t2" }));
    before.harness.crash();
    await before.clock.advance(30_000);
    const notifications = new RecordedNotifications();
    const stage = await Stage.open({ agent, notifications, after: before });
    const next = stage.connect();
    gate.resolve();
    await settle(20);
    await stage.clock.advance(5_000);
    expect(notifications.notified).toEqual([["t1", "session-1"]]);
    expect(next.story("t1")).toEqual([]);
    expect(next.story("t2").at(-1)).toBe("completed final");
  });

  it("is known by the device of an earlier message", async () => {
    const notifications = new RecordedNotifications();
    const stage = await Stage.open({ agent: echo(), notifications });
    const variables = { kind: "data", data: { variables: { systemVariables: { push_id: "device" } } } };
    await stage.connect().say(message("", { parts: [variables, { kind: "text", text: "hi" }] }));
    expect(notifications.calls[0]).toEqual(["device", "session-1", "device", undefined]);
  });
});

describe("a tapped notification", () => {
  const trigger = { header: { namespace: "Common", name: "Trigger" }, payload: { dataMap: { pushDataId: "p" } } };
  const tap = (taskId: string) => message("", { taskId, parts: [{ kind: "data", data: { events: [trigger] } }] });

  it("is answered with what it stood for, in one artifact that is the end", async () => {
    const notifications = new RecordedNotifications();
    notifications.answer = "All of it.";
    const stage = await Stage.open({ agent: echo(), notifications });
    const platform = stage.connect();
    await platform.say(tap("t"));
    expect(platform.story("t")).toEqual(["=All of it. final"]);
    expect(notifications.calls.at(-1)).toEqual(["read", "p"]);
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
    await settle(20);
    expect(platform.story("t1")).toEqual(["working", "=()"]);
    expect(platform.story("t2")).toEqual(["=This is no longer available. final"]);
    expect(notifications.notified).toEqual([["t1", "session-1"]]);
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
  it("is sent to the agent when they are downloaded; a sign of life is sent before", async () => {
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

describe("an answer that is owed", () => {
  it("is stored with the message, until it is delivered", async () => {
    const { agent, gate } = patient();
    const stage = await Stage.open({ agent });
    const platform = stage.connect();
    await platform.say(message("go", { taskId: "t" }));
    expect(await stage.owed("t")).toBe(ROUTE);
    gate.resolve();
    await stage.clock.advance(2_000);
    expect(platform.story("t").at(-1)).toBe("completed final");
    expect(await stage.owed("t")).toBeUndefined();
  });

  it("by a process that died is sent over the link, or announced if there is none", async () => {
    for (const isBack of [true, false]) {
      const stage = await Stage.open({ agent: echo() });
      const first = stage.connect();
      first.sleep();
      await first.say(message("hello", { taskId: "t" }));
      await first.tear();
      stage.harness.crash();
      await stage.clock.advance(30_000);
      const notifications = new RecordedNotifications();
      const next = await Stage.open({ agent: echo(), after: stage, notifications });
      const platform = isBack ? next.connect() : undefined;
      await next.clock.advance(31_000);
      expect(platform?.story("t").at(-1)).toBe(isBack ? "completed final" : undefined);
      expect(notifications.notified).toEqual(isBack ? [] : [["t", "session-1"]]);
      expect(await next.owed("t")).toBeUndefined();
    }
  });

  it.each(["not JSON", "[]", '{"sessionId":1}'])("to the address %s is given up", async (address) => {
    const stage = await Stage.open({ agent: echo() });
    const replyTo = { id: "answer", route: ROUTE, address, wants: "events" } as const;
    const { id } = await stage.harness.task("hello", { replyTo });
    await settle(20);
    const dead = await stage.harness.memory.pendingDeliveries({ limit: 10, dead: true });
    expect(dead).toMatchObject([{ taskId: id, lastError: "the address cannot be read" }]);
  });

  it("is no longer owed if the next message comes before its pong", async () => {
    const notifications = new RecordedNotifications();
    const stage = await Stage.open({ agent: echo(), notifications });
    const first = stage.connect();
    await settle();
    first.sleep();
    await first.say(message("one", { taskId: "t1" }));
    await first.say(message("two", { taskId: "t2" }));
    await first.close();
    const second = stage.connect();
    await settle(20);
    await stage.clock.advance(120_000);
    expect(second.story("t2").at(-1)).toBe("completed final");
    expect([await stage.owed("t1"), await stage.owed("t2")]).toEqual([undefined, undefined]);
  });

  it("waits for the next process if this one stops", async () => {
    const { agent, gate } = patient("resume");
    const stage = await Stage.open({ agent });
    await stage.connect().say(message("hello", { taskId: "t" }));
    stage.agent.close();
    await stage.endRoute();
    stage.harness.crash();
    await stage.clock.advance(30_000);
    const next = await Stage.open({ agent, after: stage });
    const platform = next.connect();
    gate.resolve();
    await settle(20);
    await next.clock.advance(1_000);
    expect(platform.story("t").at(-1)).toBe("completed final");
    expect(await next.owed("t")).toBeUndefined();
  });
});
