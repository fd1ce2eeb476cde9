import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { createEchoAgent } from "../../agents/builtin.ts";
import type { CredentialProvider } from "../../auth/login/contract.ts";
import { ProtocolError } from "../../model/errors.ts";
import { type DragomanServer, serve } from "../../server/serve.ts";
import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import { fetchCard } from "../card/fetch-card.ts";
import { connect } from "../connect.ts";
import type { ExchangeTrace, Notice } from "../options.ts";
import { createAuthenticatedCarrier } from "./authenticate.ts";
import type { RpcCarrier } from "./grpc-carrier.ts";

const GOOD = "planted-good-token";
const ONCE = { attempts: 1, baseMs: 1, capMs: 1 };

let server: DragomanServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

/** What the server was shown, in order. */
async function startServer(): Promise<{ readonly url: string; readonly shown: (string | undefined)[] }> {
  const shown: (string | undefined)[] = [];
  server = await serve({
    port: 0,
    grpcPort: 0,
    agents: { echo: createEchoAgent() },
    authenticate: ({ headers }) => {
      shown.push(headers.authorization);
      if (headers.authorization === `Bearer ${GOOD}`) return { owner: "me", authenticated: true };
      throw new ProtocolError("UNAUTHENTICATED", "Who is calling?");
    },
  });
  return { url: server.url, shown };
}

/** Gives the tokens one after the other, the next whenever one was refused. */
function tokens(...given: readonly string[]) {
  const left = [...given];
  const log: string[] = [];
  const provider: CredentialProvider = {
    async headersFor(_url, refusal) {
      if (refusal !== undefined && left.length > 1) left.shift();
      log.push(refusal === undefined ? "asked" : `refused ${refusal.headers?.Authorization}`);
      return { Authorization: `Bearer ${left[0]}` };
    },
    onUnauthorized: () => void log.push("unauthorized"),
  };
  return { provider, log };
}

describe.each(["JSONRPC", "HTTP+JSON", "GRPC"])("credentials over %s", (binding) => {
  it("are asked for once more when they are refused, and the call is made again", async () => {
    const { shown, url } = await startServer();
    const { log, provider } = tokens("stale", GOOD);
    const agent = await connect(url, { binding, credentials: provider, retry: ONCE });
    expect(await agent.send("hi")).toHaveProperty("task.status.state", "TASK_STATE_COMPLETED");
    expect(log).toEqual(["asked", "refused Bearer stale"]);
    expect(new Set(shown)).toEqual(new Set(["Bearer stale", `Bearer ${GOOD}`]));
    expect((await agent.listPage()).tasks).toHaveLength(1);
  });

  it("are asked for once more when a stream is refused", async () => {
    const { url } = await startServer();
    const { log, provider } = tokens("stale", GOOD);
    const agent = await connect(url, { binding, credentials: provider, retry: ONCE });
    let events = 0;
    for await (const _ of agent.stream("hi")) events++;
    expect(events).toBeGreaterThan(1);
    expect(log).toEqual(["asked", "refused Bearer stale"]);
    expect((await agent.listPage()).tasks).toHaveLength(1);
  });

  it("that stay refused are not tried again and again", async () => {
    const { shown, url } = await startServer();
    const { log, provider } = tokens("one", "two", "three");
    const agent = await connect(url, { binding, credentials: provider });
    await expect(agent.send("hi")).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    expect(log).toEqual(["asked", "refused Bearer one", "unauthorized"]);
    expect(new Set(shown)).toEqual(new Set(["Bearer one", "Bearer two"]));
    const same = tokens("same");
    const stubborn = await connect(url, { binding, credentials: same.provider });
    const stream = stubborn.stream("hi")[Symbol.asyncIterator]();
    await expect(stream.next()).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    expect(same.log).toEqual(["asked", "refused Bearer same", "unauthorized"]);
  });

  it("are nowhere in what a debugger sees", async () => {
    const { url } = await startServer();
    const traces: ExchangeTrace[] = [];
    const { provider } = tokens(GOOD);
    const agent = await connect(url, { binding, credentials: provider, onExchange: (trace) => traces.push(trace) });
    await agent.send("hi");
    expect(traces.length).toBeGreaterThan(2);
    expect(JSON.stringify(traces)).not.toContain(GOOD);
  });

  it("that the caller names for itself stand", async () => {
    const { shown, url } = await startServer();
    const headers = { authorization: `Bearer ${GOOD}` };
    const agent = await connect(url, { binding, credentials: tokens("other").provider, headers });
    await agent.send("hi");
    expect(new Set(shown)).toEqual(new Set([`Bearer ${GOOD}`]));
  });

  it("that cannot be had are no failure of the way to the agent", async () => {
    const { shown, url } = await startServer();
    const credentials = { headersFor: () => Promise.reject(new Error("the vault is locked")) };
    const agent = await connect(url, { binding, credentials });
    await expect(agent.send("hi")).rejects.toMatchObject({
      code: "UNAUTHENTICATED",
      message: expect.stringContaining("the vault is locked"),
    });
    expect(shown).toEqual([]);
  });

  it("are kept from other origins than the card's", async () => {
    const { shown, url } = await startServer();
    const { card } = await fetchCard(url);
    const notices: Notice[] = [];
    const elsewhere = { cardUrl: "https://cards.example.com/card.json", grpcTls: false };
    const onNotice = (notice: Notice): void => void notices.push(notice);
    const { log, provider } = tokens(GOOD);
    const agent = await connect(card, { ...elsewhere, binding, credentials: provider, onNotice });
    await expect(agent.send("hi")).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    expect([log, new Set(shown)]).toEqual([[], new Set([undefined])]);
    expect(notices).toEqual([
      { kind: "credentials", message: expect.stringMatching(/127\.0\.0\.1.*the credentials will/) },
    ]);
    const { url: used } = agent.interface;
    const credentialOrigins = [new URL(used.includes("://") ? used : `http://${used}`).origin];
    const allowed = await connect(card, { ...elsewhere, binding, credentials: provider, credentialOrigins });
    expect(await allowed.send("hi")).toHaveProperty("task");
  });
});

