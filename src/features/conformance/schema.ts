/**
 * Validates values against tables of their members. A table lists what a version's binding sends; members it does not
 * list are not validated.
 */

import { type Fields, isObject } from "../../core/model/json.ts";
import { TASK_STATES } from "../../core/model/task.ts";
import { show } from "./json.ts";
import type { OperationName } from "./peers/peer.ts";
import type { Binding, RequirementId, Version } from "./requirements.ts";

const STATES_V1: readonly string[] = [...TASK_STATES, "TASK_STATE_UNSPECIFIED"];

const REQUIREMENT_OF_TYPE: Schema["requirements"] = {
  Message: "DM-MSG-001",
  Artifact: "DM-ART-001",
  Part: "DM-PART-001",
  TextPart: "DM-PART-001",
  FilePart: "DM-PART-001",
  DataPart: "DM-PART-001",
};

const SCHEMA_V1: Schema = {
  objects: {
    Task: { id: "id!", contextId: "string", status: "TaskStatus!", artifacts: "Artifact[]", history: "Message[]" },
    TaskStatus: { state: "State!", message: "Message", timestamp: "timestamp" },
    Message: {
      messageId: "id!",
      contextId: "string",
      taskId: "string",
      role: "Role!",
      parts: "Part[+]!",
      metadata: "object",
      extensions: "string[]",
      referenceTaskIds: "string[]",
    },
    Artifact: { artifactId: "id!", name: "string", description: "string", parts: "Part[+]!", metadata: "object" },
    Part: {
      text: "string",
      raw: "bytes",
      url: "string",
      data: "any",
      metadata: "object",
      filename: "string",
      mediaType: "string",
    },
    StatusUpdate: { taskId: "id!", contextId: "id!", status: "TaskStatus!", metadata: "object" },
    ArtifactUpdate: {
      taskId: "id!",
      contextId: "id!",
      artifact: "Artifact!",
      append: "boolean",
      lastChunk: "boolean",
      metadata: "object",
    },
    Event: { task: "Task", message: "Message", statusUpdate: "StatusUpdate", artifactUpdate: "ArtifactUpdate" },
    Sent: { task: "Task", message: "Message" },
    TaskPage: { tasks: "Task[]" },
  },
  requirements: REQUIREMENT_OF_TYPE,
  oneOf: {
    Part: ["text", "raw", "url", "data"],
    Event: ["task", "message", "statusUpdate", "artifactUpdate"],
    Sent: ["task", "message"],
  },
  kinds: {},
  enums: { State: STATES_V1, Role: ["ROLE_USER", "ROLE_AGENT"] },
  banned: ["kind", "type", "final"],
};

const STATES_V03 = [
  "submitted",
  "working",
  "input-required",
  "completed",
  "canceled",
  "failed",
  "rejected",
  "auth-required",
  "unknown",
];

const SCHEMA_V03_JSON: Schema = {
  objects: {
    Task: {
      kind: "=task!",
      id: "id!",
      contextId: "id!",
      status: "TaskStatus!",
      artifacts: "Artifact[]",
      history: "Message[]",
    },
    TaskStatus: { state: "State!", message: "Message", timestamp: "string" },
    Message: {
      kind: "=message!",
      messageId: "id!",
      contextId: "string",
      taskId: "string",
      role: "Role!",
      parts: "Part[]!",
    },
    Artifact: { artifactId: "id!", name: "string", description: "string", parts: "Part[]!" },
    TextPart: { kind: "=text!", text: "string!", metadata: "object" },
    FilePart: { kind: "=file!", file: "File!", metadata: "object" },
    DataPart: { kind: "=data!", data: "object!", metadata: "object" },
    File: { bytes: "bytes", uri: "string", name: "string", mimeType: "string" },
    StatusUpdate: {
      kind: "=status-update!",
      taskId: "id!",
      contextId: "id!",
      status: "TaskStatus!",
      final: "boolean!",
    },
    ArtifactUpdate: {
      kind: "=artifact-update!",
      taskId: "id!",
      contextId: "id!",
      artifact: "Artifact!",
      append: "boolean",
      lastChunk: "boolean",
    },
  },
  requirements: REQUIREMENT_OF_TYPE,
  oneOf: { File: ["bytes", "uri"] },
  kinds: {
    Part: { text: "TextPart", file: "FilePart", data: "DataPart" },
    Event: {
      task: "Task",
      message: "Message",
      "status-update": "StatusUpdate",
      "artifact-update": "ArtifactUpdate",
    },
    Sent: { task: "Task", message: "Message" },
  },
  enums: { State: STATES_V03, Role: ["user", "agent"] },
  banned: [],
};

