/** Parts, which 0.3 tells apart by `kind` and the model by the member they have. */
import type { JsonObject, JsonValue } from "../../model/json.ts";
import type { Part } from "../../model/part.ts";
import { isRecord } from "../shared/proto-json-reading.ts";
import { SCALARS } from "../shared/proto-json-scalars.ts";
import { given, type Members, membersOf, type ShapeReading, structIn, textIn, within } from "./members.ts";
import { readDataObject, readMetadataOnWire } from "./part-extension.ts";

type Building<T> = { -readonly [Member in keyof T]: T[Member] };

export function readPart(value: unknown, reading: ShapeReading): Part {
  const members = membersOf(value, reading);
  const metadata = structIn(members, "metadata", reading);
  switch (kindOfPart(members, reading)) {
    case "text": {
      const text = given(members, "text", reading);
      if (typeof text !== "string")
        reading.violateMember("text", text === undefined ? "is required" : "must be a string");
      return withExtras({ text: typeof text === "string" ? text : "" }, readMetadataOnWire(metadata));
    }
    case "file":
      return readFile(members, metadata, reading);
    case "data": {
      const data = given(members, "data", reading) as JsonValue | undefined;
      if (data === undefined) reading.violateMember("data", "is required");
      // By the letter an object; what else is sent can be kept as it is.
      const unwrapped = isRecord(data) ? readDataObject(data, metadata) : { data: data ?? null, metadata };
      return withExtras({ data: unwrapped.data }, readMetadataOnWire(unwrapped.metadata));
    }
    default:
      reading.violate("must be a part of kind text, file or data");
      return UNREADABLE_PART;
  }
}

/** Stands where the reading is going to refuse. */
const UNREADABLE_PART: Part = { text: "" };

/** Early clients call `kind` `type`, as before 0.2. Without either, the only content there is decides. */
function kindOfPart(members: Members, reading: ShapeReading): unknown {
  const kind = given(members, "kind", reading) ?? given(members, "type", reading);
  if (kind === "text" || kind === "file" || kind === "data") return kind;
  if (kind !== undefined && !reading.tolerant) return undefined;
  const contents = ["text", "file", "data"].filter((name) => (members[name] ?? undefined) !== undefined);
  return contents.length === 1 ? contents[0] : undefined;
}

function withExtras(
  part: Building<Part>,
  { metadata, filename, mediaType }: ReturnType<typeof readMetadataOnWire>,
): Part {
  if (metadata !== undefined) part.metadata = metadata;
  if (filename !== undefined) part.filename = filename;
  if (mediaType !== undefined) part.mediaType = mediaType;
  return part;
}

function readFile(members: Members, metadata: JsonObject | undefined, reading: ShapeReading): Part {
  const read = within(members, "file", reading, (value) => {
    const file = membersOf(value, reading);
    const bytes = given(file, "bytes", reading);
    const uri = given(file, "uri", reading);
    if ((bytes === undefined) === (uri === undefined)) {
      reading.violate("must have exactly one of bytes, uri");
      return UNREADABLE_PART;
    }
    const extras = { metadata, filename: textIn(file, "name", reading), mediaType: textIn(file, "mimeType", reading) };
    if (bytes !== undefined) return withExtras({ raw: base64In(bytes, reading) }, extras);
    if (typeof uri !== "string") reading.violateMember("uri", "must be a string");
    return withExtras({ url: String(uri) }, extras);
  });
  if (read === undefined) reading.violateMember("file", "is required");
  return read ?? UNREADABLE_PART;
}

function base64In(bytes: unknown, reading: ShapeReading): string {
  reading.enter("bytes");
  const standard = SCALARS.bytes.read(bytes, reading);
  reading.leave();
  return String(standard);
}
