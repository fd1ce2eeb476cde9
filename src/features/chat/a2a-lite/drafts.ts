/** Makes posts of a message, within what the network can carry. */

import type { ChannelAbilities, DraftFile, PostDraft } from "../../../core/wire/channel.ts";
import { digest } from "./digest.ts";
import { formatChat } from "./format.ts";
import type { LiteMessage, Outgoing } from "./message.ts";
import { type PostLimit, splitChat, splitMessage } from "./pieces.ts";

/** A longer message becomes a file, where the network has files. */
const MAX_POSTS = 3;
/** Length of the excerpt of a text that is posted as a file. */
const EXCERPT_LENGTH = 300;
/** Text files up to this size are posted as text where the network has no files. */
const MAX_INLINE_BYTES = 32 * 1024;
/** What a network adds to a name to make it a mention. */
const MENTION_RESERVE = 8;

/** Of a long answer to a person, where there are no files: posts that the network accepts in this time, at least three. */
const PAGE_MS = 10_000;

export function toDrafts(outgoing: Outgoing, network: ChannelAbilities, key: string): readonly PostDraft[] {
  const { to } = outgoing;
  const isHidden = network.hidesFilesFromBots === true && to.direct !== true && to.peer.bot !== false;
  const abilities = isHidden ? { ...network, maxFileBytes: 0 } : network;
  const content = addressTo(outgoing, abilities);
  const given = outgoing.files ?? [];
  const files = given.filter(({ bytes }) => bytes.length <= abilities.maxFileBytes);
  const rest = describeFiles(given.filter((file) => !files.includes(file)));
  const mentions = needsMention(outgoing, abilities) ? [to.peer] : undefined;
  const limit: PostLimit = {
    ...abilities.text,
    singleLine: !abilities.lines,
    reserve: mentions === undefined ? 0 : Math.max(measure(to.peer.id), measure(to.peer.name)) + MENTION_RESERVE,
  };
  const { texts: all, attached } = toTexts(content, rest, files, limit, key, abilities);
  const texts = typeof content === "string" ? pageOf(all, outgoing.page ?? 0, abilities) : all;
  return texts.map((text, index) => ({
    room: to.room,
    thread: to.thread,
    text,
    key: texts.length === 1 ? key : `${key}/${index + 1}`,
    mentions,
    replyTo: index === 0 && abilities.replies ? to.replyTo : undefined,
    files: index === texts.length - 1 && attached.length > 0 ? attached : undefined,
  }));
}

/** The posts of one page; none after the last page. */
function pageOf(texts: readonly string[], page: number, { rate }: ChannelAbilities): readonly string[] {
  const size = Math.max(MAX_POSTS, Math.floor((rate.posts * PAGE_MS) / rate.perMs));
  const end = (page + 1) * size;
  const rest = texts.length - end;
  if (rest <= 0) return texts.slice(page * size);
  return [...texts.slice(page * size, end), `(${rest} more ${rest === 1 ? "post" : "posts"}: write “more” to me.)`];
}

function toTexts(
  content: LiteMessage | string,
  rest: string,
  files: readonly DraftFile[],
  limit: PostLimit,
  key: string,
  { maxFileBytes, text: { maxWithFiles = limit.max } }: ChannelAbilities,
): { readonly texts: readonly string[]; readonly attached: readonly DraftFile[] } {
  const body = joinTexts(typeof content === "string" ? content : content.body, rest);
  const split = (text: string, sent: readonly DraftFile[]): readonly string[] => {
    const within = sent.length === 0 ? limit : { ...limit, max: maxWithFiles };
    if (typeof content !== "string")
      return splitMessage(withFiles(content, text, sent), digest(key).slice(0, 8), within);
    const posts = splitChat(text, within);
    return posts.length === 0 ? [""] : posts;
  };
  const texts = split(body, files);
  const bytes = Buffer.from(body);
  if (texts.length <= MAX_POSTS || bytes.length > maxFileBytes) return { texts, attached: files };
  const name = typeof content !== "string" && "task" in content ? `${toFileName(content.task)}.md` : "message.md";
  const attached = [...files, { name, mediaType: "text/markdown", bytes }];
  const excerpt = `${body.slice(0, EXCERPT_LENGTH).toWellFormed()}…`;
  return { texts: split(excerpt, attached), attached };
}

/**
 * In a room, others must not take it for theirs; a reply shows whose it is. By name: on some networks a participant has
 * another id for everyone who sees it.
 */
function addressTo({ content, to }: Outgoing, { replies }: ChannelAbilities): LiteMessage | string {
  const isShown = to.direct === true || (replies && to.replyTo !== undefined);
  return typeof content === "string" || isShown || content.to !== undefined
    ? content
    : { ...content, to: to.peer.name };
}

/** Plain chat without replies names who it is for; some networks show bots nothing else. */
function needsMention({ content, to }: Outgoing, { replies, seesBots }: ChannelAbilities): boolean {
  // Where a mention is text, a name must not be a marker, or its owner gives orders in the name of the agent.
  if (to.direct === true || formatChat(to.peer.name) !== to.peer.name) return false;
  return (seesBots === "mentions" && to.peer.bot !== false) || (typeof content === "string" && !replies);
}

function withFiles(message: LiteMessage, body: string, files: readonly DraftFile[]): LiteMessage {
  const names = files.map(({ name }) => name);
  const changed = { ...message, body, attachments: names };
  return changed.type === "result" ? { ...changed, artifacts: names } : changed;
}

/** The text that stands for files that the network cannot carry. */
function describeFiles(files: readonly DraftFile[]): string {
  const texts = files.map(({ bytes, mediaType, name }) => {
    if (!isText(mediaType) || bytes.length > MAX_INLINE_BYTES) {
      return `(The file ${name} of ${bytes.length} bytes cannot be sent here.)`;
    }
    return `${name}:\n${Buffer.from(bytes).toString("utf8")}`;
  });
  return texts.join("\n\n");
}

const TEXT_TYPE = /^(text\/|application\/(json|xml|yaml|x-yaml|javascript)\b|.*\+(json|xml)\b)/;

function isText(mediaType: string): boolean {
  return TEXT_TYPE.test(mediaType);
}

function joinTexts(...texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n\n");
}

function toFileName(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 60);
}

function measure(text: string): number {
  return Buffer.byteLength(text);
}
