import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ResponseParser, type ResponseSink } from "./response-parser.ts";

function collector() {
  const responses: { status: number; body: string }[] = [];
  let pieces: Buffer[] = [];
  const sink: ResponseSink = {
    body: (data, start, end) => pieces.push(Buffer.from(data.subarray(start, end))),
    end: (status) => {
      responses.push({ status, body: Buffer.concat(pieces).toString() });
      pieces = [];
    },
  };
  return { responses, sink };
}

function wire(body: string, chunked: boolean): string {
  if (!chunked) return `HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  const half = body.slice(0, body.length >> 1);
  const rest = body.slice(body.length >> 1);
  const chunks = [half, rest].filter(Boolean).map((part) => `${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`);
  return `HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n${chunks.join("")}0\r\n\r\n`;
}

describe("ResponseParser", () => {
  it("reads the same responses however the bytes are cut", () => {
    const response = fc.record({ body: fc.string({ unit: "grapheme-ascii" }), chunked: fc.boolean() });
    const cuts = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 });
    fc.assert(
      fc.property(fc.array(response, { minLength: 1, maxLength: 4 }), cuts, (sent, sizes) => {
        const bytes = Buffer.from(sent.map(({ body, chunked }) => wire(body, chunked)).join(""));
        const { responses, sink } = collector();
        const parser = new ResponseParser();
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const size = sizes[turn % sizes.length]!;
          parser.push(bytes.subarray(at, at + size), sink);
          at += size;
        }
        expect(responses).toEqual(sent.map(({ body, chunked }) => ({ status: chunked ? 404 : 200, body })));
      }),
    );
  });

  it("refuses a response whose end it could not see", () => {
    const parser = new ResponseParser();
    const { sink } = collector();
    expect(() => parser.push(Buffer.from("HTTP/1.1 200 OK\r\nServer: x\r\n\r\n"), sink)).toThrow("without a length");
  });
});
