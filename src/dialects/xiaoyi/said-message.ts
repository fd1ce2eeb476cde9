/** A user's message as the platform says it to an agent: the params of `message/stream`. */
import { EXTENSIONS } from "../../model/extensions.ts";
import { type Loss, type LossRule, lossBy } from "../../model/loss.ts";
import type { Message } from "../../model/message.ts";
import type { SendInput } from "../../model/operation.ts";
import { isObject, xiaoyiMark } from "./marks.ts";
import { toPartWires } from "./parts.ts";
import type { PartWire } from "./wire.ts";

export const CALL_LOSSES = {
  messageMembers: {
    kind: "dropped",
    what: "message.metadata, message.extensions, message.referenceTaskIds of a user",
    reason: "What a user says has an id, a role and parts; of metadata only Xiaoyi's own is said.",
    direction: "said",
  },
  configuration: {
    kind: "dropped",
    what: "configuration and metadata of a request",
    reason: "The platform asks for nothing but an answer.",
    direction: "said",
  },
} as const satisfies Record<string, LossRule>;

/** Where a message belongs. */
export interface MessagePlace {
  readonly taskId: string;
  readonly sessionId: string;
}

export function toMessageParams(input: SendInput, { sessionId, taskId }: MessagePlace, losses: Loss[]): object {
  const { configuration, message, metadata } = input;
  if (configuration !== undefined || metadata !== undefined) {
    losses.push(lossBy(CALL_LOSSES.configuration, configuration === undefined ? "metadata" : "configuration"));
  }
  loseMembers(message, losses);
  const mark = xiaoyiMark(message.metadata);
  const parts: PartWire[] = toPartWires(message.parts, "message", losses);
  if (isObject(mark?.variables)) parts.push({ kind: "data", data: { variables: mark.variables } });
  const { agentLoginSessionId = "" } = mark ?? {};
  return {
    id: taskId,
    sessionId,
    agentLoginSessionId,
    message: { kind: "message", messageId: message.messageId, role: "user", parts },
  };
}

function loseMembers({ extensions, metadata, referenceTaskIds }: Message, losses: Loss[]): void {
  const others = Object.keys(metadata ?? {}).filter((name) => name !== EXTENSIONS.xiaoyi);
  if (others.length > 0 || extensions !== undefined || referenceTaskIds !== undefined) {
    losses.push(lossBy(CALL_LOSSES.messageMembers, "message"));
  }
}
