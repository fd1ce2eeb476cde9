import { A2AService } from "a2a-js-sdk-0.3/server/grpc";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentCard } from "../../../model/card.ts";
import { ProtocolError } from "../../../model/errors.ts";
import type { Loss } from "../../../model/loss.ts";
import type { Operation, SendInput } from "../../../model/operation.ts";
import { TASK_STATES } from "../../../model/task.ts";
import { cases } from "../../../model/testing/exploring.ts";
import * as arbitrary from "../../suite/arbitraries.ts";
import { grpc } from "../bind-grpc.ts";
import { fromProtoCard, toProtoCard } from "./card.ts";
import { fromProtoEvent, fromProtoTaskPushConfig } from "./decode.ts";
import { toProtoEvent, toProtoTaskPushConfig } from "./encode.ts";
import { decodeRequest, encodeRequest, REQUEST_NAMES } from "./requests.ts";
import { fromBytes, type ProtoName, readProto, toBytes } from "./schema.ts";

const CASES = { numRuns: cases(10_000) };
/** For values that take long to make. The contract suite takes messages, tasks and events by the ten thousand. */
const FEWER_CASES = { numRuns: cases(2_000) };
const CARDS = { numRuns: cases(5_000) };

/** Both ways a message can travel. */
const WAYS = {
  JSON: <Name extends ProtoName>(name: Name, value: object) => readProto(name, JSON.parse(JSON.stringify(value))),
  bytes: <Name extends ProtoName>(name: Name, value: object) => readProto(name, fromBytes(name, toBytes(name, value))),
};

describe.each(["JSON", "bytes"] as const)("as %s", (way) => {
  const travel = WAYS[way];

  it("any event comes back, but for the references that were reported", () => {
    fc.assert(
      fc.property(arbitrary.streamEvent, fc.boolean(), (event, closes) => {
        const losses: Loss[] = [];
        const heard = fromProtoEvent(travel("StreamResponse", toProtoEvent(event, losses, closes)), losses);
        const references = JSON.stringify(event).split('"referenceTaskIds":').length - 1;
        expect(losses.map(({ path }) => path.endsWith(".referenceTaskIds"))).toEqual(Array(references).fill(true));
        expect(heard).toEqual(withoutReferences(event));
      }),
      FEWER_CASES,
    );
  });

  it("any push config comes back", () => {
    fc.assert(
      fc.property(arbitrary.pushConfig, (config) => {
        const losses: Loss[] = [];
        const sent = toProtoTaskPushConfig(config, "t");
        const heard = fromProtoTaskPushConfig(travel("TaskPushNotificationConfig", sent), losses);
        expect([heard, losses]).toEqual([{ ...config, taskId: "t" }, []]);
      }),
      CASES,
    );
  });

  it("any request to send comes back", () => {
    fc.assert(
      fc.property(arbitrary.sendRequest, ({ tenant: _tenant, ...input }) => {
        const operation = { kind: "send" as const, ...(withoutReferences(input) as SendInput) };
        expect(heardAs(operation, travel)).toEqual(canonical(operation));
      }),
      FEWER_CASES,
    );
  });

  it("any other request comes back", () => {
    const id = fc.string({ minLength: 1, maxLength: 20 }).filter((text) => !text.includes("/push"));
    const request: fc.Arbitrary<Exclude<Operation, { kind: "list" }>> = fc.oneof(
      fc.record({ kind: fc.constantFrom("get", "cancel", "subscribe"), id }, { noNullPrototype: true }),
      fc.record({ kind: fc.constant("get"), id, historyLength: fc.nat() }, { noNullPrototype: true }),
      fc.record({ kind: fc.constantFrom("push-get", "push-delete"), taskId: id, id }, { noNullPrototype: true }),
      fc.record(
        { kind: fc.constant("push-list"), taskId: id, pageSize: fc.integer({ min: 1, max: 9 }), pageToken: id },
        { noNullPrototype: true },
      ),
    );
    fc.assert(
      fc.property(request, (operation) => {
        expect(heardAs(operation, travel)).toEqual(operation);
      }),
      CASES,
    );
  });

  it("any card comes back, but for its signatures and what speaks another version", () => {
    fc.assert(
      fc.property(arbitrary.card, (any) => {
        const card: AgentCard = { ...any, supportedInterfaces: ours(any.supportedInterfaces) };
        const { value, losses } = toProtoCard(card);
        const heard = fromProtoCard(travel("AgentCard", value), []);
        const { signatures, ...rest } = card;
        expect(heard).toEqual(rest);
        expect(losses.map(({ path }) => path)).toEqual(signatures === undefined ? [] : ["card.signatures"]);
      }),
      CARDS,
    );
  });
});

function heardAs(operation: Exclude<Operation, { kind: "list" }>, travel: (typeof WAYS)["JSON"]): Operation {
  const { kind } = operation;
  const losses: Loss[] = [];
  const request = encodeRequest(operation, losses);
  const decoded = decodeRequest(kind, travel(REQUEST_NAMES[kind], request), {}, undefined, losses);
  expect(losses).toEqual([]);
  return decoded;
}

