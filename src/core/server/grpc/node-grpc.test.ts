import { createServer } from "node:net";
import { status as STATUS } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { ANONYMOUS } from "../../model/caller.ts";
import { ProtocolError } from "../../model/errors.ts";
import { RPC_CODES, type RpcRequest, RpcStatusError } from "../../wire/rpc.ts";
import { createGrpcServer } from "./node-grpc.ts";
import {
  clientOf,
  closeAfterEach,
  connectionTo,
  openClient,
  openEndpoint,
  readAll,
  signal,
} from "./testing/clients.ts";
import { batches, fakeOptions, fakeServing, recording } from "./testing/fake-serving.ts";
import { framed } from "./testing/raw-http2.ts";

closeAfterEach();

describe("a call with one answer", () => {
  it("carries bytes both ways unchanged", async () => {
    const client = await openClient();
    const bytes = Buffer.from([0, 255, 10, 128, 7]);
    expect((await client.say(bytes)).message).toEqual(bytes);
    expect((await client.say("")).message).toEqual(Buffer.alloc(0));
  });

  it("sends a view of a larger buffer as it is", async () => {
    const large = new Uint8Array(1_000).fill(1).fill(2, 500, 503);
    const client = await openClient({ handle: () => ({ kind: "message", message: large.subarray(500, 503) }) });
    expect((await client.say("x")).message).toEqual(Buffer.from([2, 2, 2]));
  });

  it("tells the service who asks what, by text metadata of lower-case names", async () => {
    const asked = signal<RpcRequest>();
    const client = await openClient({
      handle: (request) => {
        asked.resolve(request);
        return { kind: "message", message: request.message };
      },
    });
    await client.say("hello", {
      metadata: { "X-Agent": "echo", "a2a-extensions": ["urn:a", "urn:b"], "trace-bin": Buffer.from([1]) },
    });
    const { service, method, metadata, message, remoteAddress } = await asked.promise;
    expect({ service, method, remoteAddress }).toEqual({
      service: "test.v1.Parrot",
      method: "Say",
      remoteAddress: "127.0.0.1",
    });
    expect(Buffer.from(message).toString()).toBe("hello");
    expect(metadata).toMatchObject({ "x-agent": "echo", "a2a-extensions": "urn:a, urn:b" });
    expect(Object.keys(metadata)).not.toContain("trace-bin");
    expect(Object.keys(metadata)).not.toContain("grpc-accept-encoding");
  });

  it("returns the metadata of a reply, and leaves out what gRPC has no form for", async () => {
    const { log, lines } = recording();
    const metadata = { "a2a-version": "1.0", "x-title": "Größe", "no good": "x", "raw-bin": "text" };
    const client = await openClient({ log, handle: ({ message }) => ({ kind: "message", message, metadata }) });
    const answer = (await client.say("x")).metadata;
    expect(answer.get("a2a-version")).toEqual(["1.0"]);
    expect(answer.get("x-title")).toEqual(["Gr%C3%B6%C3%9Fe"]);
    expect(lines.filter((line) => line.includes("left out"))).toHaveLength(2);
  });

  it("lets no reply say what is said by HTTP/2 and gRPC themselves", async () => {
    const metadata = {
      connection: "close",
      "content-type": "x",
      "grpc-status": "3",
      te: "x",
      ":status": "404",
      Upgrade: "x",
    };
    const status = { code: RPC_CODES.ABORTED, message: "No.", metadata };
    const failing = async function* () {
      yield [new Uint8Array()];
      throw new RpcStatusError(status);
    };
    const client = await openClient({
      handle: ({ method, message }) => {
        if (message.length === 0) return { kind: "failure", status };
        return method === "Say"
          ? { kind: "message", message, metadata }
          : { kind: "stream", messages: failing(), metadata };
      },
    });
    expect((await client.say("x")).message.toString()).toBe("x");
    await expect(client.say("")).rejects.toMatchObject({ code: STATUS.ABORTED });
    expect((await readAll(client.repeat("x"))).status.code).toBe(STATUS.ABORTED);
    expect((await readAll(client.repeat(""))).status.code).toBe(STATUS.ABORTED);
  });

  it("reads compressed messages", async () => {
    const { gzipSync } = await import("node:zlib");
    const connection = connectionTo(await openEndpoint());
    const body = framed(gzipSync("hello"));
    body[0] = 1;
    const answer = await connection.call("Say", body, { "grpc-encoding": "gzip" });
    expect(answer.body).toEqual(framed("hello"));
  });

  it("answers a thousand at a time, each with its own", async () => {
    const client = await openClient();
    const words = Array.from({ length: 1_000 }, (_, index) => `word ${index}`);
    const answers = await Promise.all(words.map((word) => client.say(word)));
    expect(answers.map(({ message }) => message.toString())).toEqual(words);
  });
});

