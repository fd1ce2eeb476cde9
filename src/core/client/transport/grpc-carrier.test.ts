import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Metadata, status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { RpcStatusError } from "../../wire/rpc.ts";
import { failedBeforeSending, toConnectionError } from "../errors.ts";
import { createGrpcCarrier } from "./grpc-carrier.ts";
import { type GrpcAddress, parseGrpcAddress } from "./grpc-channels.ts";
import { startGrpcServer } from "./testing/grpc-server.ts";

const SERVICE = "test.Service";
const carrier = createGrpcCarrier();
const NEVER = new AbortController().signal;
const OPTIONS = { signal: NEVER, silenceMs: 60_000 };

function at(authority: string): GrpcAddress {
  return parseGrpcAddress(authority, { tls: false }) as GrpcAddress;
}

function call(method: string, message = "", metadata: Record<string, string> = {}) {
  return { service: SERVICE, method, metadata, message: Buffer.from(message) };
}

function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("bytes and metadata go out and come back as they are", async () => {
  await using server = await startGrpcServer(SERVICE, {
    unary: {
      Echo(received, answer) {
        const metadata = new Metadata();
        metadata.set("x-answer", "yes");
        received.sendMetadata(metadata);
        answer(null, Buffer.from([...received.request].reverse()));
      },
    },
  });
  const answer = await carrier.unary(
    at(server.authority),
    { ...call("Echo", "abc"), metadata: { Authorization: "Bearer x", "x-raw-bin": "AAH/", host: "h", accept: "a" } },
    OPTIONS,
  );
  expect(Buffer.from(answer.message).toString()).toBe("cba");
  expect(answer.metadata).toMatchObject({ "x-answer": "yes" });
  const [received] = server.calls;
  expect(received?.metadata.get("authorization")).toEqual(["Bearer x"]);
  expect(received?.metadata.get("x-raw-bin")).toEqual([Buffer.from([0, 1, 255])]);
  expect(received?.metadata.get("accept")).toEqual([]);
});

test("a status that is not OK has its text, details and metadata", async () => {
  await using server = await startGrpcServer(SERVICE, {
    unary: {
      Fail(_, answer) {
        const metadata = new Metadata();
        metadata.set("grpc-status-details-bin", Buffer.from([1, 2, 3]));
        metadata.set("x-more", "m");
        answer({ code: status.NOT_FOUND, details: "No such task.", metadata });
      },
    },
  });
  const error = await failureOf(carrier.unary(at(server.authority), call("Fail"), OPTIONS));
  expect(error).toBeInstanceOf(RpcStatusError);
  expect((error as RpcStatusError).status).toMatchObject({
    code: 5,
    message: "No such task.",
    metadata: { "x-more": "m" },
  });
  expect(Buffer.from((error as RpcStatusError).status.details ?? [])).toEqual(Buffer.from([1, 2, 3]));
  const unknown = await failureOf(carrier.unary(at(server.authority), call("Unknown"), OPTIONS));
  expect((unknown as RpcStatusError).status).toMatchObject({ code: 12 });
  expect((unknown as RpcStatusError).status.details).toBeUndefined();
});

test("calls to one address share a connection", async () => {
  const peers: string[] = [];
  await using server = await startGrpcServer(SERVICE, {
    unary: {
      Echo(received, answer) {
        peers.push(received.getPeer());
        answer(null, received.request);
      },
    },
  });
  const one = () => carrier.unary(at(server.authority), call("Echo"), OPTIONS);
  await one();
  await Promise.all([one(), one(), one()]);
  expect(peers).toHaveLength(4);
  expect(new Set(peers).size).toBe(1);
});

test("a server that was not there is reached as soon as it is", async () => {
  const placeholder = createServer();
  const authority = await listening(placeholder);
  await new Promise((resolve) => placeholder.close(resolve));
  for (let tries = 0; tries < 3; tries++) {
    const error = await failureOf(carrier.unary(at(authority), call("Echo"), OPTIONS));
    const failed = toConnectionError(error, { method: "gRPC", url: `grpc://${authority}/x` });
    expect(failed).toMatchObject({ code: "unreachable", message: expect.stringContaining("Connection refused") });
    expect(failedBeforeSending(failed)).toBe(true);
  }
  const port = Number(authority.split(":")[1]);
  await using _server = await startGrpcServer(
    SERVICE,
    { unary: { Echo: ({ request }, answer) => answer(null, request) } },
    port,
  );
  const { message } = await carrier.unary(at(authority), call("Echo", "now"), OPTIONS);
  expect(Buffer.from(message).toString()).toBe("now");
});

