import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cases } from "../../src/core/model/testing/exploring.ts";
import { BINDINGS, type Binding } from "../support/bindings.ts";
import { openSocket, readSocket } from "../support/raw-socket.ts";
import { useScene } from "../support/scene.ts";

const seed = Number(process.env.HOSTILE_SEED ?? 20_261_115);

/** Writes the bytes and ends the connection; a server may hang up on nonsense, which is an answer too. */
function sendAll(port: number, bytes: Uint8Array): Promise<string> {
  const socket = openSocket(port);
  socket.end(bytes);
  return readSocket(socket);
}

const HEAD = "POST / HTTP/1.1\r\nhost: x\r\na2a-version: 1.0\r\n";

const nonsense = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 300 }),
  fc
    .constantFrom(
      "GET /nothing HTTP/9.9\r\n\r\n",
      "GET /nothing\r\n\r\n",
      "get / HTTP/1.1\r\nhost: x\r\n\r\n",
      "FLY / HTTP/1.1\r\nhost: x\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",
      "GET /\u0000 HTTP/1.1\r\nhost: x\r\n\r\n",
      "GET / HTTP/1.1\r\nhost: x\r\nbroken header\r\n\r\n",
      "CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n",
      `GET / HTTP/1.1\r\nhost: x\r\nlong: ${"x".repeat(40_000)}\r\n\r\n`,
      `GET /${"x".repeat(40_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
      `${HEAD}content-length: -1\r\n\r\n{}`,
      `${HEAD}content-length: 2x\r\n\r\n{}`,
      `${HEAD}content-length: 2\r\ncontent-length: 3\r\n\r\n{}`,
      `${HEAD}content-length: 99\r\n\r\n{}`,
      `${HEAD}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}`,
      `${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n{}`,
      `${HEAD}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{}`,
      `${HEAD}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
      `${HEAD}connection: upgrade\r\nupgrade: websocket\r\n\r\n`,
      `${HEAD}expect: 100-continue\r\ncontent-length: 2\r\n\r\n{}`,
    )
    .map((text) => Buffer.from(text, "latin1")),
);

describe("bytes that are no HTTP", () => {
  const scene = useScene(BINDINGS[0] as Binding);

  it("are refused or hung up on, and the server lives on", async () => {
    const batch = fc.array(nonsense, { minLength: 20, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(batch, async (all) => {
        const answers = await Promise.all(all.map((bytes) => sendAll(scene.server.port, bytes)));
        for (const answer of answers)
          expect(answer).toMatch(/^(?:$|HTTP\/1\.1 (?:100 Continue\r\n\r\nHTTP\/1\.1 )?4\d\d )/);
      }),
      { seed, numRuns: cases(200, 10) },
    );
    expect((await scene.client().task("artifact ok")).status.state).toBe("TASK_STATE_COMPLETED");
    expect((await scene.client().list()).totalSize).toBe(1);
  });
});
