import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readMessage, toContent, toReplacement } from "./content.ts";

const EVENT = { type: "m.room.message", event_id: "$1", sender: "@a:b", origin_server_ts: 0 };
const KEYS = ["msgtype", "body", "filename", "url", "info", "formatted_body"] as const;
const RELATIONS = ["m.mentions", "m.relates_to", "m.new_content", "m.in_reply_to"] as const;
const anything = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(
    "m.text",
    "m.notice",
    "m.file",
    "m.replace",
    "m.thread",
    "mxc://a/b",
    '<a href="https://matrix.to/#/%E0">',
  ),
);
const content = fc.dictionary(fc.constantFrom(...KEYS, ...RELATIONS), anything);

describe("contents of Matrix events", () => {
  it("are read without an exception, whatever they are", () => {
    const nested = fc.record(
      { "m.relates_to": content, "m.new_content": content, "m.mentions": content },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(content, nested, (one, more) => {
        const message = readMessage({ ...EVENT, content: { ...one, ...more } });
        expect(typeof (message?.text ?? "")).toBe("string");
      }),
    );
  });

  it("are read as they were written", () => {
    const id = fc.stringMatching(/^\$[a-z]{1,8}$/);
    const draft = fc.record({
      room: fc.constant("!r:b"),
      text: fc.string({ unit: "grapheme", minLength: 1 }).filter((text) => !/^> (?:\* )?<@/.test(text)),
      mentions: fc.array(fc.record({ id: fc.constantFrom("@a:b", "@c:d"), name: fc.string() })),
    });
    fc.assert(
      fc.property(
        draft,
        fc.option(id, { nil: undefined }),
        fc.option(id, { nil: undefined }),
        (given, replyTo, thread) => {
          const more = { ...(replyTo !== undefined && { replyTo }), ...(thread !== undefined && { thread }) };
          const message = readMessage({
            ...EVENT,
            content: toContent({ ...given, ...more }) as Record<string, unknown>,
          });
          const mentions = given.mentions.map((one) => one.id);
          expect(message).toEqual({ text: given.text, bot: true, mentions, ...more });
          const edit = readMessage({ ...EVENT, content: toReplacement("$x", given) as Record<string, unknown> });
          expect(edit).toEqual({ text: given.text, bot: true, mentions, edits: "$x" });
        },
      ),
    );
  });

  it.each([
    ["image/png", "m.image"],
    ["image/svg+xml", "m.file"],
    ["audio/ogg", "m.audio"],
    ["video/mp4", "m.video"],
    ["application/pdf", "m.file"],
  ])("show a file of type %s as %s", (mediaType, msgtype) => {
    const file = { name: "a", mediaType, bytes: new Uint8Array(3) };
    const sent = toContent({ room: "!r:b", text: "" }, { file, uri: "mxc://a/b" });
    expect(sent).toMatchObject({ msgtype, body: "a", filename: "a", info: { mimetype: mediaType, size: 3 } });
    expect(readMessage({ ...EVENT, content: sent as Record<string, unknown> })?.file).toMatchObject({ mediaType });
  });
});
