import { RestTransport } from "a2a-js-sdk-0.3/client";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import type { Operation } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import { type ExchangeReply, isStreamReply } from "../../wire/exchange.ts";
import { CARD, contextOf, createScriptedService, type ScriptedService } from "../suite/join.ts";
import { frameOf } from "../suite/values.ts";
import { http } from "./bind-http.ts";

const TASK: Task = { id: "t1", contextId: "c1", status: { state: "TASK_STATE_WORKING" } };
const MESSAGE = { messageId: "m1", role: "ROLE_USER", content: [{ text: "hi" }] };
const CONFIG = { id: "p1", taskId: "t1", url: "https://hook.example" };

interface Raw {
  readonly body?: unknown;
  readonly text?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

class Scene {
  readonly service: ScriptedService & { card: typeof CARD };
  readonly losses: Loss[] = [];

  constructor(answer: (operation: Operation) => unknown, capabilities = { streaming: true, pushNotifications: true }) {
    this.service = { ...createScriptedService(), card: { ...CARD, capabilities } };
    this.service.dispatch = async (operation) => {
      this.service.asked.push(operation);
      return (await answer(operation)) as never;
    };
  }

  ask(method: string, path: string, { body, text, query = "", headers = {} }: Raw = {}): Promise<ExchangeReply> {
    const sent = text ?? (body === undefined ? "" : JSON.stringify(body));
    const exchange = { method, path, query, headers, body: Buffer.from(sent), remoteAddress: undefined };
    return http.handle(exchange, contextOf(this.service, this.losses));
  }

  async json(method: string, path: string, raw?: Raw): Promise<{ status: number; value: unknown }> {
    const { status, text } = await whole(await this.ask(method, path, raw));
    return { status, value: text === "" ? undefined : JSON.parse(text) };
  }

