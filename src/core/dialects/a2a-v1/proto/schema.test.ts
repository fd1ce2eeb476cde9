import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../../model/errors.ts";
import * as arbitrary from "../../suite/arbitraries.ts";
import { readWire, type WireName, type WireTypes, writeWire } from "./schema.ts";

const MESSAGE = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "hi" }] };

type Sample = { [Name in WireName]?: fc.Arbitrary<WireTypes[Name]> };

const SAMPLES = Object.entries({
  Part: arbitrary.part,
  Message: arbitrary.message,
  Artifact: arbitrary.artifact,
  Task: arbitrary.task,
  StreamResponse: arbitrary.streamEvent,
  SendMessageRequest: arbitrary.sendRequest,
  TaskPushNotificationConfig: arbitrary.pushConfig,
  ListTasksResponse: arbitrary.taskPage,
  AgentCard: arbitrary.card,
} satisfies Sample) as [WireName, fc.Arbitrary<WireTypes[WireName]>][];

/** Members that hold values of the caller's own, whose names are nobody's business. */
const OPAQUE = new Set(["metadata", "data", "params", "header", "schemes", "securitySchemes"]);

function inSnakeCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inSnakeCase);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      OPAQUE.has(name) ? member : inSnakeCase(member),
    ]),
  );
}

function refusalOf(name: WireName, value: unknown, options?: Parameters<typeof readWire>[2]): ProtocolError {
  try {
    readWire(name, value, options);
  } catch (error) {
    if (ProtocolError.is(error)) return error;
    throw error;
  }
  throw new Error("It was accepted.");
}

