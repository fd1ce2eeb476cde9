import { constants } from "node:http2";
import { status as STATUS } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import {
  clientOf,
  closeAfterEach,
  connectionTo,
  openClient,
  openEndpoint,
  readAll,
  signal,
  statusOf,
} from "./testing/clients.ts";
import { batches, recording } from "./testing/fake-serving.ts";
import { answerOf, framed } from "./testing/raw-http2.ts";

closeAfterEach();

type Step = IteratorResult<readonly Uint8Array[]>;

/** Endless messages; records how many were pulled and whether it was closed. */
class Source implements AsyncIterableIterator<readonly Uint8Array[]> {
  readonly left = signal();
  readonly asked = signal();
  pulled = 0;
  returned = 0;
  readonly #step: (pull: number) => Promise<Step>;

  constructor(step: (pull: number) => Promise<Step>) {
    this.#step = step;
  }
  [Symbol.asyncIterator](): this {
    return this;
  }
  next(): Promise<Step> {
    this.asked.resolve();
    return this.#step(++this.pulled);
  }
  return(): Promise<Step> {
    this.returned++;
    this.left.resolve();
    return Promise.resolve({ done: true, value: undefined });
  }
}

const silent = () => new Source(() => new Promise<Step>(() => {}));

const endless = (bytes: number) =>
  new Source(async () => ({ done: false, value: [new Uint8Array(bytes), new Uint8Array(bytes)] }));

describe("a stream", () => {
  it("brings every message of every batch, in order", async () => {
    const words = Array.from({ length: 300 }, (_, index) => `word ${index}`);
    const all = [words.slice(0, 1), words.slice(1, 1), words.slice(1, 200), words.slice(200)];
    const messages = () => batches(all.map((batch) => batch.map((word) => Buffer.from(word))));
    const client = await openClient({ handle: () => ({ kind: "stream", messages: messages() }) });
    const results = await Promise.all(Array.from({ length: 20 }, () => readAll(client.repeat("x"))));
    for (const result of results) {
      expect(result.messages.map(String)).toEqual(words);
      expect(result.status.code).toBe(STATUS.OK);
    }
  });

  it("begins with its metadata, before there is a message", async () => {
    const client = await openClient({
      handle: () => ({ kind: "stream", metadata: { "a2a-version": "1.0" }, messages: silent() }),
    });
    const call = client.repeat("x");
    call.on("error", () => {});
    const metadata = await new Promise((resolve) => call.on("metadata", (one) => resolve(one.get("a2a-version"))));
    expect(metadata).toEqual(["1.0"]);
    call.cancel();
  });

  it("ends with the status it failed with, after what it had said", async () => {
    const details = new Uint8Array([8, 14]);
    const failing = async function* () {
      yield [Buffer.from("first")];
      throw new RpcStatusError({
        code: RPC_CODES.UNAVAILABLE,
        message: "Later.",
        details,
        metadata: { "retry-after": "3" },
      });
    };
    const client = await openClient({ handle: () => ({ kind: "stream", messages: failing() }) });
    const { messages, status } = await readAll(client.repeat("x"));
    expect(messages.map(String)).toEqual(["first"]);
    expect(status).toMatchObject({ code: STATUS.UNAVAILABLE, details: "Later." });
    expect(status.metadata.get("grpc-status-details-bin")).toEqual([Buffer.from(details)]);
    expect(status.metadata.get("retry-after")).toEqual(["3"]);
  });

  it.each([
    ["rejects", () => new Source(() => Promise.reject(new Error("secret")))],
    [
      "throws",
      () =>
        new Source((pull) => {
          if (pull > 1) throw new Error("secret");
          return Promise.resolve({ done: false, value: [Buffer.from("x")] });
        }),
    ],
  ])("whose source %s is logged and ends without a reason", async (_, source) => {
    const { log, lines } = recording();
    const client = await openClient({ log, handle: () => ({ kind: "stream", messages: source() }) });
    const { status } = await readAll(client.repeat("x"));
    expect(status).toMatchObject({ code: STATUS.INTERNAL, details: "The stream broke." });
    expect(lines).toEqual(['A stream broke. {"err":"secret"}']);
  });
});

