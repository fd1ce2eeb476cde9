/** The binary form, held against another implementation of protobuf that knows only the published `.proto`. */

import { fileURLToPath } from "node:url";
import { loadSync, type MethodDefinition, type ServiceDefinition } from "@grpc/proto-loader";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../../model/errors.ts";
import { cases } from "../../../model/testing/exploring.ts";
import * as arbitrary from "../../suite/arbitraries.ts";
import { fromBytes, readWire, toBytes, type WireName } from "./schema.ts";

const PROTOS = fileURLToPath(new URL("../../../../../proto", import.meta.url));
const loaded = loadSync("lf/a2a/v1/a2a.proto", { includeDirs: [PROTOS], oneofs: true });
const service = loaded["lf.a2a.v1.A2AService"] as ServiceDefinition;

function methodNamed(name: string): MethodDefinition<object, object> {
  return service[name] as MethodDefinition<object, object>;
}

/** What the other implementation makes of bytes, as bytes of its own. */
const throughResponse = (method: string, bytes: Uint8Array) =>
  methodNamed(method).responseSerialize(methodNamed(method).responseDeserialize(Buffer.from(bytes)));
const throughRequest = (method: string, bytes: Uint8Array) =>
  methodNamed(method).requestSerialize(methodNamed(method).requestDeserialize(Buffer.from(bytes)));

function expectSame(name: WireName, value: object, through: (bytes: Uint8Array) => Uint8Array): void {
  const back = readWire(name, fromBytes(name, through(toBytes(name, value))));
  expect(back).toEqual(value);
}

describe("bytes", () => {
  it("are read and written by others as they are here", () => {
    const check = <T extends object>(name: WireName, values: fc.Arbitrary<T>, through: (bytes: Uint8Array) => Buffer) =>
      fc.assert(
        fc.property(values, (value) => expectSame(name, value, through)),
        { numRuns: 300 },
      );
    check("StreamResponse", arbitrary.streamEvent, (bytes) => throughResponse("SendStreamingMessage", bytes));
    check("SendMessageRequest", arbitrary.sendRequest, (bytes) => throughRequest("SendMessage", bytes));
    check("ListTasksResponse", arbitrary.taskPage, (bytes) => throughResponse("ListTasks", bytes));
    check("AgentCard", arbitrary.card, (bytes) => throughResponse("GetExtendedAgentCard", bytes));
    check("TaskPushNotificationConfig", arbitrary.pushConfig, (bytes) =>
      throughResponse("GetTaskPushNotificationConfig", bytes),
    );
  });

  it("of any kind are a message or a ProtocolError", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          fromBytes("StreamResponse", bytes);
        } catch (error) {
          expect(ProtocolError.is(error)).toBe(true);
        }
      }),
      { numRuns: cases(10_000) },
    );
  });

  it("that are cut short anywhere are refused or mean less, and nothing worse", () => {
    const whole = toBytes("Task", {
      id: "task",
      contextId: "context",
      status: { state: "TASK_STATE_WORKING", timestamp: "2026-01-02T03:04:05.006Z" },
      artifacts: [{ artifactId: "a", parts: [{ raw: "aGVsbG8=" }, { data: { deep: [1, null, "x", true] } }] }],
      metadata: { key: -1.5 },
    });
    for (let end = 0; end < whole.length; end++) {
      try {
        fromBytes("Task", whole.subarray(0, end));
      } catch (error) {
        expect(error).toMatchObject({ code: "PARSE_ERROR" });
      }
    }
  });

  it("nested too deep are refused", () => {
    let data: unknown = 1;
    for (let level = 0; level < 100; level++) data = [data];
    const bytes = toBytes("Part", { data });
    expect(() => fromBytes("Part", bytes, { maxDepth: 64 })).toThrow(ProtocolError);
    expect(fromBytes("Part", bytes)).toEqual({ data });
  });

  it("keep what presence means: a member set to its default, and one that is not set", () => {
    const capabilities = { streaming: false };
    expect(fromBytes("AgentCapabilities", toBytes("AgentCapabilities", capabilities))).toEqual(capabilities);
    expect(fromBytes("Part", toBytes("Part", { text: "" }))).toEqual({ text: "" });
    expect(fromBytes("Part", toBytes("Part", { data: null }))).toEqual({ data: null });
    expect(toBytes("SendMessageConfiguration", { returnImmediately: false })).toHaveLength(0);
    expect(toBytes("SendMessageConfiguration", { historyLength: 0 })).toHaveLength(2);
  });
});
