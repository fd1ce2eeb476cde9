import { getEventListeners, once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { createGuardedExchanger } from "../auth/guarded-fetch/guarded-exchange.ts";
import { CarrierError, type ExchangeCall } from "./exchange.ts";
import { createFetchExchanger } from "./fetch-exchange.ts";

let server: Server | undefined;

afterEach(async () => {
  if (server === undefined) return;
  server.closeAllConnections();
  server.close();
  await once(server, "close");
  server = undefined;
});

async function listen(handler: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  server = createServer(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function codeOf(action: Promise<unknown>): Promise<string> {
  try {
    await action;
  } catch (error) {
    if (error instanceof CarrierError) return error.code;
    throw error;
  }
  return "succeeded";
}

const get = (url: string, more: Partial<ExchangeCall> = {}): ExchangeCall => ({
  method: "GET",
  url,
  headers: {},
  ...more,
});

describe.each([
  ["any fetch", createFetchExchanger(globalThis.fetch, { maxBodyBytes: 1000 })],
  ["guarded connections", createGuardedExchanger({ allowPrivate: true }, { maxBodyBytes: 1000 })],
])("an exchanger over %s", (_, exchange) => {
  it("sends method, headers and body, and gives status, headers and text", async () => {
    const url = await listen(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      response.writeHead(418, { "x-kind": "teapot" }).end(`${request.method} ${request.headers["x-a"]} ${body}`);
    });
    const answer = await exchange({ method: "POST", url, headers: { "x-a": "b" }, body: "写", timeoutMs: 10_000 });
    expect(answer.status).toBe(418);
    expect(answer.headers.get("X-Kind")).toBe("teapot");
    expect(await answer.text()).toBe("POST b 写");
  });

  it("gives an empty text when there is no body", async () => {
    const url = await listen((_, response) => response.writeHead(204).end());
    const answer = await exchange(get(url));
    expect(await answer.text()).toBe("");
    const again = await exchange(get(url));
    for await (const chunk of again.chunks) expect.unreachable(`got ${chunk.byteLength} bytes`);
  });

  it("gives chunks as they come, without a bound on their sum", async () => {
    const url = await listen((_, response) => {
      response.write("x".repeat(800));
      response.end("y".repeat(800));
    });
    let size = 0;
    for await (const chunk of (await exchange(get(url))).chunks) size += chunk.byteLength;
    expect(size).toBe(1600);
  });

  it("reports a server that is not there", async () => {
    const url = await listen(() => {});
    server?.close();
    await once(server!, "close");
    server = undefined;
    expect(await codeOf(exchange(get(url)))).toBe("unreachable");
    expect(await codeOf(exchange(get("no url")))).toBe("unreachable");
  });

  it("stops waiting for headers", async () => {
    const url = await listen(() => {});
    expect(await codeOf(exchange(get(url, { timeoutMs: 30 })))).toBe("timeout");
  });

  it("stops waiting for the rest of a text", async () => {
    const url = await listen((_, response) => response.write("half"));
    const answer = await exchange(get(url, { timeoutMs: 100 }));
    expect(await codeOf(answer.text())).toBe("timeout");
  });

  it("ends when the caller aborts: before, while waiting, while reading", async () => {
    const url = await listen((request, response) => {
      if (request.url === "/stream") response.write("first");
      else controllers.waiting.abort();
    });
    const controllers = {
      before: new AbortController(),
      waiting: new AbortController(),
      reading: new AbortController(),
    };
    controllers.before.abort();
    expect(await codeOf(exchange(get(url, { signal: controllers.before.signal })))).toBe("aborted");
    expect(await codeOf(exchange(get(url, { signal: controllers.waiting.signal })))).toBe("aborted");

    const answer = await exchange(get(`${url}/stream`, { signal: controllers.reading.signal }));
    const reading = (async () => {
      for await (const chunk of answer.chunks) {
        expect(Buffer.from(chunk).toString()).toBe("first");
        controllers.reading.abort();
      }
    })();
    expect(await codeOf(reading)).toBe("aborted");
  });

  it("refuses a text that is too large, declared or not", async () => {
    const url = await listen((request, response) => {
      if (request.url === "/declared") {
        response.writeHead(200, { "content-length": "1001" }).flushHeaders();
        return;
      }
      response.write("x".repeat(600));
      response.end("x".repeat(401));
    });
    for (const path of ["/declared", "/chunked"]) {
      expect(await codeOf((await exchange(get(url + path))).text())).toBe("too-large");
    }
  });

  it("reports a stream that breaks", async () => {
    const url = await listen((_, response) => {
      response.write("half", () => response.destroy());
    });
    const answer = await exchange(get(url));
    expect(await codeOf(answer.text())).toBe("broken-stream");
  });

  it("cancels: the iteration ends quietly, a text does not, the server sees it", async () => {
    let left: Promise<unknown> | undefined;
    const url = await listen((_, response) => {
      left = once(response, "close");
      response.write("first");
    });
    const streamed = await exchange(get(url));
    let chunks = 0;
    for await (const _ of streamed.chunks) {
      chunks++;
      streamed.cancel();
    }
    expect(chunks).toBe(1);
    await left;

    const full = await exchange(get(url));
    const reading = codeOf(full.text());
    full.cancel();
    expect(await reading).toBe("aborted");
    await left;
  });

  it("lets the connection go when the reader leaves its loop", async () => {
    let left: Promise<unknown> | undefined;
    const url = await listen((_, response) => {
      left = once(response, "close");
      response.write("first");
    });
    for await (const _ of (await exchange(get(url))).chunks) break;
    await left;
  });

  it("leaves no listener on the caller's signal", async () => {
    const url = await listen((_, response) => response.end("done"));
    const { signal } = new AbortController();
    const answer = await exchange(get(url, { signal }));
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    await answer.text();
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});

it("keeps secrets in the URL out of its messages", async () => {
  const refused = createFetchExchanger(async () => {
    throw new TypeError("fetch failed");
  });
  await expect(refused(get("https://user:secret@host.example/path?key=secret"))).rejects.toThrow(
    /^The server could not be reached: https:\/\/host\.example\/path$/,
  );
});
