import type { Caller } from "../model/caller.ts";
import type { AgentProfile } from "../model/card.ts";
import { invalidParams, ProtocolError } from "../model/errors.ts";
import type { LogEntry, RequestDetails } from "../model/event.ts";
import type { JsonValue } from "../model/json.ts";
import { mediaTypeOfName } from "../model/media-types.ts";
import {
  isDataPart,
  isRawPart,
  isTextPart,
  isUrlPart,
  type Message,
  type Part,
  placeInTask,
  type RawPart,
  type UrlPart,
} from "../model/message.ts";
import type { CallContext, SendInput } from "../model/operation.ts";
import { messageSize, metadataSize } from "../model/size.ts";
import { formatTimestamp } from "../model/task.ts";
import type { DeliveryRegistration, IdempotencyClaim } from "../store/contract.ts";
import type { OwnerLoads, ServedAgent } from "./concurrency.ts";
import type { EngineContext, EngineLimits } from "./options.ts";
import { computeFingerprint } from "./request-identity.ts";
import { isLonger } from "./runs/validate-output.ts";

/** A send with all that decides what becomes of it. */
export interface IncomingSend {
  readonly served: ServedAgent;
  readonly input: SendInput;
  readonly call: CallContext;
  /** When the caller gives up, in milliseconds since the epoch. */
  readonly deadline: number | undefined;
  /** The caller wants the events as they come. */
  readonly follow: boolean;
  /** Where what follows is delivered; set once it was read and checked. */
  deliveries: readonly DeliveryRegistration[] | undefined;
}

/** A message that waits for its turn. */
export interface QueuedTurn {
  /** Of the event that brought the message; known once it is committed. */
  number: number | undefined;
  readonly message: Message;
  readonly caller: Caller;
  readonly acceptedOutputModes: readonly string[];
  readonly metadata: Message["metadata"];
  /** When the caller gives up, in milliseconds since the epoch. */
  readonly deadline: number | undefined;
  /** The store knows that it is the one being answered. */
  isStored?: boolean;
  /** A run of it was begun before and cut off. */
  isRepeated?: boolean;
  /** Where an earlier attempt at it had come to. */
  checkpoint?: JsonValue;
}

/** A task as its log begins. */
export function toFirstTask({ clock, ids }: EngineContext, message: Message, id: string) {
  const contextId = message.contextId ?? ids.context();
  const status = { state: "TASK_STATE_SUBMITTED" as const, timestamp: formatTimestamp(clock.now()) };
  const history: [Message] = [placeInTask(message, id, contextId)];
  return { id, contextId, status, history };
}

/** Under which a repeat of the send will be recognised, if its caller gave it a key. */
export function claimOf({ times }: EngineContext, { input, call }: IncomingSend): IdempotencyClaim | undefined {
  if (call.idempotencyKey === undefined) return undefined;
  return { key: call.idempotencyKey, fingerprint: computeFingerprint(input), ttlMs: times.idempotencyMs };
}

/** Only what there is: most messages come with nothing beside them. */
export function toRequestDetails({ input, call, deadline }: IncomingSend): RequestDetails | undefined {
  const acceptedOutputModes = input.configuration?.acceptedOutputModes;
  const { metadata } = input;
  const { authenticated } = call.caller;
  if (acceptedOutputModes === undefined && metadata === undefined && !authenticated) return undefined;
  return { metadata, acceptedOutputModes, authenticated: authenticated ? true : undefined, deadline };
}

export function toTurn(
  message: Message,
  { input, call, deadline }: IncomingSend,
  number: number | undefined,
): QueuedTurn {
  return {
    number,
    message,
    caller: call.caller,
    acceptedOutputModes: input.configuration?.acceptedOutputModes ?? [],
    metadata: input.metadata,
    deadline,
    // A new task is written with its first turn.
    isStored: number === 1,
  };
}

/** A turn for a message that is known from the log alone. */
export function toStoredTurn(owner: string, message: Message, { number, request }: LogEntry): QueuedTurn {
  return {
    number,
    message,
    caller: { owner, authenticated: request?.authenticated === true },
    acceptedOutputModes: request?.acceptedOutputModes ?? [],
    metadata: request?.metadata,
    deadline: request?.deadline,
  };
}

export function checkContext(message: Message, contextId: string): void {
  if (message.contextId === undefined || message.contextId === contextId) return;
  throw new ProtocolError("INVALID_PARAMS", "message.contextId: not the context of this task", {
    violations: [{ field: "message.contextId", description: "not the context of this task" }],
  });
}

export function taskEndedError(taskId: string): ProtocolError {
  return new ProtocolError("UNSUPPORTED_OPERATION", "The task has ended and takes no more messages.", {
    metadata: { taskId },
  });
}

/** Ids that callers choose are repeated in every event. */
export function checkIds(
  { message, chosenId }: SendInput,
  { tenant, idempotencyKey }: CallContext,
  longest: number,
): void {
  checkLength("messageId", message.messageId, longest);
  checkLength("contextId", message.contextId, longest);
  checkLength("tenant", tenant, longest);
  checkLength("idempotencyKey", idempotencyKey, longest);
  checkLength("id", chosenId, longest);
  if (chosenId === "") throw invalidParams("id", "must not be empty");
}

