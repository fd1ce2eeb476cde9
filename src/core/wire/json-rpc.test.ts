import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeError, encodeResult, type JsonRpcId, parseJsonRpc, RESULT_SUFFIX, resultPrefix } from "./json-rpc.ts";

const ids: fc.Arbitrary<JsonRpcId> = fc.oneof(
  fc.constantFrom<JsonRpcId>(0, "", null, -1, 1.5, Number.MAX_SAFE_INTEGER),
  fc.string({ unit: "binary" }),
  fc.maxSafeInteger(),
);

/** Values near an envelope: right members, wrong ones, missing ones. */
const nearEnvelopes = fc.record(
  {
    jsonrpc: fc.oneof(fc.constant("2.0"), fc.jsonValue()),
    id: fc.oneof(ids, fc.jsonValue()),
    method: fc.oneof(fc.string(), fc.jsonValue()),
    params: fc.jsonValue(),
  },
  { requiredKeys: [] },
);

describe("parseJsonRpc", () => {
  it("reads a request", () => {
    const text = '{"jsonrpc":"2.0","id":7,"method":"add","params":{"a":1}}';
    const request = { id: 7, method: "add", params: { a: 1 }, notification: false };
    expect(parseJsonRpc(text)).toEqual({ ok: true, request });
    expect(parseJsonRpc(Buffer.from(text))).toEqual({ ok: true, request });
  });

  it("keeps every id as it is", () => {
    fc.assert(
      fc.property(ids, (id) => {
        const result = parseJsonRpc(JSON.stringify({ jsonrpc: "2.0", id, method: "m" }));
        expect(result).toEqual({ ok: true, request: { id, method: "m", params: undefined, notification: false } });
      }),
    );
  });

  it.each([
    ['{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":[1e400]}}', -32602, 7],
    ['{"jsonrpc":"2.0","id":7,"params":{"a":[1e400]}}', -32600, 7],
    ["[1e400]", -32600, null],
  ])("refuses numbers that are not finite: %s", (text, code, id) => {
    expect(parseJsonRpc(text)).toMatchObject({ ok: false, code, id });
  });

  it("tells a notification from a request whose id is null", () => {
    expect(parseJsonRpc('{"jsonrpc":"2.0","method":"m"}')).toMatchObject({ request: { id: null, notification: true } });
    expect(parseJsonRpc('{"jsonrpc":"2.0","method":"m","id":null}')).toMatchObject({
      request: { id: null, notification: false },
    });
  });

  it("echoes the id of a bad request when it can be read", () => {
    fc.assert(
      fc.property(
        ids,
        fc.constantFrom({ jsonrpc: "1.0" }, { method: 5 }, { params: 5 }, { params: null }),
        (id, fault) => {
          const text = JSON.stringify({ jsonrpc: "2.0", id, method: "m", ...fault });
          expect(parseJsonRpc(text)).toMatchObject({ ok: false, code: -32600, id });
        },
      ),
    );
  });

  it.each(["{}", "true", '"2.0"', "null", "1", "[]", '[{"jsonrpc":"2.0","id":1,"method":"m"}]'])(
    "refuses %s as no single request",
    (text) => {
      expect(parseJsonRpc(text)).toMatchObject({ ok: false, code: -32600, id: null });
    },
  );

  it.each(["{}", "[1]", "true", "9007199254740993", "1e400", "-1e400", "1e20"])("refuses the id %s", (id) => {
    expect(parseJsonRpc(`{"jsonrpc":"2.0","id":${id},"method":"m"}`)).toMatchObject({
      ok: false,
      code: -32600,
      id: null,
    });
  });

  it.each<string | Buffer>(["", "{", '{"jsonrpc":"2.0"', Buffer.from([0x22, 0xff, 0x22])])(
    "answers a parse error to %j",
    (text) => {
      expect(parseJsonRpc(text)).toMatchObject({ ok: false, code: -32700, id: null });
    },
  );

  it("refuses nesting beyond the limit as an invalid request", () => {
    const text = `{"jsonrpc":"2.0","id":1,"method":"m","params":${"[".repeat(9)}${"]".repeat(9)}}`;
    expect(parseJsonRpc(text, { maxDepth: 9 })).toMatchObject({ ok: false, code: -32600, id: null });
    expect(parseJsonRpc(text, { maxDepth: 10 })).toMatchObject({ ok: true });
  });

  it("never throws, and accepts nothing that is not a request", () => {
    const anyText = fc.oneof(
      fc.string(),
      fc.json(),
      nearEnvelopes.map((value) => JSON.stringify(value)),
    );
    fc.assert(
      fc.property(
        fc.oneof(
          anyText,
          anyText.map((text) => Buffer.from(text)),
          fc.uint8Array(),
        ),
        (text) => {
          const result = parseJsonRpc(text);
          if (!result.ok) {
            expect([-32700, -32600]).toContain(result.code);
            expect(result.message).not.toBe("");
            return;
          }
          const sent = JSON.parse(Buffer.from(text).toString());
          expect(sent.jsonrpc).toBe("2.0");
          expect(result.request).toEqual({
            id: "id" in sent ? sent.id : null,
            method: sent.method,
            params: sent.params,
            notification: !("id" in sent),
          });
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe("encoding", () => {
  it("wraps JSON text under any id", () => {
    fc.assert(
      fc.property(ids, fc.jsonValue(), (id, value) => {
        const json = JSON.stringify(value);
        const plain = JSON.parse(json);
        expect(JSON.parse(encodeResult(id, json))).toEqual({ jsonrpc: "2.0", id, result: plain });
        expect(JSON.parse(encodeError(id, json))).toEqual({ jsonrpc: "2.0", id, error: plain });
        expect(resultPrefix(id) + json + RESULT_SUFFIX).toBe(encodeResult(id, json));
      }),
    );
  });

  it("has this exact shape", () => {
    expect(encodeResult(0, "{}")).toBe('{"jsonrpc":"2.0","id":0,"result":{}}');
    expect(encodeError("", '{"code":-32601,"message":"m"}')).toBe(
      '{"jsonrpc":"2.0","id":"","error":{"code":-32601,"message":"m"}}',
    );
    expect(encodeResult(null, "1")).toBe('{"jsonrpc":"2.0","id":null,"result":1}');
  });
});
