/** Held against another implementation of the same bytes. */
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tagOf, WIRE, WireReader, WireWriter } from "./binary-wire.ts";

function written(write: (writer: WireWriter) => void): Uint8Array {
  const writer = new WireWriter();
  write(writer);
  return writer.finish();
}

const text = fc.string({ unit: "binary", maxLength: 200 });
const seconds = fc.integer({ min: -62_135_596_800, max: 253_402_300_799 });

describe("what is written", () => {
  it("is what others read", () => {
    fc.assert(
      fc.property(text, fc.integer(), seconds, fc.double(), fc.uint8Array(), (string, int32, int64, double, bytes) => {
        const reader = new BinaryReader(
          written((writer) => {
            writer.bytes(bytes);
            writer.double(double);
            writer.varint(int64);
            writer.varint(int32);
            writer.string(string);
          }),
        );
        expect(reader.string(true)).toBe(string.toWellFormed());
        expect(reader.int32()).toBe(int32);
        expect(reader.int64()).toBe(BigInt(int64));
        expect(reader.double()).toBe(double);
        expect([...reader.bytes()]).toEqual([...bytes]);
        expect(reader.pos).toBe(reader.len);
      }),
    );
  });

  it("may be longer than the writer expected, and leaves it as it was", () => {
    const writer = new WireWriter();
    for (const length of [10, 5_000, 200_000, 3]) {
      writer.string("x".repeat(length));
      expect(new WireReader(writer.finish()).string()).toHaveLength(length);
      expect(writer.length).toBe(0);
    }
  });

  it("has lengths of what came before them", () => {
    const bytes = written((writer) => {
      writer.string("after");
      const before = writer.length;
      writer.string("y".repeat(300));
      writer.lengthSince(before);
    });
    const reader = new WireReader(bytes);
    expect(reader.endOfMessage()).toBe(bytes.length - 6);
    expect(reader.string()).toHaveLength(300);
    expect(reader.string()).toBe("after");
  });
});

describe("what is read", () => {
  it("is what others write", () => {
    fc.assert(
      fc.property(text, fc.integer(), seconds, fc.double(), fc.boolean(), (string, int32, int64, double, bool) => {
        const writer = new BinaryWriter().string(string).int32(int32).int64(int64).double(double).bool(bool);
        const reader = new WireReader(writer.finish());
        expect(reader.string()).toBe(string.toWellFormed());
        expect(reader.int32()).toBe(int32);
        expect(reader.int64()).toBe(int64);
        expect(reader.double()).toBe(double);
        expect(reader.bool()).toBe(bool);
        expect(reader.at).toBe(reader.end);
      }),
    );
  });

  it("passes over fields of every kind", () => {
    const writer = new BinaryWriter();
    writer.tag(1, WireType.Varint).int64(-1).tag(2, WireType.Bit64).double(1).tag(3, WireType.Bit32).float(1);
    writer.tag(4, WireType.LengthDelimited).string("x");
    writer.tag(5, WireType.StartGroup).tag(6, WireType.Varint).bool(true).tag(5, WireType.EndGroup);
    const reader = new WireReader(writer.finish());
    const numbers: number[] = [];
    while (reader.at < reader.end) {
      const tag = reader.tag();
      numbers.push(tag >>> 3);
      reader.skip(tag);
    }
    expect(numbers).toEqual([1, 2, 3, 4, 5]);
  });

  it.each([
    ["text that is not UTF-8", (reader: WireReader) => reader.string(), [2, 0xc3, 0x28]],
    ["text that ends too soon", (reader: WireReader) => reader.string(), [5, 65]],
    ["a number that ends too soon", (reader: WireReader) => reader.uint32(), [0x80]],
    ["a number without end", (reader: WireReader) => reader.uint32(), new Array(11).fill(0x80)],
    ["a long number without end", (reader: WireReader) => reader.int64(), new Array(11).fill(0x80)],
    ["a flag without end", (reader: WireReader) => reader.bool(), new Array(11).fill(0x80)],
    ["a double that ends too soon", (reader: WireReader) => reader.double(), [1, 2, 3]],
    ["a message that ends too soon", (reader: WireReader) => reader.endOfMessage(), [5, 1]],
    ["field 0", (reader: WireReader) => reader.tag(), [0]],
    ["a field of no kind", (reader: WireReader) => reader.tag(), [0x0f]],
    ["a tag of more than 32 bits", (reader: WireReader) => reader.tag(), [0x88, 0x80, 0x80, 0x80, 0x10]],
    ["a group that ends without beginning", skipping(1, WIRE.endGroup), []],
    ["a group that another ends", skipping(1, WIRE.startGroup), [tagOf(2, WIRE.endGroup)]],
    ["groups without end", skipping(1, WIRE.startGroup), new Array(200).fill(tagOf(1, WIRE.startGroup))],
  ])("is never %s", (_, read, bytes) => {
    expect(() => read(new WireReader(new Uint8Array(bytes)))).toThrow();
  });
});

function skipping(number: number, type: (typeof WIRE)[keyof typeof WIRE]) {
  return (reader: WireReader) => reader.skip(tagOf(number, type));
}
