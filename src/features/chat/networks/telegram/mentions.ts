import type { MessageEntity } from "grammy/types";
import type { Participant, PostDraft } from "../../../../core/wire/channel.ts";

/** Names of bots end like this, by Telegram's rule. */
const BOT_NAME = /^[a-z]\w{1,28}bot$/i;

/**
 * A bot sees what another one writes in a group if it is a command to it. People are mentioned by their id: not everyone
 * has a name of their own.
 */
export function addMentions({ mentions = [], room, text }: PostDraft): {
  readonly text: string;
  readonly entities: MessageEntity[];
} {
  // Groups have negative ids. In a private chat there is only one to mention.
  if (!room.startsWith("-")) return { text, entities: [] };
  let prefix = "";
  const entities: MessageEntity[] = [];
  for (const mention of mentions) {
    const written = BOT_NAME.test(mention.name) ? `/a2a@${mention.name}` : `@${mention.name.replaceAll(/\s+/gu, "_")}`;
    if (!BOT_NAME.test(mention.name)) entities.push(toEntity(mention, prefix.length, written.length));
    prefix += `${written} `;
  }
  return { text: prefix + text, entities };
}

function toEntity({ id, name }: Participant, offset: number, length: number): MessageEntity {
  return { type: "text_mention", offset, length, user: { id: Number(id), is_bot: false, first_name: name } };
}
