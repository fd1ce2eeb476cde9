/** gRPC as a stranger speaks it: with a client generated from the published `.proto` files, and none of our code. */

import { fileURLToPath } from "node:url";
import { type Client, credentials, loadPackageDefinition, Metadata, type ServiceError } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEchoAgent } from "../../src/agents/builtin.ts";
import { createTckAgent } from "../../src/agents/tck.ts";
import { type DragomanServer, serve } from "../../src/server/serve.ts";

type Plain = Record<string, unknown>;
type Unary = (request: Plain, metadata: Metadata, done: (error: ServiceError | null, reply: Plain) => void) => void;
type Streaming = (request: Plain, metadata: Metadata) => AsyncIterable<Plain>;
type Service = Client & Record<string, unknown>;

const PROTOS = fileURLToPath(new URL("../../proto", import.meta.url));
const OPTIONS = { includeDirs: [PROTOS], enums: String, bytes: String, oneofs: true, defaults: false };

let server: DragomanServer;
const clients: Client[] = [];
beforeAll(async () => {
  server = await serve({ agents: { echo: createEchoAgent(), tck: createTckAgent() }, port: 0, log: false });
});
afterAll(async () => {
  for (const client of clients) client.close();
  await server.close();
});

function clientOf(file: string, path: readonly string[]): Service {
  let found = loadPackageDefinition(loadSync(file, OPTIONS)) as unknown;
  for (const step of path) found = (found as Record<string, unknown>)[step];
  const Made = found as new (address: string, how: ReturnType<typeof credentials.createInsecure>) => Service;
  const client = new Made(server.grpc ?? "", credentials.createInsecure());
  clients.push(client);
  return client;
}

function metadataOf(entries: Record<string, string>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
  return metadata;
}

function ask(client: Service, method: string, request: Plain, entries: Record<string, string> = {}): Promise<Plain> {
  return new Promise((resolve, reject) => {
    (client[method] as Unary).call(client, request, metadataOf(entries), (error, reply) =>
      error === null ? resolve(reply) : reject(error),
    );
  });
}

async function follow(client: Service, method: string, request: Plain, entries: Record<string, string> = {}) {
  const frames: Plain[] = [];
  for await (const frame of (client[method] as Streaming).call(client, request, metadataOf(entries))) {
    frames.push(frame);
  }
  return frames;
}

const kindsOf = (frames: readonly Plain[]) => frames.map(({ payload }) => payload);

