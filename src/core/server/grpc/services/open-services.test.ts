/** Health and reflection, which take calls without credentials, and what they leave to callers that have some. */

import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import { gzipSync } from "node:zlib";
import { status as STATUS } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { ANONYMOUS } from "../../../model/caller.ts";
import { IncomingByteBudget } from "../../access/byte-budgets.ts";
import type { GrpcEndpoint } from "../node-grpc.ts";
import { closeAfterEach, connectionTo, openEndpoint } from "../testing/clients.ts";
import { recording } from "../testing/fake-serving.ts";
import { answerOf, framed, type RawAnswer, type RawConnection } from "../testing/raw-http2.ts";
import { HEALTH_SERVICE } from "./health.ts";
import { REFLECTION_METHOD, REFLECTION_SERVICES } from "./reflection-calls.ts";

closeAfterEach();

const CHECK = { ":path": `/${HEALTH_SERVICE}/Check` };
const WATCH = { ":path": `/${HEALTH_SERVICE}/Watch` };
const REFLECT = { ":path": `/${REFLECTION_SERVICES[0]}/${REFLECTION_METHOD}` };
const LIST_SERVICES = Buffer.from([58, 0]);
/** A field of the name of a host that fills the message. */
const filled = (bytes: number) =>
  Buffer.concat([Buffer.from([10, ((bytes - 3) & 127) | 128, (bytes - 3) >> 7]), Buffer.alloc(bytes - 3, "x")]);

function statusIn({ headers, trailers }: RawAnswer): number {
  return Number(trailers["grpc-status"] ?? headers["grpc-status"]);
}

/** As soon as it is there: the stream of one that does not end its request stays open. Undefined for a message. */
function firstStatusOf(stream: ClientHttp2Stream): Promise<number | undefined> {
  return new Promise((resolve) => {
    const settle = (headers: IncomingHttpHeaders) => {
      const status = headers["grpc-status"];
      if (status !== undefined) resolve(Number(status));
    };
    stream.on("response", settle);
    stream.on("trailers", settle);
    stream.on("data", () => resolve(undefined));
  });
}

describe.each([
  ["Check", CHECK],
  ["Watch", WATCH],
  ["reflection", REFLECT],
])("%s", (_, path) => {
  it("takes no message that is longer than 4 KiB, announced or decompressed", async () => {
    const connection = connectionTo(await openEndpoint());
    for (const length of [4097, 16 * 1024 * 1024]) {
      const answer = await connection.call("", framed("x", length), path);
      expect([statusIn(answer), answer.headers["grpc-message"] ?? answer.trailers["grpc-message"]]).toEqual([
        STATUS.RESOURCE_EXHAUSTED,
        encodeURI("A message may have 4096 bytes at most."),
      ]);
    }
    const bomb = framed(gzipSync(Buffer.alloc(1_000_000)));
    bomb[0] = 1;
    expect(statusIn(await connection.call("", bomb, { ...path, "grpc-encoding": "gzip" }))).toBe(
      STATUS.RESOURCE_EXHAUSTED,
    );
    const longest = connection.request("", path);
    longest.end(framed(filled(4096)));
    expect(await firstStatusOf(longest)).not.toBe(STATUS.RESOURCE_EXHAUSTED);
  });

  it("does not wait long for a message that does not come in full", async () => {
    const arriving = new IncomingByteBudget(10_000);
    const connection = connectionTo(await openEndpoint({ arriving, connections: { requestTimeout: 500 } }));
    const stream = connection.request("", path);
    stream.write(framed("half", 8));
    expect(statusIn(await answerOf(stream))).toBe(STATUS.DEADLINE_EXCEEDED);
    await expect.poll(() => arriving.held).toBe(0);
  });
});

