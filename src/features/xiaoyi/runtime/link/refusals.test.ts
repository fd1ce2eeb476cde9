/** What is sent back for frames and tasks that come to nothing, in the language of the entry. */
import { describe, expect, it } from "vitest";
import { agentOf, chunk, createGate, echo, inputText, status } from "../../../../core/engine/testing/agents.ts";
import { settle } from "../../../../core/engine/testing/fake-clock.ts";
import { callOf } from "../../../../core/engine/testing/harness.ts";
import { AGENT_ID, message, Stage } from "./testing/stage.ts";

const request = (more: object) => ({
  jsonrpc: "2.0",
  id: "r",
  method: "message/stream",
  agentId: AGENT_ID,
  ...more,
});

describe("a message/stream without a message", () => {
  it.each([
    ["with its task and conversation", { params: { id: "t", sessionId: "s" } }, "s", "t"],
    ["with the conversation beside the params", { conversationId: "s", params: { id: "t" } }, "s", "t"],
    [
      "in an envelope",
      { sessionId: "s", taskId: "t", msgType: "message", msgDetail: '{"id":"r","method":"message/stream"}' },
      "s",
      "t",
    ],
    ["with something else in its place", { params: { id: "t", sessionId: "s", message: "hi" } }, "s", "t"],
  ])("is ended by a frame with an error: %s", async (_, more, sessionId, taskId) => {
    const stage = await Stage.open({ agent: echo(), language: "zh" });
    const platform = stage.connect();
    await platform.say(request(more));
    const message = "消息无法处理，可能格式有误或内容过大。";
    expect(platform.story("t")).toEqual(["working", "=()", `=${message}`, "failed final"]);
    expect(platform.answers.at(-1)).toMatchObject({
      sessionId,
      taskId,
      detail: { id: "r", error: { code: -32602, message } },
    });
  });

  it.each([
    ["without a task", { params: { sessionId: "s" } }, "s", "s"],
    ["without a conversation", { params: { id: "t" } }, "", "t"],
    ["without params", {}, "", ""],
  ])("is refused under the id of the request: %s", async (_, more, sessionId, taskId) => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    await platform.say(request(more));
    expect(platform.answers).toEqual([
      { sessionId, taskId, detail: { jsonrpc: "2.0", id: "r", error: { code: -32602, message: expect.any(String) } } },
    ]);
  });

  it("is disregarded without an id or a session", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    await platform.say(request({ id: undefined }));
    expect(platform.answers).toEqual([]);
  });
});

describe("a task that fails", () => {
  it.each([
    ["zh", "智能体处理这条消息时出错了，请稍后重试。", "任务执行异常，请重试"],
    ["en", "The agent failed while it worked on this message.", "The task failed. Please try again."],
  ] as const)("says so: %s", async (language, text, message) => {
    const stage = await Stage.open({
      language,
      agent: agentOf(async function* () {
        yield chunk("out", "半", false);
        throw new Error("broken");
      }),
    });
    const platform = stage.connect();
    await platform.say(
      request({ params: { id: "t", sessionId: "s", message: { parts: [{ kind: "text", text: "hi" }] } } }),
    );
    expect(platform.story("t").slice(-2)).toEqual([`=半\n\n${text}`, "failed final"]);
    expect(platform.answers.at(-1)?.detail.error).toEqual({ code: 99_921_111, message });
  });
});

