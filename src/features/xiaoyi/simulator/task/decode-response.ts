import { type Fields, fieldsOf, isObject } from "../../../../core/model/json.ts";
import { DecodeError, textOf } from "../json.ts";
import type { ControlResult, OutgoingControl } from "../phone.ts";

type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "reasoningText"; readonly text: string }
  | { readonly kind: "data"; readonly data: Fields }
  | { readonly kind: "file"; readonly file: FilePart };

interface FilePart {
  readonly name: string;
  readonly mimeType: string;
  /** Id of a file that was uploaded before. */
  readonly fileId?: string;
  /** No phone has been observed to show these two. */
  readonly uri?: string;
  readonly bytes?: string;
}

/** Throws `DecodeError`. */
function decodeParts(value: unknown, where: string): readonly Part[] {
  if (!Array.isArray(value) || value.length === 0) throw new DecodeError(`${where} is not a list of parts.`);
  return value.map((part) => decodePart(part));
}

function decodePart(value: unknown): Part {
  const part = fieldsOf(value);
  switch (part.kind) {
    case "text":
      return { kind: "text", text: decodeText(part, "text") };
    case "reasoningText":
      return { kind: "reasoningText", text: decodeText(part, "reasoningText") };
    case "data":
      if (!isObject(part.data)) throw new DecodeError("A data part has no object in data.");
      return { kind: "data", data: part.data };
    case "file":
      return { kind: "file", file: decodeFile(fieldsOf(part.file)) };
    default:
      throw new DecodeError(`There is no part of kind ${JSON.stringify(part.kind)}.`);
  }
}

/** The text of a part is in a member named after its kind. */
function decodeText(part: Fields, member: "reasoningText" | "text"): string {
  const text = part[member];
  if (typeof text !== "string") throw new DecodeError(`A ${member} part has no text in ${member}.`);
  return text;
}

function decodeFile(file: Fields): FilePart {
  const { bytes, fileId, mimeType, name, uri } = file;
  if (typeof name !== "string" || typeof mimeType !== "string")
    throw new DecodeError("A file part lacks name or mimeType.");
  if (typeof fileId === "string") return { name, mimeType, fileId };
  if (typeof uri === "string") return { name, mimeType, uri };
  if (typeof bytes === "string") return { name, mimeType, bytes };
  throw new DecodeError("A file part has neither fileId nor uri nor bytes.");
}

const ANSWERS = {
  cancel: ["canceled", "failed", "unknown"],
  clear: ["cleared", "failed", "unknown"],
} as const satisfies Record<OutgoingControl["kind"], readonly ControlResult[]>;

/** Decodes the answer to a cancel or clear request. Throws `DecodeError`. */
export function decodeControlResult(result: Fields, { requestId, taskId, kind }: OutgoingControl): ControlResult {
  const state = fieldsOf(result.status).state;
  const known = ANSWERS[kind].find((answer) => answer === state);
  if (known === undefined) throw new DecodeError(`result.status.state is ${JSON.stringify(state)}.`);
  if (kind === "cancel") {
    const id = textOf(result.id);
    if (id === undefined) throw new DecodeError("result.id is missing.");
    if (id !== requestId && id !== taskId)
      throw new DecodeError("result.id is neither the request's id nor the task's.");
  }
  return known;
}

const MAX_CARDS = 20;
const MAX_CHIP_LENGTH = 64;

/** Why the phone cannot show a data part: the rules for commands, cards, chips and references. */
export function findDataFault(data: Fields): string | undefined {
  return commandFault(data.commands) ?? cardFault(data.cardsInfo) ?? chipFault(data.chipsInfo) ?? referenceFault(data);
}

function commandFault(commands: unknown): string | undefined {
  if (commands === undefined) return undefined;
  if (!Array.isArray(commands)) return "commands is not a list.";
  const isComplete = commands.map(fieldsOf).every(({ header, payload }) => {
    const { name, namespace } = fieldsOf(header);
    return typeof namespace === "string" && typeof name === "string" && isObject(payload);
  });
  return isComplete ? undefined : "A command needs header.namespace, header.name and payload.";
}

/** A list according to the documentation; a single object, documented in an early version, is accepted too. */
function cardFault(cardsInfo: unknown): string | undefined {
  if (cardsInfo === undefined) return undefined;
  const cards = [cardsInfo].flat().map(fieldsOf);
  if (cards.length > MAX_CARDS) return `There are more than ${MAX_CARDS} cards.`;
  const isComplete = cards.every(({ cardData, cardName }) => typeof cardName === "string" && isObject(cardData));
  return isComplete ? undefined : "A card needs cardName and cardData.";
}

