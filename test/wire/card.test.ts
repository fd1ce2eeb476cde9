import { describe, expect, it } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import { BINDINGS, type Binding } from "../support/bindings.ts";
import { startServer } from "../support/lifecycle.ts";
import { type RawRequest, sendRaw } from "../support/raw-http.ts";
import { describeBindings, useScene } from "../support/scene.ts";

const CARD = "/.well-known/agent-card.json";

describe("the agent card", () => {
  const scene = useScene(BINDINGS[0] as Binding, {
    agents: { "second agent": { name: "Second", extended: { description: "More." }, streaming: false } },
  });
  const fetchCard = async (base = scene.server.url, raw: RawRequest = {}) => {
    const reply = await sendRaw(base, { path: CARD, ...raw });
    return { ...reply, card: reply.body.length > 0 ? reply.json : undefined };
  };

  it("[CARD-DISC-001, CARD-STRUCT-001] has every required field", async () => {
    const { status, headers, card } = await fetchCard();
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("application/json");
    expect(card).toMatchObject({
      name: "Stage",
      description: expect.any(String),
      version: expect.any(String),
      capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: false },
    });
    for (const list of ["supportedInterfaces", "defaultInputModes", "defaultOutputModes", "skills"]) {
      expect(card[list].length, list).toBeGreaterThan(0);
    }
    for (const skill of card.skills) {
      expect(skill).toMatchObject({
        id: expect.any(String),
        name: expect.any(String),
        description: expect.any(String),
      });
      expect(skill.tags.length).toBeGreaterThan(0);
    }
  });

  it("[CARD-PROTO-001, BIND-EQUIV-001, CARD-PROTO-002, CARD-PROTO-003] names every binding, and each interface answers at its URL", async () => {
    const { card } = await fetchCard(`${scene.server.url}/agents/second%20agent`);
    const base = `${scene.server.url}/agents/second%20agent`;
    expect(card.supportedInterfaces).toEqual([
      { url: base, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url: `${base}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      { url: scene.server.grpc, protocolBinding: "GRPC", protocolVersion: "1.0", tenant: "second agent" },
      { url: base, protocolBinding: "JSONRPC", protocolVersion: "0.3" },
      { url: `${base}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
    ]);
    const [rpc, rest] = card.supportedInterfaces as [{ url: string }, { url: string }];
    const listed = await sendRaw(rpc.url, {
      headers: { "a2a-version": "1.0" },
      body: '{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}',
    });
    expect(listed.json).toMatchObject({ id: 1, result: { tasks: [] } });
    const restListed = await sendRaw(rest.url, { path: "/tasks", headers: { "a2a-version": "1.0" } });
    expect(restListed.json).toMatchObject({ tasks: [], totalSize: 0 });
  });

  it("is also at the agent's own address, for programs", async () => {
    for (const path of ["/agents/stage", "/agents/stage/", "/"]) {
      const { headers, status, card } = await fetchCard(scene.server.url, { path, headers: { accept: "*/*" } });
      expect([status, headers["content-type"], card.name]).toEqual([200, "application/json", "Stage"]);
      expect(headers.vary).toBe("A2A-Version, Accept");
    }
    for (const accept of ["text/html,application/xhtml+xml,*/*;q=0.8", "text/event-stream"]) {
      expect((await fetchCard(scene.server.url, { path: "/agents/stage", headers: { accept } })).status).toBe(405);
    }
  });

  it("beside the agent is that of the only one, and else says where it is", async () => {
    const path = `/agents${CARD}`;
    const { status, card } = await fetchCard(scene.server.url, { path });
    expect([status, card.error.message]).toEqual([
      404,
      expect.stringContaining("/agents/NAME/.well-known/agent-card.json"),
    ]);
    const { url } = await startServer({
      agents: { slow: defineAgent({ name: "Slow", description: "d", run: () => "x" }) },
    });
    expect((await fetchCard(url, { path })).card).toMatchObject({ name: "Slow" });
    expect((await fetchCard(url, { path: "/agents/.well-known/other.json" })).status).toBe(404);
  });

  it("[CARD-JSON-001] holds nothing but members of A2A 1.0 in camelCase for those who ask for 1.0", async () => {
    const { card } = await fetchCard(scene.server.url, { headers: { "a2a-version": "1.0" } });
    const known = [
      "name description supportedInterfaces provider version documentationUrl capabilities securitySchemes",
      "securityRequirements defaultInputModes defaultOutputModes skills signatures iconUrl",
    ].flatMap((names) => names.split(" "));
    expect(Object.keys(card).filter((key) => !known.includes(key))).toEqual([]);
    const capabilities = ["streaming", "pushNotifications", "extensions", "extendedAgentCard"];
    expect(Object.keys(card.capabilities).filter((key) => !capabilities.includes(key))).toEqual([]);
    expect(JSON.stringify(card)).not.toMatch(/"(?:\$\w+|kind|oneofKind|\w+_\w+)":/);
  });

  it("tells what the agent can do", async () => {
    const { card } = await fetchCard(`${scene.server.url}/agents/second%20agent`);
    expect(card.capabilities).toMatchObject({ streaming: false, pushNotifications: true, extendedAgentCard: false });
    expect(card.capabilities.extensions.map(({ uri }: { uri: string }) => uri)).toEqual([
      "urn:dragoman:ext:replay:v1",
      "urn:dragoman:ext:idempotency:v1",
      "urn:dragoman:ext:hops:v1",
    ]);
  });

  it("[CARD-CACHE-001, CARD-CACHE-002] may be kept for a while and is then asked for by its ETag", async () => {
    const { headers } = await fetchCard();
    expect(headers["cache-control"]).toMatch(/max-age=[1-9]\d*/);
    expect(headers.vary).toBe("A2A-Version");
    const etag = headers.etag as string;
    expect(etag).toMatch(/^"[^"]+"$/);
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await fetchCard(scene.server.url, { headers: { "if-none-match": tag } });
      expect(again.status, tag).toBe(304);
      expect(again.body.length).toBe(0);
      expect(again.headers).toMatchObject({ etag, vary: "A2A-Version", "cache-control": headers["cache-control"] });
    }
    expect((await fetchCard(scene.server.url, { headers: { "if-none-match": '"other"' } })).status).toBe(200);
  });

  it("has another ETag for another agent, and at the root that of the default agent", async () => {
    const root = await fetchCard();
    const first = await fetchCard(`${scene.server.url}/agents/stage`);
    const second = await fetchCard(`${scene.server.url}/agents/second%20agent`);
    expect(first.body).toEqual(root.body);
    expect(first.headers.etag).toBe(root.headers.etag);
    expect(second.headers.etag).not.toBe(root.headers.etag);
  });

  it("answers HEAD with the headers alone", async () => {
    const got = await fetchCard();
    const head = await fetchCard(scene.server.url, { method: "HEAD" });
    expect(head.status).toBe(200);
    expect(head.body.length).toBe(0);
    expect(head.headers["content-length"]).toBe(String(got.body.length));
    expect(head.headers.etag).toBe(got.headers.etag);
  });

  it("is given whatever version the caller speaks", async () => {
    const of = async (version: string) => {
      const reply = await fetchCard(scene.server.url, { headers: { "a2a-version": version } });
      expect(reply.status, version).toBe(200);
      return reply.body;
    };
    const { body } = await fetchCard();
    for (const version of ["99.0", ""]) expect(await of(version)).toEqual(body);
    expect(await of("1.0.1")).toEqual(await of("1.0"));
    expect(await of("1.0")).not.toEqual(body);
    expect(await of("0.3")).not.toEqual(body);
  });
});

