/** What each version and binding writes. */

import { TASK_STATES } from "../model/task.ts";
import type { OperationName } from "./peers/peer.ts";
import type { Binding, Version } from "./requirement.ts";
import type { ShapeTable } from "./shapes.ts";

const STATES_V1: readonly string[] = [...TASK_STATES, "TASK_STATE_UNSPECIFIED"];

const REQUIREMENTS: ShapeTable["requirements"] = {
  Message: "DM-MSG-001",
  Artifact: "DM-ART-001",
  Part: "DM-PART-001",
  TextPart: "DM-PART-001",
  FilePart: "DM-PART-001",
  DataPart: "DM-PART-001",
};

const V1: ShapeTable = {
  shapes: {
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
  requirements: REQUIREMENTS,
  oneOf: {
    Part: ["text", "raw", "url", "data"],
    Event: ["task", "message", "statusUpdate", "artifactUpdate"],
    Sent: ["task", "message"],
  },
  kinds: {},
  enums: { State: STATES_V1, Role: ["ROLE_USER", "ROLE_AGENT"] },
  banned: ["kind", "type", "final"],
};

const OLD_STATES = [
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

const V03_JSON: ShapeTable = {
  shapes: {
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
  requirements: REQUIREMENTS,
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
  enums: { State: OLD_STATES, Role: ["user", "agent"] },
  banned: [],
};

const V03_PROTO: ShapeTable = {
  ...V1,
  shapes: {
    ...V1.shapes,
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
  oneOf: { ...V1.oneOf, Part: ["text", "file", "data"], File: ["fileWithUri", "fileWithBytes"] },
  enums: {
    // The proto of 0.3 spells the cancelled state with two l; servers that write one are understood by all.
    State: [...STATES_V1, "TASK_STATE_CANCELLED"],
    Role: ["ROLE_USER", "ROLE_AGENT"],
  },
  banned: ["kind", "type"],
};

export function shapeTable(version: Version, binding: Binding): ShapeTable {
  if (version === "1.0") return V1;
  return binding === "JSONRPC" ? V03_JSON : V03_PROTO;
}

/** The type of an operation's answer, where there is something to judge. */
export const ANSWER_TYPES: Readonly<Partial<Record<OperationName, string>>> = {
  SendMessage: "Sent",
  GetTask: "Task",
  CancelTask: "Task",
  ListTasks: "TaskPage",
};
