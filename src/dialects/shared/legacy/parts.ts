/** Parts with a `type` beside their content, as they were before 0.2: text, file and data. */

import type { JsonValue } from "../../../model/json.ts";
import { type Loss, type LossRule, toLoss } from "../../../model/loss.ts";
import { isDataPart, isRawPart, isTextPart, type Part } from "../../../model/message.ts";
import type { Artifact } from "../../../model/task.ts";
import type { Members } from "../json-members.ts";

/** Which artifact of a task is which, by the order in which they first appeared. That order never changes. */
export class ArtifactIndexes {
  readonly #indexes = new Map<string, number>();

  /** Those a task has already, in their order. */
  seed(artifacts: readonly Artifact[] | undefined): void {
    for (const { artifactId } of artifacts ?? []) this.of(artifactId);
  }

  of(artifactId: string): number {
    let index = this.#indexes.get(artifactId);
    if (index === undefined) {
      index = this.#indexes.size;
      this.#indexes.set(artifactId, index);
    }
    return index;
  }
}

export const PART_LOSSES = {
  partFilename: {
    kind: "dropped",
    what: "part.filename",
    reason: "Only files have a name; text and data have none.",
    direction: "said",
  },
  partMediaType: {
    kind: "dropped",
    what: "part.mediaType",
    reason: "Only files have a media type: text is text/plain and data is application/json.",
    direction: "said",
  },
  partData: {
    kind: "bent",
    what: "part.data",
    reason: 'Data of another form than the dialect takes travels as {"value": …}.',
    direction: "said",
  },
} as const satisfies Record<string, LossRule>;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const PART_KINDS = ["text", "file", "data"] as const;

/** `type` decides where it names what is there; many leave it out or have it wrong, and then the only content does. */
function kindOf(members: Members): (typeof PART_KINDS)[number] | undefined {
  const type = members.raw("type");
  const named = PART_KINDS.find((kind) => kind === type);
  if (named !== undefined && (members.raw(named) !== undefined || (named === "data" && members.has("data")))) {
    return named;
  }
  const present = PART_KINDS.filter((kind) => members.raw(kind) !== undefined);
  return present.length === 1 ? present[0] : undefined;
}

export function readPart(members: Members): Part {
  const part = readContent(members);
  const metadata = members.struct("metadata");
  if (metadata !== undefined) part.metadata = metadata;
  return part;
}

function readContent(members: Members): Mutable<Part> {
  switch (kindOf(members)) {
    case "text":
      return { text: members.anyText("text") ?? "" };
    case "data":
      return { data: members.json("data") };
    case "file":
      return members.object("file", readFile) ?? { text: "" };
    case undefined:
      members.violate("must have exactly one of text, file, data");
      return { text: "" };
  }
}

function readFile(members: Members): Mutable<Part> {
  const raw = members.bytes("bytes");
  const url = members.anyText("uri");
  if ((raw === undefined) === (url === undefined)) members.violate("must have exactly one of bytes, uri");
  const file: Mutable<Part> = raw === undefined ? { url: url ?? "" } : { raw };
  const filename = members.text("name");
  const mediaType = members.text("mimeType");
  if (filename !== undefined) file.filename = filename;
  if (mediaType !== undefined) file.mediaType = mediaType;
  return file;
}

/** Which values the dialect takes as data. */
type AcceptsData = (data: JsonValue) => boolean;

/** `path` is that of whatever has the parts. `JSON.stringify` leaves out members that are undefined. */
export function toLegacyParts(parts: readonly Part[], path: string, losses: Loss[], takes: AcceptsData): object[] {
  const said: object[] = [];
  for (let index = 0; index < parts.length; index++)
    said.push(toPart(parts[index] as Part, index, path, losses, takes));
  return said;
}

function toPart(part: Part, index: number, path: string, losses: Loss[], takes: AcceptsData): object {
  const { metadata, filename, mediaType } = part;
  if (isTextPart(part)) {
    if (filename !== undefined || mediaType !== undefined) reportLostNames(part, "text/plain", index, path, losses);
    return { type: "text", text: part.text, metadata };
  }
  if (isDataPart(part)) {
    if (filename !== undefined || mediaType !== undefined)
      reportLostNames(part, "application/json", index, path, losses);
    const fits = takes(part.data);
    if (!fits) losses.push(toLoss(PART_LOSSES.partData, `${path}.parts[${index}].data`));
    return { type: "data", data: fits ? part.data : { value: part.data }, metadata };
  }
  const file = isRawPart(part)
    ? { name: filename, mimeType: mediaType, bytes: part.raw }
    : { name: filename, mimeType: mediaType, uri: part.url };
  return { type: "file", file, metadata };
}

/** A media type that goes without saying is not lost by not being said. */
function reportLostNames(part: Part, implied: string, index: number, path: string, losses: Loss[]): void {
  const { filename, mediaType } = part;
  if (filename !== undefined) losses.push(toLoss(PART_LOSSES.partFilename, `${path}.parts[${index}].filename`));
  if (mediaType !== undefined && mediaType !== implied) {
    losses.push(toLoss(PART_LOSSES.partMediaType, `${path}.parts[${index}].mediaType`));
  }
}