describeBindings(
  "the extended card",
  { agents: { extended: { extended: { description: "For those we know." } } } },
  (scene) => {
    it("[CORE-CAP-003] is an unsupported operation for an agent without one", async () => {
      const { reason } = await scene.client().refusal("GetExtendedAgentCard");
      expect(reason).toBe("UNSUPPORTED_OPERATION");
    });

    it("[CARD-EXT-001] is neither offered nor returned where callers cannot authenticate", async () => {
      const { body } = await sendRaw(`${scene.server.url}/agents/extended`, { path: CARD });
      expect(JSON.parse(body.toString("utf8")).capabilities.extendedAgentCard).toBe(false);
      expect(body.toString("utf8")).not.toContain("For those we know.");
      const refused = await scene
        .client("extended")
        .call("GetExtendedAgentCard", {}, { authorization: "Bearer guess" });
      expect(refused.error?.reason).toBe("UNSUPPORTED_OPERATION");
      expect(refused.text).not.toContain("For those we know.");
    });
  },
);

it("uses the public URL in cards when there is one", async () => {
  const { serve } = await import("../../src/index.ts");
  const { createEchoAgent } = await import("../../src/core/agents/builtin.ts");
  const server = await serve({
    agents: { echo: createEchoAgent() },
    port: 0,
    publicUrl: "https://agents.example.com/base/",
    auth: { anonymous: true },
    log: false,
  });
  try {
    const { body } = await sendRaw(`http://127.0.0.1:${server.port}`, { path: CARD });
    const urls = JSON.parse(body.toString("utf8")).supportedInterfaces.map(({ url }: { url: string }) => url);
    expect([...new Set(urls)]).toEqual([
      "https://agents.example.com/base/agents/echo",
      "https://agents.example.com/base/agents/echo/rest",
      server.grpc,
    ]);
    expect(server.grpc).toMatch(/^agents\.example\.com:\d+$/);
  } finally {
    await server.close();
  }
});
