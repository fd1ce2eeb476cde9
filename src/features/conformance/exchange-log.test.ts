import { describe, expect, it } from "vitest";
import { ExchangeLog } from "./exchange-log.ts";
import { decodeStatusDetails } from "./peers/errors.ts";
import { mergeHeaders } from "./peers/peer.ts";

describe("evidence", () => {
  it("holds no secret, wherever it comes up", () => {
    const log = new ExchangeLog(["top secret", "ab"]);
    const exchange = log.recordRequest(
      "GET https://x.example/?key=top%20secret",
      { Authorization: "Bearer top secret", X: "ab" },
      "top secret",
    );
    log.recordResponse(exchange, "200", new Headers({ "www-authenticate": "top secret", "x-other": "left out" }));
    log.appendBody(exchange, "you said top secret");
    expect(JSON.stringify(log.exchanges)).not.toMatch(/top(%20| )secret/);
    expect(exchange.requestHeaders).toEqual({ Authorization: "Bearer [redacted]", X: "ab" });
    expect(exchange.responseHeaders).toEqual({ "www-authenticate": "[redacted]" });
    expect(exchange.responseBody).toBe("you said [redacted]");
  });

  it("is bounded in number and length", () => {
    const log = new ExchangeLog([]);
    for (let at = 0; at < 20; at++) log.recordRequest(`GET /${at}`, {}, "x".repeat(5_000));
    expect(log.exchanges.map(({ request }) => request)).toEqual([14, 15, 16, 17, 18, 19].map((at) => `GET /${at}`));
    const [first] = log.exchanges;
    expect(first?.requestBody).toMatch(/^x{2000}… \(5000 characters\)$/);
    if (first !== undefined) for (let at = 0; at < 5; at++) log.appendBody(first, "y".repeat(900));
    expect(first?.responseBody.length).toBeLessThan(3_000);
    log.clear();
    expect(log.exchanges).toEqual([]);
  });
});

describe("headers", () => {
  it("are laid over each other without regard to case, keep the last spelling and can be taken away", () => {
    const merged = mergeHeaders(
      { "A2A-Version": "1.0", Accept: "a" },
      { "a2a-VERSION": "99.0" },
      { accept: undefined },
    );
    expect(merged).toEqual({ "a2a-VERSION": "99.0" });
  });
});

describe("gRPC status details", () => {
  const field = (number: number, ...bytes: readonly number[]) => [(number << 3) | 2, bytes.length, ...bytes];
  const text = (value: string) => [...Buffer.from(value)];
  const info = [
    ...field(1, ...text("TASK_NOT_FOUND")),
    ...field(2, ...text("a2a-protocol.org")),
    ...field(3, ...field(1, ...text("taskId")), ...field(2, ...text("t"))),
  ];
  const any = (type: string, value: readonly number[]) => [...field(1, ...text(type)), ...field(2, ...value)];

  it("are read with their ErrorInfo", () => {
    const type = "type.googleapis.com/google.rpc.ErrorInfo";
    const status = [
      0x08,
      0x05,
      ...field(2, ...text("no")),
      ...field(3, ...any(type, info)),
      ...field(3, ...any("other", [])),
    ];
    expect(decodeStatusDetails(Uint8Array.from(status))).toEqual([
      { "@type": type, reason: "TASK_NOT_FOUND", domain: "a2a-protocol.org", metadata: { taskId: "t" } },
      { "@type": "other" },
    ]);
  });

  it.each([[[0x1a, 0xff]], [[0x1a]], [[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]], [[0x0b]]])(
    "are nothing where the bytes %j are no status",
    (bytes) => {
      expect(decodeStatusDetails(Uint8Array.from(bytes))).toBeUndefined();
    },
  );
});
