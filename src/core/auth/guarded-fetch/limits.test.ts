import { createServer, type Socket } from "node:net";
import { inspect } from "node:util";
import { brotliCompressSync, constants, deflateSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createGuardedFetch, createGuardedPost } from "./guarded-fetch.ts";
import { type CountingServer, startCountingServer } from "./testing/counting-server.ts";

const KIBIBYTE = 1024;
const ZEROS = Buffer.alloc(16 * KIBIBYTE * KIBIBYTE);
const GZIP_BOMB = gzipSync(ZEROS);
const BROTLI_BOMB = brotliCompressSync(ZEROS, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });
let server: CountingServer;
/** Resolves when the connection of the newest endless answer is gone. */
let gone: Promise<void>;

beforeAll(async () => {
  server = await startCountingServer((request, response) => {
    gone = new Promise((resolve) => response.once("close", resolve));
    const encoded = (name: string, bytes: Buffer) => response.writeHead(200, { "content-encoding": name }).end(bytes);
    switch (request.url) {
      case "/endless": {
        const more = (): void => {
          while (response.write("x".repeat(KIBIBYTE)));
        };
        response.on("drain", more);
        more();
        return;
      }
      case "/announced":
        response.writeHead(200, { "content-length": 10 * KIBIBYTE * KIBIBYTE }).write("x");
        return;
      case "/slow": {
        response.writeHead(200).write("x");
        const timer = setInterval(() => response.write("x"), 20);
        response.once("close", () => clearInterval(timer));
        return;
      }
      case "/silent":
        return;
      case "/headers":
        response.writeHead(200, { "x-long": "y".repeat(64 * KIBIBYTE) }).end();
        return;
      case "/gzip-bomb":
        encoded("gzip", GZIP_BOMB);
        return;
      case "/br-bomb":
        encoded("br", BROTLI_BOMB);
        return;
      case "/gzip":
        encoded("gzip", gzipSync("hello"));
        return;
      case "/deflate":
        encoded("deflate", deflateSync("hello"));
        return;
      case "/br":
        encoded("br", brotliCompressSync("hello"));
        return;
      case "/twice":
        encoded("gzip, gzip", gzipSync(gzipSync("hello")));
        return;
      case "/broken-gzip":
        encoded("gzip", Buffer.from("this is not gzip"));
        return;
      case "/moved":
        response.writeHead(307, { location: "/whole" }).end();
        return;
      case "/nothing":
        response.writeHead(204).end();
        return;
      case "/cut":
        response.writeHead(200, { "content-length": 100 }).write("half", () => response.destroy());
        return;
      default:
        response.end("z".repeat(KIBIBYTE));
    }
  });
});
afterAll(() => server.close());

const guarded = createGuardedFetch({ allowPrivate: true, maxBytes: KIBIBYTE, timeoutMs: 10_000 });
const hasty = createGuardedFetch({ allowPrivate: true, maxBytes: KIBIBYTE, timeoutMs: 150 });
const url = (path: string) => `http://127.0.0.1:${server.port}${path}`;
const read = async (fetch: typeof globalThis.fetch, path: string, init?: RequestInit) =>
  (await fetch(url(path), init)).text();

describe("bodies", () => {
  it.each(["/endless", "/announced", "/gzip-bomb", "/br-bomb"])("%s is too large", async (path) => {
    await expect(read(guarded, path)).rejects.toMatchObject({ code: "too-large" });
    await gone;
  });

  it("may be as large as allowed", async () => {
    expect(await read(guarded, "/whole")).toHaveLength(KIBIBYTE);
    await expect(
      read(createGuardedFetch({ allowPrivate: true, maxBytes: KIBIBYTE - 1 }), "/whole"),
    ).rejects.toMatchObject({
      code: "too-large",
    });
  });

  it.each(["/gzip", "/deflate", "/br"])("%s is decoded although it was not requested", async (path) => {
    const response = await guarded(url(path));
    expect(response.headers.get("content-encoding")).toBeNull();
    expect(await response.text()).toBe("hello");
  });

  it.each(["/twice", "/broken-gzip"])("%s is not understood", async (path) => {
    await expect(read(guarded, path)).rejects.toMatchObject({ code: "bad-response" });
  });

  it("may be missing, and may break", async () => {
    expect((await guarded(url("/nothing"))).body).toBeNull();
    expect(await read(guarded, "/whole", { method: "HEAD" })).toBe("");
    await expect(read(guarded, "/cut")).rejects.toMatchObject({ code: "unreachable" });
  });

  it("end when their reader leaves", async () => {
    const response = await createGuardedFetch({ allowPrivate: true })(url("/endless"));
    await response.body?.cancel();
    await gone;
  });
});

