import { readFileSync } from "node:fs";
import { createServer as createHttpServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer, type Socket } from "node:net";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { FakeClock } from "../engine/testing/fake-clock.ts";
import { systemClock } from "../server/clock-and-ids.ts";
import { refuseUpgrade } from "../server/http/error-replies.ts";
import type { DialError } from "./dial-error.ts";
import type { Link } from "./link.ts";
import { linkErrorCode, readAll, readSome } from "./testing/read-link.ts";
import { type DialOptions, dialWebSocket } from "./websocket-dial.ts";
import { createWebSocketAcceptor, type WebSocketLink, type WebSocketLinkOptions } from "./websocket-link.ts";

const fixture = (name: string) => readFileSync(new URL(`fixtures/${name}`, import.meta.url), "utf8");
const FINGERPRINT = "11:04:B7:B5:FF:57:62:CA:B2:FB:7E:B3:1D:2F:69:B9:ED:D1:69:F5:94:F1:79:85:D8:FC:D6:78:2E:84:A4:62";

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean();
});

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

/** A server that takes links; each goes to whoever waits for the next. */
async function accepting(options: Partial<WebSocketLinkOptions> = {}, secure = false) {
  const server = secure
    ? createHttpsServer({ key: fixture("host-key.pem"), cert: fixture("host.pem") })
    : createHttpServer();
  const accept = createWebSocketAcceptor({ clock: systemClock, ...options });
  const requests: IncomingMessage[] = [];
  const waiting: ((link: WebSocketLink) => void)[] = [];
  server.on("upgrade", (request, socket, head) => {
    requests.push(request);
    accept(request, socket, head, (link) => {
      cleanups.push(() => link.terminate("test"));
      waiting.shift()?.(link);
    });
  });
  const port = await listening(server);
  return {
    url: `${secure ? "wss" : "ws"}://127.0.0.1:${port}/link`,
    requests,
    next: () => new Promise<WebSocketLink>((resolve) => waiting.push(resolve)),
  };
}

async function dial(url: string, options: Partial<DialOptions> = {}): Promise<WebSocketLink> {
  const link = await dialWebSocket(url, { clock: systemClock, headers: {}, connectTimeoutMs: 5_000, ...options });
  cleanups.push(() => link.terminate("test"));
  return link;
}

async function joined(
  near: Partial<DialOptions> = {},
  far: Partial<WebSocketLinkOptions> = {},
): Promise<[WebSocketLink, WebSocketLink]> {
  const server = await accepting(far);
  const accepted = server.next();
  return [await dial(server.url, near), await accepted];
}

async function failure(dialling: Promise<unknown>): Promise<DialError> {
  return dialling.then(
    () => Promise.reject(new Error("It was not refused.")),
    (error: DialError) => error,
  );
}

describe("a WebSocket as a link", () => {
  it("delivers both ways, in order, each once, whatever the bounds", async () => {
    const texts = fc.array(fc.string({ unit: "grapheme" }), { maxLength: 60 });
    const bound = fc.integer({ min: 1, max: 8 });
    await fc.assert(
      fc.asyncProperty(texts, texts, bound, bound, async (there, back, highWaterBytes, maxUnread) => {
        const [near, far] = await joined({ highWaterBytes, maxUnread }, { highWaterBytes, maxUnread });
        const sendAll = async (link: Link, all: string[]) => {
          for (const text of all) await link.send(text);
        };
        const [atFar, atNear] = await Promise.all([
          readSome(far, there.length),
          readSome(near, back.length),
          sendAll(near, there),
          sendAll(far, back),
        ]);
        expect(atFar).toEqual(there);
        expect(atNear).toEqual(back);
      }),
      { numRuns: 25 },
    );
  });

  it("makes a sender wait for a reader that does not read, refuses beyond the bound, and goes on when it reads", async () => {
    const [near, far] = await joined({ highWaterBytes: 1_000, maxBufferedBytes: 20_000_000 }, { maxUnread: 2 });
    const piece = "x".repeat(1_000_000);
    let sent = 0;
    const refused = (): string => {
      for (; sent < 1_000; sent++) {
        const code = linkErrorCode(() => near.send(piece));
        if (code !== "accepted") return code;
      }
      return "never";
    };
    expect(refused()).toBe("buffer-full");
    expect(sent).toBeGreaterThanOrEqual(20);
    expect(await readSome(far, sent)).toEqual(Array.from({ length: sent }, () => piece));
    await near.send("again");
  });

  it("delivers what was sent before the close, then ends; both know why", async () => {
    const [near, far] = await joined();
    void near.send("a");
    void near.send("b");
    near.close(4001, "done");
    near.close(4002, "later");
    expect(linkErrorCode(() => near.send("c"))).toBe("closed");
    expect(await readAll(far)).toEqual(["a", "b"]);
    expect(await far.closed).toEqual({ code: 4001, reason: "done" });
    expect(await near.closed).toEqual({ code: 4001, reason: "done" });
    expect(linkErrorCode(() => far.send("x"))).toBe("closed");
  });

  it("closes when the reader leaves its loop, and drops what it has not read", async () => {
    const [near, far] = await joined();
    void near.send("a");
    void near.send("b");
    await near.received();
    for await (const text of far.messages) {
      expect(text).toBe("a");
      break;
    }
    expect(await near.closed).toEqual({ code: 1000, reason: "" });
    expect(linkErrorCode(() => far.messages[Symbol.asyncIterator]())).toBe("already-read");
  });

  it("ends readers and lets waiting senders go when the other side vanishes", async () => {
    const [near, far] = await joined({ highWaterBytes: 1 }, { maxUnread: 1 });
    const waits: (void | Promise<void>)[] = [];
    for (let sent = 0; sent < 50; sent++) waits.push(near.send("x".repeat(1_000_000)));
    far.terminate("gone");
    await Promise.all(waits);
    expect(await readAll(near)).toEqual([]);
    expect(await near.closed).toMatchObject({ code: 1006 });
    expect(await far.closed).toEqual({ code: 1006, reason: "gone" });
  });

  it("knows what the other side has got", async () => {
    const [near, far] = await joined();
    void near.send("a");
    expect(await Promise.all([near.received(), near.received()])).toEqual([true, true]);
    const asked = near.received();
    far.terminate("gone");
    expect(await asked).toBe(false);
    await near.closed;
    expect(await near.received()).toBe(false);
  });

  it("ends a link whose message is too big with code 1009", async () => {
    const [near, far] = await joined();
    void near.send("x".repeat(16 * 1024 * 1024 + 1));
    expect(await readAll(far)).toEqual([]);
    expect((await far.closed).code).toBe(1009);
    expect((await near.closed).code).toBe(1009);
  });
});

