import { invalidParams, ProtocolError } from "../model/errors.ts";
import type { LogEntry, RequestNote } from "../model/event.ts";
import { jsonSize, type Message, messageSize } from "../model/message.ts";
import type { Call, SendInput } from "../model/operation.ts";
import type { QueuedTurn } from "./live-task.ts";
import type { EngineLimits } from "./options.ts";
import type { ServedAgent } from "./runner.ts";
import type { OwnerLoads } from "./shares.ts";

/** Only what there is: most messages come with nothing beside them. */
export function noteOf(input: SendInput, call: Call): RequestNote | undefined {
  const acceptedOutputModes = input.configuration?.acceptedOutputModes;
  const { metadata } = input;
  const { authenticated } = call.caller;
  if (acceptedOutputModes === undefined && metadata === undefined && !authenticated) return undefined;
  return {
    ...(metadata === undefined ? undefined : { metadata }),
    ...(acceptedOutputModes === undefined ? undefined : { acceptedOutputModes }),
    ...(authenticated ? { authenticated } : undefined),
  };
}

export function toTurn(message: Message, input: SendInput, call: Call, number: number | undefined): QueuedTurn {
  return {
    number,
    message,
    caller: call.caller,
    acceptedOutputModes: input.configuration?.acceptedOutputModes ?? [],
    metadata: input.metadata,
  };
}

/** A turn for a message that is known from the log alone. */
export function storedTurn(owner: string, message: Message, { number, request }: LogEntry): QueuedTurn {
  return {
    number,
    message,
    caller: { owner, authenticated: request?.authenticated === true },
    acceptedOutputModes: request?.acceptedOutputModes ?? [],
    metadata: request?.metadata,
  };
}

export function checkContext(message: Message, contextId: string): void {
  if (message.contextId === undefined || message.contextId === contextId) return;
  throw new ProtocolError("INVALID_PARAMS", "message.contextId: not the context of this task", {
    violations: [{ field: "message.contextId", description: "not the context of this task" }],
  });
}

export function ended(taskId: string): ProtocolError {
  return new ProtocolError("UNSUPPORTED_OPERATION", "The task has ended and takes no more messages.", {
    metadata: { taskId },
  });
}

/** Ids that callers choose are repeated in every event. */
export function checkIds({ message, chosenId }: SendInput, { tenant, idempotencyKey }: Call, longest: number): void {
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
export function checkRoom(
  served: ServedAgent,
  loads: OwnerLoads,
  call: Call,
  bytes: number,
  limits: EngineLimits,
): void {
  if (served.queue.waiting >= limits.queue) throw exhausted("Too many tasks wait for this agent.");
  if (loads.tasksOf(call.caller.owner) >= limits.tasksPerOwner) {
    throw exhausted("Too many of your tasks are under way.");
  }
  checkBytes(loads, call, bytes, limits);
}

/** What a message takes up from when it is accepted until its task is no longer worked on. */
export function bytesOf({ message, metadata }: SendInput): number {
  return messageSize(message) + (metadata === undefined ? 0 : jsonSize(metadata));
}

export function checkBytes(loads: OwnerLoads, { caller }: Call, bytes: number, limits: EngineLimits): void {
  const held = loads.bytesOf(caller.owner);
  const limit = limits.messageBytesPerOwner;
  if (held === 0 || held + bytes <= limit) return;
  throw exhausted(`The messages of your tasks under way would take up more than ${limit} bytes.`, {
    messageBytes: String(held),
    limit: String(limit),
  });
}

function exhausted(message: string, metadata?: Record<string, string>): ProtocolError {
  return new ProtocolError("RESOURCE_EXHAUSTED", message, { retryAfter: 5, ...(metadata && { metadata }) });
}
