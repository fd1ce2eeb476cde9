import { describe, expect, it } from "vitest";
import { EXTENSIONS } from "../../../../core/model/extensions.ts";
import type { Part } from "../../../../core/model/message.ts";
import { statusText } from "../../../../core/model/status-texts.ts";
import type { Task, TaskState } from "../../../../core/model/task.ts";
import { XIAOYI_EXTENSION } from "../metadata.ts";
import { signedHeaders } from "../signature.ts";
import {
  answerTextOf,
  decodePushResponse,
  encodeNotification,
  type PhoneNotification,
  toPhoneNotification,
  toTapAnswerFrames,
} from "./notification.ts";

function taskOf(state: TaskState, ...artifacts: Part[][]): Task {
  return {
    id: "s&1",
    contextId: "s",
    status: { state },
    artifacts: artifacts.map((parts, index) => ({ artifactId: `a${index}`, parts })),
  };
}

const route = { apiId: "api", address: { pushId: "device" }, requestId: "request", resultId: "result" };

describe("what there is to tell of a task", () => {
  it("is its end, unless the user brought it about", () => {
    expect(toPhoneNotification(taskOf("TASK_STATE_COMPLETED", [{ text: "Done." }]), "zh")).toEqual({
      taskId: "s&1",
      state: "completed",
      text: "Done.",
    });
    expect(toPhoneNotification(taskOf("TASK_STATE_FAILED"), "zh")?.state).toBe("failed");
    expect(toPhoneNotification(taskOf("TASK_STATE_REJECTED"), "zh")?.state).toBe("failed");
    for (const state of ["TASK_STATE_CANCELED", "TASK_STATE_WORKING", "TASK_STATE_SUBMITTED"] as const) {
      expect(toPhoneNotification(taskOf(state), "zh")).toBeUndefined();
    }
  });

  it("is a question, in its own words if it has any", () => {
    const task = taskOf("TASK_STATE_INPUT_REQUIRED", [{ text: "All about tea." }]);
    const message = { messageId: "m1", role: "ROLE_AGENT", parts: [{ text: "Black or green?" }] } as const;
    const asked = toPhoneNotification({ ...task, status: { ...task.status, message } }, "zh");
    expect(asked).toEqual({ taskId: "s&1", state: "completed", text: "Black or green?", question: "m1" });
    const timed = toPhoneNotification({ ...task, status: { ...task.status, timestamp: "2026-01-01T00:00:00Z" } }, "zh");
    expect(timed).toMatchObject({ text: "All about tea.", question: "2026-01-01T00:00:00Z" });
  });

  it("is text, whatever it was", () => {
    const card = { text: "A card", metadata: { [XIAOYI_EXTENSION]: { data: { cardsInfo: [] } } } };
    const reasoning = { text: "", metadata: { [EXTENSIONS.reasoning]: "Hm." } };
    const task = taskOf(
      "TASK_STATE_COMPLETED",
      [{ text: "One" }, reasoning, card],
      [
        { raw: "AAAA", filename: "a.png" },
        { url: "https://files.example/b.pdf", filename: "b.pdf" },
      ],
    );
    const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "That is all." }] } as const;
    expect(answerTextOf({ ...task, status: { ...task.status, message } }, "zh")).toBe(
      "One\nA card\n\na.png\n[b.pdf](https://files.example/b.pdf)\n\nThat is all.",
    );
  });
});

describe("texts of the server itself", () => {
  const failed = (text: string): Task => ({
    ...taskOf("TASK_STATE_FAILED"),
    status: { state: "TASK_STATE_FAILED", message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text }] } },
  });

  it.each([
    ["zh", "智能体未能在 30 秒内完成任务。"],
    ["en", "The agent did not finish within 30 s."],
  ] as const)("is in the language of the entry, and what the agent wrote stays: %s", (language, words) => {
    expect(toPhoneNotification(failed(statusText("agentTimedOut", 30)), language)?.text).toBe(words);
    expect(toPhoneNotification(failed("No tea left."), language)?.text).toBe("No tea left.");
  });

  it("stands above what a program wrote", () => {
    const task = failed(`${statusText("programExited", 2)}\nTraceback`);
    expect(answerTextOf(task, "zh")).toBe("智能体程序异常退出（代码 2）。\nTraceback");
  });

  it("for an empty answer is in that language, too", () => {
    const textOf = (notice: Partial<PhoneNotification>): string => {
      const whole = { taskId: "t", state: "completed", text: "", ...notice } as const;
      return JSON.parse(encodeNotification(whole, route, "en")).result.pushText;
    };
    expect([textOf({}), textOf({ state: "failed" }), textOf({ question: "m" })]).toEqual([
      "The task is completed.",
      "The task failed. Please try again.",
      "The task needs your answer.",
    ]);
    expect(JSON.stringify(toTapAnswerFrames({ taskId: "t", artifactId: () => "a" }, undefined, "zh"))).toContain(
      "内容已失效",
    );
    expect(JSON.stringify(toTapAnswerFrames({ taskId: "t", artifactId: () => "a" }, undefined, "en"))).toContain(
      "This is no longer available.",
    );
  });
});

