/** What comes back from a peer in messages of the proto, read with good will. */
import { ProtocolError } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import { type Loss, type Lossy, NO_LOSSES } from "../../model/loss.ts";
import type { OperationKind, Outcomes } from "../../model/operation.ts";
import { unreadable } from "../shared/answers.ts";
import type { ReadOptions } from "../shared/proto-json-reading.ts";
import { fromProtoCard } from "./proto-card.ts";
import {
  fromProtoEvent,
  fromProtoOutcome,
  fromProtoPushPage,
  fromProtoTask,
  fromProtoTaskPushConfig,
} from "./proto-decode.ts";
import { type ProtoName, type ProtoTypes, readProto } from "./proto-schema.ts";

export type WholeKind = Exclude<OperationKind, "stream" | "subscribe">;

const TOLERANT: ReadOptions = { tolerant: true, code: "INVALID_AGENT_RESPONSE" };

function read<Name extends ProtoName>(name: Name, value: unknown): ProtoTypes[Name] {
  try {
    return readProto(name, value, TOLERANT);
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    throw new ProtocolError("INVALID_AGENT_RESPONSE", `The agent's answer cannot be read: ${error.message}.`, {
      cause: error,
      ...(error.violations === undefined ? {} : { violations: error.violations }),
    });
  }
}

type Readers = { readonly [Kind in WholeKind]: (value: unknown, losses: Loss[]) => Outcomes[Kind] };

const READERS: Readers = {
  send: (value, losses) => fromProtoOutcome(read("SendMessageResponse", value), losses),
  get: (value, losses) => fromProtoTask(read("Task", value), losses),
  cancel: (value, losses) => fromProtoTask(read("Task", value), losses),
  list: () => {
    throw unreadable("0.3 has no lists of tasks");
  },
  "push-create": (value, losses) => fromProtoTaskPushConfig(read("TaskPushNotificationConfig", value), losses),
  "push-get": (value, losses) => fromProtoTaskPushConfig(read("TaskPushNotificationConfig", value), losses),
  "push-list": (value, losses) => fromProtoPushPage(read("ListTaskPushNotificationConfigResponse", value), losses),
  // Success is all there is to say; servers put null, {} or nothing.
  "push-delete": () => undefined,
  "extended-card": (value, losses) => fromProtoCard(read("AgentCard", value), losses),
};

export function readProtoOutcome<Kind extends WholeKind>(kind: Kind, value: unknown): Lossy<Outcomes[Kind]> {
  const losses: Loss[] = [];
  const outcome = READERS[kind](value, losses);
  return { value: outcome, losses };
}

export function readProtoEvent(value: unknown): Lossy<StreamEvent> {
  const losses: Loss[] = [];
  const event = fromProtoEvent(read("StreamResponse", value), losses);
  return { value: event, losses: losses.length === 0 ? NO_LOSSES : losses };
}