describe.each(SAMPLES)("%s", (name, samples) => {
  it("[DM-PART-001, DM-BYTES-001] written and read is itself", () => {
    fc.assert(
      fc.property(samples, (value) => {
        const wire = JSON.parse(JSON.stringify(writeWire(name, value)));
        deepStrictEqual(readWire(name, wire), JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it("reads snake_case as camelCase", () => {
    fc.assert(
      fc.property(samples, (value) => {
        const plain = JSON.parse(JSON.stringify(value));
        deepStrictEqual(readWire(name, inSnakeCase(plain)), readWire(name, plain));
      }),
    );
  });

  it("refuses any other JSON with a ProtocolError only", () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), mangled(samples)), (value) => {
        try {
          readWire(name, value, { maxItems: 5 });
        } catch (error) {
          expect(ProtocolError.is(error)).toBe(true);
          expect((error as ProtocolError).code).toBe("INVALID_PARAMS");
          expect((error as ProtocolError).violations?.length).toBeGreaterThan(0);
        }
      }),
    );
  });
});

/** A good value in which one member anywhere became something else. */
function mangled(samples: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.tuple(samples, fc.jsonValue(), fc.nat()).map(([value, other, at]) => {
    let left = at % 20;
    return JSON.parse(JSON.stringify(value), (_name, member) => (left-- === 0 ? other : member));
  });
}

describe("reading", () => {
  it("gives back the same object when nothing needs to change", () => {
    const request = { message: { ...MESSAGE, metadata: {}, contextId: "c" }, configuration: { historyLength: 0 } };
    expect(readWire("SendMessageRequest", request)).toBe(request);
  });

  it("does not touch what it was given", () => {
    const request = { unknown: 1, message: { ...MESSAGE, task_id: "t", contextId: "" } };
    const before = structuredClone(request);
    expect(readWire("SendMessageRequest", request)).toStrictEqual({ message: { ...MESSAGE, taskId: "t" } });
    expect(request).toStrictEqual(before);
  });

  it("[DM-SERIAL-005, DM-SERIAL-006] leaves unknown members out, wherever they stand", () => {
    expect(
      readWire("Message", { kind: "message", ...MESSAGE, parts: [{ kind: "text", text: "a", x: {} }] }),
    ).toStrictEqual({
      ...MESSAGE,
      parts: [{ text: "a" }],
    });
  });

  it("takes null for absent, except as data", () => {
    expect(readWire("Message", { ...MESSAGE, contextId: null, metadata: null, extensions: null })).toStrictEqual(
      MESSAGE,
    );
    expect(readWire("Part", { data: null, text: null })).toStrictEqual({ data: null });
    expect(refusalOf("Message", { ...MESSAGE, parts: null }).violations).toEqual([
      { field: "parts", description: "is required" },
    ]);
  });

  it("[DM-PART-001] keeps empty text and drops empty names", () => {
    expect(readWire("Part", { text: "", filename: "", mediaType: "" })).toStrictEqual({ text: "" });
  });

  it.each([
    [1, "ROLE_USER"],
    [2, "ROLE_AGENT"],
    ["ROLE_AGENT", "ROLE_AGENT"],
  ])("[DM-SERIAL-002] reads the role %j as %s", (role, read) => {
    expect(readWire("Message", { ...MESSAGE, role }).role).toBe(read);
  });

  it.each(["1", 0, 3, "user", "constructor", "__proto__", true, null])("refuses the role %j", (role) => {
    expect(refusalOf("Message", { ...MESSAGE, role }).violations?.[0]?.field).toBe("role");
  });

  it.each([
    ["+/8=", "+/8="],
    ["-_8=", "+/8="],
    ["-_8", "+/8="],
    ["+/8", "+/8="],
    ["", ""],
    ["YQ==", "YQ=="],
    ["YQ", "YQ=="],
    ["YQ=", "YQ=="],
    ["YWJj", "YWJj"],
  ])("[DM-BYTES-001] reads the bytes %j as %j", (raw, read) => {
    expect(readWire("Part", { raw })).toStrictEqual({ raw: read });
  });

  it.each(["Y", "YQ===", "=", "Y=Q=", "YQ==YQ==", "Y Q=", "YÄ==", 5, ["YQ=="]])(
    "[DM-BYTES-001] refuses the bytes %j",
    (raw) => {
      expect(refusalOf("Part", { raw }).violations).toEqual([{ field: "raw", description: "must be base64" }]);
    },
  );

  it("reads long bytes without running out of stack", () => {
    const raw = "A".repeat(12_000_000);
    expect(readWire("Part", { raw })).toStrictEqual({ raw });
  });

  it.each([
    ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z"],
    ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z"],
    ["2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.123Z"],
    ["2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.000Z"],
  ])("[DM-SERIAL-003] reads the timestamp %s as %s", (timestamp, read) => {
    expect(readWire("TaskStatus", { state: 1, timestamp })).toStrictEqual({
      state: "TASK_STATE_SUBMITTED",
      timestamp: read,
    });
  });

  it.each(["", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", 1767225600000])(
    "[DM-SERIAL-003] refuses the timestamp %j",
    (timestamp) => {
      expect(refusalOf("TaskStatus", { state: 1, timestamp }).violations?.[0]?.field).toBe("timestamp");
    },
  );

  it.each([
    [3, 3],
    ["3", 3],
    [0, 0],
    ["0", 0],
  ])("reads the number %j", (historyLength, read) => {
    expect(readWire("GetTaskRequest", { id: "t", historyLength })).toStrictEqual({ id: "t", historyLength: read });
  });

  it.each([-1, 1.5, "", "x", "1e2", "99999999999", 2 ** 31, true, [], {}])("refuses the number %j", (historyLength) => {
    expect(refusalOf("GetTaskRequest", { id: "t", historyLength }).violations?.[0]?.field).toBe("historyLength");
  });

  it("reads booleans as text only out of a query", () => {
    expect(readWire("ListTasksRequest", { includeArtifacts: "true" }, { textual: true })).toEqual({
      includeArtifacts: true,
    });
    expect(refusalOf("ListTasksRequest", { includeArtifacts: "True" }, { textual: true }).code).toBe("INVALID_PARAMS");
    expect(refusalOf("ListTasksRequest", { includeArtifacts: "true" }).code).toBe("INVALID_PARAMS");
  });

  it("refuses a member in both spellings", () => {
    expect(refusalOf("Message", { ...MESSAGE, message_id: "m2" }).violations).toEqual([
      { field: "message_id", description: "is given in both spellings" },
    ]);
  });

  it("fills in what serialisers leave out", () => {
    expect(readWire("ListTasksResponse", {})).toStrictEqual({
      tasks: [],
      nextPageToken: "",
      pageSize: 0,
      totalSize: 0,
    });
    expect(readWire("Task", { id: "t", status: { state: 3 } })).toStrictEqual({
      id: "t",
      contextId: "",
      status: { state: "TASK_STATE_COMPLETED" },
    });
  });

  it("accepts empty lists of careless servers when it is tolerant", () => {
    const careless = { messageId: "m", role: "ROLE_AGENT" };
    expect(readWire("Message", careless, { tolerant: true })).toStrictEqual({ ...careless, parts: [] });
    expect(readWire("Message", { ...careless, parts: [] }, { tolerant: true })).toStrictEqual({
      ...careless,
      parts: [],
    });
    expect(refusalOf("Message", { parts: [] }, { tolerant: true }).violations).toHaveLength(2);
  });

  it("names the place below a root, under the code asked for", () => {
    const error = refusalOf("Message", { ...MESSAGE, parts: [{}] }, { root: "result", code: "INVALID_AGENT_RESPONSE" });
    expect(error.code).toBe("INVALID_AGENT_RESPONSE");
    expect(error.violations?.[0]?.field).toBe("result.parts[0]");
  });

  it("bounds lists and the number of complaints", () => {
    const parts = Array.from({ length: 1000 }, () => ({}));
    expect(refusalOf("Message", { ...MESSAGE, parts }, { maxItems: 999 }).violations).toHaveLength(1);
    expect(refusalOf("Message", { ...MESSAGE, parts }, { maxItems: 1000 }).violations).toHaveLength(50);
  });

  it("is not moved by keys that name a prototype", () => {
    const hostile = JSON.parse(
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi","__proto__":{"url":"u"}}]}',
    );
    const read = readWire("Message", hostile);
    expect(read).toStrictEqual(MESSAGE);
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    const schemes = readWire("SecurityRequirement", JSON.parse('{"schemes":{"__proto__":{"list":["a"]},"b":{}}}'));
    expect(schemes).toStrictEqual({ schemes: { b: { list: [] } } });
  });
});