  get asked(): Operation | undefined {
    return this.service.asked.at(-1);
  }
}

async function whole(reply: ExchangeReply): Promise<{ status: number; text: string }> {
  if (!isStreamReply(reply)) return { status: reply.status, text: String(reply.body ?? "") };
  let text = "";
  for await (const batch of reply.frames) text += batch;
  return { status: reply.status, text };
}

describe("messages", () => {
  it("are read from the proto's JSON, and the task comes back in it", async () => {
    const answered: Task = {
      ...TASK,
      status: {
        state: "TASK_STATE_CANCELED",
        message: { messageId: "m2", role: "ROLE_AGENT", parts: [{ text: "no" }] },
        timestamp: "2026-01-02T03:04:05.678Z",
      },
      artifacts: [{ artifactId: "a1", parts: [{ raw: "aGVsbG8=", mediaType: "text/plain", filename: "hello.txt" }] }],
      history: [{ messageId: "m1", role: "ROLE_USER", parts: [{ data: { n: 1 } }] }],
    };
    const scene = new Scene(() => ({ task: answered }));
    const { status, value } = await scene.json("POST", "/message:send", {
      body: {
        message: {
          ...MESSAGE,
          contextId: "c1",
          content: [
            { text: "hi" },
            { file: { fileWithUri: "https://file.example/a", mimeType: "image/png" } },
            { file: { fileWithBytes: "aGVsbG8=" } },
            { data: { data: { n: 1 } } },
          ],
        },
        configuration: {
          acceptedOutputModes: ["text/plain"],
          pushNotification: { url: "https://hook.example", authentication: { schemes: ["Bearer"], credentials: "x" } },
          historyLength: 0,
          blocking: true,
        },
        metadata: { trace: "1" },
      },
    });
    expect(scene.asked).toEqual({
      kind: "send",
      message: {
        messageId: "m1",
        role: "ROLE_USER",
        contextId: "c1",
        parts: [
          { text: "hi" },
          { url: "https://file.example/a", mediaType: "image/png" },
          { raw: "aGVsbG8=" },
          { data: { n: 1 } },
        ],
      },
      configuration: {
        acceptedOutputModes: ["text/plain"],
        taskPushNotificationConfig: {
          url: "https://hook.example",
          authentication: { scheme: "Bearer", credentials: "x" },
        },
        historyLength: 0,
      },
      metadata: { trace: "1" },
    });
    expect(status).toBe(200);
    expect(value).toEqual({
      task: {
        id: "t1",
        contextId: "c1",
        status: {
          state: "TASK_STATE_CANCELLED",
          message: { messageId: "m2", role: "ROLE_AGENT", content: [{ text: "no" }] },
          timestamp: "2026-01-02T03:04:05.678Z",
        },
        artifacts: [
          {
            artifactId: "a1",
            parts: [{ file: { fileWithBytes: "aGVsbG8=", mimeType: "text/plain", name: "hello.txt" } }],
          },
        ],
        history: [{ messageId: "m1", role: "ROLE_USER", content: [{ data: { data: { n: 1 } } }] }],
      },
    });
    expect(scene.losses).toEqual([]);
  });

  it.each([
    ["under the proto's own name", { request: MESSAGE }],
    ["in snake_case", { message: { message_id: "m1", role: "ROLE_USER", content: [{ text: "hi" }] } }],
    ["with enums as numbers", { message: { ...MESSAGE, role: 1 } }],
    ["with null for what is absent", { message: { ...MESSAGE, taskId: null }, configuration: null, metadata: null }],
    ["with members of other releases", { message: { ...MESSAGE, kind: "message" }, tenant: "" }],
  ])("are understood %s", async (_how, body) => {
    const scene = new Scene(() => ({ task: TASK }));
    expect((await scene.json("POST", "/message:send", { body })).status).toBe(200);
    expect(scene.asked).toEqual({
      kind: "send",
      message: { messageId: "m1", role: "ROLE_USER", parts: [{ text: "hi" }] },
    });
  });

  it.each([{}, { messageId: "" }, { message_id: null }])("are refused without an id, as in %j", async (id) => {
    const scene = new Scene(() => ({ task: TASK }));
    const body = { request: { ...id, role: "ROLE_USER", content: [{ text: "hi" }] } };
    const { status, value } = await scene.json("POST", "/message:send", { body });
    expect([status, value]).toMatchObject([400, { code: -32602 }]);
    expect(scene.asked).toBeUndefined();
  });

  it.each([
    ["absent", undefined, undefined],
    ["without a word about it", {}, { returnImmediately: true }],
    ["blocking", { blocking: true }, undefined],
    ["not blocking", { blocking: false }, { returnImmediately: true }],
  ])("with a configuration that is %s", async (_what, configuration, read) => {
    const scene = new Scene(() => ({ task: TASK }));
    await scene.json("POST", "/message:send", { body: { message: MESSAGE, configuration } });
    expect(scene.asked).toEqual({
      kind: "send",
      message: { messageId: "m1", role: "ROLE_USER", parts: [{ text: "hi" }] },
      ...(read !== undefined && { configuration: read }),
    });
  });

  it.each([
    ["no message", {}, "message"],
    ["no role", { message: { ...MESSAGE, role: undefined } }, "message.role"],
    ["an unspecified role", { message: { ...MESSAGE, role: "ROLE_UNSPECIFIED" } }, "message.role"],
    ["another role", { message: { ...MESSAGE, role: "ROLE_KING" } }, "message.role"],
    ["no content", { message: { ...MESSAGE, content: [] } }, "message.content"],
    ["an empty part", { message: { ...MESSAGE, content: [{}] } }, "message.content[0]"],
    ["a file without either form", { message: { ...MESSAGE, content: [{ file: {} }] } }, "message.content[0].file"],
    [
      "data that is no object",
      { message: { ...MESSAGE, content: [{ data: { data: 1 } }] } },
      "message.content[0].data.data",
    ],
  ])("are refused with %s", async (_what, body, field) => {
    const scene = new Scene(() => ({ task: TASK }));
    const { status, value } = await scene.json("POST", "/message:send", { body });
    expect(status).toBe(400);
    expect(value).toMatchObject({
      code: -32602,
      data: [{ reason: "INVALID_PARAMS" }, { fieldViolations: [{ field }] }],
    });
    expect(scene.asked).toBeUndefined();
  });

  it("may be answered by a message, without what has no field, which is reported", async () => {
    const reply = { messageId: "m2", role: "ROLE_AGENT", parts: [{ text: "ho" }], referenceTaskIds: ["t0"] };
    const scene = new Scene(() => ({ message: reply }));
    const { value } = await scene.json("POST", "/message:send", { body: { message: MESSAGE } });
    expect(value).toEqual({ message: { messageId: "m2", role: "ROLE_AGENT", content: [{ text: "ho" }] } });
    expect(scene.losses).toMatchObject([{ kind: "dropped", path: "message.referenceTaskIds" }]);
  });

  it("carry what parts have no member for in their metadata", async () => {
    const parts = [{ text: "a,b", mediaType: "text/csv", filename: "a.csv" }, { data: [1, 2] }];
    const scene = new Scene(() => ({ message: { messageId: "m2", role: "ROLE_AGENT", parts } }));
    const { value } = await scene.json("POST", "/message:send", { body: { message: MESSAGE } });
    expect(value).toMatchObject({
      message: {
        content: [
          {
            text: "a,b",
            metadata: { "urn:dragoman:ext:part:v1": { filename: "a.csv", mediaType: "text/csv" } },
          },
          { data: { data: { value: [1, 2] } }, metadata: { data_part_compat: true } },
        ],
      },
    });
  });
});

describe("streams", () => {
  const scope = { taskId: "t1", contextId: "c1" };
  const frames = [
    frameOf({ task: TASK }, 1),
    frameOf({ artifactUpdate: { ...scope, artifact: { artifactId: "a", parts: [{ text: "x" }] }, append: true } }, 2),
    frameOf({ artifactUpdate: { ...scope, artifact: { artifactId: "a", parts: [{ url: "u:x" }] } } }, 3),
    frameOf({ statusUpdate: { ...scope, status: { state: "TASK_STATE_INPUT_REQUIRED" } } }, 4),
    frameOf({ statusUpdate: { ...scope, status: { state: "TASK_STATE_AUTH_REQUIRED" } } }, 5),
    frameOf({ statusUpdate: { ...scope, status: { state: "TASK_STATE_COMPLETED" } } }, 6),
  ];
  async function* source() {
    yield frames;
  }
  const updates = (text: string) =>
    [...text.matchAll(/^id: (\d+)\ndata: (.*)$/gm)].map(([, id, data]) => [Number(id), JSON.parse(data as string)]);

  it("are events of the proto with numbers; final is what nothing follows", async () => {
    const scene = new Scene(() => source());
    const { text } = await whole(await scene.ask("POST", "/message:stream", { body: { message: MESSAGE } }));
    const status = (state: string, final?: boolean) => ({
      statusUpdate: { ...scope, status: { state }, ...(final && { final }) },
    });
    expect(updates(text)).toEqual([
      [1, { task: { id: "t1", contextId: "c1", status: { state: "TASK_STATE_WORKING" } } }],
      [2, { artifactUpdate: { ...scope, artifact: { artifactId: "a", parts: [{ text: "x" }] }, append: true } }],
      [3, { artifactUpdate: { ...scope, artifact: { artifactId: "a", parts: [{ file: { fileWithUri: "u:x" } }] } } }],
      [4, status("TASK_STATE_INPUT_REQUIRED", true)],
      [5, status("TASK_STATE_AUTH_REQUIRED")],
      [6, status("TASK_STATE_COMPLETED", true)],
    ]);
  });

  it.each(["GET", "POST"])("are taken up again by %s, and stay open while input is awaited", async (method) => {
    const scene = new Scene(() => source());
    const reply = await scene.ask(method, "/tasks/t1:subscribe", { text: "null", headers: { "last-event-id": "3" } });
    expect(scene.asked).toEqual({ kind: "subscribe", id: "t1", after: 3 });
    expect(updates((await whole(reply)).text)[3]?.[1]).not.toHaveProperty("statusUpdate.final");
  });

  it("that break end in an event of that name", async () => {
    const scene = new Scene(async function* () {
      yield frames.slice(0, 1);
      throw new ProtocolError("UNAVAILABLE", "gone");
    });
    const { text } = await whole(await scene.ask("POST", "/message:stream", { body: { message: MESSAGE } }));
    expect(text).toContain('event: error\ndata: {"code":-32053,"message":"gone"');
  });

  it("end where a frame would lose something and nothing may be lost", async () => {
    const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "x" }], referenceTaskIds: ["t0"] } as const;
    const scene = new Scene(async function* () {
      yield [frameOf({ statusUpdate: { ...scope, status: { state: "TASK_STATE_WORKING", message } } }, 1)];
    });
    const report = () => {
      throw new ProtocolError("LOSS_REFUSED", "Nothing may be lost.");
    };
    const exchange = {
      method: "POST",
      path: "/message:stream",
      query: "",
      headers: {},
      body: Buffer.from(JSON.stringify({ message: MESSAGE })),
      remoteAddress: undefined,
    };
    const { text } = await whole(await http.handle(exchange, { ...contextOf(scene.service), report }));
    expect(text).toContain("event: error");
    expect(text).toContain("LOSS_REFUSED");
  });

  it("that are only asked about are closed", async () => {
    let closed = false;
    const close = async () => {
      closed = true;
      return { done: true as const, value: undefined };
    };
    const scene = new Scene(() => ({
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}), return: close }),
    }));
    const { status, text } = await whole(await scene.ask("HEAD", "/tasks/t1:subscribe"));
    expect([status, text, closed]).toEqual([200, "", true]);
  });
});

