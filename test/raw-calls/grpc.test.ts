/** gRPC as a stranger speaks it: with a client generated from the published `.proto` files, and none of our code. */

import type { ServiceError } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { createTckAgent } from "../../src/features/writers/tck.ts";
import { GeneratedClient, type Plain } from "../support/generated-client.ts";
import { startServer } from "../support/lifecycle.ts";

const { grpc = "" } = await startServer({ agents: { echo: createEchoAgent(), tck: createTckAgent() } });

async function framesOf(stream: AsyncIterable<Plain>): Promise<Plain[]> {
  const frames: Plain[] = [];
  for await (const frame of stream) frames.push(frame);
  return frames;
}

const kindsOf = (frames: readonly Plain[]) => frames.map(({ payload }) => payload);

describe("lf.a2a.v1.A2AService", () => {
  const version = { "a2a-version": "1.0" };
  const message = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "hi" }] };
  const client = new GeneratedClient(grpc, "lf/a2a/v1/a2a.proto");

  it("sends, gets, lists and refuses to cancel what has ended", async () => {
    const { task } = (await client.ask("SendMessage", { message }, version)) as { task: { id: string } };
    expect(task).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" }, artifacts: [{ parts: [{ text: "hi" }] }] });
    expect(await client.ask("GetTask", { id: task.id }, version)).toMatchObject({ id: task.id });
    const page = (await client.ask("ListTasks", { pageSize: 100 }, version)) as { tasks: { id: string }[] };
    expect(page.tasks.map(({ id }) => id)).toContain(task.id);
    await expect(client.ask("CancelTask", { id: task.id }, version)).rejects.toMatchObject({ code: 9 });
  });

  it("streams", async () => {
    const frames = await framesOf(client.stream("SendStreamingMessage", { message }, version));
    expect(kindsOf(frames)).toEqual(["task", "statusUpdate", "artifactUpdate", "statusUpdate"]);
    expect(frames.at(-1)).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } });
  });

  it("numbers the events of those who ask for it", async () => {
    const entries = { ...version, "a2a-extensions": "urn:dragoman:ext:replay:v1" };
    const frames = await framesOf(client.stream("SendStreamingMessage", { message }, entries));
    const numbers = frames.map((frame) => {
      const { metadata } = frame[String(frame.payload)] as { metadata: { fields: Record<string, Plain> } };
      const mark = metadata.fields["urn:dragoman:ext:replay:v1"] as { structValue: { fields: Record<string, Plain> } };
      return mark.structValue.fields.number;
    });
    expect(numbers).toMatchObject([1, 2, 3, 4].map((numberValue) => ({ numberValue })));
  });

  it("reaches another agent by tenant", async () => {
    const request = { tenant: "tck", message: { ...message, messageId: "tck-message-response-1" } };
    expect(await client.ask("SendMessage", request, version)).toMatchObject({
      message: { parts: [{ text: "Direct message response" }] },
    });
  });

  it("says what is wrong, and where", async () => {
    const wrong = client.ask("SendMessage", { message: { ...message, parts: [] } }, version);
    const error: ServiceError = await wrong.then(
      () => expect.unreachable(),
      (reason: ServiceError) => reason,
    );
    expect(error.code).toBe(3);
    const [details] = error.metadata.get("grpc-status-details-bin");
    expect(String(details)).toContain("INVALID_PARAMS");
    expect(String(details)).toContain("message.parts");
  });

  it.each([
    ["an unknown task", "GetTask", { id: "none" }, version, 5],
    ["an unsupported version", "GetTask", { id: "none" }, { "a2a-version": "99.0" }, 9],
    ["an extended card that is not there", "GetExtendedAgentCard", {}, version, 9],
  ])("answers %s with its status", async (_what, method, request, entries, code) => {
    await expect(client.ask(method, request, entries as Record<string, string>)).rejects.toMatchObject({ code });
  });

  it("keeps webhooks", async () => {
    const { task } = (await client.ask("SendMessage", { message }, version)) as { task: { id: string } };
    const config = { taskId: task.id, url: "https://hook.example/a", token: "secret" };
    const made = await client.ask("CreateTaskPushNotificationConfig", config, version);
    expect(made).toMatchObject({ taskId: task.id, url: config.url });
    const named = { taskId: task.id, id: made.id };
    expect(await client.ask("GetTaskPushNotificationConfig", named, version)).toEqual(made);
    await client.ask("DeleteTaskPushNotificationConfig", named, version);
    await expect(client.ask("GetTaskPushNotificationConfig", named, version)).rejects.toMatchObject({ code: 5 });
  });
});

describe("a2a.v1.A2AService", () => {
  const request = { messageId: "m1", role: "ROLE_USER", content: [{ text: "hi" }] };
  const client = new GeneratedClient(grpc, "a2a/v1/a2a.proto");

  it("sends and gets", async () => {
    const { task } = (await client.ask("SendMessage", { request })) as { task: { id: string } };
    expect(task).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" } });
    expect(await client.ask("GetTask", { name: `tasks/${task.id}` })).toMatchObject({ id: task.id });
  });

  it("streams", async () => {
    const frames = await framesOf(client.stream("SendStreamingMessage", { request }));
    expect(kindsOf(frames)).toEqual(["task", "statusUpdate", "artifactUpdate", "statusUpdate"]);
    expect(frames.at(-1)).toMatchObject({ statusUpdate: { final: true } });
  });

  it("reaches another agent by metadata, and only one that is there", async () => {
    const direct = { request: { ...request, messageId: "tck-message-response-1" } };
    const answer = await client.ask("SendMessage", direct, { "x-agent": "tck" });
    expect(JSON.stringify(answer)).toContain("Direct message response");
    await expect(client.ask("SendMessage", { request }, { "x-agent": "none" })).rejects.toMatchObject({ code: 5 });
  });

  it("is not taken for 1.0, whose first drafts used the same package", async () => {
    const wrong = client.ask("SendMessage", { request }, { "a2a-version": "1.0" });
    await expect(wrong).rejects.toMatchObject({ code: 9 });
    expect(await client.ask("SendMessage", { request }, { "a2a-version": "0.3" })).toHaveProperty("task");
  });

  it("gives the card, for there is no other place to read it", async () => {
    expect(await client.ask("GetAgentCard", {})).toMatchObject({ name: "Echo", protocolVersion: "0.3.0" });
  });
});
