/** Frames as they are printed in the protocol's description, byte for byte. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { agentOf, chunk, echo, status } from "../../../../core/engine/testing/agents.ts";
import { settle } from "../../../../core/engine/testing/fake-clock.ts";
import type { Message } from "../../../../core/model/message.ts";
import { message, Stage } from "./testing/stage.ts";

const printed = (name: string): string => readFileSync(new URL(`fixtures/${name}.json`, import.meta.url), "utf8");
const parsed = (name: string): Record<string, unknown> => JSON.parse(printed(name));

const agentId = "your-agent-id";

describe("what is printed", () => {
  it("is sent first and every 20 s", async () => {
    const stage = await Stage.open({ agent: echo(), agentId });
    const platform = stage.connect();
    await stage.clock.advance(20_000);
    expect(platform.frames).toEqual([parsed("introduction"), parsed("heartbeat")]);
  });

  it("is answered: a message", async () => {
    const stage = await Stage.open({ agent: echo(), agentId });
    const platform = stage.connect();
    await platform.say(printed("message"));
    expect(platform.story("task-id")).toEqual(["working", "=()", "=用户消息内容", "completed final"]);
    const { msgDetail: _detail, ...envelope } = parsed("answer");
    for (const { msgDetail, ...frame } of platform.frames.slice(1)) {
      expect(frame).toEqual(envelope);
      expect(JSON.parse(String(msgDetail))).toMatchObject({ jsonrpc: "2.0", id: "request-id" });
    }
  });

  it("is answered: clearing the context", async () => {
    const stage = await Stage.open({ agent: echo(), agentId });
    const platform = stage.connect();
    await platform.say(printed("clear"));
    expect(platform.answers).toEqual([
      {
        sessionId: "session-id",
        taskId: "request-id",
        detail: { ...parsed("cleared"), error: { code: 0, message: "" } },
      },
    ]);
  });

  it("is answered: cancelling a task", async () => {
    const stage = await Stage.open({
      agentId,
      agent: agentOf(async function* ({ signal }) {
        yield status("TASK_STATE_WORKING");
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      }),
    });
    const platform = stage.connect();
    await platform.say(printed("message"));
    await platform.say(printed("cancel"));
    expect(platform.answers.map(({ detail }) => detail)).toContainEqual({
      ...parsed("canceled"),
      error: { code: 0, message: "" },
    });
    const updates = platform.answers.filter(({ detail }) => detail.result.kind !== undefined);
    expect(updates.at(-1)?.detail.result).toEqual({
      taskId: "task-id",
      kind: "status-update",
      final: true,
      status: { state: "canceled" },
    });
  });

  it("is understood: parts of text and files", async () => {
    const said: Message[] = [];
    const stage = await Stage.open({
      agent: agentOf(async function* ({ message: heard }) {
        said.push(heard);
        yield chunk("out", "ok");
      }),
    });
    const platform = stage.connect();
    await platform.say(message("", { parts: [parsed("text-part"), parsed("file-part")] }));
    expect(said[0]?.parts).toEqual([
      { text: "消息文本内容" },
      { url: "https://example.com/file.pdf", filename: "filename.pdf", mediaType: "application/pdf" },
    ]);
  });

  it("is how updates look, with `render: spec`", async () => {
    const stage = await Stage.open({
      mode: "spec",
      agent: agentOf(async function* () {
        yield status("TASK_STATE_WORKING", "正在处理...");
        yield { artifact: { artifactId: "artifact-id", parts: [{ text: "响应内容" }] }, lastChunk: true };
      }),
    });
    const platform = stage.connect();
    await platform.say(message("hi", { id: "message-id", taskId: "task-id" }));
    await settle();
    const details = platform.answers.map(({ detail }) => detail);
    expect(details).toContainEqual({ ...parsed("status-update"), error: { code: 0, message: "" } });
    const { result, ...rest } = parsed("artifact-update") as { result: object };
    // What is printed ends the task; here a status does, because a task's last artifact is not known to be the last.
    expect(details).toContainEqual({ ...rest, result: { ...result, final: false }, error: { code: 0, message: "" } });
    expect(details.at(-1)?.result).toMatchObject({
      kind: "status-update",
      final: true,
      status: { state: "completed" },
    });
  });

  it("is how errors look", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    await platform.say({
      ...message("hi", { id: "message-id" }),
      method: "dance",
      params: { id: "t", sessionId: "s" },
    });
    const [answer] = platform.answers;
    expect(answer).toMatchObject({ sessionId: "s", taskId: "t" });
    expect(Object.keys(answer?.detail ?? {})).toEqual(Object.keys(parsed("error")));
    expect(answer?.detail.error.code).toBe(-32601);
  });
});