describe("tasks", () => {
  it.each([
    ["GET", "/tasks/t1", "historyLength=2", { kind: "get", id: "t1", historyLength: 2 }],
    ["GET", "/tasks/t1", "history_length=0", { kind: "get", id: "t1", historyLength: 0 }],
    ["GET", "/tasks/t1/", "", { kind: "get", id: "t1" }],
    ["GET", "/tasks/a%2Fb", "", { kind: "get", id: "a/b" }],
    ["HEAD", "/tasks/t1", "", { kind: "get", id: "t1" }],
    ["POST", "/tasks/t1:cancel", "", { kind: "cancel", id: "t1" }],
  ])("%s %s?%s", async (method, path, query, operation) => {
    const scene = new Scene(() => TASK);
    const { status, value } = await scene.json(method, path, { query });
    expect(scene.asked).toEqual(operation);
    expect(status).toBe(200);
    if (method !== "HEAD") {
      expect(value).toEqual({ id: "t1", contextId: "c1", status: { state: "TASK_STATE_WORKING" } });
    }
  });

  it.each([undefined, "", "null", "{}", '{"name":"tasks/t1"}'])("are cancelled whatever the body: %s", async (text) => {
    const scene = new Scene(() => TASK);
    const raw = text === undefined ? {} : { text, headers: { "content-type": "application/json" } };
    expect((await scene.json("POST", "/tasks/t1:cancel", raw)).status).toBe(200);
    expect(scene.asked).toEqual({ kind: "cancel", id: "t1" });
  });

  it("cannot be listed", async () => {
    const scene = new Scene(() => undefined);
    const { status, value } = await scene.json("GET", "/tasks");
    expect([status, value]).toMatchObject([501, { code: -32004 }]);
  });
});

