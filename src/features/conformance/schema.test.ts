import { describe, expect, it } from "vitest";
import type { Binding, Version } from "./requirements.ts";
import { schemaFor, validate } from "./schema.ts";

const rules = (version: Version, binding: Binding, type: string, value: unknown): string[] =>
  validate(schemaFor(version, binding), type, value).map(({ requirement, text }) => `${requirement}: ${text}`);

const STATUS = { state: "TASK_STATE_COMPLETED", timestamp: "2026-01-01T00:00:00.123Z" };
const TASK = { id: "t", contextId: "c", status: STATUS, metadata: { kind: "free", snake_case: 1 } };

describe("shapes of 1.0", () => {
  it("let right values pass, and leave to applications what is theirs", () => {
    expect(rules("1.0", "JSONRPC", "Task", TASK)).toEqual([]);
    const parts = [{ text: "" }, { data: null }, { raw: "aGk=", filename: "f" }, { url: "u", metadata: { type: "x" } }];
    const message = { messageId: "m", role: "ROLE_USER", parts };
    expect(rules("1.0", "JSONRPC", "Sent", { message })).toEqual([]);
    expect(
      rules("1.0", "HTTP+JSON", "Event", { statusUpdate: { taskId: "t", contextId: "c", status: STATUS } }),
    ).toEqual([]);
  });

  it.each([
    ["DM-TASK-001: Task.id is missing", { status: STATUS }],
    ['DM-TASK-001: Task.id is ""', { ...TASK, id: "" }],
    ["DM-TASK-001: Task.status is missing", { id: "t" }],
    ['DM-SERIAL-002: Task.status.state is "completed"', { id: "t", status: { state: "completed" } }],
    ["DM-SERIAL-002: Task.status.state is 3", { id: "t", status: { state: 3 } }],
    [
      'DM-SERIAL-003: Task.status.timestamp is "2026-01-01T00:00:00+01:00"',
      { ...TASK, status: { ...STATUS, timestamp: "2026-01-01T00:00:00+01:00" } },
    ],
    ['DM-SERIAL-006: Task has the member "kind"', { ...TASK, kind: "task" }],
    ['DM-SERIAL-001: Task has the member "context_id"', { ...TASK, context_id: "c" }],
    ["DM-TASK-001: Task.artifacts is not a list but {}", { ...TASK, artifacts: {} }],
    ["DM-ART-001: Task.artifacts[0].parts is empty", { ...TASK, artifacts: [{ artifactId: "a", parts: [] }] }],
    [
      "DM-PART-001: Task.artifacts[0].parts[0] has none of text, raw, url, data",
      { ...TASK, artifacts: [{ artifactId: "a", parts: [{}] }] },
    ],
    [
      "DM-PART-001: Task.artifacts[0].parts[0] has text and url of text, raw, url, data",
      { ...TASK, artifacts: [{ artifactId: "a", parts: [{ text: "", url: "" }] }] },
    ],
    [
      'DM-BYTES-001: Task.artifacts[0].parts[0].raw is "*"',
      { ...TASK, artifacts: [{ artifactId: "a", parts: [{ raw: "*" }] }] },
    ],
    [
      "DM-MSG-001: Task.history[0].messageId is missing",
      { ...TASK, history: [{ role: "ROLE_USER", parts: [{ text: "" }] }] },
    ],
    ["DM-TASK-001: Task is not an object but null", null],
  ])("tell %s", (problem, value) => {
    expect(rules("1.0", "JSONRPC", "Task", value)).toEqual([problem]);
  });

  it("want one event in an event", () => {
    expect(rules("1.0", "JSONRPC", "Event", {})).toEqual([
      "DM-PART-001: Event has none of task, message, statusUpdate, artifactUpdate",
    ]);
  });
});

describe("shapes of 0.3", () => {
  const task = { kind: "task", id: "t", contextId: "c", status: { state: "input-required" } };

  it("tell objects of JSON-RPC apart by kind", () => {
    expect(rules("0.3", "JSONRPC", "Sent", task)).toEqual([]);
    expect(rules("0.3", "JSONRPC", "Task", { ...task, kind: "job" })).toEqual(['V03-KIND-001: Task.kind is "job"']);
    expect(rules("0.3", "JSONRPC", "Event", { ...task, kind: undefined })).toEqual([
      "V03-KIND-001: Event.kind is nothing, not one of task, message, status-update, artifact-update",
    ]);
    const update = { kind: "status-update", taskId: "t", contextId: "c", status: { state: "working" } };
    expect(rules("0.3", "JSONRPC", "Event", update)).toEqual(["V03-FINAL-001: Event.final is missing"]);
    expect(rules("0.3", "JSONRPC", "Event", { ...update, final: false })).toEqual([]);
    expect(rules("0.3", "JSONRPC", "Task", { ...task, status: { state: "TASK_STATE_WORKING" } })).toEqual([
      'DM-SERIAL-002: Task.status.state is "TASK_STATE_WORKING"',
    ]);
  });

  it("follow the proto elsewhere", () => {
    const content = [{ text: "" }, { file: { fileWithUri: "u", mimeType: "text/plain" } }, { data: { data: {} } }];
    const message = { messageId: "m", role: "ROLE_AGENT", content };
    const value = { task: { id: "t", contextId: "c", status: { state: "TASK_STATE_CANCELLED", message } } };
    expect(rules("0.3", "HTTP+JSON", "Event", value)).toEqual([]);
    expect(rules("0.3", "GRPC", "Task", { id: "t", status: STATUS })).toEqual([
      "DM-TASK-001: Task.contextId is missing",
    ]);
  });
});
