import { invalidParams, ProtocolError } from "../model/errors.ts";
import type { RequestNote } from "../model/event.ts";
import type { Message } from "../model/message.ts";
import type { Call, SendInput } from "../model/operation.ts";
import type { QueuedTurn } from "./live-task.ts";

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
