import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../model/errors.ts";
import type { Operation } from "../../model/operation.ts";
import { cases } from "../../model/testing/exploring.ts";
import { parseJsonRpc } from "../../wire/json-rpc.ts";
import type { CallTarget } from "../contract.ts";
import * as arbitrary from "../suite/arbitraries.ts";
import { OPERATIONS } from "../suite/values.ts";
import { jsonRpcCalling } from "./call-json-rpc.ts";
import { decodeRequest, kindOfMethod } from "./json/decode.ts";

const TARGET: CallTarget = { url: "https://agents.example.com/a2a", tenant: undefined, headers: {}, extensions: [] };

function bodyOf(operation: Operation, target: CallTarget = TARGET): string {
  return jsonRpcCalling.encode(operation, target).value.body ?? "";
}

function answer(result: unknown) {
  return { status: 200, contentType: "application/json", text: JSON.stringify({ jsonrpc: "2.0", id: 1, result }) };
}

describe("requests", () => {
  it.each([
    [
      OPERATIONS.send,
      '{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m","contextId":"c","role":"user","parts":[{"kind":"text","text":"hello"}]},"configuration":{"acceptedOutputModes":[],"blocking":true}}}',
    ],
    [
      { ...OPERATIONS.stream, configuration: { returnImmediately: true, historyLength: 0 } },
      '{"jsonrpc":"2.0","id":1,"method":"message/stream","params":{"message":{"kind":"message","messageId":"m","contextId":"c","role":"user","parts":[{"kind":"text","text":"hello"}]},"configuration":{"acceptedOutputModes":[],"historyLength":0,"blocking":false}}}',
    ],
    [OPERATIONS.get, '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t"}}'],
    [OPERATIONS.cancel, '{"jsonrpc":"2.0","id":1,"method":"tasks/cancel","params":{"id":"t"}}'],
    [OPERATIONS.subscribe, '{"jsonrpc":"2.0","id":1,"method":"tasks/resubscribe","params":{"id":"t"}}'],
    [
      OPERATIONS["push-create"],
      '{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{"taskId":"t","pushNotificationConfig":{"url":"https://hook.example"}}}',
    ],
    [
      OPERATIONS["push-get"],
      '{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/get","params":{"id":"t","pushNotificationConfigId":"p"}}',
    ],
    [
      OPERATIONS["push-list"],
      '{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/list","params":{"id":"t"}}',
    ],
    [
      OPERATIONS["push-delete"],
      '{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/delete","params":{"id":"t","pushNotificationConfigId":"p"}}',
    ],
    [OPERATIONS["extended-card"], '{"jsonrpc":"2.0","id":1,"method":"agent/getAuthenticatedExtendedCard"}'],
  ] as const)("$0.kind, byte for byte", (operation, body) => {
    expect(bodyOf(operation)).toBe(body);
  });

  it("have headers of 0.3", () => {
    const target = {
      ...TARGET,
      headers: { authorization: "Bearer x" },
      extensions: ["urn:a", "urn:b"],
      idempotencyKey: "k",
    };
    expect(jsonRpcCalling.encode(OPERATIONS.subscribe, target).value).toEqual({
      method: "POST",
      url: TARGET.url,
      headers: {
        authorization: "Bearer x",
        accept: "text/event-stream, application/json",
        "content-type": "application/json",
        "x-a2a-extensions": "urn:a,urn:b",
        "idempotency-key": "k",
        "last-event-id": "1",
      },
      body: bodyOf(OPERATIONS.subscribe),
    });
  });

  it("to list tasks are not made", () => {
    expect(() => jsonRpcCalling.encode(OPERATIONS.list, TARGET)).toThrow(
      expect.objectContaining({ code: "UNSUPPORTED_OPERATION" }),
    );
  });

  it("report what they leave out", () => {
    const paged = { kind: "push-list", taskId: "t", pageSize: 1, pageToken: "x" } as const;
    const { losses } = jsonRpcCalling.encode(paged, { ...TARGET, tenant: "acme" });
    expect(losses.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "dropped call.tenant",
      "bent push-list.pageSize",
      "bent push-list.pageToken",
    ]);
    expect(jsonRpcCalling.encode(OPERATIONS.send, { ...TARGET, tenant: "" }).losses).toEqual([]);
  });

  it("are read as they were meant", () => {
    const send = arbitrary.sendRequest.map(({ tenant: _tenant, ...input }): Operation => {
      const { configuration, ...rest } = input;
      if (configuration === undefined) return { kind: "send", ...rest };
      // The task of a config is the one the message makes, and nothing said is as good as said by default.
      const { taskPushNotificationConfig: push, ...others } = configuration;
      if (push !== undefined) {
        const { taskId: _taskId, ...config } = push;
        return { kind: "send", ...rest, configuration: { ...others, taskPushNotificationConfig: config } };
      }
      return { kind: "send", ...rest, ...(Object.keys(others).length > 0 && { configuration: others }) };
    });
    const id = fc.string({ minLength: 1 });
    const create = fc
      .tuple(id, arbitrary.pushConfig)
      .map(
        ([taskId, config]): Operation => ({ kind: "push-create", taskId, config: { id: taskId, ...config, taskId } }),
      );
    const others = fc
      .tuple(id, id, fc.nat({ max: 1000 }))
      .chain(([one, other, number]) =>
        fc.constantFrom<Operation>(
          { kind: "get", id: one, historyLength: number },
          { kind: "get", id: one },
          { kind: "cancel", id: one, metadata: { [other]: number } },
          { kind: "subscribe", id: one, after: number },
          { kind: "push-get", taskId: one, id: other },
          { kind: "push-list", taskId: one },
          { kind: "push-delete", taskId: one, id: other },
          { kind: "extended-card" },
        ),
      );
    fc.assert(
      fc.property(fc.oneof({ weight: 3, arbitrary: send }, create, others), (operation) => {
        const { value, losses } = jsonRpcCalling.encode(operation, TARGET);
        const parsed = parseJsonRpc(value.body ?? "");
        if (!parsed.ok) throw new Error(parsed.message);
        const read = decodeRequest(kindOfMethod(parsed.request.method), parsed.request.params ?? {}, {
          maxItems: 1000,
          lastEventId: value.headers["last-event-id"],
        });
        expect(read.value).toEqual(operation);
        expect([...losses, ...read.losses]).toEqual([]);
      }),
      { numRuns: cases(10_000) },
    );
  });
});