const SCHEMA_V03_PROTO: Schema = {
  ...SCHEMA_V1,
  objects: {
    ...SCHEMA_V1.objects,
    Task: { id: "id!", contextId: "id!", status: "TaskStatus!", artifacts: "Artifact[]", history: "Message[]" },
    Message: {
      messageId: "id!",
      contextId: "string",
      taskId: "string",
      role: "Role!",
      content: "Part[]",
      metadata: "object",
      extensions: "string[]",
    },
    Artifact: { artifactId: "id!", name: "string", description: "string", parts: "Part[]", metadata: "object" },
    Part: { text: "string", file: "File", data: "Data", metadata: "object" },
    File: { fileWithUri: "string", fileWithBytes: "bytes", mimeType: "string", name: "string" },
    Data: { data: "object" },
    StatusUpdate: { taskId: "id!", contextId: "id!", status: "TaskStatus!", final: "boolean", metadata: "object" },
  },
  oneOf: { ...SCHEMA_V1.oneOf, Part: ["text", "file", "data"], File: ["fileWithUri", "fileWithBytes"] },
  enums: {
    // The proto of 0.3 spells the cancelled state with two l; all clients also understand the spelling with one.
    State: [...STATES_V1, "TASK_STATE_CANCELLED"],
    Role: ["ROLE_USER", "ROLE_AGENT"],
  },
  banned: ["kind", "type"],
};

export function schemaFor(version: Version, binding: Binding): Schema {
  if (version === "1.0") return SCHEMA_V1;
  return binding === "JSONRPC" ? SCHEMA_V03_JSON : SCHEMA_V03_PROTO;
}

/** The result type of each operation that is validated. */
export const RESULT_TYPES: Readonly<Partial<Record<OperationName, string>>> = {
  SendMessage: "Sent",
  GetTask: "Task",
  CancelTask: "Task",
  ListTasks: "TaskPage",
};

/** A member's type, with `!` if it is required; `[]` is a list, `[+]` a list that must not be empty. */
type ObjectSchema = Readonly<Record<string, string>>;

interface Schema {
  readonly objects: Readonly<Record<string, ObjectSchema>>;
  /** The requirement that covers the members of each type. */
  readonly requirements: Readonly<Record<string, RequirementId>>;
  /** Exactly one of these members is present. */
  readonly oneOf: Readonly<Record<string, readonly string[]>>;
  /** Union types, discriminated by the value of `kind`. */
  readonly kinds: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly enums: Readonly<Record<string, readonly string[]>>;
  /** Members that no object may have. */
  readonly banned: readonly string[];
}

interface SchemaViolation {
  readonly requirement: RequirementId;
  readonly text: string;
}

/** The text of each scalar type, and the requirement that it belongs to. */
const SCALARS: Readonly<Record<string, readonly [RegExp, RequirementId]>> = {
  timestamp: [/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/, "DM-SERIAL-003"],
  bytes: [/^[A-Za-z0-9+/]*={0,2}$/, "DM-BYTES-001"],
  id: [/./s, "DM-TASK-001"],
  string: [/^/, "DM-TASK-001"],
};
const SNAKE_CASE = /^[a-z0-9]+(_[a-z0-9]+)+$/;