describe("what the platform should not send", () => {
  it("is logged once for each reason, and the conversation continues", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    const odd = ["{", "[]", "7", '{"a":1}', '{"error":{"code":1}}', "x".repeat(4 * 1024 * 1024 + 1)];
    for (const frame of [...odd, ...odd]) platform.send(frame);
    platform.send({ ...message("not ours", { taskId: "foreign" }), agentId: "somebody" });
    platform.send(wrapped("message", { ...message("not ours", { taskId: "foreign" }), agentId: "somebody" }));
    platform.send({ msgType: "heartbeat", agentId: AGENT_ID });
    platform.send(JSON.stringify({ deep: JSON.parse("[".repeat(70) + "]".repeat(70)) }));
    await platform.say(message("hello", { taskId: "t" }));
    expect(platform.story("t").at(-1)).toBe("completed final");
    expect(stage.logged.map(({ fields }) => fields.why)).toEqual([
      "not-json",
      "no-object",
      "no-method",
      "error",
      "too-long",
      "other-agent",
      "too-deep",
    ]);
    expect(platform.story("foreign")).toEqual([]);
  });

  it("is refused where it can be: unknown methods and messages that are none", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    await platform.say({ jsonrpc: "2.0", id: 0, method: "dance", sessionId: "s" });
    const bad = message("", { id: "r", taskId: "t", sessionId: "s", parts: [] });
    await platform.say(bad);
    await platform.say(bad);
    await platform.say({ ...message("x"), params: { sessionId: "s", message: { parts: [] } } });
    await platform.say({ ...message("x"), params: "nothing", sessionId: undefined, conversationId: undefined });
    expect(platform.answers.map(({ detail, sessionId }) => [sessionId, detail.id, detail.error.code])).toEqual([
      ["s", 0, -32601],
      ["s", "r", 0],
      ["s", "r", 0],
      ["s", "r", 0],
      ["s", "r", -32602],
      ["s", expect.anything(), -32602],
      ["", expect.anything(), -32602],
    ]);
    expect(platform.story("t")).toEqual(["working", "=()", "=The message is malformed or too large.", "failed final"]);
  });

  it("and cannot be read ends nothing that is under way, and puts a question again", async () => {
    const go = createGate();
    const stage = await Stage.open({
      agent: agentOf(async function* (turn) {
        if (turn.history.length < 2) yield status("TASK_STATE_INPUT_REQUIRED", "Sure?");
        else {
          await go.pass();
          yield chunk("out", inputText(turn), false);
        }
      }),
    });
    const platform = stage.connect();
    const bad = message("", { taskId: "t", id: "r", parts: [{ kind: "file", file: { name: 5 } }] });
    await platform.say(message("go", { taskId: "t", id: "r" }));
    await platform.say(bad);
    expect(platform.story("t").slice(-2)).toEqual(["=Sure?", "input-required: "]);
    expect(platform.story("t").filter((line) => line === "=Sure?")).toHaveLength(2);
    await platform.say(message("yes", { taskId: "t", id: "r" }));
    await platform.say({ ...bad, id: "r2" });
    expect(platform.story("t").at(-1)).toBe("working");
    go.open();
    await settle(20);
    expect(platform.story("t").slice(-2)).toEqual(["=Sure?\n\nyes", "completed final"]);
    expect(platform.answers.every(({ detail }) => detail.error.code === 0)).toBe(true);
  });

  it("has ids that are too long to be kept", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    const long = "i".repeat(1_025);
    await platform.say(message("x", { taskId: long }));
    await platform.say(message("x", { sessionId: long }));
    await platform.say(message("x", { appSessionId: long }));
    await platform.say({ jsonrpc: "2.0", id: 1, method: "clearContext", sessionId: long });
    await platform.say({ jsonrpc: "2.0", id: long, method: "tasks/cancel", sessionId: "session-1" });
    expect(platform.answers).toEqual([]);
    expect(stage.logged.map(({ fields }) => fields.why)).toEqual(["long-id"]);
    await platform.say(message("x", { taskId: "i".repeat(1_024), sessionId: "j".repeat(1_024) }));
    expect(platform.story("i".repeat(1_024)).at(-1)).toBe("completed final");
  });

  it("is understood in every encoding", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    const plain = message("one", { taskId: "t1" });
    await platform.say(plain);
    await platform.say(wrapped("message", message("two", { taskId: "t2" })));
    await platform.say({ ...message("three", { taskId: "t3" }), method: "tasks/send" });
    await platform.say({ ...wrapped("stream", {}), msgDetail: message("four", { taskId: "t4" }) });
    for (const taskId of ["t1", "t2", "t3", "t4"]) expect(platform.story(taskId).at(-1)).toBe("completed final");
  });
});

it("callers of other dialects see the platform's variables, but not where to push", async () => {
  const stage = await Stage.open({ agent: echo() });
  const platform = stage.connect();
  for (const systemVariables of [
    { push_id: "secret", device_type: "phone" },
    [{ push_id: "secret" }, { device_type: "phone" }],
  ]) {
    const parts = [
      { kind: "text", text: "hi" },
      { kind: "data", data: { variables: { systemVariables } } },
    ];
    await platform.say(message("", { taskId: JSON.stringify(systemVariables).slice(0, 10), parts }));
  }
  const { tasks } = await stage.harness.engine.agent("agent").dispatch({ kind: "list" }, callOf());
  expect(JSON.stringify(tasks)).not.toContain("secret");
  expect(JSON.stringify(tasks)).toContain("device_type");
});

function wrapped(msgType: string, request: object): object {
  return { msgType, agentId: AGENT_ID, sessionId: "app-1", taskId: "", msgDetail: JSON.stringify(request) };
}