describe("answers", () => {
  const task = (more: object = {}) => ({ id: "t", status: { state: "working" }, ...more });

  it("are distinguished by kind, else by shape", () => {
    expect(jsonRpcCalling.decode("send", answer({ kind: "task", ...task() })).value).toHaveProperty("task");
    expect(jsonRpcCalling.decode("send", answer(task())).value).toHaveProperty("task");
    const message = { role: "agent", parts: [{ text: "x" }], messageId: "m" };
    expect(jsonRpcCalling.decode("send", answer(message)).value).toEqual({
      message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "x" }] },
    });
    const frame = (result: unknown) =>
      jsonRpcCalling.decodeFrame({ data: JSON.stringify({ result }), event: "", id: "7" }).value;
    expect(frame({ taskId: "t", status: { state: "working" }, final: false })).toMatchObject({
      number: 7,
      event: { statusUpdate: { taskId: "t", contextId: "", status: { state: "TASK_STATE_WORKING" } } },
    });
    expect(frame({ taskId: "t", artifact: { artifactId: "a", parts: [] }, append: null })).toMatchObject({
      event: { artifactUpdate: { taskId: "t", contextId: "", artifact: { artifactId: "a", parts: [] } } },
    });
  });

  it("may leave out what 0.3 requires, where nothing else can be meant", () => {
    const { value, losses } = jsonRpcCalling.decode(
      "get",
      answer(
        task({
          artifacts: null,
          history: [],
          status: { state: "cancelled", timestamp: "2025-07-30T10:00:00.123456", message: { parts: [{ text: "x" }] } },
        }),
      ),
    );
    expect(value).toEqual({
      id: "t",
      contextId: "",
      status: {
        state: "TASK_STATE_CANCELED",
        timestamp: "2025-07-30T10:00:00.123Z",
        message: { messageId: expect.stringMatching(/^message-/), role: "ROLE_AGENT", parts: [{ text: "x" }] },
      },
    });
    expect(losses.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "filled status.message.role",
      "filled status.message.messageId",
    ]);
  });

  it.each([
    ["2025-07-30T10:00:00Z", "2025-07-30T10:00:00.000Z"],
    ["2025-07-30T10:00:00", "2025-07-30T10:00:00.000Z"],
    ["2025-07-30 10:00:00+02:00", "2025-07-30T08:00:00.000Z"],
    ["2025-07-30T10:00:00.5-0130", "2025-07-30T11:30:00.500Z"],
  ])("tell the time %s", (timestamp, told) => {
    const { value } = jsonRpcCalling.decode("get", answer(task({ status: { state: "working", timestamp } })));
    expect(value.status.timestamp).toBe(told);
  });

  it("report what of them cannot be kept", () => {
    const { value, losses } = jsonRpcCalling.decode(
      "get",
      answer(task({ status: { state: "working", timestamp: "yesterday", message: { role: "system", parts: [] } } })),
    );
    expect(value.status).toEqual({
      state: "TASK_STATE_WORKING",
      message: { messageId: expect.stringMatching(/^message-/), role: "ROLE_AGENT", parts: [] },
    });
    expect(losses.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      'filled status.message.role ("system")',
      "filled status.message.messageId",
      "dropped status.timestamp",
    ]);
  });

  it("of an unknown state are those of an unspecified one", () => {
    const heard = (state: unknown) => jsonRpcCalling.decode("get", answer(task({ status: { state } })));
    const value = { status: { state: "TASK_STATE_UNSPECIFIED" } };
    expect(heard("unknown")).toMatchObject({ value, losses: [] });
    expect(heard("paused")).toMatchObject({ value, losses: [{ kind: "filled", path: 'status.state ("paused")' }] });
    expect(heard(undefined)).toMatchObject({ value, losses: [{ kind: "filled", path: "status.state" }] });
  });

  it("of push configs come with their task", () => {
    const config = { taskId: "t", pushNotificationConfig: { id: "p", url: "https://hook.example" } };
    const read = { taskId: "t", id: "p", url: "https://hook.example" };
    expect(jsonRpcCalling.decode("push-create", answer(config)).value).toEqual(read);
    expect(jsonRpcCalling.decode("push-list", answer([config])).value).toEqual({ configs: [read], nextPageToken: "" });
    expect(jsonRpcCalling.decode("push-list", answer(null)).value).toEqual({ configs: [], nextPageToken: "" });
    expect(jsonRpcCalling.decode("push-delete", answer(null)).value).toBeUndefined();
    const empty = { status: 204, contentType: "", text: "" };
    expect(jsonRpcCalling.decode("push-delete", empty).value).toBeUndefined();
  });

  it("that are none are ProtocolErrors", () => {
    const refusals: [() => unknown, string][] = [
      [
        () =>
          jsonRpcCalling.decode("send", answer({ kind: "status-update", taskId: "t", status: { state: "working" } })),
        "INVALID_AGENT_RESPONSE",
      ],
      [() => jsonRpcCalling.decode("send", answer({})), "INVALID_AGENT_RESPONSE"],
      [() => jsonRpcCalling.decode("get", { status: 200, contentType: "", text: "<html>" }), "INVALID_AGENT_RESPONSE"],
      [() => jsonRpcCalling.decode("get", { status: 502, contentType: "", text: "<html>" }), "UNAVAILABLE"],
      [
        () => jsonRpcCalling.decode("get", { status: 404, contentType: "", text: '{"detail":"Not Found"}' }),
        "METHOD_NOT_FOUND",
      ],
      [() => jsonRpcCalling.decode("extended-card", answer({ name: "A" })), "INVALID_AGENT_RESPONSE"],
      [() => jsonRpcCalling.decode("list", answer({})), "INVALID_AGENT_RESPONSE"],
      [
        () => jsonRpcCalling.decodeFrame({ data: '{"error":{"code":-32001,"message":"x"}}', event: "", id: undefined }),
        "TASK_NOT_FOUND",
      ],
      [() => jsonRpcCalling.decodeFrame({ data: "[]", event: "", id: undefined }), "INVALID_AGENT_RESPONSE"],
    ];
    for (const [read, code] of refusals) expect(read).toThrow(expect.objectContaining({ code }));
  });

  it("in nearly the right shape are read or refused", () => {
    const names = [
      "kind",
      "id",
      "taskId",
      "contextId",
      "status",
      "state",
      "message",
      "timestamp",
      "artifacts",
      "artifact",
      "artifactId",
      "history",
      "parts",
      "text",
      "file",
      "uri",
      "data",
      "metadata",
      "role",
      "append",
      "final",
    ];
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom<unknown>(
          "task",
          "message",
          "status-update",
          "artifact-update",
          "working",
          "agent",
          "text",
          "x",
          "",
          0,
          true,
          null,
        ),
        fc.dictionary(fc.constantFrom(...names), tie("value"), { maxKeys: 6 }),
        fc.array(tie("value"), { maxLength: 2 }),
      ),
    }));
    fc.assert(
      fc.property(
        fc.constantFrom("send", "get", "push-create", "push-list", "extended-card"),
        value,
        (kind, result) => {
          try {
            jsonRpcCalling.decode(kind, answer(result));
            jsonRpcCalling.decodeFrame({ data: JSON.stringify({ result }), event: "", id: undefined });
          } catch (error) {
            if (!ProtocolError.is(error)) throw error;
          }
        },
      ),
      { numRuns: cases(10_000) },
    );
  });
});

describe("the extended card of 0.2", () => {
  it("is asked for at an address of its own", () => {
    const target = { ...TARGET, headers: { authorization: "Bearer x" } };
    const call = jsonRpcCalling.encode(OPERATIONS["extended-card"], target).value;
    expect(jsonRpcCalling.alternative(call)).toEqual({
      method: "GET",
      url: "https://agents.example.com/agent/authenticatedExtendedCard",
      headers: { accept: "application/json", authorization: "Bearer x" },
    });
    expect(jsonRpcCalling.alternative({ ...call, url: "not a url" })).toBeUndefined();
    expect(jsonRpcCalling.alternative(jsonRpcCalling.encode(OPERATIONS.get, TARGET).value)).toBeUndefined();
  });

  it("comes without an envelope", () => {
    const text = JSON.stringify({ name: "A", url: "https://a.example", version: "1" });
    const { value } = jsonRpcCalling.decode("extended-card", { status: 200, contentType: "application/json", text });
    expect(value).toMatchObject({ name: "A", supportedInterfaces: [{ url: "https://a.example" }] });
  });
});
