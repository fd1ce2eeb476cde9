import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { ExchangeLog } from "../exchange-log.ts";
import { createHttpClient } from "./http-client.ts";

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function start(status: number, headers: Record<string, string>) {
  const requests: IncomingMessage[] = [];
  server = createServer((request, response) => {
    requests.push(request);
    response.writeHead(status, headers).end("text");
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  const log = new ExchangeLog([]);
  const client = createHttpClient(log, { timeoutMs: 10_000, signal: new AbortController().signal });
  return { requests, log, client, url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`) };
}

describe("the HTTP client", () => {
  it("sends names of headers in the case they are written in", async () => {
    const { client, requests, url } = await start(200, {});
    await client.exchange({ method: "POST", url, headers: { "a2A-vErSiOn": "1.0", "X-Empty": "" }, body: "{}" });
    expect(requests[0]?.rawHeaders).toContain("a2A-vErSiOn");
    expect(requests[0]?.headers).toMatchObject({ "a2a-version": "1.0", "x-empty": "" });
  });

  it("takes a redirect for an answer", async () => {
    const { client, requests, url } = await start(307, { location: "/elsewhere" });
    expect(await client.exchange({ method: "POST", url, headers: {}, body: "{}" })).toMatchObject({ status: 307 });
    expect(requests).toHaveLength(1);
  });

  it("reports the reason for which there is no answer", async () => {
    const { client, log, url } = await start(200, {});
    await new Promise((resolve) => server?.close(resolve));
    await expect(client.exchange({ method: "GET", url, headers: {} })).rejects.toThrow(/^GET \/: .*ECONNREFUSED/);
    expect(log.exchanges[0]?.response).toMatch(/ECONNREFUSED/);
  });
});
