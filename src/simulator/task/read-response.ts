import { type Fields, fieldsIn, isFields, textIn } from "../json.ts";
import { Misread } from "./misread.ts";
import { type Part, readPart, readParts } from "./read-part.ts";

/** The states the platform knows. */
export const STATES = ["submitted", "working", "input-required", "completed", "canceled", "failed", "unknown"] as const;
export type State = (typeof STATES)[number];

export interface StatusUpdate {
  readonly kind: "status-update";
  readonly taskId: string | undefined;
  readonly final: boolean;
  readonly state: State;
  /** Text of `status.message`; undefined if there is no message. */
  readonly text: string | undefined;
}

export interface ArtifactUpdate {
  readonly kind: "artifact-update";
  readonly taskId: string | undefined;
  readonly final: boolean;
  readonly append: boolean;
  readonly lastChunk: boolean;
  readonly artifactId: string;
  readonly parts: readonly Part[];
}

export type Update = StatusUpdate | ArtifactUpdate;

export interface ResponseError {
  /** A number or a string on the wire. */
  readonly code: string;
  readonly message: string;
}

export type ResponseId = string | number | null;

/** An error may stand beside a result: code 0 is success and is left out here, another code tells how the task failed. */
export type AgentResponse =
  | { readonly kind: "update"; readonly id: ResponseId; readonly update: Update; readonly error?: ResponseError }
  | { readonly kind: "answer"; readonly id: ResponseId; readonly result: Fields; readonly error?: ResponseError }
  | { readonly kind: "error"; readonly id: ResponseId; readonly error: ResponseError };

/** Throws `Misread`. Unknown extra members are tolerated, as the platform does. */
export function readResponse(value: Fields): AgentResponse {
  if (value.jsonrpc !== "2.0") throw new Misread('jsonrpc is not "2.0".');
  const id = readId(value.id);
  const error = readError(value.error);
  if (value.result === undefined) {
    if (error === undefined) throw new Misread("There is neither a result nor an error.");
    return { kind: "error", id, error };
  }
  if (!isFields(value.result)) throw new Misread("result is no object.");
  const beside = error === undefined ? {} : { error };
  if (value.result.kind === undefined) return { kind: "answer", id, result: value.result, ...beside };
  return { kind: "update", id, update: readUpdate(value.result), ...beside };
}

/** An error may have no id: whoever could not read a request does not know it. */
export function isEchoed(response: AgentResponse, id: string): boolean {
  return response.id === id || (response.kind === "error" && response.id === null);
}

function readId(id: unknown): ResponseId {
  if (typeof id === "string" || typeof id === "number" || id === null) return id;
  throw new Misread("id is neither text nor a number.");
}

function readError(value: unknown): ResponseError | undefined {
  if (value === undefined || value === null) return undefined;
  const { code, message } = fieldsIn(value);
  if (typeof code !== "number" && typeof code !== "string")
    throw new Misread("error.code is neither a number nor text.");
  return String(code) === "0" ? undefined : { code: String(code), message: textIn(message) ?? "" };
}

function readUpdate(result: Fields): Update {
  const common = { taskId: readTaskId(result.taskId), final: readFlag(result, "final") };
  if (result.kind === "status-update") return { kind: "status-update", ...common, ...readStatus(result.status) };
  if (result.kind !== "artifact-update")
    throw new Misread(`There is no result of kind ${JSON.stringify(result.kind)}.`);
  const { artifactId, parts } = fieldsIn(result.artifact);
  if (typeof artifactId !== "string" || artifactId === "") throw new Misread("artifact.artifactId is missing.");
  return {
    kind: "artifact-update",
    ...common,
    append: readFlag(result, "append"),
    lastChunk: readFlag(result, "lastChunk"),
    artifactId,
    parts: readParts(parts, "artifact.parts"),
  };
}

function readTaskId(taskId: unknown): string | undefined {
  if (taskId === undefined || typeof taskId === "string") return taskId;
  throw new Misread("result.taskId is no text.");
}

/** They stand beside `taskId`; inside the artifact nobody looks for them. */
function readFlag(result: Fields, name: "append" | "final" | "lastChunk"): boolean {
  const value = result[name];
  if (typeof value === "boolean") return value;
  throw new Misread(`result.${name} is not true or false.`);
}

function readStatus(value: unknown): Pick<StatusUpdate, "state" | "text"> {
  const { message, state } = fieldsIn(value);
  const known = STATES.find((name) => name === state);
  if (known === undefined) throw new Misread(`There is no state ${JSON.stringify(state)}.`);
  if (message === undefined) return { state: known, text: undefined };
  const { parts, role } = fieldsIn(message);
  if (role !== "agent") throw new Misread('status.message.role is not "agent".');
  if (!Array.isArray(parts)) throw new Misread("status.message.parts is no list.");
  const texts = parts.map((part) => readPart(part)).map((part) => (part.kind === "text" ? part.text : ""));
  return { state: known, text: texts.join("") };
}
