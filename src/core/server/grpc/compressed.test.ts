import { gzipSync } from "node:zlib";
import { status as STATUS } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../model/errors.ts";
import { IncomingByteBudget } from "../access/byte-budgets.ts";
import { Decompressor } from "./message-framing.ts";
import { closeAfterEach, connectionTo, openEndpoint } from "./testing/clients.ts";
import { framed, type RawAnswer } from "./testing/raw-http2.ts";

closeAfterEach();

const GZIP = { "grpc-encoding": "gzip" };
const MEGABYTE = 1_000_000;

function statusIn({ headers, trailers }: RawAnswer): number {
  return Number(trailers["grpc-status"] ?? headers["grpc-status"]);
}

function compressed(message: Buffer): Buffer {
  const body = framed(message);
  body[0] = 1;
  return body;
}

const bomb = compressed(gzipSync(Buffer.alloc(16 * MEGABYTE)));

describe("a compressed message", () => {
  it("is not decompressed before its caller is admitted", async () => {
    const endpoint = await openEndpoint({
      admit: async () => new ProtocolError("UNAUTHENTICATED", "Credentials are needed."),
      handle: () => {
        throw new Error("The caller was not admitted.");
      },
    });
    const connection = connectionTo(endpoint);
    // What is not even compressed shows that nothing was tried on it.
    for (const body of [bomb, compressed(Buffer.from("not compressed"))]) {
      expect(statusIn(await connection.call("Say", body, GZIP))).toBe(STATUS.UNAUTHENTICATED);
    }
  });

  it("counts as what it becomes, and no longer than it takes", async () => {
    const arriving = new IncomingByteBudget(MEGABYTE);
    const connection = connectionTo(await openEndpoint({ arriving }));
    const answer = await connection.call("Say", bomb, GZIP);
    expect([statusIn(answer), answer.headers["grpc-message"]]).toEqual([
      STATUS.RESOURCE_EXHAUSTED,
      encodeURI("Too many large requests are on their way in."),
    ]);
    await expect.poll(() => arriving.held).toBe(0);
    const most = Buffer.alloc(MEGABYTE - 100_000, 7);
    const { body } = await connection.call("Say", compressed(gzipSync(most)), GZIP);
    expect(body.equals(framed(most))).toBe(true);
    expect(arriving.held).toBe(0);
  });

  it("is given up when its caller leaves", async () => {
    const arriving = new IncomingByteBudget(Number.POSITIVE_INFINITY);
    const endpoint = await openEndpoint({ arriving });
    const attacker = connectionTo(endpoint);
    for (let call = 0; call < 100; call++) attacker.request("Say", GZIP).end(bomb);
    await expect.poll(() => arriving.held).toBeGreaterThan(MEGABYTE);
    attacker.close();
    await expect.poll(() => arriving.held).toBe(0);
    const next = compressed(gzipSync(Buffer.from("well")));
    expect((await connectionTo(endpoint).call("Say", next, GZIP)).body).toEqual(framed("well"));
  });
});

describe("decompressing", () => {
  it("takes a few at a time, and the others in turn", async () => {
    const decompressor = new Decompressor();
    const under = new Set<number>();
    let most = 0;
    const ended: number[] = [];
    const bytes = gzipSync(Buffer.alloc(MEGABYTE));
    const run = async (number: number) => {
      const take = () => {
        under.add(number);
        most = Math.max(most, under.size);
      };
      const options = { encoding: "gzip", maxBytes: MEGABYTE, take, signal: new AbortController().signal };
      expect((await decompressor.decompress(bytes, options)).length).toBe(MEGABYTE);
      under.delete(number);
      ended.push(number);
    };
    await Promise.all(Array.from({ length: 10 }, (_, number) => run(number)));
    expect(most).toBe(2);
    expect(ended).toHaveLength(10);
  });

  it("does not wait for the turn of one that left", async () => {
    const decompressor = new Decompressor();
    const bytes = gzipSync(Buffer.alloc(MEGABYTE));
    const options = (signal: AbortSignal) => ({ encoding: "gzip", maxBytes: MEGABYTE, take: () => {}, signal });
    const stays = new AbortController().signal;
    const first = [1, 2].map(() => decompressor.decompress(bytes, options(stays)));
    const left = new AbortController();
    const waiting = decompressor.decompress(bytes, options(left.signal));
    const last = decompressor.decompress(bytes, options(stays));
    left.abort();
    await expect(waiting).rejects.toMatchObject({ status: { code: STATUS.INTERNAL } });
    await Promise.all([...first, last]);
  });
});
