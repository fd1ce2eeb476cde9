/** Cards that we sign are verified by the official library, and cards that it signs by us. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generateAgentCardSignature, AgentCard as SdkCard, verifyAgentCardSignature } from "@a2a-js/sdk";
import { exportJWK, type JWK } from "jose";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ConnectionError, connect, fetchCard } from "../../src/client.ts";
import { defineAgent } from "../../src/core/agents/define.ts";
import { loadSigningKey } from "../../src/core/auth/signatures/keys.ts";
import { signCard } from "../../src/core/auth/signatures/sign-card.ts";
import { verifyCardSignatures } from "../../src/core/client/card/verify-card.ts";
import type { Notice } from "../../src/core/client/options.ts";
import type { Agent } from "../../src/core/engine/agent.ts";
import type { JsonObject } from "../../src/core/model/json.ts";
import { type DragomanServer, serve } from "../../src/index.ts";
import { createFolder } from "../support/lifecycle.ts";

const KEYS: Record<string, KeyObject> = {
  ES256: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
  EdDSA: generateKeyPairSync("ed25519").privateKey,
  RS256: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey,
};
const ALGORITHMS = ["ES256", "EdDSA", "RS256"] as const;

// The library writes every signature that does not fit to the console.
vi.spyOn(console, "debug").mockImplementation(() => {});
const folder = createFolder();

const plain = defineAgent({
  name: "Écho 中文",
  description: "Says it again.",
  version: "1.0.0",
  skills: [{ id: "echo", name: "Echo", description: "Again \u{1f602}", tags: ["t"], examples: ["é"] }],
  async *run(turn) {
    yield turn.artifact({ name: "said", parts: [{ text: turn.text }] });
  },
});
/** Libraries disagree about values that are empty. */
const sparse: Agent = {
  ...plain,
  profile: {
    ...plain.profile,
    name: "Sparse",
    skills: [{ id: "s", name: "S", description: "", tags: [] }],
    extended: { description: "For those we know." },
  },
};

async function start(alg: string): Promise<DragomanServer> {
  const keyFile = join(folder, `${alg}.pem`);
  await writeFile(keyFile, KEYS[alg]?.export({ format: "pem", type: "pkcs8" }) ?? "");
  return serve({
    agents: { plain, sparse },
    port: 0,
    grpcPort: 0,
    signing: { keyFile, kid: `key-${alg}` },
    authenticate: ({ headers }) =>
      headers.authorization === undefined ? undefined : { owner: "alice", authenticated: true },
  });
}

describe.each(ALGORITHMS)("a server that signs with %s", (alg) => {
  let server: DragomanServer;
  let keys: readonly JWK[];
  beforeAll(async () => {
    server = await start(alg);
    const answer = await fetch(`${server.url}/.well-known/jwks.json`);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/jwk-set+json"]);
    keys = ((await answer.json()) as { keys: JWK[] }).keys;
  });
  afterAll(() => server.close());

  const cardOf = async (name: string, version: string | undefined): Promise<string> => {
    const headers: Record<string, string> = version === undefined ? {} : { "A2A-Version": version };
    return (await fetch(`${server.url}/agents/${name}/.well-known/agent-card.json`, { headers })).text();
  };

  it("publishes the public key and nothing else of it", () => {
    expect(keys).toHaveLength(1);
    expect(keys[0]).toMatchObject({ kid: `key-${alg}`, alg, use: "sig" });
    expect(keys[0]).not.toHaveProperty("d");
  });

  it.each([
    ["plain", "1.0"],
    ["plain", undefined],
    ["sparse", "1.0"],
    ["sparse", undefined],
  ])("the official library verifies the card of %s, version %s", async (name, version) => {
    const card = SdkCard.fromJSON(JSON.parse(await cardOf(name, version)));
    const asked: unknown[] = [];
    const verify = verifyAgentCardSignature(async (kid, jku) => {
      asked.push([kid, jku]);
      return keys[0] ?? { kty: "none" };
    });
    await verify(card);
    expect(asked[0]).toEqual([`key-${alg}`, undefined]);
    await expect(verify({ ...card, name: "Evil" })).rejects.toThrow();
  });

  it.each([
    ["plain", "1.0"],
    ["plain", undefined],
    ["sparse", "1.0"],
    ["sparse", undefined],
  ])("we verify the card of %s, version %s", async (name, version) => {
    const raw = await cardOf(name, version);
    expect(await verifyCardSignatures(raw, { cardKeys: keys })).toMatchObject({
      status: "verified",
      kid: `key-${alg}`,
      alg,
    });
    expect(await verifyCardSignatures(raw, {})).toMatchObject({ status: "unverifiable" });
    const changed = raw.replace('"version":"1.0.0"', '"version":"1.0.1"');
    expect(changed).not.toBe(raw);
    expect(await verifyCardSignatures(changed, { cardKeys: keys })).toMatchObject({ status: "invalid" });
  });

  it("the official library verifies a card with security schemes, as we sign it", async () => {
    const key = await loadSigningKey({ keyFile: join(folder, `${alg}.pem`), kid: `key-${alg}` });
    const pure = JSON.parse(await cardOf("plain", "1.0")) as JsonObject;
    const card = {
      ...pure,
      securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } } },
      securityRequirements: [{ schemes: { key: {} } }],
    };
    const signed = SdkCard.fromJSON({ ...card, signatures: signCard(card, key) });
    await verifyAgentCardSignature(async () => keys[0] ?? { kty: "none" })(signed);
  });

  it("has the same signatures in both documents and none in that of 0.3", async () => {
    const read = async (version: string | undefined) => JSON.parse(await cardOf("plain", version)) as JsonObject;
    const [pure, hybrid, early] = await Promise.all([read("1.0"), read(undefined), read("0.3")]);
    expect(pure.signatures).toHaveLength(1);
    expect(hybrid.signatures).toEqual(pure.signatures);
    expect(hybrid).toHaveProperty("preferredTransport");
    expect(early).not.toHaveProperty("signatures");
  });

  it("signs the extended card for itself", async () => {
    const agent = await connect(`${server.url}/agents/sparse`, { headers: { Authorization: "x" } });
    const extended = await agent.extendedCard();
    expect(extended.description).toBe("For those we know.");
    expect(await verifyCardSignatures(JSON.stringify(extended), { cardKeys: keys })).toMatchObject({
      status: "verified",
    });
  });
});

