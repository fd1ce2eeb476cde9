import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fetchCard, type PublicJwk } from "../../../client.ts";
import { createEchoAgent } from "../../agents/builtin.ts";
import { toPublicJwk } from "../../auth/signatures/keys.ts";
import { verifyCardSignatures } from "../../client/card/verify-card.ts";
import type { AgentCard } from "../../model/card.ts";
import { NO_METER, SILENT_LOG } from "../../model/ports.ts";
import { systemTools } from "../clock-and-ids.ts";
import { createDialects } from "../dialects.ts";
import { serve } from "../serve.ts";
import { createCardDocuments } from "./card-documents.ts";
import { createCardSigner, createJwksRoutes } from "./signing-keys.ts";

const key = {
  kid: "k-1",
  alg: "ES256" as const,
  privateKey: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
};
const cardKeys = [toPublicJwk(key) as PublicJwk];
const card: AgentCard = {
  name: "Guarded",
  description: "Wants to know who calls.",
  version: "1.0.0",
  supportedInterfaces: [
    { url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    { url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "0.3" },
  ],
  capabilities: { streaming: true, extendedAgentCard: false, extensions: [{ uri: "urn:x", params: { a: [1.5, -0] } }] },
  securitySchemes: {
    key: { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } },
    bearer: { httpAuthSecurityScheme: { scheme: "Bearer", bearerFormat: "JWT" } },
  },
  securityRequirements: [{ schemes: { key: { list: [] } } }, { schemes: { bearer: { list: ["a", "b"] } } }],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [
    {
      id: "s",
      name: "S",
      description: "D",
      tags: ["t"],
      securityRequirements: [{ schemes: { bearer: { list: ["c"] } } }],
    },
  ],
};
const servings = createDialects({ ...systemTools, log: SILENT_LOG, meter: NO_METER }, { agents: {} })
  .flatMap(({ serving }) => serving.cards ?? [])
  .filter(({ path }) => path.endsWith("agent-card.json"));
const documentOf = (signed: AgentCard, version: string | undefined): string => {
  const request = { method: "GET", path: "", query: "", headers: {}, body: Buffer.alloc(0), remoteAddress: "" };
  const reply = createCardDocuments(servings, "hybrid", () => 0)(signed, version, request);
  return String(reply.body);
};

describe("a signed card with security schemes", () => {
  it.each(["1.0", undefined])("is verified with all of them, version %s", async (version) => {
    const raw = documentOf(createCardSigner(key, () => "http://a.example")(card), version);
    const verification = await verifyCardSignatures(raw, { cardKeys });
    expect(verification).toMatchObject({ status: "verified", document: { securitySchemes: card.securitySchemes } });
    expect(raw.includes('"preferredTransport"')).toBe(version === undefined);
    const changed = raw.replaceAll("X-API-Key", "X-Other-Key");
    expect(await verifyCardSignatures(changed, { cardKeys })).not.toMatchObject({
      document: { securitySchemes: expect.anything() },
    });
    expect(await verifyCardSignatures(raw.replaceAll('"c"', '"d"'), { cardKeys })).toMatchObject({ status: "invalid" });
  });

  it("is signed again, not once more", () => {
    const sign = createCardSigner(key, () => "http://a.example");
    expect(sign(sign(card)).signatures).toHaveLength(sign(card).signatures?.length ?? 0);
  });
});

it("a server that asks who calls shows its signed card and its keys to all", async () => {
  const folder = await mkdtemp(join(tmpdir(), "dragoman-signing-"));
  await writeFile(join(folder, "key.pem"), key.privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  const server = await serve({
    port: 0,
    agents: { echo: createEchoAgent() },
    baseDirectory: folder,
    auth: { apiKeys: [{ key: "planted-key-of-ann-0123456789", owner: "ann" }] },
    signing: { keyFile: "key.pem", kid: key.kid },
  });
  try {
    expect(await (await fetch(`${server.url}/.well-known/jwks.json`)).json()).toEqual({ keys: cardKeys });
    const found = await fetchCard(server.url, { signatures: "require", cardKeys });
    expect(found.verification?.status).toBe("verified");
    expect(Object.keys(found.card.securitySchemes ?? {})).not.toEqual([]);
  } finally {
    await server.close();
    await rm(folder, { recursive: true });
  }
});

describe("the address of the keys", () => {
  const jkuOf = (base: string, jku?: string): unknown => {
    const signer = createCardSigner(jku === undefined ? key : { ...key, jku }, () => base);
    const [signature] = signer(card).signatures ?? [];
    return JSON.parse(Buffer.from(signature?.protected ?? "", "base64url").toString()).jku;
  };

  it("is referred to by the URL where verifiers fetch it", () => {
    expect(jkuOf("https://a.example")).toBe("https://a.example/.well-known/jwks.json");
    expect(jkuOf("http://127.0.0.1:4000")).toBeUndefined();
    expect(jkuOf("http://127.0.0.1:4000", "https://keys.example/set")).toBe("https://keys.example/set");
  });

  it("serves all keys of the server, and nothing where there are none", () => {
    expect(createJwksRoutes([]).size).toBe(0);
    const keys = ["one", "two"].map((kid) => ({ kty: "EC", kid }));
    const reply = createJwksRoutes(keys).get("/.well-known/jwks.json")?.();
    expect(JSON.parse(String(reply?.body))).toEqual({
      keys: [
        { kty: "EC", kid: "one" },
        { kty: "EC", kid: "two" },
      ],
    });
    expect(reply?.headers["content-type"]).toBe("application/jwk-set+json");
  });
});
