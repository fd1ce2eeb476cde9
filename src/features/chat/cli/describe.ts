import type { ChannelAbilities } from "../../../core/wire/channel.ts";
import { formatSize } from "../../../core/yaml/value-types.ts";

const BOTS = {
  all: "sees other bots",
  mentions: "sees other bots only where they mention it",
  none: "does not see other bots",
} as const satisfies Record<ChannelAbilities["seesBots"], string>;

/** In words: `2000 characters, files up to 10MiB, edits, replies, sees other bots`. */
export function describeAbilities(abilities: ChannelAbilities): string {
  const { edits, history, lines, maxFileBytes, replies, seesBots, text } = abilities;
  return [
    `${text.max} ${text.unit}${lines ? "" : " in one line"}`,
    maxFileBytes > 0 ? `files up to ${formatFileSize(maxFileBytes)}` : "no files",
    edits ? "edits" : "no edits",
    replies ? "replies" : "no replies",
    history ? "reads what it missed" : "does not read what it missed",
    BOTS[seesBots],
  ].join(", ");
}

/** Some networks count in powers of ten. */
export function formatFileSize(bytes: number): string {
  return bytes % 1_000_000 === 0 ? `${bytes / 1_000_000}MB` : formatSize(bytes);
}
