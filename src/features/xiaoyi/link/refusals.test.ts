/** What is sent back for frames and tasks that come to nothing, in the language of the entry. */
import { describe, expect, it } from "vitest";
import { agentOf, chunk, echo } from "../../../core/engine/testing/agents.ts";
import { AGENT_ID, Stage } from "./testing/stage.ts";

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
