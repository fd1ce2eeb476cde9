/** What a post in a chat cannot express. */
import { BENT_SENDING, DROPPED_SENDING, lossRules, STATE_LOSSES } from "../../../core/dialects/shared/legacy/losses.ts";

export const LOSSES = {
  authRequired: STATE_LOSSES.authRequired,
  ...lossRules(
    { kind: "moved", direction: "encode" },
    {
      textParts: ["part.text after another", "A post has one text: texts are joined, each in a line of its own."],
      dataBeforeText: ["part.data before text", "Data is sent as a code block of JSON after the text."],
      largeData: [
        "part.data larger than 4 KB of JSON",
        "It is sent as a file, data.json, which is read as data again.",
      ],
    },
  ),
  ...lossRules(BENT_SENDING, {
    textAsData: ["part.text that ends with a code block of JSON", "It is read as data."],
    url: ["part.url", "An address is sent as a line of the text: nothing is fetched."],
    fileName: ["part.filename", "Names of files are made safe for any system, and unique within a message."],
    artifacts: [
      "artifact after the first",
      "A result has one text: those of several artifacts are joined, each after a line with its name.",
    ],
    statusMessage: ["status.message of a result", "A result has one text: the message is its last paragraph."],
    illFormed: ["text that is not well-formed UTF-16", "Networks carry UTF-8: lone surrogates are replaced."],
  }),
  ...lossRules(DROPPED_SENDING, {
    localFile: ["part.url of a file on this machine", "The peer cannot read it: only its name is sent."],
    reasoning: ["reasoning in the metadata of a part", "People in a room see the result, not how it came about."],
    dataBesideText: ["part.data beside text, without accept=json", "People in a room read the text."],
    partMetadata: ["part.metadata", "Posts have no metadata."],
    partNames: ["part.filename, part.mediaType of text and data", "Only files have a name and a media type."],
    messageMembers: [
      "message.messageId, message.contextId, message.metadata, message.extensions, message.referenceTaskIds",
      "A message is its text, its files and the parameters of its marker.",
    ],
    artifactMembers: [
      "artifact.artifactId, artifact.description, artifact.metadata, artifact.extensions",
      "A result is text and files.",
    ],
    taskMembers: ["task.metadata, statusUpdate.metadata, artifactUpdate.metadata", "Posts have no metadata."],
    configuration: [
      "send.configuration, send.metadata, cancel.metadata",
      "A task does not say how it is to be answered: progress is posted as it happens, and the result at the end.",
    ],
  }),
};
