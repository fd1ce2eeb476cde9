import { describe, expect, test } from "vitest";
import { type Fields, fieldsOf } from "../../../../core/model/json.ts";
import { parseObject } from "../json.ts";
import type { DeviceEvent } from "../phone.ts";
import { AGENT_IS_AWAY } from "../task/simulated-task.ts";
import { artifact, messageText, status } from "../testing/raw-agent.ts";
import { createStage, rulesOf } from "../testing/stage.ts";
import { DEFAULT_STYLE } from "./wire-format.ts";

const stage = createStage();

/** The outcome of something the agent had the device do. */
const executionResult = (intentName: string, outputs: Fields): DeviceEvent => ({
  namespace: "Common",
  name: "UploadExeResult",
  payload: { intentName, outputs },
});
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("ids", () => {
  test("of a message are those of the platform", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    const { phone } = simulator;
    phone.say("hello");
    expect(await agent.next()).toEqual({
      jsonrpc: "2.0",
      id: expect.stringMatching(UUID),
      method: "message/stream",
      agentId: simulator.agent.agentId,
      deviceId: expect.stringMatching(UUID),
      conversationId: phone.conversationId,
      sessionId: phone.appSessionId,
      params: {
        id: `${phone.conversationId}&1`,
        sessionId: phone.conversationId,
        agentLoginSessionId: "",
        message: {
          kind: "message",
          messageId: expect.stringMatching(UUID),
          role: "user",
          parts: [{ kind: "text", text: "hello" }],
        },
      },
    });
    expect(phone.appSessionId).not.toBe(phone.conversationId);
  });

  test("opening the app again changes the session and not the conversation", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    simulator.phone.say("one");
    const before = await agent.next();
    simulator.phone.reopen();
    simulator.phone.say("two");
    const after = await agent.next();
    expect(after.sessionId).not.toBe(before.sessionId);
    expect(after.conversationId).toBe(before.conversationId);
    expect(fieldsOf(after.params).id).toBe(`${simulator.phone.conversationId}&2`);
  });

  test("an answer to a question of the agent comes under the same ids", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    const task = simulator.phone.say("remove it");
    const first = await agent.next();
    agent.respond(first, artifact("a", "Really?"));
    agent.respond(first, status("input-required"));
    await task.waitUntilSettled();
    expect(task.asks).toBe(true);
    await stage.clock.advance(3_600_000);
    expect(task.isOpen).toBe(true);
    expect(simulator.phone.say("yes")).toBe(task);
    const second = await agent.next();
    expect([second.id, fieldsOf(second.params).id]).toEqual([first.id, fieldsOf(first.params).id]);
    expect(messageText(second)).toBe("yes");
    agent.respond(second, artifact("b", "Gone.", { final: true }));
    await task.waitUntilSettled();
    expect(task).toMatchObject({ state: "completed", finals: 1 });
    expect(simulator.violations).toEqual([]);
  });

  test("the desktop is recognised by the shape of its device's id", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    simulator.addPhone({ device: "desktop" }).say("hello");
    expect((await agent.next()).deviceId).not.toMatch(UUID);
  });

  test("are the same for the same seed", async () => {
    const first = await stage.simulate();
    const second = await stage.simulate();
    expect(second.agent).toEqual(first.agent);
    expect(second.phone.sender).toEqual(first.phone.sender);
  });
});

describe("a second message", () => {
  test("takes the channel of the first one away", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    const older = simulator.phone.say("one");
    const newer = simulator.phone.say("two");
    const [one, two] = [await agent.next(), await agent.next()];
    agent.respond(one, artifact("a", "1"));
    agent.respond(one, status("completed", { final: true }));
    agent.respond(two, artifact("b", "2", { final: true }));
    await newer.waitUntilSettled();
    expect(older).toMatchObject({ ending: "superseded", shown: 0, ignored: 2 });
    expect(newer.screen().text).toBe("2");
    expect(simulator.violations).toEqual([]);
    agent.respond(one, status("completed", { final: true }));
    await older.waitUntil(({ ignored }) => ignored === 3);
    expect(rulesOf(simulator)).toEqual(["two-finals"]);
  });

  test("of another phone does not", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    const tasks = [simulator.phone.say("one"), simulator.addPhone().say("two")];
    for (const _task of tasks) agent.respond(await agent.next(), artifact("a", "done", { final: true }));
    await Promise.all(tasks.map((task) => task.waitUntilSettled()));
    expect(tasks.map(({ ending }) => ending)).toEqual(["final", "final"]);
  });
});

