/** Methods, in every spelling there is, and what those that steer a conversation are about. */

import { isObject } from "../../model/json.ts";

type Method = "message" | "cancel" | "clear" | "initialize" | "initialized" | "authorize" | "deauthorize";

const METHODS: ReadonlyMap<unknown, Method> = new Map<unknown, Method>([
  ["message/stream", "message"],
  ["tasks/cancel", "cancel"],
  ["tasks_cancel", "cancel"],
  ["clearContext", "clear"],
  ["clear_context", "clear"],
  // An `action` of older links.
  ["clear", "clear"],
  ["initialize", "initialize"],
  ["notifications/initialized", "initialized"],
  ["authorize", "authorize"],
  ["deauthorize", "deauthorize"],
]);

export function methodOf(word: unknown): Method | undefined {
  return METHODS.get(word);
}

type Envelope = Readonly<Record<string, unknown>>;

/** A request to cancel or to clear: most come without params and name the session beside the method. */
export interface ControlTarget {
  /** All that may be the session, the most likely first. */
  readonly sessionIds: readonly string[];
  /** All that may be the task, the most likely first. */
  readonly taskIds: readonly string[];
}

export function decodeControl(envelope: Envelope): ControlTarget {
  const params = isObject(envelope.params) ? envelope.params : {};
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
  return [...new Set(values.filter((value): value is string => typeof value === "string" && value !== ""))];
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

/** Phones and tablets have a UUID; what the assistant on a desktop has is opaque. Nothing else tells them apart. */
export function isDesktop(deviceId: unknown): boolean {
  return typeof deviceId === "string" && deviceId !== "" && !UUID.test(deviceId);
}
