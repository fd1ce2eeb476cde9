import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LogFields, SILENT_LOG } from "../../model/ports.ts";
import { createAuthenticator } from "./create-authenticator.ts";
import { createIssuerFetch } from "./issuer-keys.ts";

let server: Server;
let port: number;
const asked: (string | undefined)[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(`${request.headers.host}${request.url}`);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ issuer: `http://127.0.0.1:${port}`, jwks_uri: `http://localhost:${port}/keys` }));
  });
  await new Promise<void>((resolve) => server.listen(0, resolve));
  port = (server.address() as AddressInfo).port;
});

afterAll(() => new Promise((resolve) => server.close(resolve)));

describe("what an issuer may make the server fetch", () => {
  it("is on the hosts that the operator named, wherever these are", async () => {
    const fetch = createIssuerFetch({ issuer: `http://127.0.0.1:${port}/realm` });
    expect((await fetch(`http://127.0.0.1:${port}/`, {})).status).toBe(200);
  });

  it("is on a host named by an IPv6 address, too", async () => {
    const fetch = createIssuerFetch({ issuer: "http://[::1]:1/" });
    await expect(fetch("http://[::1]:1/", {})).rejects.toMatchObject({ code: "unreachable" });
  });

  it.each(["http://localhost:1/", "http://127.0.0.2:1/", "http://10.0.0.1/", "http://169.254.169.254/"])(
    "is not at %s besides",
    async (url) => {
      const fetch = createIssuerFetch({ issuer: "http://127.0.0.1:1/" });
      await expect(fetch(url, {})).rejects.toMatchObject({ code: "forbidden-target" });
    },
  );

  it("is not the keys that its metadata have inside the network", async () => {
    asked.length = 0;
    const warnings: LogFields[] = [];
    const log = { ...SILENT_LOG, warn: (fields: LogFields) => warnings.push(fields) };
    const issuer = `http://127.0.0.1:${port}`;
    const authenticator = createAuthenticator(
      { jwt: { issuer, audience: "dragoman" } },
      { now: () => 0, log, failedLogins: 10 },
    );
    const headers = { authorization: `Bearer ${[{ alg: "ES256" }, {}].map(encoded).join(".")}.c2lnbmF0dXJl` };
    const presented = { headers, query: "", remoteAddress: "203.0.113.1" };
    await expect(authenticator.authenticate(presented)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(asked).toEqual([`127.0.0.1:${port}/.well-known/openid-configuration`]);
    expect(warnings).toMatchObject([{ err: { code: "forbidden-target" } }]);
  });
});

const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