function chipFault(chipsInfo: unknown): string | undefined {
  if (chipsInfo === undefined) return undefined;
  const { chipsList } = fieldsOf(fieldsOf(chipsInfo).displayChips);
  if (!Array.isArray(chipsList)) return "chipsInfo.displayChips.chipsList is not a list.";
  const contents = chipsList.map((chip) => textOf(fieldsOf(chip).content));
  if (contents.includes(undefined)) return "A chip needs content.";
  const isTooLong = contents.some((content) => [...(content ?? "")].length > MAX_CHIP_LENGTH);
  return isTooLong ? `The content of a chip has more than ${MAX_CHIP_LENGTH} characters.` : undefined;
}

function referenceFault({ reference }: Fields): string | undefined {
  if (reference === undefined) return undefined;
  const { items } = fieldsOf(reference);
  if (!Array.isArray(items)) return "reference.items is not a list.";
  const isComplete = items.every((item) => typeof fieldsOf(fieldsOf(item).card).type === "string");
  return isComplete ? undefined : "A reference needs card.type.";
}

const STATES = ["submitted", "working", "input-required", "completed", "canceled", "failed", "unknown"] as const;
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

type ResponseId = string | number | null;

/**
 * An error may accompany a result: code 0 is success and is left out here, another code is the reason of the failure.
 */
export type AgentResponse =
  | { readonly kind: "update"; readonly id: ResponseId; readonly update: Update; readonly error?: ResponseError }
  | { readonly kind: "answer"; readonly id: ResponseId; readonly result: Fields; readonly error?: ResponseError }
  | { readonly kind: "error"; readonly id: ResponseId; readonly error: ResponseError };

/** Throws `DecodeError`. Unknown members are ignored, as on the platform. */
export function decodeResponse(value: Fields): AgentResponse {
  if (value.jsonrpc !== "2.0") throw new DecodeError('jsonrpc is not "2.0".');
  const id = decodeId(value.id);
  const error = decodeError(value.error);
  if (value.result === undefined) {
    if (error === undefined) throw new DecodeError("There is neither a result nor an error.");
    return { kind: "error", id, error };
  }
  if (!isObject(value.result)) throw new DecodeError("result is not an object.");
  const beside = error === undefined ? {} : { error };
  if (value.result.kind === undefined) return { kind: "answer", id, result: value.result, ...beside };
  return { kind: "update", id, update: decodeUpdate(value.result), ...beside };
}

/** An error may have no id: an agent that could not parse a request does not know its id. */
export function echoesId(response: AgentResponse, id: string): boolean {
  return response.id === id || (response.kind === "error" && response.id === null);
}

function decodeId(id: unknown): ResponseId {
  if (typeof id === "string" || typeof id === "number" || id === null) return id;
  throw new DecodeError("id is neither text nor a number.");
}

function decodeError(value: unknown): ResponseError | undefined {
  if (value === undefined || value === null) return undefined;
  const { code, message } = fieldsOf(value);
  if (typeof code !== "number" && typeof code !== "string")
    throw new DecodeError("error.code is neither a number nor text.");
  return String(code) === "0" ? undefined : { code: String(code), message: textOf(message) ?? "" };
}

function decodeUpdate(result: Fields): Update {
  const common = { taskId: decodeTaskId(result.taskId), final: decodeFlag(result, "final") };
  if (result.kind === "status-update") return { kind: "status-update", ...common, ...decodeStatus(result.status) };
  if (result.kind !== "artifact-update")
    throw new DecodeError(`There is no result of kind ${JSON.stringify(result.kind)}.`);
  const { artifactId, parts } = fieldsOf(result.artifact);
  if (typeof artifactId !== "string" || artifactId === "") throw new DecodeError("artifact.artifactId is missing.");
  return {
    kind: "artifact-update",
    ...common,
    append: decodeFlag(result, "append"),
    lastChunk: decodeFlag(result, "lastChunk"),
    artifactId,
    parts: decodeParts(parts, "artifact.parts"),
  };
}

function decodeTaskId(taskId: unknown): string | undefined {
  if (taskId === undefined || typeof taskId === "string") return taskId;
  throw new DecodeError("result.taskId is not a string.");
}

/** Flags are siblings of `taskId`; inside the artifact they are ignored. */
function decodeFlag(result: Fields, name: "append" | "final" | "lastChunk"): boolean {
  const value = result[name];
  if (typeof value === "boolean") return value;
  throw new DecodeError(`result.${name} is not true or false.`);
}

function decodeStatus(value: unknown): Pick<StatusUpdate, "state" | "text"> {
  const { message, state } = fieldsOf(value);
  const known = STATES.find((name) => name === state);
  if (known === undefined) throw new DecodeError(`There is no state ${JSON.stringify(state)}.`);
  if (message === undefined) return { state: known, text: undefined };
  const { parts, role } = fieldsOf(message);
  if (role !== "agent") throw new DecodeError('status.message.role is not "agent".');
  if (!Array.isArray(parts)) throw new DecodeError("status.message.parts is not a list.");
  const texts = parts.map((part) => decodePart(part)).map((part) => (part.kind === "text" ? part.text : ""));
  return { state: known, text: texts.join("") };
}
