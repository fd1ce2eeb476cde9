/** Methods in all their spellings, and the targets of those that control a conversation. */

import { type Fields, fieldsOf } from "../../../core/model/json.ts";

type Method = "message" | "cancel" | "clear" | "initialize" | "initialized" | "authorize" | "deauthorize";

const METHODS: ReadonlyMap<unknown, Method> = new Map<unknown, Method>([
  ["message/stream", "message"],
  ["tasks/cancel", "cancel"],
  ["tasks_cancel", "cancel"],
  ["clearContext", "clear"],
  ["clear_context", "clear"],
  // An `action` of the older link protocol.
  ["clear", "clear"],
  ["initialize", "initialize"],
  ["notifications/initialized", "initialized"],
  ["authorize", "authorize"],
  ["deauthorize", "deauthorize"],
]);

export function methodOf(word: unknown): Method | undefined {
  return METHODS.get(word);
}

/** The target of a cancel or clear request: most have no params and name the session beside the method. */
export interface ControlTarget {
  /** Candidates for the session id, most likely first. */
  readonly sessionIds: readonly string[];
  /** Candidates for the task id, most likely first. */
  readonly taskIds: readonly string[];
}

export function decodeControl(envelope: Fields): ControlTarget {
  const params = fieldsOf(envelope.params);
  return {
    sessionIds: distinctStrings([
      params.sessionId,
      params.conversationId,
      envelope.conversationId,
      envelope.sessionId,
      params.session_id,
      envelope.session_id,
    ]),
    taskIds: distinctStrings([params.id, params.taskId, envelope.taskId, envelope.id]),
  };
}

function distinctStrings(values: readonly unknown[]): string[] {
  return [...new Set(values.flatMap((value) => nonEmptyString(value) ?? []))];
}

export function nonEmptyString(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

export type CancelState = "canceled" | "failed" | "unknown";
export type ClearState = "cleared" | "failed" | "unknown";

export function toCancelResult(id: string, state: CancelState): object {
  return { id, status: { state } };
}

export function toClearResult(state: ClearState): object {
  return { status: { state } };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Phones and tablets have a UUID, the desktop assistant has an opaque id. Nothing else tells them apart. */
export function isDesktop(deviceId: unknown): boolean {
  return typeof deviceId === "string" && deviceId !== "" && !UUID.test(deviceId);
}