describe("a reader that leaves", () => {
  it("is noticed while nothing is being sent", async () => {
    const source = silent();
    const client = await openClient({ handle: () => ({ kind: "stream", messages: source }) });
    const call = client.repeat("x");
    const status = statusOf(call);
    await source.asked.promise;
    call.cancel();
    await source.left.promise;
    expect((await status).code).toBe(STATUS.CANCELLED);
    expect(source).toMatchObject({ pulled: 1, returned: 1 });
  });

  it("is noticed while it is being sent to", async () => {
    const source = endless(10_000);
    const client = await openClient({ handle: () => ({ kind: "stream", messages: source }) });
    const call = client.repeat("x");
    const status = statusOf(call);
    call.once("data", () => call.cancel());
    await source.left.promise;
    await status;
    expect(source.returned).toBe(1);
  });

  it("is noticed before there is an answer", async () => {
    const source = silent();
    const asked = signal();
    const answer = signal();
    const endpoint = await openEndpoint({
      handle: async () => {
        asked.resolve();
        await answer.promise;
        return { kind: "stream", messages: source };
      },
    });
    const connection = connectionTo(endpoint);
    const stream = connection.request("Repeat");
    stream.end(framed("x"));
    await asked.promise;
    stream.close(constants.NGHTTP2_CANCEL);
    // An answer on the same connection shows that the server has seen what came before it.
    await connection.call("Missing", framed("x"));
    answer.resolve();
    await source.left.promise;
    expect(source.pulled).toBe(0);
  });

  it("is noticed when its connection breaks", async () => {
    const source = silent();
    const endpoint = await openEndpoint({ handle: () => ({ kind: "stream", messages: source }) });
    const connection = connectionTo(endpoint);
    connection.request("Repeat").end(framed("x"));
    await source.asked.promise;
    connection.close();
    await source.left.promise;
  });

  it("does no harm where the source fails on its way out", async () => {
    const { log, lines } = recording();
    const source = silent();
    source.return = () => {
      source.left.resolve();
      return Promise.reject(new Error("stuck"));
    };
    const client = await openClient({ log, handle: () => ({ kind: "stream", messages: source }) });
    const call = client.repeat("x");
    const status = statusOf(call);
    await source.asked.promise;
    call.cancel();
    await status;
    await source.left.promise;
    await Promise.resolve();
    expect(lines).toEqual(['A stream could not be closed. {"err":"stuck"}']);
  });
});

describe("a deadline", () => {
  it("ends a silent stream", async () => {
    const source = silent();
    const endpoint = await openEndpoint({ handle: () => ({ kind: "stream", messages: source }) });
    const answer = await connectionTo(endpoint).call("Repeat", framed("x"), { "grpc-timeout": "300m" });
    expect(answer.trailers["grpc-status"]).toBe(String(STATUS.DEADLINE_EXCEEDED));
    await source.left.promise;
    expect(source.returned).toBe(1);
  });

  it("ends a busy stream by a status, not by an error", async () => {
    const source = endless(100);
    const endpoint = await openEndpoint({ handle: () => ({ kind: "stream", messages: source }) });
    const answer = await connectionTo(endpoint).call("Repeat", framed("x"), { "grpc-timeout": "300m" });
    expect(answer.trailers["grpc-status"]).toBe(String(STATUS.DEADLINE_EXCEEDED));
    expect(answer.resetCode).toBe(0);
    await source.left.promise;
  });

  it("ends a call with one answer, and what it asked for goes on", async () => {
    const release = signal();
    const finished = signal();
    const endpoint = await openEndpoint({
      handle: async ({ message }) => {
        if (Buffer.from(message).toString() === "wait") await release.promise;
        finished.resolve();
        return { kind: "message", message };
      },
    });
    const connection = connectionTo(endpoint);
    const answer = await connection.call("Say", framed("wait"), { "grpc-timeout": "300m" });
    expect(answer.headers["grpc-status"]).toBe(String(STATUS.DEADLINE_EXCEEDED));
    release.resolve();
    await finished.promise;
    expect((await connection.call("Say", framed("next"))).body).toEqual(framed("next"));
  });
});

