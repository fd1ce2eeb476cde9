import { describe, expect, it, test } from "vitest";
import { connect, fetchCard } from "../../../client.ts";
import { createGuardedFetch } from "../../../core/auth/guarded-fetch/guarded-fetch.ts";
import type { CredentialProvider } from "../../../core/auth/login/contract.ts";
import { chooseInterfaces } from "../../../core/client/card/choose-interface.ts";
import type { Notice } from "../../../core/client/options.ts";
import { cardOf, sendResult, startFakeAgent, task } from "../../../core/client/testing/fake-agent.ts";
import { createCredentialGate } from "../../../core/client/transport/credential-origins.ts";
import { parseGrpcAddress } from "../../../core/client/transport/grpc-channels.ts";
import { startGrpcServer } from "../../../core/client/transport/testing/grpc-server.ts";
import { a2aV1 } from "../../../core/dialects/a2a-v1/index.ts";
import { cardOf as cardAt } from "./card.ts";

const SERVICE = "lf.a2a.v1.A2AService";
const HEADERS = { Authorization: "Bearer planted", "X-Tenant-Key": "planted-too" };

/** A card at one place whose only interface is at another. */
function elsewhere(interfaceUrl: string, binding = "JSONRPC", version = "1.0") {
  const supportedInterfaces = [{ url: interfaceUrl, protocolBinding: binding, protocolVersion: version }];
  return startFakeAgent((_, response) => sendResult(response, task()), { card: { supportedInterfaces } });
}

describe("an interface on another origin than the card", () => {
  it("gets none of the caller's headers, and a notice tells which", async () => {
    await using api = await startFakeAgent((_, response) => sendResult(response, task()));
    await using home = await elsewhere(`${api.url}/rpc`);
    const notices: Notice[] = [];
    const agent = await connect(home.url, { headers: HEADERS, onNotice: (notice) => notices.push(notice) });
    expect(notices).toEqual([]);
    await agent.get("t1");
    await agent.get("t1");

    expect(api.requests).toHaveLength(2);
    for (const { headers } of api.requests) {
      expect(headers).toMatchObject({ "a2a-version": "1.0" });
      expect(headers).not.toHaveProperty("authorization");
      expect(headers).not.toHaveProperty("x-tenant-key");
    }
    expect(notices.map(({ kind }) => kind)).toEqual(["credentials"]);
    expect(notices[0]?.message).toContain(`${api.url}, which`);
    expect(notices[0]?.message).toContain("authorization, x-tenant-key");
    expect(notices[0]?.message).not.toContain("planted");
  });

  it("gets nothing of a provider beside them, and one notice tells of both, whichever interface is called", async () => {
    await using api = await startFakeAgent((_, response) => void response.writeHead(404).end());
    const supportedInterfaces = ["JSONRPC", "HTTP+JSON"].map((protocolBinding) => ({
      url: `${api.url}/rpc`,
      protocolBinding,
      protocolVersion: "1.0",
    }));
    await using home = await startFakeAgent((_, response) => sendResult(response, task()), {
      card: { supportedInterfaces },
    });
    const notices: Notice[] = [];
    const asked: string[] = [];
    const credentials: CredentialProvider = {
      async headersFor(url) {
        asked.push(url);
        return { Authorization: "Bearer provided" };
      },
    };
    for (const binding of ["JSONRPC", "HTTP+JSON"]) {
      const headers = { "X-Tenant-Key": "planted-too" };
      const onNotice = (notice: Notice): void => void notices.push(notice);
      const agent = await connect(home.url, { binding, headers, credentials, onNotice });
      await expect(agent.get("t1")).rejects.toThrow();
      await expect(agent.get("t2")).rejects.toThrow();
      expect(notices.splice(0).map(({ message }) => message)).toEqual([
        expect.stringContaining("the header x-tenant-key and the credentials will not be sent there"),
      ]);
    }
    expect(asked).toEqual([]);
    expect(api.requests.length).toBeGreaterThan(3);
    for (const { headers } of api.requests) {
      expect(headers).not.toHaveProperty("authorization");
      expect(headers).not.toHaveProperty("x-tenant-key");
    }
  });

  it("gets none of them on a stream either", async () => {
    await using api = await startFakeAgent((_, response) => sendResult(response, { task: task() }));
    await using home = await elsewhere(`${api.url}/rpc`);
    const agent = await connect(home.url, { headers: HEADERS });
    for await (const _ of agent.stream("hello")) break;
    expect(api.requests[0]?.headers).not.toHaveProperty("authorization");
  });

  it.each([
    ["its origin is listed", (url: string) => [url]],
    ["the card is trusted", () => "card" as const],
  ])("gets them where %s", async (_, origins) => {
    await using api = await startFakeAgent((_, response) => sendResult(response, task()));
    await using home = await elsewhere(`${api.url}/rpc`);
    const notices: Notice[] = [];
    const agent = await connect(home.url, {
      headers: HEADERS,
      credentialOrigins: origins(api.url),
      onNotice: (notice) => notices.push(notice),
    });
    await agent.get("t1");
    expect(api.requests[0]?.headers).toMatchObject({ authorization: "Bearer planted", "x-tenant-key": "planted-too" });
    expect(notices).toEqual([]);
  });

  it("gets them from a caller that passes the card itself", async () => {
    await using api = await startFakeAgent((_, response) => sendResult(response, task()));
    const { card } = await fetchCard(api.url);
    const agent = await connect(card, { headers: HEADERS });
    await agent.get("t1");
    expect(api.requests[0]?.headers).toMatchObject({ authorization: "Bearer planted" });
    const suspicious = await connect(card, { headers: HEADERS, cardUrl: "https://other.example/card.json" });
    await suspicious.get("t1");
    expect(api.requests[1]?.headers).not.toHaveProperty("authorization");
  });
});