test.each([
  ["a host that does not exist", async () => ({ authority: "no-such-host.invalid:1", close() {} })],
  [
    "a server of HTTP/1",
    async () => {
      const server = createHttpServer((_, response) => void response.end("<html>"));
      return { authority: await listening(server), close: () => void server.close() };
    },
  ],
  [
    "a server that hangs up",
    async () => {
      const server = createServer((socket) => void socket.destroy());
      return { authority: await listening(server), close: () => void server.close() };
    },
  ],
])("%s has taken nothing", async (_, start) => {
  const { authority, close } = await start();
  for (const tried of [
    carrier.unary(at(authority), call("Echo"), OPTIONS),
    carrier.stream(at(authority), call("Count"), OPTIONS).messages.next(),
  ]) {
    const error = await failureOf(tried);
    expect(error).toMatchObject({ name: "CarrierError", code: "unreachable" });
    expect(failedBeforeSending(toConnectionError(error, { method: "gRPC", url: "grpc://x/y" }))).toBe(true);
  }
  close();
});

test("a connection that breaks under a call may have brought it", async () => {
  await using server = await startGrpcServer(SERVICE, {
    unary: { Die: () => void server[Symbol.asyncDispose]() },
  });
  const error = await failureOf(carrier.unary(at(server.authority), call("Die"), OPTIONS));
  expect(error).toMatchObject({ name: "CarrierError", code: "broken-stream" });
  expect(failedBeforeSending(toConnectionError(error, { method: "gRPC", url: "grpc://x/y" }))).toBe(false);
});

test("a call ends at its deadline and when it is aborted, and the server hears of it", async () => {
  const cancelled: Promise<unknown>[] = [];
  await using server = await startGrpcServer(SERVICE, {
    unary: { Hang: (received) => void cancelled.push(once(received, "cancelled")) },
  });
  const address = at(server.authority);
  expect(await failureOf(carrier.unary(address, call("Hang"), { ...OPTIONS, timeoutMs: 30 }))).toMatchObject({
    name: "CarrierError",
    code: "timeout",
  });
  const before = cancelled.length;
  const controller = new AbortController();
  const aborting = failureOf(carrier.unary(address, call("Hang"), { ...OPTIONS, signal: controller.signal }));
  while (cancelled.length === before) await new Promise(setImmediate);
  controller.abort();
  expect(await aborting).toMatchObject({ name: "CarrierError", code: "aborted" });
  await Promise.all(cancelled);
  const late = carrier.unary(address, call("Hang"), { ...OPTIONS, signal: AbortSignal.abort() });
  expect(await failureOf(late)).toMatchObject({ code: "aborted" });
  expect(server.calls).toHaveLength(before + 1);
});

test("a call tells the server when its result is no longer waited for", async () => {
  const seen: unknown[] = [];
  await using server = await startGrpcServer(SERVICE, {
    unary: {
      Say: (received, answer) => {
        seen.push(received.getDeadline());
        answer(null, Buffer.from("x"));
      },
    },
    streaming: {
      Repeat: (received) => {
        seen.push(received.getDeadline());
        received.end();
      },
    },
  });
  const address = at(server.authority);
  const HOUR = 3_600_000;
  const now = Date.now();
  const deadline = now + 4 * HOUR;
  await carrier.unary(address, call("Say"), { ...OPTIONS, timeoutMs: 9 * HOUR, deadline });
  await carrier.unary(address, call("Say"), { ...OPTIONS, timeoutMs: HOUR, deadline });
  await carrier.stream(address, call("Repeat"), { ...OPTIONS, timeoutMs: HOUR, deadline }).messages.next();
  await carrier.stream(address, call("Repeat"), { ...OPTIONS, timeoutMs: HOUR }).messages.next();
  expect(seen.map((at) => Math.round((Number(at) - now) / HOUR))).toEqual([4, 1, 4, Number.POSITIVE_INFINITY]);
});

test("a stream is given up when the peer never gives a sign", async () => {
  const server = createServer(() => {});
  try {
    const authority = await listening(server);
    const stream = carrier.stream(at(authority), call("Mute"), { ...OPTIONS, timeoutMs: 200 });
    const error = await failureOf(stream.messages.next());
    expect(error).toMatchObject({ code: "timeout" });
    expect(failedBeforeSending(toConnectionError(error, { method: "gRPC", url: authority }))).toBe(true);
  } finally {
    server.close();
    server.unref();
  }
});

test("a stream hands over all its messages, then its end or its error", async () => {
  await using server = await startGrpcServer(SERVICE, {
    streaming: {
      Count(received) {
        for (let n = 0; n < 100; n++) received.write(Buffer.from(String(n)));
        if (received.request.toString() === "fail") {
          received.emit("error", { code: status.ABORTED, details: "Enough.", metadata: new Metadata() });
        } else received.end();
      },
    },
  });
  const seen: string[] = [];
  for await (const batch of carrier.stream(at(server.authority), call("Count"), OPTIONS).messages) {
    for (const message of batch) seen.push(Buffer.from(message).toString());
  }
  expect(seen).toEqual(Array.from({ length: 100 }, (_, n) => String(n)));

  const failing = carrier.stream(at(server.authority), call("Count", "fail"), OPTIONS);
  const error = await failureOf(
    (async () => {
      for await (const _ of failing.messages);
    })(),
  );
  expect((error as RpcStatusError).status).toMatchObject({ code: status.ABORTED, message: "Enough." });
});

