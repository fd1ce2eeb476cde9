/** A user's message as the platform says it to an agent: the params of `message/stream`. */

import { EXTENSIONS } from "../../model/extensions.ts";
import type { JsonObject } from "../../model/json.ts";
import { type Loss, toLoss } from "../../model/loss.ts";
import type { Message } from "../../model/message.ts";
import type { SendInput } from "../../model/operation.ts";
import { deriveId } from "../shared/responses.ts";
import { LOSSES } from "./losses.ts";
import { isObject, xiaoyiMark } from "./marks.ts";
import { toPartWires } from "./parts.ts";
import { sessionOf, taskIdIn } from "./task-ids.ts";
import type { FileWire, PartWire } from "./wire.ts";

/** Where a message belongs. */
export interface MessagePlace {
  readonly taskId: string;
  readonly sessionId: string;
}

/** The platform chooses the ids: a new session is named after the message, and every task after its session. */
export function placeOf({ chosenId, message }: SendInput): MessagePlace {
  const { contextId, messageId, taskId } = message;
  const sessionId = contextId ?? (taskId === undefined ? deriveId("session", messageId) : sessionOf(taskId));
  return { sessionId, taskId: taskId ?? taskIdIn(sessionId, chosenId ?? messageId) };
}

/** All that is known of a task by its id. */
export function placeOfTask(taskId: string): MessagePlace {
  return { taskId, sessionId: sessionOf(taskId) };
}

/** The address of a file that is sent as bytes; undefined where it has none. `path` is that of the part. */
type AddressOf = (file: FileWire["file"] & { readonly bytes: string }, path: string) => string | undefined;

export function toMessageParams(
  input: SendInput,
  { sessionId, taskId }: MessagePlace,
  losses: Loss[],
  addressOf: AddressOf = () => undefined,
): object {
  const { configuration, message, metadata } = input;
  if (!isEmpty(configuration)) losses.push(toLoss(LOSSES.configuration, "configuration"));
  loseRequestMetadata(metadata, losses);
  if (losesMembers(message)) losses.push(toLoss(LOSSES.userMessageMembers, "message"));
  const mark = xiaoyiMark(message.metadata);
  const parts: PartWire[] = toPartWires(message.parts, "message", losses).map((part, index) =>
    withAddress(part, `message.parts[${index}]`, addressOf),
  );
  if (isObject(mark?.variables)) parts.push({ kind: "data", data: { variables: mark.variables } });
  // Said also where nobody has logged in.
  const { agentLoginSessionId = "" } = mark ?? {};
  return {
    id: taskId,
    sessionId,
    agentLoginSessionId,
    message: { kind: "message", messageId: message.messageId, role: "user", parts },
  };
}

/** Some agents read a file's address only, and some its bytes only. */
function withAddress(part: PartWire, path: string, addressOf: AddressOf): PartWire {
  if (part.kind !== "file" || part.file.bytes === undefined) return part;
  const { bytes, ...file } = part.file;
  const uri = addressOf({ ...file, bytes }, path);
  return uri === undefined ? part : { kind: "file", file: { ...file, uri, bytes } };
}

/** Metadata in which there is nothing is not lost by not being said. */
export function loseRequestMetadata(metadata: JsonObject | undefined, losses: Loss[]): void {
  if (!isEmpty(metadata)) losses.push(toLoss(LOSSES.requestMetadata, "metadata"));
}

function losesMembers({ extensions, metadata = {}, referenceTaskIds }: Message): boolean {
  const { [EXTENSIONS.xiaoyi]: _own, ...others } = metadata;
  return !(isEmpty(others) && isEmpty(extensions) && isEmpty(referenceTaskIds));
}

function isEmpty(value: object | undefined): boolean {
  return value === undefined || Object.keys(value).length === 0;
}
