/** Splits messages that are longer than a post; `runtime/piece-joiner.ts` joins them. */

import { omitUndefined } from "../../../core/model/json.ts";
import { normalizeText } from "./characters.ts";
import { formatChat, formatMessage } from "./format.ts";
import type { LiteMessage } from "./message.ts";
import { MAX_PIECES, type PostLimit, roomIn, sizeOf, splitText } from "./split-text.ts";

export type { PostLimit };

/** A marker that leaves less room than this for text is shortened. */
const MIN_ROOM = 40;
const EMPTY = { body: "", attachments: [] };
/** Of a message in pieces, beside which `JOIN_LIMITS` have room for the rest of the pieces: longer ones are cut off. */
const MAX_BODY_BYTES = 896 * 1024;

/**
 * The posts of a message. Only the first has all its parameters, as far as they fit. Throws a RangeError if not even the
 * necessary ones do.
 */
export function splitMessage(message: LiteMessage, mid: string, limit: PostLimit): readonly string[] {
  const isShort = message.body.length <= limit.max;
  const whole = isShort ? formatMessage(message, undefined, limit) : "";
  if (isShort && fits(whole, limit)) return [whole];
  const continuation = continuationOf(message);
  const roomBeside = (head: LiteMessage, of: number) => {
    return roomIn(limit) - sizeOf(formatMessage({ ...head, ...EMPTY }, { mid, part: of, of }, limit), limit) - 1;
  };
  const heads = [message, { ...message, others: {} }];
  const head = heads.find((candidate) => roomBeside(candidate, MAX_PIECES) >= MIN_ROOM) ?? continuation;
  const body = cutOff(normalizeText(message.body));
  for (let of = 9; ; of = of * 10 + 9) {
    const format = (part: number, content: Content, pieces = of) => {
      return formatMessage({ ...(part === 1 ? head : continuation), ...content }, { mid, part, of: pieces }, limit);
    };
    const texts = splitText(body, roomBeside(head, of), roomBeside(continuation, of), limit);
    const contents = addAttachments(texts, message.attachments, (part, content) => fits(format(part, content), limit));
    if (contents.length > of) continue;
    return contents.map((content, index) => format(index + 1, content, contents.length));
  }
}

function cutOff(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_BODY_BYTES) return text;
  // Without the beginning of a character that does not fit.
  return `${new TextDecoder().decode(bytes.subarray(0, MAX_BODY_BYTES), { stream: true })}…`;
}

/** What further pieces need to be read on their own. */
function continuationOf(message: LiteMessage): LiteMessage {
  const { hops, to } = message;
  const common = { body: "", attachments: [], others: {}, ...omitUndefined({ to, hops }) };
  switch (message.type) {
    case "task":
      return { type: "task", id: message.id, ...common };
    case "status":
      return { type: "status", task: message.task, state: message.state, ...common };
    case "result":
      return { type: "result", task: message.task, state: message.state, artifacts: [], ...common };
    case "cancel":
    case "ack":
      return { type: message.type, task: message.task, ...common };
    case "discover":
    case "card":
      return { type: message.type, ...common };
  }
}

type Content = Pick<LiteMessage, "attachments" | "body">;

/** Names go into the last piece, and into further ones if they do not fit. */
function addAttachments(
  texts: readonly string[],
  names: readonly string[],
  fitsPiece: (part: number, content: Content) => boolean,
): readonly Content[] {
  const contents = texts.map((body) => ({ body, attachments: [] as string[] }));
  for (const name of names) {
    const last = contents.at(-1);
    const isRoom =
      last !== undefined && fitsPiece(contents.length, { ...last, attachments: [...last.attachments, name] });
    if (isRoom) last.attachments.push(name);
    else contents.push({ body: "", attachments: [name] });
  }
  return contents;
}

/** Plain chat in posts; where a post is one line, one for each line that is not empty. */
export function splitChat(text: string, limit: PostLimit): readonly string[] {
  const whole = normalizeText(text);
  const paragraphs = limit.singleLine === true ? whole.split("\n").filter((line) => line.trim() !== "") : [whole];
  const posts: string[] = [];
  const room = roomIn(limit);
  for (const paragraph of paragraphs) {
    // Its backslashes are not escaped, so it is measured as if there were several lines.
    for (const piece of splitText(paragraph, room, room, { ...limit, singleLine: false })) {
      if (posts.length === MAX_PIECES) return posts;
      const post = formatChat(piece.trim());
      if (post !== "") posts.push(post);
    }
  }
  return posts;
}

function fits(text: string, limit: PostLimit): boolean {
  return sizeOf(text, limit) <= roomIn(limit);
}
