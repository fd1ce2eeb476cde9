/** Messages of the model as content for a language model, and how many tokens that is. */

import { isDataPart, isRawPart, isTextPart, type Part, type RawPart, type UrlPart } from "../../core/model/message.ts";
import type { ChatMessage, ContentPart } from "./chat-codec.ts";

/** A part that the model cannot be given; the message is for the caller. */
export class UnsupportedPartError extends Error {
  override readonly name = "UnsupportedPartError";
}

export interface ContentOptions {
  /** Whether the model accepts images. */
  readonly images: boolean;
  /** Reads a file that is referenced by URL; throws if it cannot. Absent: such files are refused. */
  readonly readFile?: ((url: string, signal: AbortSignal) => Promise<FetchedFile>) | undefined;
}

interface FetchedFile {
  readonly bytes: Uint8Array;
  readonly mediaType: string | undefined;
}

/** Throws an UnsupportedPartError for parts that would otherwise be lost without notice. */
export async function toContent(
  parts: readonly Part[],
  options: ContentOptions,
  signal: AbortSignal,
): Promise<readonly ContentPart[]> {
  const content = await Promise.all(parts.map((part) => toContentPart(part, options, signal)));
  return content.filter((part) => part.type !== "text" || part.text !== "");
}

/** Most servers accept a list of parts only from models that see images. */
export function simplifyContent(content: readonly ContentPart[]): string | readonly ContentPart[] {
  return content.every((part) => part.type === "text") ? textOfContent(content) : content;
}

/** Images are only mentioned: what is remembered of a conversation is text. */
export function textOfContent(content: readonly ContentPart[]): string {
  return content.map((part) => (part.type === "text" ? part.text : "[image]")).join("\n\n");
}

async function toContentPart(part: Part, options: ContentOptions, signal: AbortSignal): Promise<ContentPart> {
  if (isTextPart(part)) return { type: "text", text: part.text };
  if (isDataPart(part)) return { type: "text", text: `\`\`\`json\n${JSON.stringify(part.data, undefined, 2)}\n\`\`\`` };
  const { bytes, mediaType } = isRawPart(part) ? readInline(part) : await readUrl(part, options, signal);
  const name = part.filename === undefined ? "" : ` "${part.filename.slice(0, MAX_NAME_LENGTH)}"`;
  const type = (mediaType ?? "application/octet-stream").split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (type.startsWith("image/")) {
    if (!options.images) throw new UnsupportedPartError(`This agent does not accept images${name}.`);
    return { type: "image_url", image_url: { url: `data:${type};base64,${Buffer.from(bytes).toString("base64")}` } };
  }
  const text = TEXT_TYPE.test(type) ? decodeText(bytes) : undefined;
  if (text === undefined) throw new UnsupportedPartError(`This agent does not accept files of type ${type}${name}.`);
  return { type: "text", text: name === "" ? text : `File${name}:\n${text}` };
}

const MAX_NAME_LENGTH = 200;
const TEXT_TYPE = /^(?:text\/.+|application\/(?:json|xml|yaml))$/;

function readInline(part: RawPart): FetchedFile {
  return { bytes: Buffer.from(part.raw, "base64"), mediaType: part.mediaType };
}

async function readUrl(part: UrlPart, { images, readFile }: ContentOptions, signal: AbortSignal): Promise<FetchedFile> {
  if (readFile === undefined) throw new UnsupportedPartError("This agent does not accept files by URL.");
  // Decided before anything is fetched, where the part names its type.
  if (part.mediaType?.startsWith("image/") === true && !images) {
    throw new UnsupportedPartError("This agent does not accept images.");
  }
  try {
    const { bytes, mediaType } = await readFile(part.url, signal);
    return { bytes, mediaType: part.mediaType ?? mediaType };
  } catch (error) {
    signal.throwIfAborted();
    throw new UnsupportedPartError("A file of the message could not be fetched.", { cause: error });
  }
}

/** Undefined if the bytes are not UTF-8. */
function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const CHARACTERS_PER_TOKEN = 4;
/** Chinese, Japanese and Korean: about one token each. */
const WIDE_CHARACTER = /[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]/g;
/** What models count for an image at the resolution they see, roughly. */
const IMAGE_TOKENS = 1_000;
/** Of the role and the separators of a message. */
const MESSAGE_TOKENS = 4;

/** An estimate: tokenizers differ between models, and none is shipped. */
export function estimateTokens(text: string): number {
  const wide = text.match(WIDE_CHARACTER)?.length ?? 0;
  return wide + Math.ceil((text.length - wide) / CHARACTERS_PER_TOKEN);
}

export function estimateMessageTokens(message: ChatMessage): number {
  const { content } = message;
  const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
  const called = calls.reduce((sum, call) => sum + estimateTokens(call.name + call.arguments), 0);
  if (typeof content === "string") return MESSAGE_TOKENS + called + estimateTokens(content);
  return content.reduce(
    (sum, part) => sum + (part.type === "text" ? estimateTokens(part.text) : IMAGE_TOKENS),
    MESSAGE_TOKENS,
  );
}

/** The beginning of a text that is about as many tokens. */
export function truncateToTokens(text: string, tokens: number): string {
  if (estimateTokens(text) <= tokens) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (estimateTokens(text.slice(0, middle)) <= tokens) low = middle;
    else high = middle - 1;
  }
  // Not in the middle of a surrogate pair.
  return text.slice(0, low).replace(/[\ud800-\udbff]$/, "");
}