describe("push configs", () => {
  const wire = {
    name: "tasks/t1/pushNotificationConfigs/p1",
    pushNotificationConfig: { id: "p1", url: "https://hook.example" },
  };
  const bare = { pushNotificationConfig: { url: "https://hook.example", token: "x" } };

  it.each([
    ["in an envelope", { parent: "tasks/t1", configId: "p1", config: bare }, "", "p1"],
    ["in an envelope in snake_case", { parent: "tasks/t1", config_id: "p1", config: bare }, "", "p1"],
    ["bare", { name: "tasks/t1/pushNotificationConfigs/p1", ...bare }, "", "p1"],
    ["bare and without an id", { name: "tasks/t1/pushNotificationConfigs/", ...bare }, "", "t1"],
    ["bare with the id in the query", bare, "configId=p1", "p1"],
    ["bare with the id within", { pushNotificationConfig: { ...bare.pushNotificationConfig, id: "p1" } }, "", "p1"],
  ])("are made %s", async (_how, body, query, id) => {
    const scene = new Scene(() => CONFIG);
    const { status, value } = await scene.json("POST", "/tasks/t1/pushNotificationConfigs", { body, query });
    expect(scene.asked).toEqual({
      kind: "push-create",
      taskId: "t1",
      config: { url: "https://hook.example", token: "x", taskId: "t1", id },
    });
    expect([status, value]).toEqual([201, wire]);
  });

  it.each(["/tasks/t1/pushNotificationConfigs", "/task/t1/pushNotificationConfigs", "/tasks/t1/pushNotifications"])(
    "are at %s",
    async (path) => {
      const scene = new Scene(({ kind }) =>
        kind === "push-list" ? { configs: [CONFIG], nextPageToken: "" } : kind === "push-get" ? CONFIG : undefined,
      );
      expect(await scene.json("GET", path, { query: "pageSize=5" })).toEqual({
        status: 200,
        value: { configs: [wire] },
      });
      expect(scene.asked).toEqual({ kind: "push-list", taskId: "t1", pageSize: 5 });
      expect(await scene.json("GET", `${path}/p1`)).toEqual({ status: 200, value: wire });
      expect(scene.asked).toEqual({ kind: "push-get", taskId: "t1", id: "p1" });
      expect(await scene.json("DELETE", `${path}/p1`)).toEqual({ status: 204, value: undefined });
      expect(scene.asked).toEqual({ kind: "push-delete", taskId: "t1", id: "p1" });
    },
  );

  it("keep the first of several schemes, and say so", async () => {
    const scene = new Scene(() => CONFIG);
    const config = { url: "u:x", authentication: { schemes: ["Bearer", "Basic"], credentials: "x" } };
    await scene.json("POST", "/tasks/t1/pushNotificationConfigs", { body: { pushNotificationConfig: config } });
    expect(scene.asked).toMatchObject({ config: { authentication: { scheme: "Bearer", credentials: "x" } } });
    expect(scene.losses).toMatchObject([{ kind: "dropped", path: "config.authentication.schemes" }]);
  });

  it.each([[[]], ["text"], [{ config: 1 }], [{}]])("are refused as %j", async (body) => {
    const scene = new Scene(() => CONFIG);
    const { status, value } = await scene.json("POST", "/tasks/t1/pushNotificationConfigs", { body });
    expect([status, value]).toMatchObject([400, { code: -32602 }]);
  });

  it("are refused by an agent that sends none", async () => {
    const scene = new Scene(() => CONFIG, { streaming: true, pushNotifications: false });
    expect(await scene.json("GET", "/tasks/t1/pushNotificationConfigs")).toMatchObject({
      status: 501,
      value: { code: -32003 },
    });
  });
});

