/** What comes back from a peer, read with good will: unknown members, missing defaults and empty lists are no offence. */

import { ProtocolError } from "../../model/errors.ts";
import type { OperationKind, Outcomes, StreamFrame } from "../../model/operation.ts";
import { receivedFrame, unreadable } from "../shared/answers.ts";
import { readCalledCard } from "./call-card.ts";
import { type ReadOptions, readWire, type WireName, type WireTypes } from "./schema.ts";

export type WholeKind = Exclude<OperationKind, "stream" | "subscribe">;

const TOLERANT: ReadOptions = { tolerant: true, code: "INVALID_AGENT_RESPONSE" };

function read<Name extends WireName>(name: Name, value: unknown): WireTypes[Name] {
  try {
    return readWire(name, value, TOLERANT);
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    throw new ProtocolError("INVALID_AGENT_RESPONSE", `The agent's answer cannot be read: ${error.message}.`, {
      cause: error,
      ...(error.violations === undefined ? {} : { violations: error.violations }),
    });
  }
}

type Readers = { readonly [Kind in WholeKind]: (value: unknown) => Outcomes[Kind] };

const READERS: Readers = {
  send: (value) => read("SendMessageResponse", value),
  get: (value) => read("Task", value),
  list: (value) => read("ListTasksResponse", value),
  cancel: (value) => read("Task", value),
  "push-create": (value) => read("TaskPushNotificationConfig", value),
  "push-get": (value) => read("TaskPushNotificationConfig", value),
  "push-list": (value) => read("ListTaskPushNotificationConfigsResponse", value),
  // Success is all there is to say; servers put null, {} or nothing.
  "push-delete": () => undefined,
  "extended-card": (value) => {
    const card = readCalledCard(value);
    if (card === undefined) throw unreadable("it is no agent card");
    return card;
  },
};

export function readOutcome<Kind extends WholeKind>(kind: Kind, value: unknown): Outcomes[Kind] {
  return READERS[kind](value);
}

export function readFrame(value: unknown, id: string | undefined): StreamFrame {
  return receivedFrame(read("StreamResponse", value), id);
}