describe("a notification", () => {
  it("of a question is another than those of other questions and of the answer", () => {
    const common = { taskId: "s&1", state: "completed", text: "" } as const;
    const notifications = [common, { ...common, question: "m1" }, { ...common, question: "m2" }];
    const results = notifications.map((notice) => JSON.parse(encodeNotification(notice, route, "zh")).result);
    expect(new Set(results.map(({ artifacts }) => artifacts[0].artifactId)).size).toBe(3);
    expect(results.map(({ status }) => status.state)).toEqual(["completed", "completed", "completed"]);
    expect(results.map(({ pushText }) => pushText)).toEqual(["任务已完成", "任务需要您的回复", "任务需要您的回复"]);
  });

  it("has the members of the platform's documents", () => {
    const body = encodeNotification({ taskId: "s&1", state: "completed", text: "Done.\nReally." }, route, "zh");
    expect(JSON.parse(body)).toEqual({
      jsonrpc: "2.0",
      id: "request",
      result: {
        id: "result",
        apiId: "api",
        pushId: "device",
        pushText: "Done. Really.",
        kind: "task",
        artifacts: [{ artifactId: expect.any(String), parts: [{ kind: "text", text: "Done.\nReally." }] }],
        status: { state: "completed" },
      },
    });
  });

  it("names the login, where there is one", () => {
    const address = { pushId: "device", loginSessionId: "login" };
    const body = encodeNotification({ taskId: "t", state: "failed", text: "" }, { ...route, address }, "zh");
    expect(JSON.parse(body)).toMatchObject({
      result: { agentLoginSessionId: "login", pushText: "任务执行异常，请重试", status: { state: "failed" } },
    });
  });

  it("is identified by its task, so that it is not shown twice", () => {
    const artifactOf = (taskId: string) =>
      JSON.parse(encodeNotification({ taskId, state: "completed", text: "x" }, route, "zh")).result.artifacts[0]
        .artifactId;
    expect(artifactOf("one")).toBe(artifactOf("one"));
    expect(artifactOf("one")).not.toBe(artifactOf("two"));
  });

  it("names its content where that is long", () => {
    const partOf = (text: string) =>
      JSON.parse(encodeNotification({ taskId: "s&1", state: "completed", text }, route, "zh")).result.artifacts[0]
        .parts;
    expect(partOf("艺".repeat(1_000))).toEqual([{ kind: "text", text: "艺".repeat(1_000) }]);
    expect(partOf("艺".repeat(1_001))).toEqual([{ kind: "data", data: { pushDataId: "s&1" } }]);
  });

  it("is signed for its moment", () => {
    const keys = { accessKey: "ak", secretKey: "2e3b71f5def64d95a727314f028bf5aa" };
    expect(signedHeaders(keys, 1547630863716)).toEqual({
      "x-access-key": "ak",
      "x-sign": "6lFqepUu79KSxVCsrXyB/aLVFIdutsTLLx1cZjxDE4I=",
      "x-ts": "1547630863716",
    });
  });
});

describe("a tapped notification", () => {
  const scope = () => {
    let count = 0;
    return { taskId: "s&2", artifactId: () => `new-${++count}` };
  };

  it("is answered by one artifact that is the end", () => {
    expect(toTapAnswerFrames(scope(), "All of it.", "zh").map(({ result }) => result)).toEqual([
      {
        taskId: "s&2",
        kind: "artifact-update",
        append: false,
        lastChunk: true,
        final: true,
        artifact: { artifactId: "new-1", parts: [{ kind: "text", text: "All of it." }] },
      },
    ]);
  });

  it("is answered in pieces that add up, of which only the last is the end", () => {
    const results = toTapAnswerFrames(scope(), "x".repeat(9_000), "zh").map(({ result }) => result);
    expect(results.map(({ final }) => final)).toEqual([false, false, true]);
    expect(results).toMatchObject([{ append: false }, { append: true }, { append: true }]);
    expect(new Set(results.map((result) => "artifact" in result && result.artifact.artifactId)).size).toBe(3);
  });

  it("is never answered by nothing", () => {
    expect(JSON.stringify(toTapAnswerFrames(scope(), "", "zh"))).toContain("任务已完成");
  });
});

describe("the platform's response to a notification", () => {
  it.each([
    [200, "", "sent"],
    [200, '{"id":"1","resultId":"2","result":{"code":"0","message":"success"}}', "sent"],
    [200, '{"result":{"code":0}}', "sent"],
    [200, "<html></html>", "sent"],
    [200, "null", "sent"],
    [200, '{"result":{"code":"99911113"}}', "busy"],
    [200, '{"error":{"code":99911113}}', "busy"],
    [200, '{"result":{"code":"400"}}', "refused"],
    [400, "", "refused"],
    [401, "", "refused"],
    [429, "", "busy"],
    [302, "", "refused"],
    [500, "", "busy"],
    [503, "<html></html>", "busy"],
  ])("%i %s: %s", (status, body, kind) => {
    expect(decodePushResponse(status, body).kind).toBe(kind);
  });

  it("is not quoted in the reason", () => {
    expect(decodePushResponse(200, '{"result":{"code":"a\\nforged line"}}')).toEqual({
      kind: "refused",
      why: "code unreadable",
    });
  });
});
