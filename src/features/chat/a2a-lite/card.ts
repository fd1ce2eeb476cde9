/** The card as the agent sends it: prose for people, and JSON by the schema of the protocol. */

import { oncePerCard } from "../../../core/dialects/shared/cards.ts";
import type { AgentCard, AgentSkill } from "../../../core/model/card.ts";
import { type JsonObject, omitUndefined } from "../../../core/model/json.ts";
import type { ChannelAbilities, DraftFile, Participant } from "../../../core/wire/channel.ts";
import { formatMessage } from "./format.ts";
import type { LiteMessage } from "./message.ts";

export const CARD_FILE = "agent-card.json";
const PROTOCOL = "a2a-lite/1.0";

/** Where the agent is. */
export interface CardPlace {
  /** Name of the network, e.g. `irc`. */
  readonly network: string;
  readonly self: Participant;
  readonly abilities: Pick<ChannelAbilities, "lines" | "maxFileBytes" | "text">;
}

/** As by the protocol's schema. Nothing of how callers authenticate is in it. */
export function toCardDocument(card: AgentCard, { abilities, network, self }: CardPlace): JsonObject {
  const { maxFileBytes } = abilities;
  return {
    protocol: PROTOCOL,
    agent: { id: self.id, name: card.name, framework: "other", version: card.version },
    description: card.description,
    skills: skillsOf(card),
    capabilities: { streaming: false, fileTransfer: maxFileBytes > 0, asyncTasks: true, pushNotifications: false },
    ...(maxFileBytes > 0 && { limits: { maxFileSize: formatSize(maxFileBytes) } }),
    channels: [`${network}:${self.name}`],
  };
}

const skillsOf = oncePerCard((card) => card.skills.map((skill) => toSkill(skill, card)));

function toSkill({ description, examples, id, inputModes, name, outputModes, tags }: AgentSkill, card: AgentCard) {
  return {
    id,
    name,
    description,
    inputModes: toLiteModes(inputModes ?? card.defaultInputModes),
    outputModes: toLiteModes(outputModes ?? card.defaultOutputModes),
    tags,
    ...omitUndefined({ examples }),
  };
}

/** Data travels as text. */
function toLiteModes(mediaTypes: readonly string[]): readonly string[] {
  return [...new Set(mediaTypes.flatMap((mediaType) => toLiteMode(mediaType.toLowerCase())))];
}

function toLiteMode(mediaType: string): readonly string[] {
  const [kind = ""] = mediaType.split("/", 1);
  if (kind === "*") return ["text", "file"];
  if (kind === "text" || mediaType.startsWith("application/json") || mediaType.includes("+json")) return ["text"];
  return [["image", "audio", "video"].includes(kind) ? kind : "file"];
}

function formatSize(bytes: number): string {
  const megabytes = bytes / 1024 / 1024;
  return megabytes >= 1 ? `${Math.floor(megabytes)}MB` : `${Math.max(1, Math.floor(bytes / 1024))}KB`;
}

/** The JSON is in the text if that fits into one post, else in a file, else in a few posts as far as possible. */
export function toCardMessage(
  card: AgentCard,
  place: CardPlace,
): { readonly content: LiteMessage; readonly files: readonly DraftFile[] } {
  const { abilities } = place;
  const document = toCardDocument(card, place);
  const prose = toProse(card);
  const json = JSON.stringify(document, undefined, 2);
  const whole = toMessage(`${prose}\n\n${toCodeBlock(abilities.lines ? json : JSON.stringify(document))}`);
  const bytes = Buffer.from(json);
  if (takesPosts(whole, abilities) <= 1) return { content: whole, files: [] };
  if (bytes.length <= abilities.maxFileBytes) {
    const content = { ...toMessage(prose), attachments: [CARD_FILE] };
    return { content, files: [{ name: CARD_FILE, mediaType: "application/json", bytes }] };
  }
  const skills = card.skills.map(({ description, id, name }) => ({ id, name, description: toPhrase(description) }));
  const short = toMessage(`${prose}\n\n${toCodeBlock(JSON.stringify({ ...document, skills }))}`);
  const content = [whole, short].find((message) => takesPosts(message, abilities) <= MAX_POSTS);
  return { content: content ?? toMessage(prose), files: [] };
}

function toMessage(body: string): LiteMessage {
  return { type: "card", body, attachments: [], others: {} };
}

function toCodeBlock(json: string): string {
  return `\`\`\`json\n${json}\n\`\`\``;
}

/** Posts that a card may take up where there are no files. */
const MAX_POSTS = 6;

function takesPosts(message: LiteMessage, { lines, text }: CardPlace["abilities"]): number {
  const post = formatMessage(message, undefined, { singleLine: !lines });
  const size = text.unit === "bytes" ? Buffer.byteLength(post) : post.length;
  return size / (text.max - MENTION_RESERVE);
}

/** Part of a post that is left for what the network adds. */
const MENTION_RESERVE = 100;
const MAX_PROSE_SKILLS = 10;
const MAX_PROSE_LENGTH = 200;

const toProse = oncePerCard((card) => {
  const skills = card.skills.slice(0, MAX_PROSE_SKILLS).map(({ description, id, name }) => {
    return `- ${toPhrase(name)} (${toPhrase(id)}): ${toPhrase(description)}`;
  });
  const more = card.skills.length - skills.length;
  return [
    `I am ${toPhrase(card.name)}. ${toPhrase(card.description)}`.trim(),
    ...(skills.length > 0 ? ["", "Skills:", ...skills] : []),
    ...(more > 0 ? [`and ${more} more.`] : []),
  ].join("\n");
});

/** In one line, and not too long to be read by the way. */
function toPhrase(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length <= MAX_PROSE_LENGTH ? line : `${line.slice(0, MAX_PROSE_LENGTH - 1).toWellFormed()}…`;
}