it("a gRPC stream that has sent something is not opened again", async () => {
  let opened = 0;
  async function* messages() {
    yield [new Uint8Array()];
    throw new RpcStatusError({ code: RPC_CODES.UNAUTHENTICATED, message: "Expired." });
  }
  const carrier: RpcCarrier = {
    unary: () => Promise.reject(new Error("not asked")),
    stream: () => {
      opened++;
      return { messages: messages(), cancel() {} };
    },
  };
  const { provider } = tokens("stale", GOOD);
  const call = { service: "s", method: "m", metadata: {}, message: new Uint8Array() };
  const address = { authority: "127.0.0.1:1", secure: false, isLoopback: true };
  const options = { signal: new AbortController().signal, silenceMs: 1000 };
  const stream = createAuthenticatedCarrier(carrier, provider).stream(address, call, options);
  expect((await stream.messages.next()).done).toBe(false);
  await expect(stream.messages.next()).rejects.toThrow("Expired.");
  expect(opened).toBe(1);
});

describe("the reach of credentials", () => {
  it("ends at a redirect to elsewhere", async () => {
    const { shown, url } = await startServer();
    const moved = createServer((_, response) => void response.writeHead(307, { location: url }).end());
    await new Promise<void>((resolve) => moved.listen(0, "127.0.0.1", resolve));
    const old = `http://127.0.0.1:${(moved.address() as AddressInfo).port}`;
    const { card } = await fetchCard(url);
    const supportedInterfaces = [{ url: old, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
    const { provider } = tokens(GOOD);
    const agent = await connect({ ...card, supportedInterfaces }, { cardUrl: old, credentials: provider, retry: ONCE });
    await expect(agent.send("hi")).rejects.toMatchObject({ code: "unreachable" });
    expect(shown).toEqual([]);
    moved.close();
  });
});

describe("a card that is only shown to known callers", () => {
  it("is asked for without credentials first, and kept for this caller alone", async () => {
    const seen: (string | undefined)[] = [];
    const guard = createServer((request, response) => {
      seen.push(request.headers.authorization ?? request.url?.split("?")[1]);
      const isKnown = request.headers.authorization === `Bearer ${GOOD}` || request.url?.includes("key=k");
      if (!isKnown) return void response.writeHead(401, { "www-authenticate": "Bearer" }).end();
      const supportedInterfaces = [{ url: "http://127.0.0.1:1", protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
      const card = { name: "Shy", description: "", version: "1", supportedInterfaces, capabilities: {}, skills: [] };
      const headers = { "content-type": "application/json", "cache-control": "max-age=60" };
      response.writeHead(200, headers).end(JSON.stringify({ ...card, defaultInputModes: [], defaultOutputModes: [] }));
    });
    await new Promise<void>((resolve) => guard.listen(0, "127.0.0.1", resolve));
    const target = `http://127.0.0.1:${(guard.address() as AddressInfo).port}/card.json`;
    const { provider } = tokens(GOOD);
    expect((await fetchCard(target, { credentials: provider, retry: ONCE })).card.name).toBe("Shy");
    expect((await fetchCard(target, { credentials: provider, retry: ONCE })).card.name).toBe("Shy");
    expect(seen).toEqual([undefined, `Bearer ${GOOD}`]);
    await expect(fetchCard(target, { retry: ONCE })).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    const byQuery: CredentialProvider = { headersFor: async () => ({}), queryFor: async () => ({ key: "k" }) };
    expect((await fetchCard(target, { credentials: byQuery, retry: ONCE })).card.name).toBe("Shy");
    guard.close();
  });
});
