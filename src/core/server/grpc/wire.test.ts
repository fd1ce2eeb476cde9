import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { status as STATUS } from "@grpc/grpc-js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clientOf, closeAfterEach, connectionTo, openEndpoint, signal } from "./testing/clients.ts";
import { recording } from "./testing/fake-serving.ts";
import { answerOf, framed, type RawAnswer } from "./testing/raw-http2.ts";

closeAfterEach();

/** Of an answer without messages the status comes with the headers. */
function statusIn({ headers, trailers }: RawAnswer): number {
  return Number(trailers["grpc-status"] ?? headers["grpc-status"]);
}

describe("what no client would send", () => {
  it.each(["Say", "Repeat"])("a message that ends too soon: %s", async (method) => {
    const endpoint = await openEndpoint();
    const connection = connectionTo(endpoint);
    for (const body of [Buffer.alloc(0), Buffer.from([0]), Buffer.from([0, 0, 0]), framed("half", 8)]) {
      expect(statusIn(await connection.call(method, body))).toBe(STATUS.UNIMPLEMENTED);
    }
    expect((await connection.call("Say", framed("well"))).body).toEqual(framed("well"));
  });

  it.each(["Say", "Repeat"])("a connection that breaks within a message: %s", async (method) => {
    const endpoint = await openEndpoint();
    const connection = connectionTo(endpoint);
    connection.request(method).write(framed("half", 8));
    await connection.call("Say", framed("well"));
    connection.close();
    expect((await clientOf(endpoint).say("well")).message.toString()).toBe("well");
  });

  it("two messages where one is asked for", async () => {
    const connection = connectionTo(await openEndpoint());
    const answer = await connection.call("Say", Buffer.concat([framed("one"), framed("two")]));
    expect(statusIn(answer)).toBe(STATUS.UNIMPLEMENTED);
  });

  it("a message larger than allowed, announced or compressed", async () => {
    const endpoint = await openEndpoint({ maxMessageBytes: 1_000 });
    const connection = connectionTo(endpoint);
    expect(statusIn(await connection.call("Say", framed("x", 1_001)))).toBe(STATUS.RESOURCE_EXHAUSTED);
    expect(statusIn(await connection.call("Say", framed("x", 0xffffffff)))).toBe(STATUS.RESOURCE_EXHAUSTED);
    const bomb = framed(gzipSync(Buffer.alloc(100_000)));
    bomb[0] = 1;
    const answer = await connection.call("Say", bomb, { "grpc-encoding": "gzip" });
    expect(statusIn(answer)).toBe(STATUS.RESOURCE_EXHAUSTED);
    await expect(clientOf(endpoint).say(Buffer.alloc(1_001))).rejects.toMatchObject({
      code: STATUS.RESOURCE_EXHAUSTED,
    });
    expect((await clientOf(endpoint).say(Buffer.alloc(1_000))).message).toHaveLength(1_000);
  });

  it("a message as large as the default allows", async () => {
    const endpoint = await openEndpoint();
    const large = Buffer.alloc(16 * 1024 * 1024, 7);
    expect((await clientOf(endpoint).say(large)).message.equals(large)).toBe(true);
  });

  it("a compression nobody knows, or bytes that are not compressed", async () => {
    const connection = connectionTo(await openEndpoint());
    const body = framed("x");
    body[0] = 1;
    expect(statusIn(await connection.call("Say", body, { "grpc-encoding": "snappy" }))).toBe(STATUS.UNIMPLEMENTED);
    expect(statusIn(await connection.call("Say", body, { "grpc-encoding": "gzip" }))).toBe(STATUS.INTERNAL);
  });

  it("another type of content", async () => {
    const connection = connectionTo(await openEndpoint());
    const answer = await connection.call("Say", Buffer.from("{}"), { "content-type": "application/json" });
    expect(answer.headers[":status"]).toBe(415);
  });

  it("another method of HTTP, or a path that is none", async () => {
    const connection = connectionTo(await openEndpoint());
    for (const path of ["/", "//", "/x", "/test.v1.Parrot/Say/more", "/%00/%ff", `/${"x".repeat(5_000)}/y`]) {
      expect(statusIn(await connection.call("Say", framed("x"), { ":path": path }))).toBe(STATUS.UNIMPLEMENTED);
    }
    const stream = connection.session.request({ ":path": "/" });
    expect((await answerOf(stream)).headers[":status"]).toBe(415);
  });

  it("a deadline that is no time", async () => {
    const connection = connectionTo(await openEndpoint());
    const answer = await connection.call("Say", framed("x"), { "grpc-timeout": "soon" });
    expect(statusIn(answer)).toBe(STATUS.INTERNAL);
  });

  it("names that objects have by themselves", async () => {
    const asked = signal<object>();
    const endpoint = await openEndpoint({
      handle: ({ message, metadata }) => {
        asked.resolve(metadata);
        return { kind: "message", message };
      },
    });
    const answer = await connectionTo(endpoint).call("Say", framed("x"), { constructor: "a", "x-agent": "b" });
    expect(answer.body).toEqual(framed("x"));
    expect(await asked.promise).toMatchObject({ "x-agent": "b" });
    expect("toString" in (await asked.promise)).toBe(false);
  });

  it("a secret that is not ASCII, which is told to nobody", async () => {
    const { log, lines } = recording();
    const asked = signal<Readonly<Record<string, unknown>>>();
    const endpoint = await openEndpoint({
      log,
      handle: ({ message, metadata }) => {
        asked.resolve(metadata);
        return { kind: "message", message };
      },
    });
    const connection = connectionTo(endpoint);
    await connection.call("Say", framed("x"), { authorization: "Bearer hüsh-hüsh" });
    expect((await asked.promise).authorization).toBeUndefined();
    expect(lines.join("\n")).toContain("authorization");
    expect(lines.join("\n")).not.toContain("hüsh");
  });

  it.each(["Say", "Repeat"])("a request that never comes in full: %s", async (method) => {
    const connection = connectionTo(await openEndpoint({ connections: { requestTimeout: 100 } }));
    const stream = connection.request(method);
    stream.write(framed("half", 8));
    const answer = await answerOf(stream);
    expect(statusIn(answer)).toBe(STATUS.DEADLINE_EXCEEDED);
    expect((await connection.call("Say", framed("well"))).body).toEqual(framed("well"));
  });

  it("a request that came in full and takes longer to answer than to come", async () => {
    const endpoint = await openEndpoint({
      connections: { requestTimeout: 50 },
      handle: async ({ message }) => {
        await new Promise((resolve) => setTimeout(resolve, 250));
        return { kind: "message", message };
      },
    });
    expect((await clientOf(endpoint).say("late")).message.toString()).toBe("late");
  });

  it("nothing at all, and no answer to the question whether it is still there", async () => {
    const endpoint = await openEndpoint({ keepAlive: { afterMs: 50, timeoutMs: 50 } });
    const socket = connect(endpoint.port, "127.0.0.1");
    await new Promise<void>((resolve) => socket.resume().once("close", () => resolve()));
    const client = clientOf(endpoint);
    expect((await client.say("well")).message.toString()).toBe("well");
  });

  it.each([
    ["HTTP/1.1", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["a preface and noise", `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${"\u00ff".repeat(200)}`],
  ])("%s", async (_, text) => {
    const endpoint = await openEndpoint();
    const socket = connect(endpoint.port, "127.0.0.1");
    socket.on("error", () => {});
    const closed = new Promise<void>((resolve) => socket.resume().once("close", () => resolve()));
    socket.write(text, "latin1");
    await closed;
    expect((await clientOf(endpoint).say("well")).message.toString()).toBe("well");
  });

  it("any bytes at all, cut anywhere", async () => {
    const connection = connectionTo(await openEndpoint({ maxMessageBytes: 10_000 }));
    const chunks = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 4 });
    const calls = fc.record({ chunks, streams: fc.boolean(), cut: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(calls, async ({ chunks, streams, cut }) => {
        const stream = connection.request(streams ? "Repeat" : "Say");
        const answer = answerOf(stream);
        for (const chunk of chunks) stream.write(chunk);
        if (cut) stream.close(8);
        else stream.end();
        await answer;
        if (!cut) expect(statusIn(await answer)).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 300 },
    );
    expect((await connection.call("Say", framed("well"))).body).toEqual(framed("well"));
  });
});
