import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { echo } from "../../../core/engine/testing/agents.ts";
import { Harness } from "../../../core/engine/testing/harness.ts";
import { CarrierError, type ExchangeCall, type Exchanger } from "../../../core/wire/exchange.ts";
import { createAccountExchange, createBindings } from "./accounts.ts";

const SERVER = { tokenUrl: "https://login.example/token", clientId: "id", clientSecret: "a secret" };

function answering(status: number, text: string, calls: ExchangeCall[] = []): Exchanger {
  return async (call) => {
    calls.push(call);
    const headers = { get: () => null };
    return { status, headers, text: async () => text, chunks: (async function* () {})(), cancel() {} };
  };
}

const claims = Buffer.from(JSON.stringify({ sub: "u-1", phone: "+86" })).toString("base64url");

describe("a code", () => {
  it("is traded for who logged in, and no token is kept", async () => {
    const calls: ExchangeCall[] = [];
    const answer = { access_token: "t", refresh_token: "r", id_token: `h.${claims}.s`, expires_in: 1, open_id: "o" };
    const exchange = createAccountExchange(
      { ...SERVER, redirectUri: "app://x" },
      "en",
      answering(200, JSON.stringify(answer), calls),
    );
    expect(await exchange("c&d")).toEqual({ open_id: "o", sub: "u-1", phone: "+86" });
    expect(calls[0]).toMatchObject({ method: "POST", url: SERVER.tokenUrl });
    expect(Object.fromEntries(new URLSearchParams(calls[0]?.body))).toEqual({
      grant_type: "authorization_code",
      code: "c&d",
      client_id: "id",
      client_secret: "a secret",
      redirect_uri: "app://x",
    });
  });

  it.each([
    [400, '{"error":"invalid_grant"}', "INVALID_PARAMS"],
    [200, '{"error":1101}', "INVALID_PARAMS"],
    [200, "<html>", "INVALID_PARAMS"],
    [200, "[]", "INVALID_PARAMS"],
    [503, "", "UNAVAILABLE"],
  ])("is refused by %i %s", async (status, text, code) => {
    await expect(createAccountExchange(SERVER, "en", answering(status, text))("c")).rejects.toMatchObject({ code });
  });

  it("cannot be exchanged if the server is unreachable", async () => {
    const nobody: Exchanger = async () => {
      throw new CarrierError("unreachable", "Nobody there.");
    };
    await expect(createAccountExchange(SERVER, "en", nobody)("c")).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it("is not carried elsewhere, nor is the secret, if the login server sends us there", async () => {
    const came: string[] = [];
    const elsewhere = createServer((request, response) => {
      came.push(request.url ?? "");
      response.end('{"open_id":"somebody"}');
    });
    const login = createServer((_, response) => {
      const location = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`;
      response.writeHead(307, { location }).end();
    });
    for (const server of [elsewhere, login]) {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    }
    const tokenUrl = `http://127.0.0.1:${(login.address() as AddressInfo).port}/token`;
    await expect(createAccountExchange({ ...SERVER, tokenUrl }, "en")("c")).rejects.toMatchObject({
      code: "UNAVAILABLE",
    });
    expect(came).toEqual([]);
    for (const server of [elsewhere, login]) server.close();
  });

  it.each(["http://login.example/token", "ftp://login.example/", "login.example"])("is not sent to %s", (tokenUrl) => {
    expect(() => createAccountExchange({ ...SERVER, tokenUrl }, "en")).toThrow(/https address/);
  });

  it("with a broken token about identity is good for the rest", async () => {
    const answer = answering(200, '{"open_id":"o","id_token":"x.%%%.y"}');
    expect(await createAccountExchange(SERVER, "en", answer)("c")).toEqual({ open_id: "o" });
  });
});

describe("logins", () => {
  it("are found by the entries that they belong to", async () => {
    const { engine } = await Harness.start({ agent: echo() });
    const bindingsOf = (agent: string, owner: string) => createBindings(() => engine.records, agent, owner);
    const mine = bindingsOf("a", "alice");
    await Promise.all([mine.save("l-1", { n: 1 }), mine.save("l-2", { n: 2 }), mine.save("l-3", { n: 3 })]);
    await mine.forget("l-2");
    await mine.forget("l-2");
    await mine.forget("never");
    expect(await mine.find("l-1")).toEqual({ n: 1 });
    expect(await mine.find("l-2")).toBeUndefined();
    expect(await mine.find("l-3")).toEqual({ n: 3 });
    expect(await bindingsOf("b", "alice").find("l-1")).toBeUndefined();
    expect(await bindingsOf("a", "bob").find("l-1")).toBeUndefined();
  });
});
