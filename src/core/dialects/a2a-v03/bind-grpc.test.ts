import { A2AService } from "a2a-js-sdk-0.3/server/grpc";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../model/errors.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { Loss } from "../../model/loss.ts";
import type { Operation } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import { RPC_CODES, type RpcReply, RpcStatusError } from "../../wire/rpc.ts";
import type { ServeContext } from "../contract.ts";
import { decodeStatusDetails } from "../shared/grpc/status.ts";
import { CARD, contextOf, createScriptedService } from "../suite/join.ts";
import { frameOf } from "../suite/values.ts";
import { grpc } from "./bind-grpc.ts";
import type { METHODS } from "./proto/grpc-service.ts";
import { fromBytes } from "./proto/schema.ts";

const TASK: Task = { id: "t1", contextId: "c1", status: { state: "TASK_STATE_CANCELED" } };
const CONFIG = { id: "p1", taskId: "t1", url: "https://hook.example" };

/** Bytes as the official library of 0.3 writes and reads them. */
type OfficialName = keyof typeof A2AService;
type MethodName = keyof typeof METHODS;

const official = (method: MethodName) =>
  A2AService[(method.charAt(0).toLowerCase() + method.slice(1)) as OfficialName] as {
    readonly path: string;
    readonly responseStream: boolean;
    requestSerialize(value: object): Buffer;
    responseDeserialize(bytes: Buffer): object;
  };

interface Asked {
  readonly answer?: (operation: Operation) => unknown;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly context?: Partial<ServeContext>;
}

async function ask(method: MethodName, request: object, { answer = () => TASK, metadata = {}, context = {} }: Asked) {
  const service = { ...createScriptedService(), card: { ...CARD, capabilities: { pushNotifications: true } } };
  const asked: Operation[] = [];
  service.dispatch = async (operation) => {
    asked.push(operation);
    return (await answer(operation)) as never;
  };
  const losses: Loss[] = [];
  const message = official(method).requestSerialize(request);
  const reply = await grpc.handle(
    { service: grpc.service, method, metadata, message, remoteAddress: undefined },
    { ...contextOf(service, losses), ...context },
  );
  return { reply, asked, losses };
}

function heard(method: MethodName, reply: RpcReply): object {
  if (reply.kind !== "message") throw new Error(`No message, but ${JSON.stringify(reply)}`);
  return official(method).responseDeserialize(Buffer.from(reply.message));
}

const said = {
  messageId: "m1",
  contextId: "",
  taskId: "",
  role: 1,
  content: [{ part: { $case: "text", value: "hi" } }],
  extensions: [],
};

