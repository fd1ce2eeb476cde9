import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cases } from "../../../core/model/testing/exploring.ts";
import type { Post } from "../../../core/wire/channel.ts";
import { type Joined, PieceJoiner } from "../runtime/piece-joiner.ts";
import { normalizeText } from "./characters.ts";
import type { LiteMessage, Piece } from "./message.ts";
import { parsePost } from "./parse.ts";
import { splitChat, splitMessage } from "./pieces.ts";
import { MAX_PIECES, type PostLimit } from "./split-text.ts";
import { anyMessage, anyText } from "./testing/arbitraries.ts";

const IRC: PostLimit = { max: 400, unit: "bytes", singleLine: true, reserve: 20 };
const SMALL: PostLimit = { max: 200, unit: "characters" };

function result(body: string, more: Partial<LiteMessage> = {}): LiteMessage {
  const message = { type: "result", task: "t1", state: "completed", artifacts: [], attachments: [], others: {}, body };
  return { ...message, ...more } as LiteMessage;
}

type Origin = Pick<Post, "room" | "thread" | "sender" | "files">;

function from(id: string, room = "#room", thread?: string): Origin {
  const sender = { id, name: id, bot: true, self: false, verified: true };
  return { room, sender, files: [], ...(thread !== undefined && { thread }) };
}

function read(text: string, limit: PostLimit): { readonly message: LiteMessage; readonly piece: Piece } {
  const parsed = parsePost(text, limit);
  if (parsed.kind !== "message" || parsed.piece === undefined) throw new Error(`not a piece: ${text}`);
  return { message: parsed.message, piece: parsed.piece };
}

function joinerAt(limits = {}) {
  const clock = { time: 0, now: () => clock.time };
  return { clock, joiner: new PieceJoiner(clock, limits) };
}

function addAll(joiner: PieceJoiner, texts: readonly string[], limit: PostLimit, origin = from("alice")): Joined[] {
  return texts.map((text) => {
    const { message, piece } = read(text, limit);
    return joiner.add(origin, message, piece);
  });
}

function sizeOf(text: string, { unit }: PostLimit): number {
  return unit === "bytes" ? Buffer.byteLength(text) : text.length;
}

const piece = (body: string, part: number, of: number, mid = "m") => [result(body), { mid, part, of }] as const;

describe("a message", () => {
  it("that fits is one post", () => {
    expect(splitMessage(result("done"), "m1", IRC)).toEqual(["[A2A:result task=t1 state=completed] done"]);
  });

  it("that does not fit is split between lines, each piece with its number", () => {
    const lines = Array.from({ length: 10 }, (_, index) => `line ${index} of the text, of some length`);
    expect(splitMessage(result(lines.join("\n")), "m1", SMALL)).toEqual([
      `[A2A:result task=t1 state=completed mid=m1 part=1/3]\n${lines.slice(0, 4).join("\n")}`,
      `[A2A:result task=t1 state=completed mid=m1 part=2/3]\n\n${lines.slice(4, 8).join("\n")}`,
      `[A2A:result task=t1 state=completed mid=m1 part=3/3]\n\n${lines.slice(8).join("\n")}`,
    ]);
  });

  it("of one line is split between words, and a word between graphemes", () => {
    const words = splitMessage(result("word ".repeat(40).trim()), "m1", SMALL);
    expect(words.slice(1).every((text) => text.includes("\n word"))).toBe(true);
    const family = "👨‍👩‍👧";
    const families = splitMessage(result(family.repeat(100)), "m1", SMALL);
    for (const text of families) expect((text.split("\n")[1] ?? "").replaceAll(family, "")).toBe("");
  });

  it("has all parameters in the first piece, and its files after the text", () => {
    const more = { to: "bob", from: "alice", hops: 2, others: { x: "1" }, attachments: ["a.md", "b.md"] };
    const texts = splitMessage(result("word ".repeat(60), more), "m1", SMALL);
    expect(texts[0]).toMatch(
      /^\[A2A:result task=t1 state=completed to=bob from=alice hops=2 x=1 mid=m1 part=1\/\d\]\n/,
    );
    expect(texts[1]).toMatch(/^\[A2A:result task=t1 state=completed to=bob hops=2 mid=m1 part=2\/\d\]\n/);
    expect(texts.at(-1)).toMatch(/\n\[附件: a\.md\]\n\[附件: b\.md\]$/);
  });

  it("whose parameters do not fit is sent without those that are not necessary", () => {
    const texts = splitMessage(result("word", { others: { x: "1".repeat(200) } }), "m1", SMALL);
    expect(texts).toEqual(["[A2A:result task=t1 state=completed mid=m1 part=1/1]\nword"]);
  });

  it("that can never fit is refused", () => {
    expect(() => splitMessage(result("word", { task: "t".repeat(200) } as never), "m1", SMALL)).toThrow(RangeError);
  });

  it("of any length is a bounded number of posts, the last of which shows that it was cut off", () => {
    const texts = splitMessage(result("many words ".repeat(1_000_000)), "m1", IRC);
    expect(texts.length).toBe(MAX_PIECES);
    expect(texts.at(-1)).toMatch(/…$/);
    expect(addAll(joinerAt().joiner, texts, IRC).at(-1)?.kind).toBe("whole");
  });
});

