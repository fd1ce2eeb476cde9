/** What comes back from a peer, before any dialect looks at it. */

import { createHash } from "node:crypto";
import { ProtocolError } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import type { StreamFrame } from "../../model/operation.ts";
import { JsonParseError, parseJson } from "../../wire/parse-json.ts";

/**
 * An id for something a peer gave none to, made of what it is: the same thing heard twice has the same id, and reading
 * stays a pure function.
 */
export function deriveId(prefix: string, content: unknown): string {
  return `${prefix}-${createHash("sha256").update(JSON.stringify(content)).digest("base64url").slice(0, 16)}`;
}

/** Deeper than what is accepted from callers: this peer was chosen. */
const LIMITS = { maxDepth: 256 };

/** `undefined` for what is no JSON; the JSON value `null` is `null`. */
export function parseResponse(text: string): unknown {
  try {
    return parseJson(text, LIMITS);
  } catch (error) {
    if (error instanceof JsonParseError) return undefined;
    throw error;
  }
}

export function invalidResponse(what: string): ProtocolError {
  return new ProtocolError("INVALID_AGENT_RESPONSE", `The agent's answer cannot be read: ${what}.`);
}

/** What `read` refuses is not the caller's mistake but the agent's. */
export function asResponse<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    throw new ProtocolError("INVALID_AGENT_RESPONSE", `The agent's answer cannot be read: ${error.message}.`, {
      cause: error,
      ...(error.violations === undefined ? {} : { violations: error.violations }),
    });
  }
}

const EVENT_NUMBER = /^[0-9]{1,15}$/;

/** `id` is that of the server-sent event, a number if the peer numbers its events. */
export function createFrame(event: StreamEvent, id: string | undefined): StreamFrame {
  return id !== undefined && EVENT_NUMBER.test(id) ? createNumberedFrame(event, Number(id)) : new Frame(event);
}

export function createNumberedFrame(event: StreamEvent, number: number): StreamFrame {
  return new NumberedFrame(event, number);
}

/** Few readers want the JSON, so it is made when one does. */
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