describe("a slow reader", () => {
  it("is sent no more than it takes, and is cut off if it takes nothing", async () => {
    const { meter, counted } = recording();
    const source = endless(8 * 1024);
    const endpoint = await openEndpoint({
      meter,
      stalledReaderMs: 200,
      handle: ({ message }) =>
        message.length > 1 ? { kind: "message", message } : { kind: "stream", messages: source },
    });
    const connection = connectionTo(endpoint);
    const stalled = connection.request("Repeat");
    stalled.end(framed("x"));
    const cut = answerOf(stalled);
    stalled.pause();
    await source.left.promise;
    expect(counted).toEqual(["readers_stalled"]);
    // What HTTP/2 lets through unread is 64 KiB, and one batch waits behind it.
    expect(source.pulled).toBeLessThanOrEqual(6);
    expect(source.returned).toBe(1);
    // Others on the same connection are not concerned.
    expect((await connection.call("Say", framed("well"))).body).toEqual(framed("well"));
    expect(await cut).toMatchObject({ trailers: {}, resetCode: constants.NGHTTP2_ENHANCE_YOUR_CALM });
  });

  it("is told so as a status of the library's client", async () => {
    const { meter, counted } = recording();
    const source = endless(256 * 1024);
    const client = await openClient({
      meter,
      stalledReaderMs: 200,
      handle: () => ({ kind: "stream", messages: source }),
    });
    const call = client.repeat("x");
    const status = statusOf(call);
    call.on("data", () => call.pause());
    await source.left.promise;
    call.resume();
    expect((await status).code).toBe(STATUS.RESOURCE_EXHAUSTED);
    expect(counted).toEqual(["readers_stalled"]);
  });

  it("gets everything as long as it takes something", async () => {
    const { meter, counted } = recording();
    const total = 300;
    const source = new Source(async (pull) =>
      pull > total ? { done: true, value: undefined } : { done: false, value: [Buffer.alloc(16 * 1024, pull % 251)] },
    );
    const endpoint = await openEndpoint({ meter, handle: () => ({ kind: "stream", messages: source }) });
    const call = clientOf(endpoint).repeat("x");
    const seen: number[] = [];
    let ahead = 0;
    call.on("data", (message: Buffer) => {
      seen.push(message[0] as number);
      ahead = Math.max(ahead, source.pulled - seen.length);
      call.pause();
      setImmediate(() => call.resume());
    });
    expect((await statusOf(call)).code).toBe(STATUS.OK);
    expect(seen).toEqual(Array.from({ length: total }, (_, index) => (index + 1) % 251));
    expect(ahead).toBeLessThan(total);
    expect(counted).toEqual([]);
  });

  it("has longer for a larger batch", async () => {
    const left: string[] = [];
    const sources = { small: endless(100 * 1024), large: endless(5 * 1024 * 1024) };
    for (const [name, source] of Object.entries(sources)) void source.left.promise.then(() => left.push(name));
    const endpoint = await openEndpoint({
      stalledReaderMs: 100,
      handle: ({ message }) => ({ kind: "stream", messages: message.length > 5 ? sources.small : sources.large }),
    });
    const connection = connectionTo(endpoint);
    for (const body of ["large", "smaller"]) {
      const stream = connection.request("Repeat");
      stream.end(framed(body));
      stream.pause();
    }
    await sources.large.left.promise;
    expect(left).toEqual(["small", "large"]);
  });

  it("may be silent for long between messages that it takes", async () => {
    const { meter, counted } = recording();
    const again = signal();
    const source = new Source(async (pull) => {
      if (pull === 2) await again.promise;
      return pull > 2 ? { done: true, value: undefined } : { done: false, value: [Buffer.from("x")] };
    });
    const client = await openClient({
      meter,
      stalledReaderMs: 250,
      handle: () => ({ kind: "stream", messages: source }),
    });
    const call = client.repeat("x");
    call.once("data", () => setTimeout(again.resolve, 600));
    const { messages, status } = await readAll(call);
    expect(messages).toHaveLength(2);
    expect(status.code).toBe(STATUS.OK);
    expect(counted).toEqual([]);
  });
});