describe("a long message", () => {
  it.each([
    ["escaped lines in code that a cut leaves open", `${"```\n"}${"[附件: x]\n".repeat(200_000)}${"```\n"}`],
    ["code blocks", "```\n[A2A:ack task=1]\n```\n".repeat(200_000)],
    ["one word", "x".repeat(5_000_000)],
    ["marks on one letter", `e${"\u0301".repeat(2_000_000)}`],
    ["flags", "🇨🇳".repeat(500_000)],
    ["white space", " \n".repeat(1_000_000)],
  ])("of %s is split within bounds, and joined again", (_what, body) => {
    for (const limit of [IRC, { max: 65_000, unit: "bytes" } as const, { max: 262_144, unit: "bytes" } as const]) {
      const texts = splitMessage(result(body), "m1", limit);
      expect(texts.every((text) => sizeOf(text, limit) <= limit.max)).toBe(true);
      const joined = addAll(joinerAt().joiner, texts, limit).at(-1);
      if (joined?.kind !== "whole") throw new Error("not joined");
      expect(body.startsWith(joined.message.body.replace(/…$/, ""))).toBe(true);
    }
  });
});

describe("any message", () => {
  const bodies = fc.array(anyText, { maxLength: 60, size: "max" }).map((texts) => texts.join("").toWellFormed());
  const limits: fc.Arbitrary<PostLimit> = fc.record({
    max: fc.integer({ min: 150, max: 500 }),
    unit: fc.constantFrom("bytes", "characters"),
    reserve: fc.constantFrom(0, 30),
    singleLine: fc.boolean(),
  });
  const names = fc.array(fc.constantFrom("a.md", "b c.png", "茶.txt"), { maxLength: 8 });

  function expectWhole(given: LiteMessage, limit: PostLimit, order: number): number {
    const texts = splitMessage(given, "m1", limit);
    const message = { ...given, body: normalizeText(given.body) };
    for (const text of texts) expect(sizeOf(text, limit)).toBeLessThanOrEqual(limit.max - (limit.reserve ?? 0));
    if (texts.length === 1) {
      expect(parsePost(texts[0] ?? "", limit)).toMatchObject({ kind: "message", message });
      return 1;
    }
    const turned = [...texts.slice(order % texts.length), ...texts.slice(0, order % texts.length)].reverse();
    const joined = addAll(joinerAt().joiner, turned, limit);
    expect(joined.slice(0, -1).every(({ kind }) => kind === "incomplete")).toBe(true);
    expect(joined.at(-1)).toEqual({ kind: "whole", message, files: [] });
    return texts.length;
  }

  it("fits when it is split, and is whole when its pieces are joined in any order", () => {
    let split = 0;
    const numRuns = cases(20_000, 500);
    fc.assert(
      fc.property(bodies, names, limits, fc.nat(), (body, attachments, limit, order) => {
        if (expectWhole(result(body, { attachments }), limit, order) > 1) split++;
      }),
      { numRuns },
    );
    expect(split).toBeGreaterThan(numRuns / 2);
  });

  it("with any parameters is whole as well", () => {
    fc.assert(
      fc.property(anyMessage, bodies, limits, fc.nat(), (message, body, limit, order) => {
        expectWhole({ ...message, body }, { ...limit, max: limit.max + 4_000 }, order);
      }),
      { numRuns: cases(10_000, 300) },
    );
  });

  it("of chat fits when it is split, and none of it is taken for a marker", () => {
    fc.assert(
      fc.property(
        bodies,
        fc.constantFrom({ ...IRC, max: 60 }, { max: 60, unit: "characters" } as const),
        (text, limit) => {
          for (const post of splitChat(text, limit)) {
            expect(sizeOf(post, limit)).toBeLessThanOrEqual(60);
            expect(parsePost(post, limit).kind).toBe("chat");
          }
        },
      ),
      { numRuns: cases(20_000, 300) },
    );
  });
});