describe.each(ALGORITHMS)("a card that the official library signs with %s", (alg) => {
  const document = {
    name: "Theirs",
    description: "",
    version: "1.0.0",
    supportedInterfaces: [{ url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    capabilities: { streaming: true, pushNotifications: false, extensions: [] },
    securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } } },
    securityRequirements: [{ schemes: { key: { list: [] } } }],
    defaultInputModes: ["text/plain"],
    defaultOutputModes: [],
    skills: [{ id: "s", name: "S", description: "中文", tags: [] }],
  };

  it("is verified by us, as they write it", async () => {
    const key = KEYS[alg] as KeyObject;
    const sign = generateAgentCardSignature(key, { alg, kid: "theirs", typ: "JOSE" });
    const raw = JSON.stringify(SdkCard.toJSON(await sign(SdkCard.fromJSON(document))));
    const { kty = "", crv, x, y, n, e } = await exportJWK(key);
    const cardKeys = [JSON.parse(JSON.stringify({ kty, crv, x, y, n, e, kid: "theirs" })) as JWK];
    const verification = await verifyCardSignatures(raw, { cardKeys });
    expect(verification).toMatchObject({ status: "verified", kid: "theirs", document: { name: "Theirs" } });
    // Their signature does not cover them.
    expect(verification).toHaveProperty("uncovered", ["securitySchemes", "securityRequirements"]);
    expect(verification).not.toHaveProperty("document.securitySchemes");
    const file = join(folder, `theirs-${alg}.json`);
    await writeFile(file, raw);
    const { card } = await fetchCard(file, { signatures: "require", cardKeys });
    expect(card).toMatchObject({ name: "Theirs", description: "", defaultOutputModes: [], skills: [{ tags: [] }] });
    expect(card.securityRequirements ?? []).toEqual([]);
    expect(await verifyCardSignatures(raw.replace("Theirs", "Others"), { cardKeys })).toMatchObject({
      status: "invalid",
    });
  });
});

describe("what a client makes of signatures", () => {
  let server: DragomanServer;
  let keys: readonly JWK[];
  beforeAll(async () => {
    server = await start("ES256");
    keys = ((await (await fetch(`${server.url}/.well-known/jwks.json`)).json()) as { keys: JWK[] }).keys;
  });
  afterAll(() => server.close());

  it("requires them", async () => {
    const agent = await connect(server.url, { signatures: "require", cardKeys: keys });
    const outcome = await agent.send("hello");
    expect("task" in outcome && outcome.task.status.state).toBe("TASK_STATE_COMPLETED");
    const refused: unknown = await fetchCard(server.url, { signatures: "require" }).catch((error: unknown) => error);
    expect(ConnectionError.is(refused) && [refused.code, refused.permanent]).toEqual(["bad-card", true]);
    expect(String(refused)).toContain("key-ES256 is not trusted here");
  });

  it("prefers them, and tells what it could not verify", async () => {
    const notices: Notice[] = [];
    const onNotice = (notice: Notice) => notices.push(notice);
    await connect(server.url, { signatures: "prefer", onNotice });
    expect(notices.map(({ kind }) => kind)).toEqual(["signature"]);
    await connect(server.url, { cardKeys: keys, onNotice });
    expect(notices).toHaveLength(1);
    const { card } = await fetchCard(server.url);
    const forged = connect({ ...card, name: "Evil" }, { cardKeys: keys });
    await expect(forged).rejects.toMatchObject({ code: "bad-card" });
    await connect({ ...card, name: "Evil" }, { signatures: "ignore", cardKeys: keys });
  });

  it("reads nothing of a verified card that was not signed", async () => {
    const { raw } = await fetchCard(server.url);
    const hybrid = { ...(JSON.parse(raw) as JsonObject), url: "https://evil.example", protocolVersion: "0.3.0" };
    const file = join(folder, "hybrid.json");
    const text = { ...hybrid, preferredTransport: "JSONRPC", additionalInterfaces: [] };
    await writeFile(file, JSON.stringify(text));
    const urls = async (options: object) =>
      (await fetchCard(file, options)).card.supportedInterfaces.map(({ url }) => url).join(" ");
    expect(await urls({})).toContain("evil.example");
    expect(await urls({ cardKeys: keys })).not.toContain("evil.example");
  });
});
