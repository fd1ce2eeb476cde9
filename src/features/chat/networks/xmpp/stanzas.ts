/** Posts as stanzas: XEP-0045 (rooms), XEP-0308 (edits), XEP-0461 (replies), XEP-0066 (files), XEP-0203 (history). */

import type { xml as createElement, Element } from "@xmpp/client";
import type { Participant, Post, PostFile, PostSender } from "../../../../core/wire/channel.ts";
import { mentionsName } from "../mentions.ts";

export const NS_MUC = "http://jabber.org/protocol/muc";
export const NS_MUC_OWNER = "http://jabber.org/protocol/muc#owner";
export const NS_MUC_USER = "http://jabber.org/protocol/muc#user";
const NS_CORRECT = "urn:xmpp:message-correct:0";
const NS_REPLY = "urn:xmpp:reply:0";
const NS_OOB = "jabber:x:oob";
const NS_DELAY = "urn:xmpp:delay";
const NS_STANZA_ID = "urn:xmpp:sid:0";
/** Number of posts whose ids given by the room are remembered. */
const MAX_KNOWN_IDS = 1_000;

export function bareJid(jid: string): string {
  return jid.split("/", 1)[0] ?? jid;
}

export function resourceOf(jid: string): string {
  const slash = jid.indexOf("/");
  return slash < 0 ? "" : jid.slice(slash + 1);
}

/** Who is in a room: real addresses by nick, where the room shows them. */
export type Occupants = Map<string, string | undefined>;

/** Ids that the room gave to posts, by those of their senders and back. */
export class StanzaIds {
  readonly #toStanza = new Map<string, string>();
  readonly #toPost = new Map<string, string>();

  add(post: string, stanza: string): void {
    this.#toStanza.set(post, stanza);
    this.#toPost.set(stanza, post);
    for (const map of [this.#toStanza, this.#toPost]) {
      if (map.size > MAX_KNOWN_IDS) map.delete(map.keys().next().value ?? "");
    }
  }
  toStanza(post: string): string {
    return this.#toStanza.get(post) ?? post;
  }
  toPost(stanza: string): string {
    return this.#toPost.get(stanza) ?? stanza;
  }
}

export interface OutgoingStanza {
  readonly id: string;
  readonly to: string;
  readonly groupchat: boolean;
  readonly text: string;
  readonly mentions: readonly Participant[];
  readonly replyTo: string | undefined;
  readonly edits: string | undefined;
  readonly files: readonly { readonly name: string; readonly url: string }[];
}

/** XML has no control characters but these: the server would close the connection. */
const NOT_XML = /[^\P{Cc}\t\n]|[\ufffe\uffff]/gu;

export function toStanza(xml: typeof createElement, out: OutgoingStanza): Element {
  const { edits, files, groupchat, id, mentions, replyTo, text, to } = out;
  const missing = mentions.map(({ name }) => name).filter((name) => !mentionsName(text, name));
  const addressed = groupchat && missing.length > 0 ? `${missing.join(", ")}: ${text}` : text;
  // People see addresses in the text; programs find them beside it.
  const body = [addressed, ...files.map(({ url }) => url)].filter((line) => line !== "").join("\n");
  return xml(
    "message",
    { type: groupchat ? "groupchat" : "chat", to, id },
    xml("body", {}, body.toWellFormed().replaceAll("\r\n", "\n").replaceAll(NOT_XML, " ")),
    edits === undefined ? undefined : xml("replace", { xmlns: NS_CORRECT, id: edits }),
    replyTo === undefined ? undefined : xml("reply", { xmlns: NS_REPLY, id: replyTo }),
    ...files.map(({ name, url }) => xml("x", { xmlns: NS_OOB }, xml("url", {}, url), xml("desc", {}, name))),
  );
}

export interface StanzaContext {
  readonly self: Participant;
  /** Own nick in the rooms. */
  readonly nick: string;
  readonly rooms: ReadonlyMap<string, Occupants>;
  readonly ids: StanzaIds;
  readonly now: () => number;
  readonly uniqueId: () => string;
  readonly toFile: (url: string, name: string) => PostFile;
}

/** Undefined: not a post, e.g. a subject or a receipt. */
export function toPost(stanza: Element, context: StanzaContext): (Post & { readonly delayed: boolean }) | undefined {
  const { from, type } = stanza.attrs;
  const body = stanza.getChildText("body");
  if (!stanza.is("message") || type === "error" || from === undefined || body === null) return undefined;
  const room = bareJid(from);
  const occupants = context.rooms.get(room);
  const direct = type !== "groupchat";
  if (!direct && (occupants === undefined || resourceOf(from) === "")) return undefined;
  const files = stanza.getChildren("x", NS_OOB).flatMap((one) => {
    const url = one.getChildText("url");
    return url === null ? [] : [context.toFile(url, one.getChildText("desc") ?? "")];
  });
  const urls = stanza.getChildren("x", NS_OOB).map((one) => one.getChildText("url"));
  const text = body
    .split("\n")
    .filter((line) => !urls.includes(line))
    .join("\n");
  const stamp = stanza.getChild("delay", NS_DELAY)?.attrs.stamp;
  const at = stamp === undefined ? context.now() : Date.parse(stamp);
  const id = stanza.attrs.id ?? stanzaIdOf(stanza, room) ?? context.uniqueId();
  const stanzaId = stanzaIdOf(stanza, room);
  if (stanzaId !== undefined) context.ids.add(id, stanzaId);
  const replyTo = stanza.getChild("reply", NS_REPLY)?.attrs.id;
  const edits = stanza.getChild("replace", NS_CORRECT)?.attrs.id;
  return {
    id,
    // Private messages within a room come from the occupant, others from the account.
    room: direct ? (occupants === undefined ? room : from) : room,
    direct,
    sender: toSender(from, occupants, direct, context),
    text,
    mentions: findMentioned(text, room, occupants, context),
    replyTo: replyTo === undefined ? undefined : context.ids.toPost(replyTo),
    edits,
    files,
    at: Number.isNaN(at) ? context.now() : at,
    ...(direct ? undefined : { cursor: `${new Date(at).toISOString()} ${id}` }),
    delayed: stamp !== undefined,
  };
}

/** Only the one that the room itself has set: anyone can add another. */
function stanzaIdOf(stanza: Element, room: string): string | undefined {
  return stanza.getChildren("stanza-id", NS_STANZA_ID).find(({ attrs }) => attrs.by === room)?.attrs.id;
}

function toSender(
  from: string,
  occupants: Occupants | undefined,
  direct: boolean,
  { nick, self }: StanzaContext,
): PostSender {
  if (occupants === undefined) {
    const id = bareJid(from);
    return { id, name: id.split("@", 1)[0] ?? id, bot: false, self: id === self.id, verified: true };
  }
  const name = resourceOf(from);
  const own = name === nick;
  const jid = own ? self.id : occupants.get(name);
  return { id: jid ?? from, name, bot: false, self: own && !direct, verified: jid !== undefined };
}

function findMentioned(
  text: string,
  room: string,
  occupants: Occupants | undefined,
  { nick, self }: StanzaContext,
): string[] {
  const others = [...(occupants ?? [])].filter(([name]) => name !== nick);
  return [
    ...(mentionsName(text, nick) ? [self.id] : []),
    ...others.filter(([name]) => mentionsName(text, name)).map(([name, jid]) => jid ?? `${room}/${name}`),
  ];
}
