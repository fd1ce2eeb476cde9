/** What Xiaoyi cannot express, in either access mode. */

import type { Abilities } from "../../../core/dialects/contract.ts";
import { PART_LOSSES, STATE_LOSSES } from "../../../core/dialects/shared/legacy/losses.ts";
import { RESPONSE_LOSSES } from "../../../core/dialects/shared/responses.ts";
import type { LossRule } from "../../../core/model/loss.ts";

/** A task can only be followed through the stream that answers its message; it cannot be fetched later. */
export const can: Abilities = {
  streaming: true,
  replay: false,
  operations: {
    send: true,
    stream: true,
    get: false,
    list: false,
    cancel: true,
    subscribe: false,
    "push-create": false,
    "push-get": false,
    "push-list": false,
    "push-delete": false,
    "extended-card": false,
  },
  returnImmediately: false,
  chosenIds: false,
  parts: { text: true, raw: true, url: true, data: true },
  artifacts: true,
  inputRequired: true,
  metadata: false,
};

/** Nearly all losses occur when encoding. */
export function lossRule(
  kind: LossRule["kind"],
  what: string,
  reason: string,
  direction: LossRule["direction"] = "encode",
): LossRule {
  return { kind, what, reason, direction };
}

export const LOSSES = {
  ...RESPONSE_LOSSES,
  rejected: STATE_LOSSES.rejected,
  authRequired: STATE_LOSSES.authRequired,
  partMetadata: lossRule(
    "dropped",
    "part.metadata",
    "Parts have no metadata but what marks reasoning, cards, commands, chips and references.",
  ),
  partFilename: PART_LOSSES.partFilename,
  partMediaType: lossRule(
    "dropped",
    "part.mediaType",
    "Only files have a media type: text is Markdown and data is JSON.",
  ),
  partData: lossRule("bent", "part.data", 'Data that is not an object is sent as {"value": …}.'),
  dataAsText: lossRule(
    "bent",
    "part.data, for the phone",
    "The phone does not show data by itself: it is sent as JSON in a code block.",
  ),
  dataBesideText: lossRule(
    "dropped",
    "part.data beside text, for the phone",
    "The phone does not show data by itself, and people read the text beside it.",
  ),
  fileAsLink: lossRule(
    "bent",
    "part.url, for the phone",
    "The phone shows only files uploaded to the platform: it is sent as a link.",
  ),
  fileAsName: lossRule(
    "dropped",
    "part.raw, for the phone; part.url of a file on this machine",
    "The phone shows only files uploaded to the platform: only its name is sent.",
  ),
  artifactsAsOne: lossRule(
    "moved",
    "artifact after the first, for the phone",
    "The phone shows one text: the texts of all artifacts are joined, with an empty line between them.",
  ),
  messageAsText: lossRule(
    "moved",
    "status.message of a question or of the end, for the phone",
    "The phone shows only the text of the answer: the message is sent as its last paragraph.",
  ),
  longReasoning: lossRule(
    "dropped",
    "the beginning of reasoning longer than 4,000 characters, for the phone",
    "Reasoning is sent in full each time it grows, in one frame: if it exceeds a frame, its newest part is sent.",
  ),
  longStatus: lossRule(
    "bent",
    "status.message longer than 4,000 characters, with `render: spec`",
    "A frame has that limit: what does not fit is sent before it, in `working` statuses.",
  ),
  artifactMembers: lossRule(
    "dropped",
    "artifact.name, artifact.description, artifact.metadata, artifact.extensions",
    "Artifacts have an id and parts.",
  ),
  messageMembers: lossRule(
    "dropped",
    "message.messageId, message.metadata, message.extensions, message.referenceTaskIds of an agent",
    "What an agent says has a role and parts.",
  ),
  updateMetadata: lossRule(
    "dropped",
    "statusUpdate.metadata, artifactUpdate.metadata, task.metadata",
    "Events have no metadata.",
  ),
  timestamp: lossRule("dropped", "status.timestamp", "Statuses have no time."),
  userMessageMembers: lossRule(
    "dropped",
    "message.metadata, message.extensions, message.referenceTaskIds of a user",
    "What a user says has an id, a role and parts; of metadata, only the platform's variables and login.",
  ),
  configuration: lossRule(
    "dropped",
    "send.configuration",
    "A message says nothing about how it is to be answered: always by a stream, to its end.",
  ),
  requestMetadata: lossRule("dropped", "send.metadata, cancel.metadata", "Requests have no metadata."),
  unknownPart: lossRule("dropped", "part", "It is none of text, reasoningText, file and data.", "decode"),
  unreadableFile: lossRule(
    "bent",
    "part.url",
    "A file kept by the platform is known by an id only, which no one else can fetch: urn:xiaoyi:file:<id>.",
    "decode",
  ),
} satisfies Record<string, LossRule>;
