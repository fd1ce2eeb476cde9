import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { GrpcSession } from "./grpc-session.ts";

const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0).reverse()) close();
});

async function sessionWith(
  answer: (stream: ServerHttp2Stream, body: Buffer, headers: IncomingHttpHeaders) => void,
): Promise<GrpcSession> {
  const server = createServer();
  server.on("session", (session) => closing.push(() => session.destroy()));
  server.on("stream", (stream, headers) => {
    const pieces: Buffer[] = [];
    stream.on("error", () => {});
    stream.on("data", (piece: Buffer) => pieces.push(piece));
    stream.on("end", () => answer(stream, Buffer.concat(pieces), headers));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => server.close());
  const session = await GrpcSession.open((server.address() as AddressInfo).port, "/a.B/C");
  closing.push(() => session.close());
  return session;
}

function reply(stream: ServerHttp2Stream, body: Buffer): void {
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.respond({ ":status": 200 }, { waitForTrailers: true });
  stream.end(body);
}

describe("GrpcSession", () => {
  it("asks and is answered, many times at once and one after the other", async () => {
    const session = await sessionWith((stream, body) => reply(stream, body));
    for (let round = 0; round < 3; round++) {
      const words = Array.from({ length: 50 }, (_, index) => `word ${round} ${index}`);
      const answers = await Promise.all(words.map((word) => session.call(Buffer.from(word))));
      expect(answers.map(String)).toEqual(words);
    }
  });

  it("says the same headers with every call", async () => {
    const received: IncomingHttpHeaders[] = [];
    const session = await sessionWith((stream, body, headers) => {
      received.push({ ...headers });
      reply(stream, body);
    });
    for (let call = 0; call < 3; call++) await session.call(Buffer.from("x"));
    expect(received[0]).toMatchObject({
      ":method": "POST",
      ":scheme": "http",
      ":path": "/a.B/C",
      "content-type": "application/grpc",
      te: "trailers",
      "a2a-version": "1.0",
    });
    expect(received[1]).toEqual(received[0]);
    expect(received[2]).toEqual(received[0]);
  });

  it("takes answers of any length", async () => {
    const large = Buffer.alloc(3_000_000, "y");
    const session = await sessionWith((stream) => reply(stream, large));
    expect((await session.call(Buffer.from("x"))).equals(large)).toBe(true);
  });

  it("tells of a call that was reset and of a connection that broke", async () => {
    const session = await sessionWith((stream, body) => {
      if (body.toString() === "reset") stream.close(2);
      else stream.session?.destroy();
    });
    await expect(session.call(Buffer.from("reset"))).rejects.toThrow("reset");
    await expect(session.call(Buffer.from("break"))).rejects.toThrow(/closed|more calls/);
  });
});