test("a stream ends when it is cancelled, left or aborted, and the server hears of it", async () => {
  let closed: Promise<unknown> = Promise.resolve();
  await using server = await startGrpcServer(SERVICE, {
    streaming: {
      Hang(received) {
        closed = once(received, "cancelled");
        received.write(Buffer.from("x"));
      },
    },
  });
  const address = at(server.authority);
  for await (const _ of carrier.stream(address, call("Hang"), OPTIONS).messages) break;
  await closed;

  const cancelled = carrier.stream(address, call("Hang"), OPTIONS);
  await cancelled.messages.next();
  const pending = cancelled.messages.next();
  cancelled.cancel();
  expect(await pending).toEqual({ done: true, value: undefined });
  await closed;

  const controller = new AbortController();
  const aborted = carrier.stream(address, call("Hang"), { ...OPTIONS, signal: controller.signal });
  await aborted.messages.next();
  const reading = failureOf(aborted.messages.next());
  controller.abort();
  expect(await reading).toMatchObject({ code: "aborted" });
  await closed;

  const early = carrier.stream(address, call("Hang"), OPTIONS);
  early.cancel();
  expect(await early.messages.next()).toEqual({ done: true, value: undefined });
  expect(server.calls).toHaveLength(3);
});

test("a reader that does not read holds the server back", async () => {
  const chunk = Buffer.alloc(64 * 1024);
  const count = 1_000;
  let written = 0;
  let stalled = (): void => {};
  const held = new Promise<void>((resolve) => {
    stalled = resolve;
  });
  await using server = await startGrpcServer(SERVICE, {
    streaming: {
      async Flood(received) {
        for (; written < count; written++) {
          if (received.write(chunk)) continue;
          const drained = once(received, "drain");
          // On loopback a reader that reads makes room within this time many times over.
          const timer = setTimeout(() => stalled(), 300);
          await drained;
          clearTimeout(timer);
        }
        received.end();
      },
    },
  });
  const { messages } = carrier.stream(at(server.authority), call("Flood"), OPTIONS);
  let read = (await messages.next()).value?.length ?? 0;
  await held;
  expect(written).toBeLessThan(count / 4);
  for await (const batch of messages) read += batch.length;
  expect(read).toBe(count);
});

test("large messages pass, larger ones are refused without a repeat", async () => {
  await using server = await startGrpcServer(SERVICE, {
    unary: { Give: ({ request }, answer) => answer(null, Buffer.alloc(Number(request.toString()))) },
  });
  const size = 20 * 1024 * 1024;
  const { message } = await carrier.unary(at(server.authority), call("Give", String(size)), OPTIONS);
  expect(message.byteLength).toBe(size);
  const tooMuch = carrier.unary(at(server.authority), call("Give", String(65 * 1024 * 1024)), OPTIONS);
  expect(await failureOf(tooMuch)).toMatchObject({ code: "too-large" });
});

test("a header that cannot be sent is named, its value is not", async () => {
  await using server = await startGrpcServer(SERVICE, {});
  const error = await failureOf(
    carrier.unary(at(server.authority), call("Echo", "", { "x-key": "geheim\u00fc" }), OPTIONS),
  );
  const { message } = toConnectionError(error, { method: "gRPC", url: `grpc://${server.authority}/x` });
  expect(message).toContain('the header "x-key" cannot be sent over gRPC');
  expect(message).not.toContain("geheim");
});

test.each([
  [true, 0x16],
  [false, "P".charCodeAt(0)],
])("with TLS %s the first byte is %i", async (tls, byte) => {
  const server = createServer();
  const authority = await listening(server);
  const first = once(server, "connection").then(async ([socket]) => {
    const [data] = await once(socket, "data");
    socket.destroy();
    return (data as Buffer)[0];
  });
  const address = parseGrpcAddress(authority.replace("127.0.0.1", "localhost"), { tls }) as GrpcAddress;
  const failed = failureOf(carrier.unary(address, call("Echo"), OPTIONS));
  expect(await first).toBe(byte);
  expect(await failed).toMatchObject({ code: "unreachable" });
  server.close();
});

test("a process with nothing else to do ends", async () => {
  await using server = await startGrpcServer(SERVICE, {
    unary: { Echo: ({ request }, answer) => answer(null, request) },
    streaming: { Count: (received) => void received.write(Buffer.from("1")) },
  });
  const child = fileURLToPath(new URL("testing/grpc-child.ts", import.meta.url));
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ["--import", "tsx", child, server.authority]);
  expect(stdout).toBe("hello");
}, 30_000);