describe("silence", () => {
  test("ends a task, and what comes later is ignored", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    const task = simulator.phone.say("hello");
    const request = await agent.next();
    await stage.clock.advance(40_000);
    agent.respond(request, status("working"));
    await task.waitUntil(({ shown }) => shown === 1);
    await stage.clock.advance(59_999);
    expect(task.isOpen).toBe(true);
    await stage.clock.advance(1);
    expect(task.ending).toBe("silence");
    expect(task.screen()).toMatchObject({ failure: AGENT_IS_AWAY, painted: true });
    agent.respond(request, artifact("a", "late", { final: true }));
    await task.waitUntil(({ ignored }) => ignored === 1);
    expect(rulesOf(simulator)).toEqual(["no-final"]);
  });

  test("from the beginning is not a violation: the message may have been lost", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    const task = simulator.phone.say("hello");
    await agent.next();
    await stage.clock.advance(60_000);
    expect([task.ending, task.isUnanswered]).toEqual(["silence", true]);
    expect(simulator.violations).toEqual([]);
  });

  test("after the user's reply counts from there", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    const task = simulator.phone.say("hello");
    agent.respond(await agent.next(), status("input-required"));
    await task.waitUntilSettled();
    simulator.phone.say("yes");
    await stage.clock.advance(60_000);
    expect([task.ending, rulesOf(simulator)]).toEqual(["silence", []]);
  });

  test("without an agent is reported at once", async () => {
    const simulator = await stage.simulate();
    expect(simulator.phone.say("hello").screen().failure).toBe(AGENT_IS_AWAY);
  });
});

describe("the platform's spellings", () => {
  const controls: readonly [
    string,
    Partial<typeof DEFAULT_STYLE>,
    "cancel" | "clear",
    (f: Fields) => unknown,
    unknown,
  ][] = [
    ["underscores", { spelling: "underscored" }, "clear", ({ method }) => method, "clear_context"],
    ["underscores", { spelling: "underscored" }, "cancel", ({ method }) => method, "tasks_cancel"],
    [
      "params",
      { controlSession: "params" },
      "clear",
      ({ params, sessionId }) => [fieldsOf(params).sessionId, sessionId],
      ["C", undefined],
    ],
    ["the task as id", { cancelNames: "id" }, "cancel", ({ id, params }) => [id, params], ["C&1", undefined]],
    ["the task as taskId", { cancelNames: "taskId" }, "cancel", ({ taskId }) => taskId, "C&1"],
    ["the task in params", { cancelNames: "params" }, "cancel", ({ params }) => params, { id: "C&1" }],
    ["an action", { encoding: "action" }, "clear", ({ action, jsonrpc }) => [action, jsonrpc], ["clear", undefined]],
    ["an action", { encoding: "action" }, "cancel", ({ action }) => action, "tasks/cancel"],
    ["an envelope", { encoding: "wrapped" }, "clear", ({ msgType }) => msgType, "clearContext"],
  ];

  test.each(controls)("%s: %j %s", async (_what, style, what, look, expected) => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    const { phone } = simulator;
    const named = new Map([[phone.conversationId, "C"]]);
    phone.say("hello");
    await agent.next();
    simulator.style = { ...DEFAULT_STYLE, ...style };
    const answer = phone[what]();
    const frame = await agent.next();
    const seen = JSON.stringify(look(frame) ?? null);
    const shown = [...named].reduce((text, [id, name]) => text.replaceAll(id, name), seen);
    expect(JSON.parse(shown)).toEqual(JSON.parse(JSON.stringify(expected)));
    agent.control(frame, { id: frame.id ?? "", status: { state: "unknown" } });
    await stage.clock.advance(10_000);
    expect(["unknown", "no-answer"]).toContain(await answer);
  });

  test("messages in an envelope are the same inside", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    simulator.style = { ...DEFAULT_STYLE, encoding: "wrapped" };
    const task = simulator.phone.say("hello");
    const frame = await agent.next();
    expect(frame).toMatchObject({ msgType: "message", agentId: agent.agentId, taskId: task.id });
    const request = parseObject(String(frame.msgDetail)) ?? {};
    expect(request).toMatchObject({ method: "message/stream", params: { id: task.id } });
    agent.respond(request, artifact("a", "done", { final: true }));
    await task.waitUntilSettled();
    expect(simulator.violations).toEqual([]);
  });
});

