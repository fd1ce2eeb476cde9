/** What Xiaoyi cannot express, in either access mode. */

import type { LossRule } from "../../model/loss.ts";
import type { Abilities } from "../contract.ts";
import { PART_LOSSES, STATE_LOSSES } from "../shared/legacy/losses.ts";

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
  parts: { text: true, raw: true, url: true, data: true },
  artifacts: true,
  inputRequired: true,
  metadata: false,
};

export const LOSSES = {
  rejected: STATE_LOSSES.rejected,
  authRequired: STATE_LOSSES.authRequired,
  partMetadata: {
    kind: "dropped",
    what: "part.metadata",
    reason: "Parts have no metadata but what marks reasoning, cards, commands, chips and references.",
    direction: "encode",
  },
  partFilename: PART_LOSSES.partFilename,
  partMediaType: {
    kind: "dropped",
    what: "part.mediaType",
    reason: "Only files have a media type: text is Markdown and data is JSON.",
    direction: "encode",
  },
  partData: {
    kind: "bent",
    what: "part.data",
    reason: 'Data that is not an object is sent as {"value": …}.',
    direction: "encode",
  },
  dataAsText: {
    kind: "bent",
    what: "part.data, for the phone",
    reason: "The phone does not show data by itself: it is sent as JSON in a code block.",
    direction: "encode",
  },
  dataBesideText: {
    kind: "dropped",
    what: "part.data beside text, for the phone",
    reason: "The phone does not show data by itself, and people read the text beside it.",
    direction: "encode",
  },
  fileAsLink: {
    kind: "bent",
    what: "part.url, for the phone",
    reason: "The phone shows only files uploaded to the platform: it is sent as a link.",
    direction: "encode",
  },
  fileAsName: {
    kind: "dropped",
    what: "part.raw, for the phone; part.url of a file on this machine",
    reason: "The phone shows only files uploaded to the platform: only its name is sent.",
    direction: "encode",
  },
  longReasoning: {
    kind: "dropped",
    what: "the beginning of reasoning longer than 4,000 characters, for the phone",
    reason:
      "Reasoning is sent in full each time it grows, in one frame: if it exceeds a frame, its newest part is sent.",
    direction: "encode",
  },
  longStatus: {
    kind: "bent",
    what: "status.message longer than 4,000 characters, with `render: spec`",
    reason: "A frame has that limit: what does not fit is sent before it, in `working` statuses.",
    direction: "encode",
  },
  artifactMembers: {
    kind: "dropped",
    what: "artifact.name, artifact.description, artifact.metadata, artifact.extensions",
    reason: "Artifacts have an id and parts.",
    direction: "encode",
  },
  messageMembers: {
    kind: "dropped",
    what: "message.messageId, message.metadata, message.extensions, message.referenceTaskIds of an agent",
    reason: "What an agent says has a role and parts.",
    direction: "encode",
  },
  updateMetadata: {
    kind: "dropped",
    what: "statusUpdate.metadata, artifactUpdate.metadata, task.metadata",
    reason: "Events have no metadata.",
    direction: "encode",
  },
  timestamp: {
    kind: "dropped",
    what: "status.timestamp",
    reason: "Statuses have no time.",
    direction: "encode",
  },
  userMessageMembers: {
    kind: "dropped",
    what: "message.metadata, message.extensions, message.referenceTaskIds of a user",
    reason: "What a user says has an id, a role and parts; of metadata, only the platform's variables and login.",
    direction: "encode",
  },
  configuration: {
    kind: "dropped",
    what: "send.configuration",
    reason: "A message says nothing about how it is to be answered: always by a stream, to its end.",
    direction: "encode",
  },
  requestMetadata: {
    kind: "dropped",
    what: "send.metadata, cancel.metadata",
    reason: "Requests have no metadata.",
    direction: "encode",
  },
  unknownPart: {
    kind: "dropped",
    what: "part",
    reason: "It is none of text, reasoningText, file and data.",
    direction: "decode",
  },
  unreadableFile: {
    kind: "bent",
    what: "part.url",
    reason: "A file kept by the platform is known by an id only, which no one else can fetch: urn:xiaoyi:file:<id>.",
    direction: "decode",
  },
} as const satisfies Record<string, LossRule>;