describe("reflection", () => {
  it("waits for each question as long as for the first", async () => {
    const connection = connectionTo(await openEndpoint({ connections: { requestTimeout: 500 } }));
    const stream = connection.request("", REFLECT);
    stream.write(framed(LIST_SERVICES));
    const answer = await answerOf(stream);
    expect(answer.body.length).toBeGreaterThan(100);
    expect(statusIn(answer)).toBe(STATUS.DEADLINE_EXCEEDED);
  });

  it("ends for one that does not take its answers", async () => {
    const endpoint = await openEndpoint({ connections: { requestTimeout: 500 } });
    const connection = connectionTo(endpoint, { window: 0 });
    const stream = connection.request("", REFLECT);
    stream.end(Buffer.concat(Array.from({ length: 2_000 }, () => framed(LIST_SERVICES))));
    expect((await answerOf(stream)).resetCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  });
});

describe("callers without credentials", () => {
  const admit = async ({ headers }: { readonly headers: Readonly<Record<string, string | undefined>> }) =>
    headers.key === undefined ? ANONYMOUS : { owner: "alice", authenticated: true };

  it.each([
    ["Check", CHECK],
    ["reflection", REFLECT],
    ["a method", {}],
  ])("have a share of the budget, and leave the rest to others: %s", async (_, path) => {
    const arriving = new IncomingByteBudget(1_000_000, 10_000);
    const endpoint = await openEndpoint({ arriving, admit });
    const attacker = connectionTo(endpoint);
    const held: Promise<number | undefined>[] = [];
    for (let call = 0; call < 4; call++) {
      const stream = attacker.request("Say", path);
      stream.write(framed(Buffer.alloc(3_000), 4_000));
      held.push(firstStatusOf(stream));
    }
    expect(await Promise.race(held)).toBe(STATUS.RESOURCE_EXHAUSTED);
    expect(arriving.held).toBeLessThanOrEqual(10_000);
    const honest = connectionTo(endpoint);
    const body = framed(Buffer.alloc(5_000, 7));
    expect(statusIn(await honest.call("Say", body))).toBe(STATUS.RESOURCE_EXHAUSTED);
    expect((await honest.call("Say", body, { key: "alice" })).body.equals(body)).toBe(true);
    const large = framed(Buffer.alloc(500_000, 7));
    expect((await honest.call("Say", large, { key: "alice" })).body.equals(large)).toBe(true);
    attacker.close();
    await expect.poll(() => arriving.held).toBe(0);
    expect((await honest.call("Say", body)).body.equals(body)).toBe(true);
  });
});

describe("many open calls without credentials", () => {
  /** Resolves once every one of them has begun. */
  async function openMany(endpoint: GrpcEndpoint, from: string, count: number, path: Readonly<Record<string, string>>) {
    const streams: ClientHttp2Stream[] = [];
    for (let connection: RawConnection | undefined; streams.length < count; ) {
      if (streams.length % 16 === 0) connection = connectionTo(endpoint, { from });
      const stream = connection?.request("", path);
      if (stream === undefined) continue;
      streams.push(stream);
      if (path === WATCH) {
        stream.end(framed(""));
        await new Promise((resolve) => stream.once("data", resolve));
      } else await new Promise((resolve) => connection?.session.ping(resolve));
    }
    return streams;
  }
  const addresses = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];

  it.each([
    ["watches", WATCH],
    ["checks whose message does not come", CHECK],
  ])("do not have the health check of another caller refused: %s", async (_, path) => {
    const { meter, counted } = recording();
    const endpoint = await openEndpoint({ requiresCredentials: true, meter });
    const [first, ...others] = await Promise.all(addresses.map((from) => openMany(endpoint, from, 128, path)));
    expect(counted).toEqual([]);
    const held = [first ?? [], ...others].map(([oldest]) => answerOf(oldest as ClientHttp2Stream));
    expect(statusIn(await connectionTo(endpoint).call("", framed(""), CHECK))).toBe(STATUS.OK);
    const closed = await Promise.race(held);
    if (path === WATCH) expect(closed.resetCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    else expect(statusIn(closed)).toBe(STATUS.RESOURCE_EXHAUSTED);
    const open = [first ?? [], ...others].flat().filter((stream) => !stream.closed);
    expect([open.length, counted]).toEqual([511, ["requests_limited"]]);
  });

  it("give way to a newer one of the same address", async () => {
    const endpoint = await openEndpoint({ requiresCredentials: true });
    const watches = await openMany(endpoint, "127.0.0.2", 128, WATCH);
    const oldest = answerOf(watches[0] as ClientHttp2Stream);
    expect(statusIn(await connectionTo(endpoint, { from: "127.0.0.2" }).call("", framed(""), CHECK))).toBe(STATUS.OK);
    expect((await oldest).resetCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  });
});
