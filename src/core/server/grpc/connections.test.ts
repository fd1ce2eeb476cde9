import { constants } from "node:http2";
import { describe, expect, it } from "vitest";
import {
  begunCall,
  clientOf,
  closeAfterEach,
  connectionTo,
  FRAME,
  frame,
  openEndpoint,
  RawFrames,
  signal,
} from "./testing/clients.ts";
import { answerOf, framed } from "./testing/raw-http2.ts";

closeAfterEach();

const CANCEL = Buffer.from([0, 0, 0, constants.NGHTTP2_CANCEL]);

/** Begun and given up, which costs the server more than the caller. */
const resetCall = (stream: number) => Buffer.concat([begunCall(stream), frame(FRAME.reset, 0, stream, CANCEL)]);

describe("a connection", () => {
  it("is of no more use once too many of its calls were reset too fast", async () => {
    const endpoint = await openEndpoint({ connections: { resetsPerAddress: 1_000_000 } });
    const frames = new RawFrames(endpoint.port);
    for (let stream = 1; stream < 6_000; stream += 2) frames.send(resetCall(stream));
    await expect.poll(() => frames.seen).toContain(FRAME.goaway);
    frames.close();
    expect((await clientOf(endpoint).say("well")).message.toString()).toBe("well");
  });

  it("has no more calls at a time than allowed", async () => {
    const endpoint = await openEndpoint({ maxConcurrentCalls: 2 });
    const connection = connectionTo(endpoint);
    await connection.call("Say", framed("x"));
    expect(connection.session.remoteSettings.maxConcurrentStreams).toBe(2);
    const frames = new RawFrames(endpoint.port);
    const before = frames.seen.length;
    for (const stream of [1, 3, 5]) frames.send(begunCall(stream));
    await expect.poll(() => frames.seen.slice(before)).toContain(FRAME.reset);
    frames.close();
  });

  it("is told when the server closes, and answers what was asked before", async () => {
    const begun = signal();
    const release = signal();
    const endpoint = await openEndpoint({
      handle: async ({ message }) => {
        begun.resolve();
        await release.promise;
        return { kind: "message", message };
      },
    });
    const connection = connectionTo(endpoint);
    const goaway = new Promise<number>((resolve) => connection.session.once("goaway", resolve));
    const answer = connection.call("Say", framed("late"));
    await begun.promise;
    const closed = endpoint.close(30_000);
    expect(await goaway).toBe(constants.NGHTTP2_NO_ERROR);
    release.resolve();
    expect((await answer).body).toEqual(framed("late"));
    await closed;
  });

  it("stays as long as its peer answers, whatever time there is between calls", async () => {
    const endpoint = await openEndpoint({ keepAlive: { afterMs: 20, timeoutMs: 2_000 } });
    const { session } = connectionTo(endpoint);
    let asked = 0;
    const often = new Promise<void>((resolve) => session.on("ping", () => ++asked === 5 && resolve()));
    await often;
    expect(session.destroyed).toBe(false);
  });

  it("refuses more headers than anyone needs, and goes on", async () => {
    const endpoint = await openEndpoint();
    const connection = connectionTo(endpoint);
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x-${index}`, "y"]));
    const answer = await answerOf(connection.request("Say", many).end(framed("x")));
    expect(answer).toMatchObject({ headers: {}, resetCode: constants.NGHTTP2_ENHANCE_YOUR_CALM });
    expect((await connection.call("Say", framed("well"))).body).toEqual(framed("well"));
  });
});