/** A WebSocket server of its own making, for what ours never does. */
async function rawServer(autoPong: boolean): Promise<{ url: string; sockets: WebSocket[]; pings: () => number }> {
  const server = createHttpServer();
  const sockets: WebSocket[] = [];
  let pings = 0;
  new WebSocketServer({ server, autoPong }).on("connection", (socket) => {
    sockets.push(socket);
    socket.on("ping", () => pings++);
  });
  return { url: `ws://127.0.0.1:${await listening(server)}`, sockets, pings: () => pings };
}

/** Lets what is under way on real sockets happen, until `true`. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

describe("pings", () => {
  const ping = { everyMs: 30_000, deadlineMs: 10_000 };

  it("end a link whose other side does not answer in time, not before", async () => {
    const clock = new FakeClock();
    const { pings, url } = await rawServer(false);
    const link = await dial(url, { clock, ping });
    await clock.advance(29_999);
    expect(pings()).toBe(0);
    await clock.advance(1);
    await until(() => pings() === 1);
    let closed = false;
    void link.closed.then(() => {
      closed = true;
    });
    await clock.advance(9_999);
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toBe(false);
    await clock.advance(1);
    expect(await link.closed).toEqual({
      code: 1006,
      reason: "The other side did not answer a ping in time.",
    });
  });

  it("keep a link whose other side answers", async () => {
    const clock = new FakeClock();
    const { pings, sockets, url } = await rawServer(true);
    const link = await dial(url, { clock, ping });
    for (let round = 1; round <= 3; round++) {
      const before = pings();
      await clock.advance(30_000);
      await until(() => pings() > before);
      await link.received();
      await clock.advance(10_000);
    }
    sockets[0]?.send("still here");
    expect(await readSome(link, 1)).toEqual(["still here"]);
  });

  it.each([
    ["without a goodbye", (socket: WebSocket) => socket.terminate()],
    ["with one", (socket: WebSocket) => socket.close(1001)],
  ])("a link that ends %s says that what it was asked about was not confirmed", async (_how, end) => {
    const { sockets, url } = await rawServer(false);
    const link = await dial(url);
    await until(() => sockets.length === 1);
    void link.send("a");
    const received = link.received();
    end(sockets[0] as WebSocket);
    expect(await received).toBe(false);
  });

  it("a link that closes waits a moment for the goodbye, then ends", async () => {
    const clock = new FakeClock();
    const { sockets, url } = await rawServer(true);
    const link = await dial(url, { clock });
    await until(() => sockets.length === 1);
    sockets[0]?.pause();
    link.close();
    await clock.advance(2_000);
    expect(await link.closed).toEqual({ code: 1000, reason: "" });
  });
});

/** A peer that dials and reads nothing; what it sends is up to the test. */
async function dialWithoutReading(url: string): Promise<Socket> {
  const { hostname, port, pathname } = new URL(url);
  const socket = connectTcp(Number(port), hostname);
  cleanups.push(() => socket.destroy());
  socket.on("error", () => {});
  socket.pause();
  const headers = [
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    `sec-websocket-key: ${KEY}`,
  ];
  socket.write(`GET ${pathname} HTTP/1.1\r\nhost: ${hostname}\r\n${headers.join("\r\n")}\r\n\r\n`);
  return socket;
}

const KEY = Buffer.alloc(16).toString("base64");
const [PING, PONG] = [0x89, 0x8a];