export function validate(table: Schema, type: string, value: unknown, path = type): SchemaViolation[] {
  const kinds = table.kinds[type];
  if (kinds !== undefined) return unionProblems(table, kinds, value, path);
  const shape = table.objects[type];
  if (shape === undefined) return scalarProblems(table, type, value, path);
  const requirement = table.requirements[type] ?? "DM-TASK-001";
  if (!isObject(value)) return [{ requirement, text: `${path} is not an object but ${show(value)}` }];
  return [
    ...memberNameProblems(table, shape, value, path),
    ...oneOfProblems(table.oneOf[type], value, path),
    ...Object.entries(shape).flatMap(([name, spec]) => memberProblems(table, requirement, value, name, spec, path)),
  ];
}

function unionProblems(
  table: Schema,
  kinds: Readonly<Record<string, string>>,
  value: unknown,
  path: string,
): SchemaViolation[] {
  const kind = isObject(value) ? value.kind : undefined;
  const type = typeof kind === "string" && Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (type !== undefined) return validate(table, type, value, path);
  const expected = Object.keys(kinds).join(", ");
  return [{ requirement: "V03-KIND-001", text: `${path}.kind is ${show(kind)}, not one of ${expected}` }];
}

function memberProblems(
  table: Schema,
  requirement: RequirementId,
  value: Fields,
  name: string,
  spec: string,
  path: string,
): SchemaViolation[] {
  const member = value[name];
  const [, type = "", list, required] = /^([^![]+)(\[\+?\])?(!)?$/.exec(spec) ?? [];
  const place = `${path}.${name}`;
  if (member === undefined) {
    const rule: RequirementId = name === "kind" ? "V03-KIND-001" : name === "final" ? "V03-FINAL-001" : requirement;
    return required === undefined ? [] : [{ requirement: rule, text: `${place} is missing` }];
  }
  if (list === undefined) return validate(table, type, member, place);
  if (!Array.isArray(member)) return [{ requirement, text: `${place} is not a list but ${show(member)}` }];
  const empty = list === "[+]" && member.length === 0 ? [{ requirement, text: `${place} is empty` }] : [];
  return [...empty, ...member.flatMap((item, at) => validate(table, type, item, `${place}[${at}]`))];
}

function memberNameProblems(table: Schema, shape: ObjectSchema, value: Fields, path: string): SchemaViolation[] {
  return Object.keys(value).flatMap((name): SchemaViolation[] => {
    if (Object.hasOwn(shape, name)) return [];
    if (table.banned.includes(name))
      return [{ requirement: "DM-SERIAL-006", text: `${path} has the member ${show(name)}` }];
    const snake = SNAKE_CASE.test(name) && Object.keys(shape).some((known) => known === toCamelCase(name));
    return snake ? [{ requirement: "DM-SERIAL-001", text: `${path} has the member ${show(name)}` }] : [];
  });
}

function toCamelCase(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function oneOfProblems(members: readonly string[] | undefined, value: Fields, path: string): SchemaViolation[] {
  if (members === undefined) return [];
  const there = members.filter((name) => name in value);
  if (there.length === 1) return [];
  const text = `${path} has ${there.length === 0 ? "none" : there.join(" and ")} of ${members.join(", ")}`;
  return [{ requirement: "DM-PART-001", text }];
}

function scalarProblems(table: Schema, type: string, value: unknown, path: string): SchemaViolation[] {
  // The content of these belongs to applications.
  if (type === "any" || type === "object") return [];
  const requirement = scalarProblem(table, type, value);
  return requirement === undefined ? [] : [{ requirement, text: `${path} is ${show(value)}` }];
}

function scalarProblem({ enums }: Schema, type: string, value: unknown): RequirementId | undefined {
  const values: readonly unknown[] | undefined = enums[type];
  if (values !== undefined) return values.includes(value) ? undefined : "DM-SERIAL-002";
  if (type === "boolean") return typeof value === "boolean" ? undefined : "DM-TASK-001";
  const scalar = SCALARS[type];
  // A constant, such as the value of `kind`.
  if (scalar === undefined) return value === type.slice(1) ? undefined : "V03-KIND-001";
  const [pattern, requirement] = scalar;
  return typeof value === "string" && pattern.test(value) ? undefined : requirement;
}
