import { systemClock } from "../../../core/server/clock-and-ids.ts";
import type { Channel, Post, PostFile } from "../../../core/wire/channel.ts";
import { formatMessage } from "../a2a-lite/format.ts";
import type { LiteMessage } from "../a2a-lite/message.ts";
import { parsePost } from "../a2a-lite/parse.ts";
import { PieceJoiner } from "../runtime/piece-joiner.ts";
import type { PostReader } from "./post-reader.ts";

interface AskOptions {
  readonly channel: Channel;
  readonly reader: PostReader;
  readonly room: string;
  /** Id or name. */
  readonly peer: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

const MAX_CARD_BYTES = 256 * 1024;

/** What a participant answers to `discover`, as it is written; undefined if there is no answer in time. */
export async function askForCard({
  channel,
  peer,
  reader,
  room,
  signal,
  timeoutMs,
}: AskOptions): Promise<string | undefined> {
  const { abilities, self } = channel;
  const singleLine = !abilities.lines;
  const question: LiteMessage = { type: "discover", to: peer, from: self.id, body: "", attachments: [], others: {} };
  const mentions = [{ id: peer, name: peer }];
  const { id } = await channel.post({ room, text: formatMessage(question, undefined, { singleLine }), mentions });
  const joiner = new PieceJoiner(systemClock);
  const findCard = (post: Post) => {
    const { sender } = post;
    if (post.id === id || sender.self || (sender.id !== peer && sender.name !== peer)) return undefined;
    const parsed = parsePost(post.text, { singleLine });
    if (parsed.kind !== "message" || parsed.message.type !== "card") return undefined;
    if (parsed.piece === undefined) return { message: parsed.message, files: post.files };
    const joined = joiner.add(post, parsed.message, parsed.piece);
    return joined.kind === "whole" ? joined : undefined;
  };
  const card = await reader.first(findCard, timeoutMs, signal);
  if (card === undefined) return undefined;
  const texts = await Promise.all(card.files.filter(isCardFile).map((file) => readText(file, signal)));
  return [card.message.body, ...texts].filter((text) => text !== "").join("\n\n");
}

function isCardFile({ name }: PostFile): boolean {
  return name.endsWith(".json");
}

async function readText(file: PostFile, signal: AbortSignal): Promise<string> {
  return Buffer.from(await file.read(MAX_CARD_BYTES, signal)).toString("utf8");
}