test("messages may have no ids of their own", async () => {
  const simulator = await stage.simulate();
  const agent = await stage.join(simulator);
  simulator.phone.say("hello");
  expect(fieldsOf(fieldsOf((await agent.next()).params).message).messageId).toEqual(expect.any(String));
  simulator.style = { ...DEFAULT_STYLE, messageIds: "left-out" };
  simulator.phone.say("hello");
  expect(fieldsOf((await agent.next()).params).message).not.toHaveProperty("messageId");
});

test("a conversation that is taken up again counts on", async () => {
  const simulator = await stage.simulate();
  await stage.join(simulator);
  const { phone } = simulator;
  const { conversationId } = phone;
  phone.say("one");
  void phone.clear();
  expect(phone.say("two").id).toBe(`${phone.conversationId}&1`);
  phone.conversationId = conversationId;
  expect(phone.say("three").id).toBe(`${conversationId}&2`);
});

describe("what is not text", () => {
  test("files are links that work, also without a word and of an odd type", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    simulator.phone.say("", [{ name: "照片 1.jpg", mimeType: "jpeg", bytes: Buffer.from("picture") }]);
    const { parts } = fieldsOf(fieldsOf((await agent.next()).params).message);
    expect(parts).toEqual([
      { kind: "file", file: { name: "照片 1.jpg", mimeType: "jpeg", uri: expect.stringContaining("/files/") } },
    ]);
    const [part] = parts as readonly { readonly file: { readonly uri: string } }[];
    const answer = await fetch(part?.file.uri ?? "");
    expect([answer.status, await answer.text()]).toEqual([200, "picture"]);
    expect((await fetch(`${part?.file.uri}x`)).status).toBe(404);
  });

  test("variables come as an object or as a list", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    const { phone } = simulator;
    const variables = async () => {
      phone.say("hello");
      const message = fieldsOf(fieldsOf((await agent.next()).params).message) as { readonly parts: readonly Fields[] };
      expect(message.parts.at(-1)).toEqual({ kind: "text", text: "hello" });
      return fieldsOf(fieldsOf(message.parts[0]?.data).variables).systemVariables;
    };
    phone.variables = "object";
    expect(await variables()).toMatchObject({ push_id: phone.pushId });
    phone.variables = "list";
    expect(await variables()).toContainEqual({ push_id: phone.pushId });
  });

  test("a device's report belongs to the running task and takes no turn", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    const task = simulator.phone.say("where am I?");
    const request = await agent.next();
    expect(simulator.phone.report(executionResult("GetCurrentLocation", { code: 0 }))).toBe(task);
    const report = await agent.next();
    expect(report.id).not.toBe(request.id);
    expect(fieldsOf(report.params)).toMatchObject({
      id: task.id,
      message: {
        parts: [
          {
            kind: "data",
            data: {
              events: [
                {
                  header: { namespace: "Common", name: "UploadExeResult" },
                  payload: { intentName: "GetCurrentLocation", outputs: { code: 0 } },
                },
              ],
            },
          },
        ],
      },
    });
    expect(task.isOpen).toBe(true);
    task.end("canceled");
    const stray = simulator.phone.report(executionResult("Late", {}));
    expect(stray.id).not.toBe(task.id);
    await stage.clock.advance(3_600_000);
    expect(stray.isOpen).toBe(true);
  });
});