function checkLength(field: string, id: string | undefined, longest: number): void {
  if (id !== undefined && id.length > longest) throw invalidParams(field, `longer than ${longest} characters`);
}

/** Refuses what would be one task or one message too many, for the agent or for the caller. */
export function checkCapacity(
  served: ServedAgent,
  loads: OwnerLoads,
  call: CallContext,
  bytes: number,
  limits: EngineLimits,
): void {
  if (served.queue.waiting >= limits.queue) throw resourceExhausted("Too many tasks wait for this agent.");
  if (loads.tasksOf(call.caller.owner) >= limits.tasksPerOwner) {
    throw resourceExhausted("Too many of your tasks are under way.");
  }
  checkBytes(loads, call, bytes, limits);
}

/** What a message takes up from when it is accepted until its task is no longer worked on. */
export function inputSize({ message, metadata }: SendInput): number {
  return messageSize(message) + metadataSize(metadata);
}

export function checkBytes(loads: OwnerLoads, { caller }: CallContext, bytes: number, limits: EngineLimits): void {
  const held = loads.bytesOf(caller.owner);
  const limit = limits.messageBytesPerOwner;
  if (held === 0 || held + bytes <= limit) return;
  throw resourceExhausted(`The messages of your tasks under way would take up more than ${limit} bytes.`, {
    messageBytes: String(held),
    limit: String(limit),
  });
}

function resourceExhausted(message: string, metadata?: Record<string, string>): ProtocolError {
  return new ProtocolError("RESOURCE_EXHAUSTED", message, { retryAfter: 5, metadata });
}

type InputLimits = Pick<EngineLimits, "part" | "file" | "mediaTypes">;

/** Refuses a message with a part that the agent or the server does not take, or that is too long. */
export function checkParts(profile: AgentProfile, message: Message, limits: InputLimits): void {
  for (let index = 0; index < message.parts.length; index++) {
    const part = message.parts[index] as Part;
    const field = `message.parts[${index}]`;
    checkSize(field, part, limits);
    const mediaType = mediaTypeOf(part);
    if (isFile(part) && limits.mediaTypes !== undefined && !accepts(limits.mediaTypes, mediaType)) {
      const refusal = `This server takes no files of type ${mediaType}; its limits.mediaTypes are`;
      throw unsupportedMediaType(field, mediaType, limits.mediaTypes, refusal);
    }
    if (accepts(profile.inputModes, mediaType)) continue;
    const refusal = `This agent does not take ${mediaType}; its inputModes are`;
    throw unsupportedMediaType(field, mediaType, profile.inputModes, refusal);
  }
}

function checkSize(field: string, part: Part, { part: longestPart, file: largestFile }: InputLimits): void {
  if (isRawPart(part)) {
    if (decodedSize(part.raw) > largestFile) throw invalidParams(field, `a file of more than ${largestFile} bytes`);
  } else if (!isDataPart(part) && isLonger(part, longestPart)) {
    throw invalidParams(field, `longer than ${longestPart} characters`);
  }
}

/** Of base64, without decoding it. */
function decodedSize(raw: string): number {
  const padding = raw.endsWith("==") ? 2 : raw.endsWith("=") ? 1 : 0;
  return Math.floor(((raw.length - padding) * 3) / 4);
}

const isFile = (part: Part) => isRawPart(part) || isUrlPart(part);

function unsupportedMediaType(
  field: string,
  mediaType: string,
  modes: readonly string[],
  refusal: string,
): ProtocolError {
  const accepted = modes.join(", ");
  return new ProtocolError("CONTENT_TYPE_NOT_SUPPORTED", `${refusal} ${accepted}.`, {
    metadata: { mediaType, accepted },
    violations: [{ field, description: `${mediaType} is not among ${accepted}` }],
  });
}

function mediaTypeOf(part: Part): string {
  if (part.mediaType !== undefined) return part.mediaType.toLowerCase();
  if (isTextPart(part)) return "text/plain";
  if (isDataPart(part)) return "application/json";
  return mediaTypeOfName(fileNameOf(part)) ?? "application/octet-stream";
}

function fileNameOf(part: RawPart | UrlPart): string {
  if (part.filename !== undefined || isRawPart(part)) return part.filename ?? "";
  return part.url.split(/[?#]/, 1)[0] ?? "";
}

/** Parameters such as a charset do not count. A mode may be a family such as `text/*` or just `text`, or everything. */
function accepts(modes: readonly string[], mediaType: string): boolean {
  if (modes.length === 0) return true;
  const plain = mediaType.split(";", 1)[0]?.trim() ?? "";
  const slash = plain.indexOf("/");
  const family = slash < 0 ? plain : plain.slice(0, slash);
  return modes.some((mode) => mode === plain || mode === "*/*" || mode === `${family}/*` || mode === family);
}