test("gRPC on the card's host gets the headers", async () => {
  await using server = await startGrpcServer(SERVICE, { unary: { GetTask: (_, answer) => answer({ code: 5 }) } });
  await using home = await elsewhere(server.authority, "GRPC");
  const agent = await connect(home.url.replace("127.0.0.1", "localhost"), { headers: HEADERS });
  await expect(agent.get("t1")).rejects.toThrow();
  expect(server.calls[0]?.metadata.getMap()).toMatchObject({ authorization: "Bearer planted" });
});

test("gRPC on another host gets none", async () => {
  await using server = await startGrpcServer(SERVICE, { unary: { GetTask: (_, answer) => answer({ code: 5 }) } });
  await using home = await elsewhere(server.authority, "GRPC");
  const card = (await connect(home.url)).card;
  const cardUrl = "http://agents.example/.well-known/agent-card.json";
  const notices: Notice[] = [];
  const agent = await connect(card, { headers: HEADERS, cardUrl, onNotice: (notice) => notices.push(notice) });
  await expect(agent.get("t1")).rejects.toThrow();
  expect(server.calls).toHaveLength(1);
  expect(server.calls[0]?.metadata.getMap()).not.toHaveProperty("authorization");
  expect(notices.map(({ kind }) => kind)).toEqual(["credentials"]);
});