describe("requests of the official client", () => {
  it("has the same methods", () => {
    const ours = Object.entries(grpc.methods).map(([method, { streams }]) => [`/a2a.v1.A2AService/${method}`, streams]);
    const theirs = Object.values(A2AService).map(({ path, responseStream }) => [path, responseStream]);
    expect(ours.sort()).toEqual(theirs.sort());
  });

  it("sends a message with all there is to one", async () => {
    const { reply, asked } = await ask(
      "SendMessage",
      {
        request: {
          ...said,
          content: [
            ...said.content,
            { part: { $case: "file", value: { file: { $case: "fileWithUri", value: "u:x" }, mimeType: "image/png" } } },
            {
              part: {
                $case: "file",
                value: { file: { $case: "fileWithBytes", value: Buffer.from("hello") }, mimeType: "" },
              },
            },
            { part: { $case: "data", value: { data: { n: [1, "x", { y: true }] } } } },
          ],
          metadata: { a: 1 },
          extensions: ["urn:a"],
        },
        configuration: {
          acceptedOutputModes: ["text/plain"],
          pushNotification: {
            id: "p1",
            url: "u:y",
            token: "x",
            authentication: { schemes: ["Bearer"], credentials: "z" },
          },
          historyLength: 2,
          blocking: true,
        },
        metadata: { b: 2 },
      },
      { answer: () => ({ task: TASK }), metadata: { "idempotency-key": "k" } },
    );
    expect(asked).toEqual([
      {
        kind: "send",
        message: {
          messageId: "m1",
          role: "ROLE_USER",
          parts: [
            { text: "hi" },
            { url: "u:x", mediaType: "image/png" },
            { raw: "aGVsbG8=" },
            { data: { n: [1, "x", { y: true }] } },
          ],
          metadata: { a: 1 },
          extensions: ["urn:a"],
        },
        configuration: {
          acceptedOutputModes: ["text/plain"],
          taskPushNotificationConfig: {
            id: "p1",
            url: "u:y",
            token: "x",
            authentication: { scheme: "Bearer", credentials: "z" },
          },
          historyLength: 2,
        },
        metadata: { b: 2 },
      },
    ]);
    expect(heard("SendMessage", reply)).toMatchObject({
      payload: { $case: "task", value: { id: "t1", contextId: "c1", status: { state: 5 } } },
    });
  });

  it("waits without a configuration, and in one only where it says so", async () => {
    const configuration = { acceptedOutputModes: [], historyLength: 0, blocking: false };
    const { asked } = await ask("SendMessage", { request: said, configuration }, { answer: () => ({ task: TASK }) });
    expect(asked[0]).toMatchObject({ configuration: { returnImmediately: true } });
    const { asked: plain } = await ask("SendMessage", { request: said }, { answer: () => ({ task: TASK }) });
    expect(plain[0]).toMatchObject({ configuration: undefined });
  });

  it.each([
    ["GetTask", { name: "tasks/t1", historyLength: 3 }, { kind: "get", id: "t1", historyLength: 3 }],
    ["GetTask", { name: "tasks/t1", historyLength: 0 }, { kind: "get", id: "t1" }],
    ["CancelTask", { name: "tasks/t1" }, { kind: "cancel", id: "t1" }],
  ] as const)("%s %j", async (method, request, operation) => {
    const { reply, asked } = await ask(method, request, {});
    expect(asked).toEqual([operation]);
    expect(heard(method, reply)).toMatchObject({ id: "t1", status: { state: 5 } });
  });

  it("handles push configs", async () => {
    const name = "tasks/t1/pushNotificationConfigs/p1";
    const wire = { name, pushNotificationConfig: { id: "p1", url: "https://hook.example" } };
    const given = { id: "p1", url: "https://hook.example", token: "" };
    const answer = () => CONFIG;
    const create = { parent: "tasks/t1", configId: "p1", config: { name, pushNotificationConfig: given } };
    const created = await ask("CreateTaskPushNotificationConfig", create, { answer });
    expect(created.asked).toEqual([{ kind: "push-create", taskId: "t1", config: CONFIG }]);
    expect(heard("CreateTaskPushNotificationConfig", created.reply)).toMatchObject(wire);
    const got = await ask("GetTaskPushNotificationConfig", { name }, { answer });
    expect(got.asked).toEqual([{ kind: "push-get", taskId: "t1", id: "p1" }]);
    expect(heard("GetTaskPushNotificationConfig", got.reply)).toMatchObject(wire);
    const list = { parent: "tasks/t1", pageSize: 0, pageToken: "" };
    const page = () => ({ configs: [CONFIG], nextPageToken: "more" });
    const listed = await ask("ListTaskPushNotificationConfig", list, { answer: page });
    expect(listed.asked).toEqual([{ kind: "push-list", taskId: "t1" }]);
    expect(heard("ListTaskPushNotificationConfig", listed.reply)).toMatchObject({
      configs: [wire],
      nextPageToken: "more",
    });
    const deleted = await ask("DeleteTaskPushNotificationConfig", { name }, { answer: () => undefined });
    expect(deleted.asked).toEqual([{ kind: "push-delete", taskId: "t1", id: "p1" }]);
    expect(deleted.reply).toMatchObject({ kind: "message", message: new Uint8Array(0) });
  });
});

describe("streams", () => {
  const scope = { taskId: "t1", contextId: "c1" };
  async function* source() {
    yield [
      frameOf({ task: { ...TASK, status: { state: "TASK_STATE_WORKING" } } }, 1),
      frameOf({ statusUpdate: { ...scope, status: { state: "TASK_STATE_INPUT_REQUIRED" } } }, 2),
      frameOf({ statusUpdate: { ...scope, status: { state: "TASK_STATE_COMPLETED" } } }, 3),
    ];
  }
  async function events(reply: RpcReply): Promise<unknown[]> {
    if (reply.kind !== "stream") throw new Error(`No stream, but ${JSON.stringify(reply)}`);
    const found: unknown[] = [];
    for await (const batch of reply.messages) for (const one of batch) found.push(fromBytes("StreamResponse", one));
    return found;
  }

  it("of a message end when input is awaited", async () => {
    const { reply } = await ask("SendStreamingMessage", { request: said }, { answer: source });
    expect(await events(reply)).toEqual([
      { task: { id: "t1", contextId: "c1", status: { state: "TASK_STATE_WORKING" } } },
      { statusUpdate: { ...scope, status: { state: "TASK_STATE_INPUT_REQUIRED" }, final: true } },
      { statusUpdate: { ...scope, status: { state: "TASK_STATE_COMPLETED" }, final: true } },
    ]);
  });

  it("are taken up again, with numbers for who asks for them", async () => {
    const metadata = { "last-event-id": "1", "x-a2a-extensions": EXTENSIONS.replay };
    const { reply, asked } = await ask("TaskSubscription", { name: "tasks/t1" }, { answer: source, metadata });
    expect(asked).toEqual([{ kind: "subscribe", id: "t1", after: 1 }]);
    expect(reply.kind === "stream" && reply.metadata).toEqual({ "x-a2a-extensions": EXTENSIONS.replay });
    expect(await events(reply)).toMatchObject([
      { task: { metadata: { [EXTENSIONS.replay]: { number: 1 } } } },
      { statusUpdate: { metadata: { [EXTENSIONS.replay]: { number: 2 } } } },
      { statusUpdate: { metadata: { [EXTENSIONS.replay]: { number: 3 } } } },
    ]);
  });

  it("that break end in a status", async () => {
    const { reply } = await ask(
      "SendStreamingMessage",
      { request: said },
      {
        answer: async function* () {
          yield [];
          throw new ProtocolError("UNAVAILABLE", "gone");
        },
      },
    );
    const failure = await events(reply).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RpcStatusError);
    expect(failure).toMatchObject({ status: { code: RPC_CODES.UNAVAILABLE, message: "gone" } });
  });
});

