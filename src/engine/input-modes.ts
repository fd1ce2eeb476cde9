import type { AgentProfile } from "../model/card.ts";
import { invalidParams, ProtocolError } from "../model/errors.ts";
import type { Message } from "../model/message.ts";
import { isDataPart, isRawPart, isTextPart, isUrlPart, type Part } from "../model/part.ts";
import { partSize } from "./agent-output.ts";
import type { EngineLimits } from "./options.ts";

type InputLimits = Pick<EngineLimits, "part" | "file" | "mediaTypes">;

/** Refuses a message with a part that the agent or the server does not take, or that is too long. */
export function checkInput(profile: AgentProfile, message: Message, limits: InputLimits): void {
  for (let index = 0; index < message.parts.length; index++) {
    const part = message.parts[index] as Part;
    const field = `message.parts[${index}]`;
    checkSize(field, part, limits);
    const mediaType = mediaTypeOf(part);
    if (isFile(part) && limits.mediaTypes !== undefined && !accepts(limits.mediaTypes, mediaType)) {
      throw unsupported(field, mediaType, limits.mediaTypes, `Files of type ${mediaType} are not taken here.`);
    }
    if (accepts(profile.inputModes, mediaType)) continue;
    throw unsupported(field, mediaType, profile.inputModes, `This agent does not take ${mediaType}.`);
  }
}

function checkSize(field: string, part: Part, { part: longestPart, file: largestFile }: InputLimits): void {
  if (isRawPart(part)) {
    if (decodedSize(part.raw) > largestFile) throw invalidParams(field, `a file of more than ${largestFile} bytes`);
  } else if (!isDataPart(part) && partSize(part) > longestPart) {
    throw invalidParams(field, `longer than ${longestPart} characters`);
  }
}

/** Of base64, without decoding it. */
function decodedSize(raw: string): number {
  const padding = raw.endsWith("==") ? 2 : raw.endsWith("=") ? 1 : 0;
  return Math.floor(((raw.length - padding) * 3) / 4);
}

const isFile = (part: Part) => isRawPart(part) || isUrlPart(part);

function unsupported(field: string, mediaType: string, accepted: readonly string[], message: string): ProtocolError {
  return new ProtocolError("CONTENT_TYPE_NOT_SUPPORTED", message, {
    metadata: { mediaType, accepted: accepted.join(", ") },
    violations: [{ field, description: `${mediaType} is not among ${accepted.join(", ")}` }],
  });
}

function mediaTypeOf(part: Part): string {
  if (part.mediaType !== undefined) return part.mediaType.toLowerCase();
  if (isTextPart(part)) return "text/plain";
  return isDataPart(part) ? "application/json" : "application/octet-stream";
}

/** Parameters such as a charset do not count. A mode may be a family such as `text/*` or just `text`, or everything. */
function accepts(modes: readonly string[], mediaType: string): boolean {
  if (modes.length === 0) return true;
  const plain = mediaType.split(";", 1)[0]?.trim() ?? "";
  const slash = plain.indexOf("/");
  const family = slash < 0 ? plain : plain.slice(0, slash);
  return modes.some((mode) => mode === plain || mode === "*/*" || mode === `${family}/*` || mode === family);
}