describe("an error", () => {
  it("has its code, message, details and metadata", async () => {
    const details = new Uint8Array([8, 5, 18, 1, 120]);
    const status = {
      code: RPC_CODES.NOT_FOUND,
      message: "Keine Aufgabe: größer",
      details,
      metadata: { reason: "GONE" },
    };
    const client = await openClient({ handle: () => ({ kind: "failure", status }) });
    await expect(client.say("x")).rejects.toMatchObject({ code: STATUS.NOT_FOUND, details: "Keine Aufgabe: größer" });
    const { status: received } = await readAll(client.repeat("x"));
    expect(received).toMatchObject({ code: STATUS.NOT_FOUND, details: "Keine Aufgabe: größer" });
    expect(received.metadata.get("grpc-status-details-bin")).toEqual([Buffer.from(details)]);
    expect(received.metadata.get("reason")).toEqual(["GONE"]);
  });

  it.each(["Say", "Repeat"] as const)("of any text does no harm: %s", async (method) => {
    const message = `\ud800 100% \n\u0000${"x".repeat(50_000)}`;
    const details = new Uint8Array(50_000);
    const client = await openClient({
      handle: () => ({ kind: "failure", status: { code: RPC_CODES.INTERNAL, message, details } }),
    });
    const { status } = await readAll(client.stream(`/test.v1.Parrot/${method}`, "x"));
    expect(status.code).toBe(STATUS.INTERNAL);
    expect(status.details.startsWith("\ufffd 100% \n\u0000xxx")).toBe(true);
    expect(status.metadata.get("grpc-status-details-bin")).toEqual([]);
  });

  it("from whoever decides about callers is told in the words of the service", async () => {
    const client = await openClient({ admit: () => new ProtocolError("UNAUTHENTICATED", "Who are you?") });
    await expect(client.say("x")).rejects.toMatchObject({ code: STATUS.UNAUTHENTICATED, details: "Who are you?" });
    const { status } = await readAll(client.repeat("x"));
    expect(status).toMatchObject({ code: STATUS.UNAUTHENTICATED, details: "Who are you?" });
  });

  it("that is thrown is told if it is meant for the peer", async () => {
    const client = await openClient({
      admit: () => {
        throw new ProtocolError("UNAUTHENTICATED", "Who are you?");
      },
    });
    await expect(client.say("x")).rejects.toMatchObject({ code: STATUS.UNAUTHENTICATED });
  });

  it("that nobody foresaw is logged and not told", async () => {
    const { log, lines } = recording();
    const client = await openClient({
      log,
      handle: () => {
        throw new Error("password 123");
      },
    });
    await expect(client.say("x")).rejects.toMatchObject({
      code: STATUS.INTERNAL,
      details: expect.not.stringContaining("123"),
    });
    const { status } = await readAll(client.repeat("x"));
    expect(status.details).not.toContain("123");
    expect(lines.filter((line) => line.includes("could not be answered"))).toHaveLength(2);
  });

  it("is what a stream for a call with one answer comes to", async () => {
    const left = signal();
    const messages = (async function* () {
      try {
        yield [new Uint8Array()];
      } finally {
        left.resolve();
      }
    })();
    await messages.next();
    const client = await openClient({ handle: () => ({ kind: "stream", messages }) });
    await expect(client.say("x")).rejects.toMatchObject({ code: STATUS.INTERNAL });
    await left.promise;
  });
});

