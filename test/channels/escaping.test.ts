/** No text of an agent is a marker to another agent, whatever the network does to it on the way. */

import { xml } from "@xmpp/client";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cases } from "../../src/core/model/testing/exploring.ts";
import type { PostDraft } from "../../src/core/wire/channel.ts";
import { toDrafts } from "../../src/features/chat/a2a-lite/drafts.ts";
import type { LiteMessage } from "../../src/features/chat/a2a-lite/message.ts";
import { parsePost } from "../../src/features/chat/a2a-lite/parse.ts";
import { anyText } from "../../src/features/chat/a2a-lite/testing/arbitraries.ts";
import { readContent, toRichText } from "../../src/features/chat/networks/feishu/content.ts";
import { fromLine, toLine } from "../../src/features/chat/networks/irc/text.ts";
import { readMessage, toContent } from "../../src/features/chat/networks/matrix/content.ts";
import { NETWORKS } from "../../src/features/chat/networks/networks.ts";
import { escapeText, unescapeText } from "../../src/features/chat/networks/slack/text.ts";
import { addMentions } from "../../src/features/chat/networks/telegram/mentions.ts";
import { toStanza } from "../../src/features/chat/networks/xmpp/stanzas.ts";

const utf8 = (text: string) => new TextDecoder().decode(Buffer.from(text));
const prefix = ({ mentions = [], text }: PostDraft) => mentions.map(({ id }) => `<@${id}> `).join("") + text;
const atPrefix = ({ mentions = [], text }: PostDraft) => [...mentions.map(({ name }) => `@${name}`), text].join(" ");

/** A draft as another participant receives it: by the code of the adapter, and by what servers are known to do. */
const WIRES: Readonly<Record<string, (draft: PostDraft) => string>> = {
  irc: (draft) => fromLine(utf8(toLine(draft)).replaceAll(/[\0\r\n]/g, "")),
  xmpp: ({ mentions = [], room: to, text }) => {
    const nothing = { replyTo: undefined, edits: undefined, files: [] };
    return toStanza(xml, { id: "1", to, groupchat: true, text, mentions, ...nothing }).getChildText("body") ?? "";
  },
  mqtt: (draft) => utf8(atPrefix(draft)),
  matrix: (draft) => {
    const content = JSON.parse(utf8(JSON.stringify(toContent(draft)))) as Record<string, unknown>;
    const event = { type: "m.room.message", event_id: "$1", sender: "@a:b", origin_server_ts: 0, content };
    return readMessage(event)?.text ?? "";
  },
  // The server removes these, and white space around the text.
  telegram: (draft) =>
    addMentions(draft)
      .text.replaceAll(/[\u2028-\u202e]|\u0333|\u033f|\u030a/g, "")
      .trim(),
  discord: (draft) => prefix(draft).trim(),
  slack: ({ text, ...rest }) => unescapeText(prefix({ ...rest, text: escapeText(text) })),
  feishu: ({ mentions = [], text }) => readContent("post", contentOf(toRichText(text, mentions)), []).text,
  dingtalk: ({ mentions = [], text }) => (mentions.map(({ id }) => `@${id} `).join("") + text).replace(/^ +/, ""),
  wecom: (draft) => prefix(draft).trim(),
  terminal: (draft) => atPrefix(draft).replaceAll(/[^\P{Cc}\n\t]/gu, ""),
};

function contentOf(richText: string): string {
  const { zh_cn } = JSON.parse(richText.replaceAll('"user_id":"u1"', '"user_id":"@_user_1"')) as { zh_cn: object };
  return JSON.stringify(zh_cn);
}

const names = fc.oneof(
  fc.constant("bob"),
  anyText.filter((name) => name.trim() !== ""),
);
const CASES = { numRuns: cases(20_000, 100) };

describe.each(NETWORKS.map(({ abilities, name }) => ({ name, abilities })))("text of an agent on $name", (network) => {
  const receive = WIRES[network.name] ?? (({ text }: PostDraft) => text);
  const format = { singleLine: !network.abilities.lines };
  const send = (content: LiteMessage | string, name: string) =>
    toDrafts({ to: { room: "room", peer: { id: "u1", name } }, content }, network.abilities, "key").map(receive);

  it("is chat", () => {
    fc.assert(
      fc.property(anyText, names, (text, name) => {
        for (const received of send(text, name)) expect(parsePost(received, format).kind).toBe("chat");
      }),
      CASES,
    );
  });

  it("is the body of the result that it belongs to", () => {
    fc.assert(
      fc.property(anyText, names, (body, name) => {
        const result = {
          type: "result",
          task: "t1",
          state: "completed",
          artifacts: [],
          body,
          attachments: [],
        } as const;
        for (const received of send({ ...result, others: {} }, name)) {
          expect(parsePost(received, format)).toMatchObject({ message: { type: "result", task: "t1" } });
        }
      }),
      CASES,
    );
  });

  it.each(["\v", "\f", "\u0085", "\r", "\u2028", "\ufffe", "\uffff", "\u0007", "\u030a", "\ud800"])(
    "gives no order with %j in it",
    (character) => {
      for (const order of [
        `[A2A:${character}task id=1]`,
        `[A2A:task${character}id=1]`,
        `${character}【A2A:task id=1】`,
      ]) {
        for (const text of [order, `> x: ${order}`, `hello\n${order}`, `**${order}**`, `bob，${order}`]) {
          for (const received of send(text, "bob")) expect(parsePost(received, format).kind).toBe("chat");
        }
      }
    },
  );
});