describe("time", () => {
  it.each(["/slow", "/silent"])("%s is cut off", async (path) => {
    await expect(read(hasty, path)).rejects.toMatchObject({ code: "timeout" });
    await gone;
  });

  it("covers looking up the name and connecting", async () => {
    const stuck = createGuardedFetch({ timeoutMs: 50, lookup: () => new Promise(() => {}) });
    await expect(stuck("http://agents.example.com/")).rejects.toMatchObject({ code: "timeout" });
  });

  it("is the caller's too, before and while the body is read", async () => {
    await expect(guarded(url("/whole"), { signal: AbortSignal.abort(new Error("no")) })).rejects.toThrow("no");
    const controller = new AbortController();
    const response = await guarded(url("/slow"), { signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(response.text()).rejects.toThrow("enough");
    await gone;
  });
});

describe("answers that are none", () => {
  it("headers without end", async () => {
    await expect(read(guarded, "/headers")).rejects.toMatchObject({ code: "bad-response" });
  });

  it("another protocol", async () => {
    const sockets = new Set<Socket>();
    const ssh = createServer((socket) => {
      sockets.add(socket.on("error", () => {}));
      socket.once("data", () => socket.write("SSH-2.0-OpenSSH_9.6\r\n"));
    });
    await new Promise<void>((resolve) => ssh.listen(0, "127.0.0.1", resolve));
    const address = ssh.address();
    const port = typeof address === "object" ? address?.port : 0;
    const error: unknown = await guarded(`http://127.0.0.1:${port}/`).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: "bad-response" });
    expect(inspect(error)).not.toContain("SSH");
    for (const socket of sockets) socket.destroy();
    ssh.close();
  });
});

describe("a post of which only the status matters", () => {
  const post = createGuardedPost({ allowPrivate: true });
  const send = (path: string, signal = new AbortController().signal) =>
    post(url(path), { body: "note", headers: { "x-number": "7" }, signal });

  it("uses connections again, also if the answers have bodies", async () => {
    const { connections } = server;
    for (let count = 0; count < 9; count++) expect(await send("/whole")).toEqual({ status: 200, body: null });
    // The end of an answer may still be on its way when the next request is made.
    expect(server.connections - connections).toBeLessThanOrEqual(2);
    expect(server.hits.at(-1)).toMatchObject({ method: "POST", body: "note", headers: { "x-number": "7" } });
  });

  it.each(["/endless", "/slow", "/announced"])("is answered by %s, whose connection then ends", async (path) => {
    expect(await send(path)).toEqual({ status: 200, body: null });
    await gone;
  });

  it("ends with its signal, and reaches only what is allowed", async () => {
    const controller = new AbortController();
    const silent = send("/silent", controller.signal);
    controller.abort(new Error("enough"));
    await expect(silent).rejects.toThrow("enough");
    const strict = createGuardedPost({});
    const init = { body: "", headers: {}, signal: controller.signal };
    await expect(strict(url("/whole"), init)).rejects.toMatchObject({ code: "forbidden-target" });
    const renamed = createGuardedPost({ lookup: async () => ["127.0.0.1"] });
    const fresh = { ...init, signal: new AbortController().signal };
    await expect(renamed("http://agents.example.com/", fresh)).rejects.toMatchObject({ code: "forbidden-target" });
  });

  it("does not follow a redirect", async () => {
    expect(await send("/moved")).toEqual({ status: 307, body: null });
    expect(server.hits.at(-1)).toMatchObject({ path: "/moved" });
  });
});