describe("a call nobody serves", () => {
  it("is told what is served", async () => {
    const services = [fakeServing(), fakeServing(undefined, "other.v2.Parrot"), fakeServing(undefined, "a.b.Clock")];
    const client = await openClient({ services });
    await expect(client.unary("/parrot.Parrot/Say", "x")).rejects.toMatchObject({
      code: STATUS.UNIMPLEMENTED,
      details: 'There is no service "parrot.Parrot" here; it is served as test.v1.Parrot and other.v2.Parrot.',
    });
    await expect(client.unary("/nobody.Knows/It", "x")).rejects.toMatchObject({
      code: STATUS.UNIMPLEMENTED,
      details: expect.stringMatching(/no service "nobody\.Knows" here; served are test\.v1\.Parrot, .*grpc\.health/),
    });
    await expect(client.unary("/a.b.Clock/Tick", "x")).rejects.toMatchObject({
      code: STATUS.UNIMPLEMENTED,
      details: 'a.b.Clock has no method "Tick"; it has Say, Repeat.',
    });
    const { status } = await readAll(client.stream("/a.b.Clock/tick", "x"));
    expect(status.code).toBe(STATUS.UNIMPLEMENTED);
  });

  it("is answered although its caller waits before it says more", async () => {
    const client = await openClient();
    const call = client.bidi("/a.B/C");
    call.on("error", () => {});
    const code = await new Promise((resolve) => call.on("status", (status) => resolve(status.code)));
    expect(code).toBe(STATUS.UNIMPLEMENTED);
  });
});

describe("the endpoint", () => {
  it("says which port is taken", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as { port: number };
    await expect(createGrpcServer(fakeOptions({ port }))).rejects.toMatchObject({
      message: `gRPC cannot listen on 127.0.0.1:${port}: the port is in use.`,
      code: "EADDRINUSE",
      port,
    });
    await new Promise((resolve) => other.close(resolve));
  });

  it("refuses two services of one name", async () => {
    await expect(createGrpcServer(fakeOptions({ services: [fakeServing(), fakeServing()] }))).rejects.toThrow(
      'Two services are called "test.v1.Parrot".',
    );
  });

  it("lets calls under way finish when it closes, and takes no more", async () => {
    const begun = signal();
    const release = signal();
    const endpoint = await openEndpoint({
      handle: async ({ message }) => {
        begun.resolve();
        await release.promise;
        return { kind: "message", message };
      },
    });
    const client = clientOf(endpoint);
    const answer = client.say("late");
    await begun.promise;
    const closing = endpoint.close(30_000);
    expect(endpoint.close(0)).toBe(closing);
    await expect(clientOf(endpoint).say("x")).rejects.toMatchObject({ code: STATUS.UNAVAILABLE });
    release.resolve();
    expect((await answer).message.toString()).toBe("late");
    await closing;
  });

  it("cuts off what is still open after the time of grace", async () => {
    const begun = signal();
    const endpoint = await openEndpoint({
      handle: () => {
        begun.resolve();
        return new Promise(() => {});
      },
    });
    const answer = clientOf(endpoint).say("x");
    const rejected = expect(answer).rejects.toMatchObject({ code: expect.any(Number) });
    await begun.promise;
    await endpoint.close(0);
    await rejected;
  });

  it("closes although connections are idle, or not even HTTP/2", async () => {
    const endpoint = await openEndpoint();
    await clientOf(endpoint).say("x");
    const { connect } = await import("node:net");
    const socket = connect(endpoint.port, "127.0.0.1");
    await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
    const gone = new Promise<void>((resolve) => socket.resume().once("close", () => resolve()));
    await endpoint.close(100);
    await gone;
  });

  it("passes each call to the service it is for", async () => {
    const asked: string[] = [];
    const admitted: string[] = [];
    const services = ["one.Parrot", "two.Parrot"].map((name) =>
      fakeServing(({ service, message }) => {
        asked.push(service);
        return { kind: "message", message };
      }, name),
    );
    const client = await openClient({
      services,
      admit: (_presented, _to, dialect) => {
        admitted.push(dialect);
        return ANONYMOUS;
      },
    });
    await client.unary("/two.Parrot/Say", "x");
    await client.unary("/one.Parrot/Say", "x");
    expect(asked).toEqual(["two.Parrot", "one.Parrot"]);
    expect(admitted).toEqual(asked);
  });

  it("answers a streaming method by one message where the service has no more", async () => {
    const client = await openClient({ handle: ({ message }) => ({ kind: "message", message }) });
    const { messages, status } = await readAll(client.repeat("once"));
    expect(messages.map(String)).toEqual(["once"]);
    expect(status.code).toBe(STATUS.OK);
  });

  it("ends an empty stream with OK", async () => {
    const client = await openClient({ handle: () => ({ kind: "stream", messages: batches([[], []]) }) });
    const { messages, status } = await readAll(client.repeat("x"));
    expect(messages).toEqual([]);
    expect(status.code).toBe(STATUS.OK);
  });
});