describe("everything else", () => {
  it("GET /card is the extended card in the proto's shape", async () => {
    const scene = new Scene(() => ({
      ...CARD,
      supportedInterfaces: [
        { url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        { url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "0.3" },
        { url: "https://a.example/rest", protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
      ],
      capabilities: { streaming: true, extendedAgentCard: true },
      iconUrl: "https://a.example/icon",
      securityRequirements: [{ schemes: { key: { list: [] } } }],
      securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } } },
      signatures: [{ protected: "p", signature: "s" }],
    }));
    expect(await scene.json("GET", "/card")).toEqual({
      status: 200,
      value: {
        protocolVersion: "0.3.0",
        name: "Agent",
        description: "Does as told.",
        url: "https://a.example",
        preferredTransport: "JSONRPC",
        additionalInterfaces: [
          { url: "https://a.example", transport: "JSONRPC" },
          { url: "https://a.example/rest", transport: "HTTP+JSON" },
        ],
        version: "1.0.0",
        capabilities: { streaming: true },
        supportsAuthenticatedExtendedCard: true,
        defaultInputModes: ["text/plain"],
        defaultOutputModes: ["text/plain"],
        skills: [],
        iconUrl: "https://a.example/icon",
        security: [{ schemes: { key: { list: [] } } }],
        securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } } },
      },
    });
    expect(scene.losses).toMatchObject([{ path: "card.signatures" }]);
  });

  it.each([
    ["an unknown path", "GET", "/nothing", {}, 404, -32601],
    ["a method that is not there", "DELETE", "/message:send", {}, 405, -32601],
    ["no JSON", "POST", "/message:send", { text: "{" }, 400, -32700],
    ["a list", "POST", "/message:send", { text: "[]" }, 400, -32602],
    ["JSON without a bottom", "POST", "/message:send", { text: "[".repeat(100) + "]".repeat(100) }, 400, -32600],
    ["a form", "POST", "/message:send", { text: "a=b", headers: { "content-type": "text/plain" } }, 415, -32005],
    ["compression", "POST", "/message:send", { text: "{}", headers: { "content-encoding": "gzip" } }, 415, -32005],
    ["an escape that is none", "GET", "/tasks/%zz", {}, 400, -32602],
    ["a cursor that is none", "GET", "/tasks/t:subscribe", { headers: { "last-event-id": "x" } }, 400, -32602],
    ["another version", "GET", "/tasks/t", { headers: { "a2a-version": "2.0" } }, 400, -32600],
  ])("refuses %s", async (_what, method, path, raw, status, code) => {
    const scene = new Scene(() => TASK);
    expect(await scene.json(method, path, raw)).toMatchObject({ status, value: { code } });
    expect(scene.asked).toBeUndefined();
  });

  it.each([
    ["TASK_NOT_FOUND", 404, -32001],
    ["TASK_NOT_CANCELABLE", 409, -32002],
    ["UNSUPPORTED_OPERATION", 501, -32004],
    ["UNAUTHENTICATED", 401, -32050],
  ] as const)("says %s with status %i and code %i", async (reason, status, code) => {
    const scene = new Scene(() => {
      throw new ProtocolError(reason, "Because.", { retryAfter: 1.5 });
    });
    const reply = await scene.ask("POST", "/tasks/t1:cancel");
    expect(reply).toMatchObject({ status, headers: { "retry-after": "2", "content-type": "application/json" } });
    expect(JSON.parse((await whole(reply)).text)).toMatchObject({ code, message: "Because.", data: [{ reason }, {}] });
  });

  it("hears extensions by either name and says which took effect", async () => {
    const scene = new Scene(() => TASK);
    const headers = { "x-a2a-extensions": "urn:a, urn:b", "a2a-extensions": "urn:c" };
    const reply = await scene.ask("GET", "/tasks/t1", { headers });
    expect(reply.headers["x-a2a-extensions"]).toBe("urn:a,urn:b,urn:c");
  });
});