describe("agents and cards", () => {
  const other = createScriptedService();
  const context = { agentOfTenant: (name: string) => (name === "other" ? other : undefined) };

  it("metadata may name the agent", async () => {
    other.answer = () => ({ ...TASK, id: "of-other" });
    const { reply, asked } = await ask(
      "GetTask",
      { name: "tasks/t1", historyLength: 0 },
      { metadata: { "x-agent": "other" }, context },
    );
    expect(asked).toEqual([]);
    expect(heard("GetTask", reply)).toMatchObject({ id: "of-other" });
  });

  it("an agent that is not there is not found", async () => {
    const { reply } = await ask(
      "GetTask",
      { name: "tasks/t1", historyLength: 0 },
      { metadata: { "x-agent": "nobody" }, context },
    );
    expect(reply).toMatchObject({ kind: "failure", status: { code: RPC_CODES.NOT_FOUND } });
  });

  it("gives the extended card to those who may see it", async () => {
    const { reply } = await ask("GetAgentCard", {}, { answer: () => ({ ...CARD, description: "More." }) });
    expect(heard("GetAgentCard", reply)).toMatchObject({ name: "Agent", description: "More." });
  });

  it.each(["UNSUPPORTED_OPERATION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED"] as const)(
    "gives the public card where there is no other: %s",
    async (code) => {
      const answer = () => {
        throw new ProtocolError(code, "There is none.");
      };
      const { reply } = await ask("GetAgentCard", {}, { answer });
      expect(heard("GetAgentCard", reply)).toMatchObject({ name: "Agent", protocolVersion: "0.3.0" });
    },
  );

  it("does not give the public card for the extended one to a stranger", async () => {
    const answer = () => {
      throw new ProtocolError("UNAUTHENTICATED", "Who are you?");
    };
    const { reply } = await ask("GetAgentCard", {}, { answer });
    expect(reply).toMatchObject({ kind: "failure", status: { code: RPC_CODES.UNAUTHENTICATED } });
  });
});

describe("refusals", () => {
  it("have a code for everyone and details for those who look", async () => {
    const answer = () => {
      throw new ProtocolError("TASK_NOT_CANCELABLE", "It is over.", { metadata: { taskId: "t1" } });
    };
    const { reply } = await ask("CancelTask", { name: "tasks/t1" }, { answer });
    expect(reply).toMatchObject({
      kind: "failure",
      status: { code: RPC_CODES.FAILED_PRECONDITION, message: "It is over." },
    });
    expect(reply.kind === "failure" && decodeStatusDetails(reply.status)).toMatchObject([
      { reason: "TASK_NOT_CANCELABLE", metadata: { taskId: "t1" } },
    ]);
  });

  it.each([
    ["a name that is none", "GetTask", { name: "t1", historyLength: 0 }],
    ["no message", "SendMessage", {}],
    ["no id of the message", "SendMessage", { request: { ...said, messageId: "" } }],
    ["no role", "SendMessage", { request: { ...said, role: 0 } }],
    ["a config without a name", "GetTaskPushNotificationConfig", { name: "tasks/t1" }],
    ["a config without an id", "DeleteTaskPushNotificationConfig", { name: "tasks/t1/pushNotificationConfigs/" }],
  ] as const)("%s", async (_what, method, request) => {
    const { reply, asked } = await ask(method, request, {});
    expect(reply).toMatchObject({ kind: "failure", status: { code: RPC_CODES.INVALID_ARGUMENT } });
    expect(asked).toEqual([]);
  });

  it("bytes that are no message, and methods that are none", async () => {
    const context = contextOf(createScriptedService());
    const request = { service: grpc.service, metadata: {}, remoteAddress: undefined };
    const broken = { ...request, method: "GetTask", message: Uint8Array.of(0x0a, 0xff) };
    expect(await grpc.handle(broken, context)).toMatchObject({ status: { code: RPC_CODES.INVALID_ARGUMENT } });
    const unknown = { ...request, method: "ListTasks", message: new Uint8Array(0) };
    expect(await grpc.handle(unknown, context)).toMatchObject({ status: { code: RPC_CODES.UNIMPLEMENTED } });
  });
});