/** A configuration that says nothing is none, and its push config has no task of its own yet. */
function canonical(operation: Extract<Operation, { kind: "send" }>): Operation {
  const { configuration = {}, ...rest } = operation;
  const { taskPushNotificationConfig, ...said } = configuration;
  if (taskPushNotificationConfig !== undefined) {
    const { taskId: _taskId, ...config } = taskPushNotificationConfig;
    return { ...rest, configuration: { ...said, taskPushNotificationConfig: config } };
  }
  return Object.keys(said).length === 0 ? rest : { ...rest, configuration: said };
}

function ours(interfaces: AgentCard["supportedInterfaces"]): AgentCard["supportedInterfaces"] {
  return interfaces.map(({ url, protocolBinding }, at) => ({
    url: `${url}${at}`,
    protocolBinding,
    protocolVersion: "0.3",
  }));
}

/** Members of that name stand in messages; generated metadata has none. */
function withoutReferences(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, member) => (key === "referenceTaskIds" ? undefined : member)));
}

describe("what is no message", () => {
  const names: ProtoName[] = ["StreamResponse", "SendMessageRequest", "AgentCard", "TaskPushNotificationConfig"];
  const onlyProtocolErrors = (run: () => unknown) => {
    try {
      run();
    } catch (error) {
      if (!ProtocolError.is(error)) throw error;
    }
  };

  it("is refused as bytes", () => {
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.uint8Array({ maxLength: 60 }), (name, bytes) => {
        onlyProtocolErrors(() => readProto(name, fromBytes(name, bytes), { tolerant: true }));
      }),
      CASES,
    );
  });

  it("is refused as JSON", () => {
    const key = fc.constantFrom("task", "message", "request", "content", "status", "file", "data", "text", "config");
    const leaf = fc.oneof(fc.constantFrom<unknown>(null, 1, "", "x", true, "ROLE_USER"), fc.constant([]));
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie("tree"), { maxLength: 2 }),
        fc.dictionary(key, tie("tree"), { maxKeys: 3 }),
      ),
    }));
    fc.assert(
      fc.property(fc.constantFrom(...names), tree, (name, value) => {
        onlyProtocolErrors(() => readProto(name, value, { tolerant: true }));
      }),
      CASES,
    );
  });
});

describe("the official library", () => {
  const { responseSerialize, responseDeserialize } = A2AService.sendStreamingMessage;

  it("reads what we write, and writes it so that we read the same", () => {
    const text = fc.string({ maxLength: 9 });
    const part = fc.oneof(
      fc.record({ text }, { noNullPrototype: true }),
      fc.record(
        {
          raw: fc.uint8Array({ maxLength: 9 }).map((bytes) => Buffer.from(bytes).toString("base64")),
          mediaType: fc.constant("a/b"),
        },
        { noNullPrototype: true },
      ),
      fc.record({ url: text, mediaType: fc.constant("a/b") }, { noNullPrototype: true }),
      fc.record(
        {
          data: fc.dictionary(
            text.filter((key) => key !== "__proto__"),
            text,
          ),
        },
        { noNullPrototype: true },
      ),
    );
    const event = fc.record({ state: fc.constantFrom(...TASK_STATES), parts: fc.array(part, { minLength: 1 }) });
    fc.assert(
      fc.property(event, ({ state, parts }) => {
        const message = { messageId: "m", role: "ROLE_AGENT", parts } as const;
        const timestamp = "2026-01-02T03:04:05.678Z";
        const said = { task: { id: "t", contextId: "c", status: { state, message, timestamp }, history: [message] } };
        const ourBytes = toBytes("StreamResponse", toProtoEvent(said, [], false));
        const theirBytes = responseSerialize(responseDeserialize(Buffer.from(ourBytes)));
        expect(fromProtoEvent(readProto("StreamResponse", fromBytes("StreamResponse", theirBytes)), [])).toEqual(said);
      }),
      FEWER_CASES,
    );
  });
});

describe("the published proto", () => {
  it("is that of the release, with three younger fields", async () => {
    const { path, text } = grpc.source();
    expect(path).toBe("a2a/v1/a2a.proto");
    for (const line of [
      "package a2a.v1;",
      "rpc TaskSubscription(TaskSubscriptionRequest) returns (stream StreamResponse);",
      "rpc DeleteTaskPushNotificationConfig(DeleteTaskPushNotificationConfigRequest) returns (google.protobuf.Empty);",
      "TASK_STATE_CANCELLED = 5;",
      'Message request = 1 [json_name = "message"];',
      'Message update = 2 [json_name = "message"];',
      'Message msg = 2 [json_name = "message"];',
      "bool blocking = 4;",
      "int32 history_length = 3;",
      "string artifact_id = 1;",
      "string name = 3;",
      "repeated Part content = 5;",
      "google.protobuf.Struct metadata = 4;",
      "string protocol_version = 16;",
      "string icon_url = 18;",
      "map<string, SecurityScheme> security_schemes = 8;",
    ]) {
      expect(text).toContain(line);
    }
    expect(text).not.toContain("optional ");
    expect((await grpc.descriptors())[0]?.length).toBeGreaterThan(1_000);
  });
});