describe("pieces", () => {
  const texts = splitMessage(result("some words ".repeat(60)), "m1", SMALL);

  it("with files are joined with all files", () => {
    const file = { name: "a.md", mediaType: "text/markdown", read: () => Promise.reject(new Error("unread")) };
    const { joiner } = joinerAt();
    joiner.add({ ...from("alice"), files: [file] }, ...piece("a", 1, 2));
    const joined = joiner.add({ ...from("alice"), files: [file] }, ...piece("b", 2, 2));
    expect(joined).toEqual({ kind: "whole", message: result("ab"), files: [file, file] });
  });

  it("that repeat are ignored", () => {
    const { joiner } = joinerAt();
    expect(joiner.add(from("alice"), ...piece("a", 1, 2)).kind).toBe("incomplete");
    expect(joiner.add(from("alice"), ...piece("other", 1, 2)).kind).toBe("refused");
    expect(joiner.add(from("alice"), ...piece("b", 2, 2))).toMatchObject({ message: { body: "ab" } });
    expect(joiner.size).toBe(0);
  });

  it("that differ in number, type or task are refused", () => {
    const { joiner } = joinerAt();
    joiner.add(from("alice"), ...piece("a", 1, 2));
    expect(joiner.add(from("alice"), ...piece("b", 2, 3)).kind).toBe("refused");
    const other = { ...result("b"), task: "t2" } as LiteMessage;
    expect(joiner.add(from("alice"), other, { mid: "m", part: 2, of: 2 }).kind).toBe("refused");
    expect(joiner.add(from("alice"), ...piece("b", 2, 2)).kind).toBe("whole");
  });

  it("of two messages can be mixed", () => {
    const { joiner } = joinerAt();
    joiner.add(from("alice"), ...piece("a", 1, 2, "m1"));
    joiner.add(from("alice"), ...piece("x", 1, 2, "m2"));
    expect(joiner.add(from("alice"), ...piece("b", 2, 2, "m1"))).toMatchObject({ message: { body: "ab" } });
    expect(joiner.add(from("alice"), ...piece("y", 2, 2, "m2"))).toMatchObject({ message: { body: "xy" } });
  });

  it.each([
    ["peer", from("mallory")],
    ["room", from("alice", "#other")],
    ["thread", from("alice", "#room", "thread")],
  ])("of another %s are not joined", (_what, origin) => {
    const { joiner } = joinerAt();
    addAll(joiner, texts.slice(0, -1), SMALL);
    expect(addAll(joiner, texts.slice(-1), SMALL, origin)).toEqual([{ kind: "incomplete" }]);
    expect(addAll(joiner, texts.slice(-1), SMALL).at(-1)?.kind).toBe("whole");
  });

  it("are forgotten some time after the last one", () => {
    const { clock, joiner } = joinerAt({ maxAgeMs: 100 });
    joiner.add(from("alice"), ...piece("a", 1, 3));
    clock.time = 99;
    joiner.add(from("alice"), ...piece("b", 2, 3));
    clock.time = 198;
    expect(joiner.add(from("alice"), ...piece("c", 3, 3)).kind).toBe("whole");
    joiner.add(from("alice"), ...piece("a", 1, 2));
    clock.time = 298;
    expect(joiner.add(from("alice"), ...piece("b", 2, 2)).kind).toBe("incomplete");
    expect(joiner.size).toBe(1);
  });

  it("take up bounded memory, however many there are", () => {
    const { joiner } = joinerAt({ messagesPerPeer: 3, messages: 10, bytesPerPeer: 10_000, pieces: 50 });
    for (let index = 0; index < 2_000; index++) {
      joiner.add(from(`peer ${index % 40}`), ...piece("x".repeat(100), 1, 50, `m${index}`));
      expect(joiner.size).toBeLessThanOrEqual(10);
    }
    for (let index = 0; index < 100; index++) {
      joiner.add(from("alice"), ...piece("x", 1, 2, `m${index}`));
      joiner.add(from("alice"), ...piece("x".repeat(11_000), 1, 2, `long${index}`));
      expect(joiner.size).toBeLessThanOrEqual(10);
    }
    expect(joiner.add(from("alice"), ...piece("x".repeat(11_000), 1, 2, "long")).kind).toBe("refused");
    expect(joiner.add(from("alice"), ...piece("x", 1, 51)).kind).toBe("refused");
  });

  it("of a message that is too long are refused once, and ignored after that", () => {
    const { joiner } = joinerAt({ bytesPerPeer: 10_000 });
    const all = Array.from({ length: 20 }, (_, index) =>
      joiner.add(from("alice"), ...piece("x".repeat(3_000), index + 1, 20)),
    );
    const refused = all.filter((joined) => joined.kind === "refused");
    expect(refused).toHaveLength(18);
    expect(refused.map(({ isFirst }) => isFirst)).toEqual([true, ...Array(17).fill(false)]);
    expect(joiner.add(from("alice"), ...piece("a", 1, 2, "next")).kind).toBe("incomplete");
    expect(joiner.add(from("alice"), ...piece("b", 2, 2, "next")).kind).toBe("whole");
  });

  it("of many peers take up bounded memory", () => {
    const { joiner } = joinerAt({ bytes: 100_000 });
    for (let index = 0; index < 200; index++) {
      joiner.add(from(`peer ${index}`), ...piece("x".repeat(10_000), 1, 2));
      expect(joiner.size).toBeLessThanOrEqual(10);
    }
  });

  it("of one peer do not displace those of another beyond its share", () => {
    const { joiner } = joinerAt({ messagesPerPeer: 3 });
    joiner.add(from("alice"), ...piece("a", 1, 2));
    for (let index = 0; index < 1_000; index++) joiner.add(from("mallory"), ...piece("x", 1, 2, `m${index}`));
    expect(joiner.add(from("alice"), ...piece("b", 2, 2)).kind).toBe("whole");
    expect(joiner.size).toBe(3);
  });
});
