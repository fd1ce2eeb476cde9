/** Text of lines of IRC, both ways. */

import type { PostDraft } from "../../../../core/wire/channel.ts";
import { mentionsName } from "../mentions.ts";

/** They would be commands of the protocol, CTCP or colours. */
const CONTROLS = /\p{Cc}/gu;

export function toLine({ mentions = [], room, text }: Pick<PostDraft, "mentions" | "room" | "text">): string {
  const line = text.replaceAll(CONTROLS, " ");
  const missing = mentions.map(({ name }) => name).filter((name) => name !== room && !mentionsName(line, name));
  return missing.length === 0 ? line : `${missing.join(", ")}: ${line}`;
}

const COLOUR = String.fromCharCode(3);
const HEX_COLOUR = String.fromCharCode(4);
/** Unlike bold or italics, colours have parameters. */
const COLOURS = new RegExp(`${COLOUR}(?:\\d{1,2}(?:,\\d{1,2})?)?|${HEX_COLOUR}(?:[\\da-f]{6}(?:,[\\da-f]{6})?)?`, "gi");

/** As a person sees it. */
export function fromLine(line: string): string {
  return line.replaceAll(COLOURS, "").replaceAll(CONTROLS, "");
}