describe("the gate", () => {
  const cardUrl = "https://a.example/.well-known/agent-card.json";
  const target = (url: string, binding = "JSONRPC", grpcTls?: boolean) => {
    const entry = { url, protocolBinding: binding, protocolVersion: "1.0" };
    const read = a2aV1.readCard?.({ ...cardOf(url), supportedInterfaces: [entry] }, undefined);
    if (read === undefined) throw new Error("no card");
    const [{ address, interface: chosen }] = chooseInterfaces(read.card, { cardUrl, grpcTls }).candidates;
    return { url: chosen.url, address };
  };

  it.each([
    ["https://a.example/rpc", "JSONRPC", true],
    ["https://a.example:443/rpc", "JSONRPC", true],
    ["https://A.EXAMPLE/rpc", "JSONRPC", true],
    ["http://a.example/rpc", "JSONRPC", false],
    ["https://a.example:8443/rpc", "JSONRPC", false],
    ["https://a.example.evil.example/rpc", "JSONRPC", false],
    ["https://a.example@evil.example/rpc", "JSONRPC", false],
    ["https://evil.example/a.example", "JSONRPC", false],
    ["https://sub.a.example/rpc", "JSONRPC", false],
    ["https://listed.example/rpc", "JSONRPC", true],
    ["https://listed.example:444/rpc", "JSONRPC", false],
    ["a.example:50051", "GRPC", true],
    ["grpcs://a.example", "GRPC", true],
    ["grpc://a.example:80", "GRPC", false],
    ["evil.example:443", "GRPC", false],
    ["listed.example:443", "GRPC", true],
    ["http://listed.example:443", "GRPC", false],
  ])("%s over %s: %s", (url, binding, allowed) => {
    const gate = createCredentialGate({ cardUrl, credentialOrigins: ["listed.example"] });
    expect(gate(target(url, binding))).toBe(allowed);
  });

  it.each([
    ["http://localhost:4000/card", "http://127.0.0.1:4000/rpc", "http", true],
    ["http://localhost:4000/card", "http://127.0.0.1:4001/rpc", "http", false],
    ["http://localhost:4000/card", "http://127.0.0.1:4001", "grpc", true],
    ["https://a.example/card", "https://a.example:8443", "grpc", true],
    ["https://a.example/card", "http://a.example:8443", "grpc", false],
    ["https://a.example/card", "no url", "http", false],
    ["file:///card.json", "https://a.example/rpc", "http", true],
    [undefined, "https://a.example/rpc", "http", true],
  ] as const)("card at %s, call to %s over %s: %s", (cardUrl, url, carrier, allowed) => {
    const address = carrier === "grpc" ? parseGrpcAddress(url) : undefined;
    expect(createCredentialGate({ cardUrl })({ url, address })).toBe(allowed);
  });

  it("takes unencrypted gRPC where the caller chose it", () => {
    expect(createCredentialGate({ cardUrl, grpcTls: false })(target("a.example:80", "GRPC", false))).toBe(true);
  });

  it("refuses an origin that is none", () => {
    expect(() => createCredentialGate({ cardUrl, credentialOrigins: ["ftp://a.example"] })).toThrow(TypeError);
  });
});

test("a guarded fetch keeps a card from sending calls into the network, at once and for good", async () => {
  await using api = await startFakeAgent((_, response) => sendResult(response, task()));
  const { card } = await fetchCard(api.url);
  const agent = await connect(card, { fetch: createGuardedFetch() });
  await expect(agent.get("t1")).rejects.toMatchObject({ code: "unreachable", permanent: true });
  expect(api.requests).toHaveLength(0);
});

describe("keys that requests are signed with", () => {
  const keys = { ak: "planted", sk: "planted-too" };

  it.each([
    ["sign nothing for another origin than the card's", "https://elsewhere.example/card.json", false],
    ["sign what goes to the card's own origin", undefined, true],
  ])("%s", async (_, cardUrl, isSigned) => {
    await using api = await startFakeAgent((_request, response) => void response.writeHead(404).end());
    const notices: Notice[] = [];
    const where = cardUrl ?? api.url;
    const onNotice = (notice: Notice) => notices.push(notice);
    const agent = await connect(cardAt(`${api.url}/agent/message`), {
      dialect: "xiaoyi-http",
      keys,
      cardUrl: where,
      onNotice,
    });
    await agent.cancel("t1").catch(() => {});
    expect(api.requests.map(({ headers }) => "sign" in headers)).toEqual([isSigned]);
    expect(notices.map(({ kind }) => kind)).toEqual(isSigned ? [] : ["credentials"]);
  });
});
