/** Responses of a peer, before a dialect decodes them. */

import { createHash } from "node:crypto";
import { ProtocolError } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import type { LossRule } from "../../model/loss.ts";
import type { StreamFrame } from "../../model/operation.ts";
import { JsonParseError, parseJson } from "../../wire/parse-json.ts";
import { withoutSeparator } from "../../wire/sse.ts";

/**
 * An id for a value that a peer sent without one, derived from its content: the same value received twice has the same
 * id, and decoding remains a pure function.
 */
export function deriveId(prefix: string, content: unknown): string {
  return `${prefix}-${createHash("sha256").update(JSON.stringify(content)).digest("base64url").slice(0, 16)}`;
}

/**
 * What is done about answers that their agents got wrong. A finished answer is worth more than a member of it, so what is
 * missing or unknown is filled in and reported; only `strict` refuses such an answer.
 */
export const RESPONSE_LOSSES = {
  missing: {
    kind: "filled",
    direction: "decode",
    what: "message.messageId, message.role, artifact.artifactId, part, status.state, task.id",
    reason:
      "The agent left it out: ids are derived from content or position, the role is the agent's, a part is an empty text, the state is unspecified.",
  },
  unknown: {
    kind: "filled",
    direction: "decode",
    what: "status.state, message.role",
    reason: "The agent sent a value that is not known here: the state is read as unspecified, the role as the agent's.",
  },
  unreadable: {
    kind: "dropped",
    direction: "decode",
    what: "task, message, artifact, part, update",
    reason: "An optional member or an item of a list is not of the type that it has to be.",
  },
  unknownEvent: {
    kind: "dropped",
    direction: "decode",
    what: "stream",
    reason: "The agent sent an event of a kind that is not known here.",
  },
} as const satisfies Record<string, LossRule>;

/**
 * Ids of what a peer sent without one. A task that is read again has the same: a message moves from the status to the
 * history, so its id is that of its content; an artifact grows, so its id is that of its place.
 */
export const DERIVED_IDS = {
  messageId: (message: unknown) => deriveId("message", message),
  artifactId: (_artifact: unknown, index: number) => `artifact-${index}`,
};

/** Deeper than the limit for callers: this peer was chosen deliberately. */
const LIMITS = { maxDepth: 256 };

/** `undefined` for invalid JSON; the JSON value `null` is `null`. */
export function parseResponse(text: string): unknown {
  try {
    return parseJson(withoutSeparator(text), LIMITS);
  } catch (error) {
    if (error instanceof JsonParseError) return undefined;
    throw error;
  }
}

export function invalidResponse(what: string): ProtocolError {
  return new ProtocolError("INVALID_AGENT_RESPONSE", `The agent's answer cannot be read: ${what}.`);
}

/** An error of `read` is the agent's fault, not the caller's. */
export function asResponse<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    throw new ProtocolError("INVALID_AGENT_RESPONSE", `The agent's answer cannot be read: ${error.message}.`, {
      cause: error,
      violations: error.violations,
    });
  }
}

const EVENT_NUMBER = /^[0-9]{1,15}$/;

/** `id` of the server-sent event, a number if the peer numbers its events. */
export function createFrame(event: StreamEvent, id: string | undefined): StreamFrame {
  return id !== undefined && EVENT_NUMBER.test(id) ? createNumberedFrame(event, Number(id)) : new Frame(event);
}

export function createNumberedFrame(event: StreamEvent, number: number): StreamFrame {
  return new NumberedFrame(event, number);
}

/** Few readers need the JSON, so it is encoded on demand. */
class Frame implements StreamFrame {
  readonly event: StreamEvent;
  #json: string | undefined;

  constructor(event: StreamEvent) {
    this.event = event;
  }

  get json(): string {
    this.#json ??= JSON.stringify(this.event);
    return this.#json;
  }
}

class NumberedFrame extends Frame {
  readonly number: number;

  constructor(event: StreamEvent, number: number) {
    super(event);
    this.number = number;
  }
}
