import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Link } from "../link.ts";
import { createLinkPair } from "./link-pair.ts";
import { linkErrorCode, readAll, readSome } from "./read-link.ts";

describe("createLinkPair", () => {
  it("delivers both ways, in order, each once, whatever the buffer", async () => {
    const texts = fc.array(fc.string(), { maxLength: 50 });
    await fc.assert(
      fc.asyncProperty(texts, texts, fc.integer({ min: 1, max: 4 }), async (there, back, highWater) => {
        const [left, right] = createLinkPair({ highWater, maxBuffered: highWater });
        const sendAll = async (link: Link, all: string[]) => {
          for (const text of all) await link.send(text);
        };
        const [atRight, atLeft] = await Promise.all([
          readSome(right, there.length),
          readSome(left, back.length),
          sendAll(left, there),
          sendAll(right, back),
        ]);
        expect(atRight).toEqual(there);
        expect(atLeft).toEqual(back);
      }),
    );
  });

  it("delivers what was sent before the close, then ends", async () => {
    const [left, right] = createLinkPair();
    void left.send("a");
    void left.send("b");
    left.close(4001, "done");
    expect(await readAll(right)).toEqual(["a", "b"]);
    expect(await left.closed).toEqual({ code: 4001, reason: "done" });
    expect(await right.closed).toEqual({ code: 4001, reason: "done" });
  });

  it("drops what the closing side has not read", async () => {
    const [left, right] = createLinkPair();
    void right.send("unread");
    left.close();
    expect(await readAll(left)).toEqual([]);
    expect(await left.closed).toEqual({ code: 1000, reason: "" });
  });

  it("wakes readers that wait when the link closes", async () => {
    const [left, right] = createLinkPair();
    const readers = Promise.all([readAll(left), readAll(right)]);
    right.close();
    expect(await readers).toEqual([[], []]);
  });

  it("counts the first close", async () => {
    const [left, right] = createLinkPair();
    left.close(4001, "first");
    right.close(4002, "second");
    left.close(4003, "third");
    expect(await right.closed).toEqual({ code: 4001, reason: "first" });
  });

  it("refuses to send on a closed link, from either side", () => {
    const [left, right] = createLinkPair();
    left.close();
    expect(linkErrorCode(() => left.send("x"))).toBe("closed");
    expect(linkErrorCode(() => right.send("x"))).toBe("closed");
  });

  it("closes when the reader leaves its loop", async () => {
    const [left, right] = createLinkPair();
    void left.send("a");
    for await (const text of right.messages) {
      expect(text).toBe("a");
      break;
    }
    expect(await left.closed).toEqual({ code: 1000, reason: "" });
  });

  it("makes the sender wait from the high-water mark on, and refuses beyond the bound", async () => {
    const [left, right] = createLinkPair({ highWater: 2, maxBuffered: 3 });
    expect(left.send("a")).toBeUndefined();
    const waits = [left.send("b"), left.send("c")];
    for (const wait of waits) expect(wait).toBeInstanceOf(Promise);
    expect(linkErrorCode(() => left.send("d"))).toBe("buffer-full");

    const order: string[] = [];
    const resumed = Promise.all(waits).then(() => order.push("resumed"));
    const reader = right.messages[Symbol.asyncIterator]();
    for (const expected of ["a", "b"]) {
      expect((await reader.next()).value).toBe(expected);
      order.push(expected);
    }
    await resumed;
    expect(order[0]).toBe("a");
    expect(order).toContain("resumed");
    expect(left.send("e")).toBeInstanceOf(Promise);
    expect((await reader.next()).value).toBe("c");
    expect((await reader.next()).value).toBe("e");
  });

  it("lets a waiting sender go when the link closes", async () => {
    const [left, right] = createLinkPair({ highWater: 1 });
    const wait = left.send("a");
    right.close();
    await wait;
    expect(linkErrorCode(() => left.send("b"))).toBe("closed");
  });

  it("knows what the other side has got", async () => {
    const [left, right] = createLinkPair();
    expect(await left.received()).toBe(true);
    void left.send("a");
    const order: string[] = [];
    const asked = left.received().then((got) => order.push(`got: ${got}`));
    const reader = right.messages[Symbol.asyncIterator]();
    order.push((await reader.next()).value ?? "");
    await asked;
    expect(order).toContain("got: true");
    void left.send("b");
    const lost = left.received();
    right.close();
    expect(await lost).toBe(false);
    expect(await left.received()).toBe(false);
  });

  it("has one reader", () => {
    const [left] = createLinkPair();
    left.messages[Symbol.asyncIterator]();
    expect(linkErrorCode(() => left.messages[Symbol.asyncIterator]())).toBe("already-read");
  });
});
