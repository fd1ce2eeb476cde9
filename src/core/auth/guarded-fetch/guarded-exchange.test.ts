import { gzipSync } from "node:zlib";
import type { Dispatcher } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ExchangeCall } from "../../wire/exchange.ts";
import { createGuardedExchanger } from "./guarded-exchange.ts";
import { IncomingAnswer } from "./incoming-answer.ts";
import { type CountingServer, startCountingServer } from "./testing/counting-server.ts";

let server: CountingServer;

beforeAll(async () => {
  server = await startCountingServer((request, response) => {
    switch (request.url) {
      case "/gzip":
        response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("hello"));
        return;
      case "/broken-gzip":
        response.writeHead(200, { "content-encoding": "gzip" }).end("this is not gzip");
        return;
      case "/twice":
        response.writeHead(200, { "content-encoding": "gzip, gzip" }).end(gzipSync(gzipSync("hello")));
        return;
      case "/moved":
        response.writeHead(302, { location: "http://127.0.0.1/" }).end();
        return;
      default:
        response.writeHead(200, { "set-cookie": ["a=1", "b=2"] }).end("done");
    }
  });
});
afterAll(() => server.close());

const guarded = createGuardedExchanger({ allow: ["127.0.0.1"] });
const call = (path: string, more: Partial<ExchangeCall> = {}): ExchangeCall => ({
  method: "GET",
  url: `http://127.0.0.1:${server.port}${path}`,
  headers: {},
  ...more,
});

describe("calls to targets named by others", () => {
  it.each([
    ["an address in the network", "http://127.0.0.2/", "forbidden-target"],
    ["a name of this machine", "http://localhost/", "forbidden-target"],
    ["metadata of a cloud", "http://169.254.169.254/", "forbidden-target"],
    ["another scheme", "file:///etc/passwd", "forbidden-scheme"],
    ["a login in the URL", "http://user:word@127.0.0.1/", "credentials-in-url"],
    ["no URL", "nowhere", "bad-url"],
  ])("%s is not called", async (_, url, code) => {
    const { connections } = server;
    await expect(guarded({ ...call("/"), url })).rejects.toMatchObject({ code: "unreachable", cause: { code } });
    expect(server.connections).toBe(connections);
  });

  it("checks the address that a name leads to, for every connection", async () => {
    const renamed = createGuardedExchanger({ lookup: async () => ["127.0.0.1"] });
    for (let count = 0; count < 2; count++) {
      await expect(renamed({ ...call("/"), url: `http://agents.example.com:${server.port}/` })).rejects.toMatchObject({
        code: "unreachable",
        cause: { code: "forbidden-target" },
      });
    }
  });

  it("sends no headers of the connection, and asks for no compression", async () => {
    const headers = { Host: "other.example", "x-own": "yes", "accept-encoding": "gzip", connection: "close" };
    await (await guarded(call("/", { method: "POST", headers, body: "message" }))).text();
    const hit = server.hits.at(-1);
    expect(hit).toMatchObject({ method: "POST", body: "message" });
    expect(hit?.headers).toMatchObject({
      host: `127.0.0.1:${server.port}`,
      "x-own": "yes",
      "accept-encoding": "identity",
      connection: "keep-alive",
    });
  });

  it("follows no redirect", async () => {
    const answer = await guarded(call("/moved"));
    expect([answer.status, answer.headers.get("Location")]).toEqual([302, "http://127.0.0.1/"]);
    answer.cancel();
  });

  it("gives headers of several values as one", async () => {
    const answer = await guarded(call("/"));
    expect(answer.headers.get("set-cookie")).toBe("a=1, b=2");
    expect(answer.headers.get("x-none")).toBeNull();
    expect(await answer.text()).toBe("done");
  });

  it("decodes what was compressed unasked, and refuses what it cannot decode", async () => {
    expect(await (await guarded(call("/gzip"))).text()).toBe("hello");
    await expect(guarded(call("/twice"))).rejects.toMatchObject({
      code: "unreachable",
      cause: { code: "bad-response" },
    });
    const broken = await guarded(call("/broken-gzip"));
    await expect(broken.text()).rejects.toMatchObject({ code: "broken-stream", cause: { code: "bad-response" } });
  });

  it("uses connections again, however many calls there are at once", async () => {
    const { connections } = server;
    const wave = () => Promise.all(Array.from({ length: 64 }, async () => (await guarded(call("/"))).text()));
    for (let count = 0; count < 5; count++) await wave();
    // The library uses a connection again one turn of the event loop after its answer.
    expect(server.connections - connections).toBeLessThanOrEqual(2 * 64);
  });
});

class FakeController implements Dispatcher.DispatchController {
  paused = false;
  aborted = false;
  readonly reason = null;

  abort(): void {
    this.aborted = true;
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }
}

describe("an answer that arrives faster than it is read", () => {
  const pieces = (size: number, count: number) => Array.from({ length: count }, () => Buffer.alloc(size, "x"));

  function receive() {
    const answer = new IncomingAnswer();
    const controller = new FakeController();
    answer.onRequestStart(controller);
    answer.onResponseStart(controller, 200, {});
    return { answer, controller, give: (piece: Buffer) => answer.onResponseData(controller, piece) };
  }

  it("pauses its connection, and continues when it was read", async () => {
    const { answer, controller, give } = receive();
    for (const piece of pieces(16 * 1024, 3)) give(piece);
    expect(controller.paused).toBe(false);
    give(Buffer.alloc(16 * 1024));
    expect(controller.paused).toBe(true);
    expect((await answer.next()).value).toHaveLength(64 * 1024);
    expect(controller.paused).toBe(false);
  });

  it("is read to its end, and what arrived before it broke is read too", async () => {
    const whole = receive();
    const reading = whole.answer.next();
    for (const piece of pieces(10, 2)) whole.give(piece);
    whole.answer.onResponseEnd();
    expect((await reading).value).toHaveLength(20);
    expect(await whole.answer.next()).toEqual({ done: true, value: undefined });
    const broken = receive();
    broken.give(Buffer.from("half"));
    broken.answer.onResponseError(broken.controller, new Error("reset"));
    expect(String((await broken.answer.next()).value)).toBe("half");
    await expect(broken.answer.next()).rejects.toMatchObject({ code: "unreachable" });
  });

  it("closes its connection when it is aborted or left, but not after its end", async () => {
    const aborted = receive();
    const reading = aborted.answer.next();
    aborted.answer.abort(new Error("enough"));
    await expect(reading).rejects.toThrow("enough");
    expect(aborted.controller.aborted).toBe(true);
    const left = receive();
    await left.answer.return();
    expect(left.controller.aborted).toBe(true);
    const ended = receive();
    ended.answer.onResponseEnd();
    ended.answer.abort(new Error("late"));
    expect(ended.controller.aborted).toBe(false);
  });

  it("is given up before there is a connection", async () => {
    const answer = new IncomingAnswer();
    answer.abort(new Error("enough"));
    await expect(answer.head).rejects.toThrow("enough");
    const { controller } = receive();
    answer.onRequestStart(controller);
    expect(controller.aborted).toBe(true);
  });
});
