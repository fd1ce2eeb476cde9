import type { AgentProfile } from "../model/card.ts";
import { invalidParams, ProtocolError } from "../model/errors.ts";
import type { Message } from "../model/message.ts";
import { isDataPart, isTextPart, type Part } from "../model/part.ts";
import { partSize } from "./agent-output.ts";

/** Refuses a message with a part that the agent does not take, or that is too long. */
export function checkInput(profile: AgentProfile, message: Message, longestPart: number): void {
  for (let index = 0; index < message.parts.length; index++) {
    const part = message.parts[index] as Part;
    if (!("data" in part) && partSize(part) > longestPart) {
      throw invalidParams(`message.parts[${index}]`, `longer than ${longestPart} characters`);
    }
    const mediaType = mediaTypeOf(part);
    if (accepts(profile.inputModes, mediaType)) continue;
    throw new ProtocolError("CONTENT_TYPE_NOT_SUPPORTED", `This agent does not take ${mediaType}.`, {
      metadata: { mediaType, accepted: profile.inputModes.join(", ") },
      violations: [{ field: `message.parts[${index}]`, description: `${mediaType} is not an input mode of the agent` }],
    });
  }
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