describe("lf.a2a.v1.A2AService", () => {
  const version = { "a2a-version": "1.0" };
  const message = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "hi" }] };
  const client = () => clientOf("lf/a2a/v1/a2a.proto", ["lf", "a2a", "v1", "A2AService"]);

  it("sends, gets, lists and refuses to cancel what has ended", async () => {
    const service = client();
    const { task } = (await ask(service, "SendMessage", { message }, version)) as { task: { id: string } };
    expect(task).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" }, artifacts: [{ parts: [{ text: "hi" }] }] });
    expect(await ask(service, "GetTask", { id: task.id }, version)).toMatchObject({ id: task.id });
    const page = (await ask(service, "ListTasks", { pageSize: 100 }, version)) as { tasks: { id: string }[] };
    expect(page.tasks.map(({ id }) => id)).toContain(task.id);
    await expect(ask(service, "CancelTask", { id: task.id }, version)).rejects.toMatchObject({ code: 9 });
  });

  it("streams", async () => {
    const frames = await follow(client(), "SendStreamingMessage", { message }, version);
    expect(kindsOf(frames)).toEqual(["task", "statusUpdate", "artifactUpdate", "statusUpdate"]);
    expect(frames.at(-1)).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } });
  });

  it("numbers the events of those who ask for it", async () => {
    const frames = await follow(
      client(),
      "SendStreamingMessage",
      { message },
      {
        ...version,
        "a2a-extensions": "urn:dragoman:ext:replay:v1",
      },
    );
    const numbers = frames.map((frame) => {
      const { metadata } = frame[String(frame.payload)] as { metadata: { fields: Record<string, Plain> } };
      const mark = metadata.fields["urn:dragoman:ext:replay:v1"] as { structValue: { fields: Record<string, Plain> } };
      return mark.structValue.fields.number;
    });
    expect(numbers).toMatchObject([1, 2, 3, 4].map((numberValue) => ({ numberValue })));
  });

  it("reaches another agent by tenant", async () => {
    const request = { tenant: "tck", message: { ...message, messageId: "tck-message-response-1" } };
    expect(await ask(client(), "SendMessage", request, version)).toMatchObject({
      message: { parts: [{ text: "Direct message response" }] },
    });
  });

  it("says what is wrong, and where", async () => {
    const wrong = ask(client(), "SendMessage", { message: { ...message, parts: [] } }, version);
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
    ["a version nobody speaks", "GetTask", { id: "none" }, { "a2a-version": "99.0" }, 9],
    ["an extended card that is not there", "GetExtendedAgentCard", {}, version, 9],
  ])("answers %s with its status", async (_what, method, request, entries, code) => {
    await expect(ask(client(), method, request, entries as Record<string, string>)).rejects.toMatchObject({ code });
  });

  it("keeps webhooks", async () => {
    const service = client();
    const { task } = (await ask(service, "SendMessage", { message }, version)) as { task: { id: string } };
    const config = { taskId: task.id, url: "https://hook.example/a", token: "secret" };
    const made = await ask(service, "CreateTaskPushNotificationConfig", config, version);
    expect(made).toMatchObject({ taskId: task.id, url: config.url });
    const named = { taskId: task.id, id: made.id };
    expect(await ask(service, "GetTaskPushNotificationConfig", named, version)).toEqual(made);
    await ask(service, "DeleteTaskPushNotificationConfig", named, version);
    await expect(ask(service, "GetTaskPushNotificationConfig", named, version)).rejects.toMatchObject({ code: 5 });
  });
});

describe("a2a.v1.A2AService", () => {
  const request = { messageId: "m1", role: "ROLE_USER", content: [{ text: "hi" }] };
  const client = () => clientOf("a2a/v1/a2a.proto", ["a2a", "v1", "A2AService"]);

  it("sends and gets", async () => {
    const service = client();
    const { task } = (await ask(service, "SendMessage", { request })) as { task: { id: string } };
    expect(task).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" } });
    expect(await ask(service, "GetTask", { name: `tasks/${task.id}` })).toMatchObject({ id: task.id });
  });

  it("streams", async () => {
    const frames = await follow(client(), "SendStreamingMessage", { request });
    expect(kindsOf(frames)).toEqual(["task", "statusUpdate", "artifactUpdate", "statusUpdate"]);
    expect(frames.at(-1)).toMatchObject({ statusUpdate: { final: true } });
  });

  it("reaches another agent by metadata, and only one that is there", async () => {
    const direct = { request: { ...request, messageId: "tck-message-response-1" } };
    const answer = await ask(client(), "SendMessage", direct, { "x-agent": "tck" });
    expect(JSON.stringify(answer)).toContain("Direct message response");
    await expect(ask(client(), "SendMessage", { request }, { "x-agent": "none" })).rejects.toMatchObject({ code: 5 });
  });

  it("is not taken for 1.0, whose first drafts used the same package", async () => {
    const wrong = ask(client(), "SendMessage", { request }, { "a2a-version": "1.0" });
    await expect(wrong).rejects.toMatchObject({ code: 9 });
    expect(await ask(client(), "SendMessage", { request }, { "a2a-version": "0.3" })).toHaveProperty("task");
  });

  it("gives the card, for there is no other place to read it", async () => {
    expect(await ask(client(), "GetAgentCard", {})).toMatchObject({ name: "Echo", protocolVersion: "0.3.0" });
  });
});
