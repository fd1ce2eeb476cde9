/** What comes back from a peer over JSON-RPC, read with good will. */
import { ProtocolError } from "../../model/errors.ts";
import { type Lossy, NO_LOSSES } from "../../model/loss.ts";
import type { OperationKind, Outcomes, StreamFrame } from "../../model/operation.ts";
import type { TaskPushNotificationConfig } from "../../model/push.ts";
import { receivedFrame, unreadable } from "../shared/answers.ts";
import { fromWireCard } from "./call-card.ts";
import { finish, membersOf, readList, ShapeReading, textIn, within } from "./members.ts";
import { readEvent, readPushConfig, readTask } from "./read.ts";

export type WholeKind = Exclude<OperationKind, "stream" | "subscribe">;

function read<T>(value: unknown, reader: (value: unknown, reading: ShapeReading) => T): Lossy<T> {
  const reading = new ShapeReading({ tolerant: true });
  try {
    return finish(reader(value, reading), reading, "INVALID_AGENT_RESPONSE");
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    throw new ProtocolError("INVALID_AGENT_RESPONSE", `The agent's answer cannot be read: ${error.message}.`, {
      cause: error,
      ...(error.violations === undefined ? {} : { violations: error.violations }),
    });
  }
}

function readTaskPushConfig(value: unknown, reading: ShapeReading): TaskPushNotificationConfig {
  const members = membersOf(value, reading);
  const config = within(members, "pushNotificationConfig", reading, readPushConfig);
  if (config === undefined) reading.violateMember("pushNotificationConfig", "is required");
  const taskId = textIn(members, "taskId", reading);
  return { url: "", ...config, ...(taskId !== undefined && { taskId }) };
}

type Readers = { readonly [Kind in WholeKind]: (value: unknown) => Lossy<Outcomes[Kind]> };

const READERS: Readers = {
  send(value) {
    const { value: event, losses } = read(value, readEvent);
    if ("task" in event || "message" in event) return { value: event, losses };
    throw unreadable("it is an update where a task or a message belongs");
  },
  get: (value) => read(value, readTask),
  cancel: (value) => read(value, readTask),
  list: () => {
    throw unreadable("0.3 has no lists of tasks");
  },
  "push-create": (value) => read(value, readTaskPushConfig),
  "push-get": (value) => read(value, readTaskPushConfig),
  "push-list"(value) {
    // Some servers say nothing instead of an empty list.
    const { value: configs, losses } = read(value ?? [], (list, reading) =>
      readList(list, reading, readTaskPushConfig),
    );
    return { value: { configs, nextPageToken: "" }, losses };
  },
  // Success is all there is to say; servers put null, {} or nothing.
  "push-delete": () => ({ value: undefined, losses: NO_LOSSES }),
  "extended-card"(value) {
    const card = fromWireCard(value, undefined);
    if (card === undefined) throw unreadable("it is no agent card");
    return card;
  },
};

export function readOutcome<Kind extends WholeKind>(kind: Kind, value: unknown): Lossy<Outcomes[Kind]> {
  return READERS[kind](value);
}

export function readFrame(value: unknown, id: string | undefined): Lossy<StreamFrame> {
  const { value: event, losses } = read(value, readEvent);
  return { value: receivedFrame(event, id), losses };
}
