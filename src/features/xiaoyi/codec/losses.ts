/** What Xiaoyi can and cannot express: in either access mode, over HTTP, and over a link. */

import type { Abilities } from "../../../core/dialects/contract.ts";
import { abilitiesWithout } from "../../../core/dialects/shared/abilities.ts";
import {
  BENT_SENDING,
  DROPPED_RECEIVING,
  DROPPED_SENDING,
  LEGACY_LOSSES,
  lossRules,
  PART_LOSSES,
} from "../../../core/dialects/shared/legacy/losses.ts";
import { RESPONSE_LOSSES } from "../../../core/dialects/shared/responses.ts";

const PUSH = ["push-create", "push-get", "push-list", "push-delete"] as const;

/** A task can only be followed through the stream that answers its message; it cannot be fetched later. */
export const can: Abilities = {
  ...abilitiesWithout("get", "list", "subscribe", "extended-card", ...PUSH),
  replay: false,
  returnImmediately: false,
  metadata: false,
};

const BENT_RECEIVING = { kind: "bent", direction: "decode" } as const;
const MOVED_SENDING = { kind: "moved", direction: "encode" } as const;

export const LOSSES = {
  ...RESPONSE_LOSSES,
  rejected: LEGACY_LOSSES.rejected,
  authRequired: LEGACY_LOSSES.authRequired,
  partFilename: PART_LOSSES.partFilename,
  ...lossRules(DROPPED_SENDING, {
    partMetadata: [
      "part.metadata",
      "Parts have no metadata but what marks reasoning, cards, commands, chips and references.",
    ],
    partMediaType: ["part.mediaType", "Only files have a media type: text is Markdown and data is JSON."],
    dataBesideText: [
      "part.data beside text, for the phone",
      "The phone does not show data by itself, and people read the text beside it.",
    ],
    fileAsName: [
      "part.raw, for the phone; part.url of a file on this machine",
      "The phone shows only files uploaded to the platform: only its name is sent.",
    ],
    longReasoning: [
      "the beginning of reasoning longer than 4,000 characters, for the phone",
      "Reasoning is sent in full each time it grows, in one frame: if it exceeds a frame, its newest part is sent.",
    ],
    artifactMembers: [
      "artifact.name, artifact.description, artifact.metadata, artifact.extensions",
      "Artifacts have an id and parts.",
    ],
    messageMembers: [
      "message.messageId, message.metadata, message.extensions, message.referenceTaskIds of an agent",
      "What an agent says has a role and parts.",
    ],
    updateMetadata: ["statusUpdate.metadata, artifactUpdate.metadata, task.metadata", "Events have no metadata."],
    timestamp: ["status.timestamp", "Statuses have no time."],
    userMessageMembers: [
      "message.metadata, message.extensions, message.referenceTaskIds of a user",
      "What a user says has an id, a role and parts; of metadata, only the platform's variables and login.",
    ],
    configuration: [
      "send.configuration",
      "A message says nothing about how it is to be answered: always by a stream, to its end.",
    ],
    requestMetadata: ["send.metadata, cancel.metadata", "Requests have no metadata."],
  }),
  ...lossRules(BENT_SENDING, {
    partData: ["part.data", 'Data that is not an object is sent as {"value": …}.'],
    dataAsText: [
      "part.data, for the phone",
      "The phone does not show data by itself: it is sent as JSON in a code block.",
    ],
    fileAsLink: [
      "part.url, for the phone",
      "The phone shows only files uploaded to the platform: it is sent as a link.",
    ],
    longStatus: [
      "status.message longer than 4,000 characters, with `render: spec`",
      "A frame has that limit: what does not fit is sent before it, in `working` statuses.",
    ],
  }),
  ...lossRules(MOVED_SENDING, {
    artifactsAsOne: [
      "artifact after the first, for the phone",
      "The phone shows one text: the texts of all artifacts are joined, with an empty line between them.",
    ],
    messageAsText: [
      "status.message of a question or of the end, for the phone",
      "The phone shows only the text of the answer: the message is sent as its last paragraph.",
    ],
  }),
  ...lossRules(DROPPED_RECEIVING, { unknownPart: ["part", "It is none of text, reasoningText, file and data."] }),
  ...lossRules(BENT_RECEIVING, {
    unreadableFile: [
      "part.url",
      "A file kept by the platform is known by an id only, which no one else can fetch: urn:xiaoyi:file:<id>.",
    ],
  }),
};

export const HTTP_LOSSES = {
  ...LOSSES,
  tenant: LEGACY_LOSSES.tenant,
  ...lossRules(DROPPED_SENDING, {
    callExtensions: [
      "call.extensions, call.idempotencyKey",
      "There are no extensions to ask for, and no keys that make a message safe to repeat.",
    ],
  }),
  ...lossRules(BENT_RECEIVING, {
    foreignId: [
      "event.taskId",
      "A stream answers one message: its frames are those of that task, whatever the agent calls it.",
    ],
  }),
};

export const LINK_LOSSES = {
  ...LOSSES,
  ...lossRules(BENT_SENDING, {
    fileWithoutAddress: [
      "part.raw, to an agent that dialled in",
      "Agents made for the platform fetch files by their address. These bytes have none, because no address of this server is known or too many are offered already, and are sent without.",
    ],
  }),
};
