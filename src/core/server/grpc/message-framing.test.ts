import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RpcStatusError } from "../../wire/rpc.ts";
import { encodeFrame, encodeFrames, MessageReader } from "./message-framing.ts";

describe("MessageReader", () => {
  it("finds the same messages however their bytes are cut, and whenever it is asked", () => {
    const cuts = fc.array(fc.record({ size: fc.integer({ min: 1, max: 30 }), asks: fc.boolean() }), { minLength: 1 });
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 60 })), cuts, (messages, pieces) => {
        const bytes = encodeFrames(messages);
        const reader = new MessageReader(60);
        const found: Uint8Array[] = [];
        const take = () => {
          for (let message = reader.next(); message !== undefined; message = reader.next()) found.push(message);
        };
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const { size, asks } = pieces[turn % pieces.length] ?? { size: 1, asks: true };
          reader.push(bytes.subarray(at, at + size));
          if (asks) take();
          at += size;
        }
        take();
        expect(found.map((message) => [...message])).toEqual(messages.map((message) => [...message]));
        expect(reader.isEmpty).toBe(true);
      }),
    );
  });

  it("says of each message whether it is compressed", () => {
    const reader = new MessageReader(10);
    reader.push(Buffer.from([1, 0, 0, 0, 1, 65, 0, 0, 0, 0, 0]));
    expect(reader.next()?.toString()).toBe("A");
    expect(reader.isCompressed).toBe(true);
    expect(reader.next()).toHaveLength(0);
    expect(reader.isCompressed).toBe(false);
  });

  it("refuses what is too large as soon as it is announced", () => {
    const reader = new MessageReader(10);
    reader.push(encodeFrame(new Uint8Array(11)).subarray(0, 5));
    expect(() => reader.next()).toThrow(RpcStatusError);
  });
});