/** One control frame, under the mask of zeros. */
function control(opcode: number | undefined, payload: string): Buffer {
  return Buffer.concat([Buffer.from([opcode ?? 0, 0x80 | payload.length, 0, 0, 0, 0]), Buffer.from(payload)]);
}

describe("a side that sends pings and reads nothing", () => {
  const ping = { everyMs: 30_000, deadlineMs: 10_000 };

  it("makes no pongs pile up, and is cut", async () => {
    const clock = new FakeClock();
    const server = await accepting({ clock, ping });
    const accepted = server.next();
    const socket = await dialWithoutReading(server.url);
    const link = await accepted;
    const carrier = server.requests[0]?.socket as Socket;
    const pings = Buffer.concat(Array.from({ length: 1_000 }, () => control(PING, "x".repeat(125))));
    // More than what the operating system takes for both sides.
    for (let sent = 0; sent < 200; sent++) {
      const before = carrier.bytesRead;
      socket.write(pings);
      await until(() => carrier.bytesRead >= before + pings.length);
    }
    expect(carrier.writableLength).toBeLessThan(1_000);
    // It answers as if it had read: ours count from one, and anybody can do that.
    for (const guess of ["1", "2", "999999"]) socket.write(control(PONG, guess));
    await clock.advance(30_000);
    const before = carrier.bytesRead;
    socket.write(Buffer.concat(["1", "2", "999999"].map((guess) => control(PONG, guess))));
    await until(() => carrier.bytesRead > before);
    await clock.advance(10_000);
    expect(await link.closed).toEqual({ code: 1006, reason: "The other side did not answer a ping in time." });
  });

  it("gets an answer to its newest ping once it reads", async () => {
    const server = await accepting();
    const accepted = server.next();
    const socket = await dialWithoutReading(server.url);
    await accepted;
    socket.write(Buffer.concat(["first", "second", "newest"].map((payload) => control(PING, payload))));
    let read = "";
    socket.on("data", (data) => {
      read += data.toString("latin1");
    });
    socket.resume();
    await until(() => read.endsWith("\x8a\x06newest"));
  });
});

describe("dialling", () => {
  it("sends the headers of this connection", async () => {
    const server = await accepting();
    await dial(server.url, { headers: { "x-ts": "1" } });
    await dial(server.url, { headers: { "x-ts": "2" } });
    expect(server.requests.map(({ headers }) => headers["x-ts"])).toEqual(["1", "2"]);
  });

  it("says with which status it was refused", async () => {
    const server = createHttpServer();
    server.on("upgrade", (_request, socket) => refuseUpgrade(socket, { status: 403, headers: {}, body: undefined }));
    const error = await failure(dial(`ws://127.0.0.1:${await listening(server)}`));
    expect(error).toMatchObject({ failure: "refused", status: 403 });
  });

  it("reports that the connection was refused", async () => {
    const server = createTcpServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    expect(await failure(dial(`ws://127.0.0.1:${port}`))).toMatchObject({ failure: "unreachable" });
  });

  it("gives up in time, and when it is aborted", async () => {
    const silent = createTcpServer((socket) => {
      cleanups.push(() => socket.destroy());
    });
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    cleanups.push(() => silent.close());
    const url = `ws://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const clock = new FakeClock();
    const late = failure(dial(url, { clock, connectTimeoutMs: 30_000 }));
    await clock.advance(30_000);
    expect(await late).toMatchObject({ failure: "timeout", message: "There was no connection within 30 s." });
    const controller = new AbortController();
    const stopped = failure(dial(url, { signal: controller.signal }));
    controller.abort();
    expect(await stopped).toMatchObject({ failure: "stopped" });
    expect(await failure(dial(url, { signal: controller.signal }))).toMatchObject({ failure: "stopped" });
  });
});

describe("certificates", () => {
  const ca = fixture("authority.pem");

  it("are verified by default: an unknown authority, a wrong name and a wrong pin are refused before anything is sent", async () => {
    const server = await accepting({}, true);
    const attempts: DialOptions["tls"][] = [
      {},
      { servername: "hag.example.com" },
      { ca },
      { ca, servername: "evil.example.com" },
      { fingerprint: FINGERPRINT.replace("11", "12") },
    ];
    for (const tls of attempts) {
      const error = await failure(dial(server.url, { headers: { "x-access-key": "secret" }, tls: tls ?? {} }));
      expect(error).toMatchObject({ failure: "certificate" });
    }
    expect(server.requests).toEqual([]);
  });

  it.each([
    ["by the name they are for", { ca, servername: "hag.example.com" }],
    ["by the pinned one", { fingerprint: FINGERPRINT }],
    ["by the pinned one in plain letters", { fingerprint: FINGERPRINT.replaceAll(":", "").toLowerCase() }],
    ["by no means, if that is said", { insecure: true }],
  ])("are accepted %s", async (_how, tls) => {
    const server = await accepting({}, true);
    const accepted = server.next();
    const link = await dial(server.url, { tls });
    void (await accepted).send("hello");
    expect(await readSome(link, 1)).toEqual(["hello"]);
  });
});