describe("the official client of 0.3", () => {
  const clientOf = (scene: Scene) =>
    new RestTransport({
      endpoint: "https://agent.example/rest",
      fetchImpl: async (input, init) => {
        const url = new URL(String(input));
        const { status, text } = await whole(
          await scene.ask(init?.method ?? "GET", url.pathname.slice("/rest/v1".length), {
            text: String(init?.body ?? ""),
            query: url.search.slice(1),
            headers: { "content-type": "application/json" },
          }),
        );
        const type = text.startsWith("{") ? "application/json" : "text/event-stream";
        return new Response(status === 204 ? null : text, { status, headers: { "content-type": type } });
      },
    });

  it("sends, streams, asks for tasks and handles push configs", async () => {
    const message = { messageId: "m2", role: "ROLE_AGENT", parts: [{ text: "ho" }] } as const;
    const scene = new Scene(({ kind }) => {
      if (kind === "stream") return streamOf();
      if (kind === "send") return { message };
      if (kind === "push-list") return { configs: [CONFIG], nextPageToken: "" };
      return kind.startsWith("push") ? (kind === "push-delete" ? undefined : CONFIG) : TASK;
    });
    async function* streamOf() {
      yield [
        frameOf({ task: TASK }, 1),
        frameOf({ statusUpdate: { taskId: "t1", contextId: "c1", status: { state: "TASK_STATE_CANCELED" } } }, 2),
      ];
    }
    const client = clientOf(scene);
    const said = {
      message: { kind: "message", messageId: "m1", role: "user", parts: [{ kind: "text", text: "hi" }] },
    } as const;
    expect(await client.sendMessage({ message: { ...said.message, parts: [...said.message.parts] } })).toMatchObject({
      kind: "message",
      parts: [{ kind: "text", text: "ho" }],
    });
    const events: unknown[] = [];
    for await (const event of client.sendMessageStream({
      message: { ...said.message, parts: [...said.message.parts] },
    })) {
      events.push(event);
    }
    expect(events).toMatchObject([
      { kind: "task", id: "t1" },
      { kind: "status-update", status: { state: "canceled" }, final: true },
    ]);
    expect(await client.getTask({ id: "t1", historyLength: 3 })).toMatchObject({ status: { state: "working" } });
    expect(scene.asked).toEqual({ kind: "get", id: "t1", historyLength: 3 });
    expect(await client.cancelTask({ id: "t1" })).toMatchObject({ id: "t1" });
    const config = { taskId: "t1", pushNotificationConfig: { id: "p1", url: "https://hook.example" } };
    expect(await client.setTaskPushNotificationConfig(config)).toMatchObject(config);
    expect(await client.listTaskPushNotificationConfig({ id: "t1" })).toMatchObject([config]);
    await client.deleteTaskPushNotificationConfig({ id: "t1", pushNotificationConfigId: "p1" });
    expect(scene.asked).toEqual({ kind: "push-delete", taskId: "t1", id: "p1" });
  });

  it("knows our errors", async () => {
    const scene = new Scene(() => {
      throw new ProtocolError("TASK_NOT_CANCELABLE", "It is over.");
    });
    await expect(clientOf(scene).cancelTask({ id: "t1" })).rejects.toMatchObject({ name: "TaskNotCancelableError" });
  });
});
