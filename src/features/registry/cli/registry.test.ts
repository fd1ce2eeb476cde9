import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startTestAgent, type TestAgent } from "../../../core/cli/testing/agent-server.ts";
import { runInProcess } from "../../../core/cli/testing/run-in-process.ts";
import { entry, scriptRegistry } from "../client/testing/scripted-registry.ts";

let agent: TestAgent;
beforeEach(async () => {
  agent = await startTestAgent();
  agent.replies.SendMessage = { result: { message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "hi" }] } } };
});
afterEach(() => agent.close());

const cardUrl = () => `${agent.url}/.well-known/agent-card.json`;
const known = (id: string, more = {}) =>
  entry(id, { displayName: "Talker", url: cardUrl(), capabilities: ["talk"], ...more });
const notFound = [404, { errorCode: "NOT_FOUND", message: "Agent not found." }] as const;

describe("an agent that -a names", () => {
  it("is looked up by its skill, and the chosen one is told", async () => {
    const { url } = await scriptRegistry({ "GET /registry/agents": [200, { items: [known("a1")] }] });
    const { code, stderr, stdout } = await runInProcess("send", "-a", "skill:talk", "--registry", url, "hello");
    expect([code, stdout]).toEqual([0, expect.stringContaining("hi")]);
    expect(stderr).toContain(`Using Talker, ${cardUrl()}, from the registry at ${url}/.`);
    expect(agent.received.at(-1)?.body).toMatchObject({ method: "SendMessage" });
  });

  it("is another one with the skill if the first cannot be reached", async () => {
    const gone = known("a0", { displayName: "Gone", url: "http://127.0.0.1:9/card.json" });
    const { url } = await scriptRegistry({ "GET /registry/agents": [200, { items: [known("a1"), gone] }] });
    const { code, stderr } = await runInProcess("send", "-a", "skill:talk", "--registry", url, "hello");
    expect(code).toBe(0);
    expect(stderr).toMatch(/Gone cannot be reached; trying the next one[\s\S]*Using Talker/);
  });

  it("is not called if it is held back, or if its card is now that of another agent", async () => {
    const { host } = new URL(agent.url);
    const impostor = known("a0", { displayName: "Listed", metadata: { health: "up", hosts: host } });
    const held = known("a1", { metadata: { health: "up", heldBack: true } });
    const same = known("a2", { displayName: "Test agent", metadata: { health: "up", hosts: `${host},other.example` } });
    for (const [items, code, told] of [
      [[impostor, held, same], 0, /Listed: The card is not that[\s\S]*Using Test agent/],
      [[impostor, held], 1, /Listed: The card is not that of the registered agent \(name: Listed → Test agent/],
      [[held], 1, /Talker \(a1\): The registry holds it back/],
    ] as const) {
      const { url } = await scriptRegistry({
        "GET /registry/agents": [200, { items: [...items] }],
        "POST /registry/search": [200, { results: [] }],
      });
      const sent = agent.received.length;
      const result = await runInProcess("send", "-a", "skill:talk", "--registry", url, "hello");
      expect([result.code === 0, result.stderr]).toEqual([code === 0, expect.stringMatching(told)]);
      if (code !== 0) expect(agent.received.slice(sent).filter(({ body }) => body !== undefined)).toEqual([]);
    }
    const { url } = await scriptRegistry({ "GET /registry/agents/a1": [200, held] });
    expect((await runInProcess("registry", "show", "a1", "--registry", url)).stdout).toContain("Talker");
    expect((await runInProcess("card", "get", "-a", "a1", "--registry", url)).stderr).toContain("holds it back");
  });

  it("is looked up by its name or id, and by a name in a variable's registry", async () => {
    const { url } = await scriptRegistry({
      "GET /registry/agents/a1": [200, known("a1")],
      "GET /registry/agents": [200, { items: [known("a1")] }],
      "POST /registry/search": [200, { results: [] }],
      "GET /registry/agents/talker": notFound,
      "GET /registry/agents/self.talker": notFound,
      "GET /registry/agents/self.a1": notFound,
    });
    process.env.A2ACLI_REGISTRY = url;
    try {
      for (const name of ["a1", "talker"]) {
        expect((await runInProcess("card", "get", "-a", name)).stdout).toContain("Test agent");
      }
    } finally {
      delete process.env.A2ACLI_REGISTRY;
    }
  });

  it("may be an inline card", async () => {
    const card = {
      name: "Inline",
      description: "Inline.",
      version: "1.0.0",
      supportedInterfaces: [{ url: `${agent.url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
      capabilities: {},
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["text/plain"],
      skills: [],
    };
    const { url: _, ...inline } = known("a1", { data: card });
    const { url } = await scriptRegistry({ "GET /registry/agents": [200, { items: [inline] }] });
    const { code, stderr } = await runInProcess(
      "send",
      "-a",
      "skill:talk",
      "--registry",
      url,
      "--bearer",
      "tok-123456",
      "hello",
    );
    expect(code).toBe(0);
    expect(stderr).toContain("will not be sent there");
    expect(agent.received[0]?.headers.authorization).toBeUndefined();
  });

  it("gets no credentials unless its origin was named, since anyone may be in a registry", async () => {
    const { received, url } = await scriptRegistry({ "GET /registry/agents": [200, { items: [known("a1")] }] });
    const send = ["send", "-a", "skill:talk", "--registry", url, "--bearer", "tok-123456", "hello"];
    const { stderr } = await runInProcess(...send);
    expect(stderr).toContain(`Name it with --credential-origin ${agent.url} if you trust it.`);
    await runInProcess(...send, "--credential-origin", agent.url);
    const sent = new Set(agent.received.map(({ headers }) => headers.authorization));
    expect([...sent]).toEqual([undefined, "Bearer tok-123456"]);
    expect(received.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined]);
    await runInProcess(...send, "--credential-origin", url);
    expect(received.at(-1)?.headers.authorization).toBe("Bearer tok-123456");
  });

  it.each([
    ["skill:cook", 'There is no agent with the skill "cook" in the registry'],
    ["cook", 'There is no agent "cook" in the registry'],
    ["urn:air:example.com:agents:cook", "There is no agent"],
  ])("is not found as %s: exit 3", async (name, message) => {
    const { url } = await scriptRegistry({
      "GET /registry/agents": [200, { items: [] }],
      "POST /registry/search": [200, { results: [] }],
      "GET /registry/agents/cook": notFound,
      "GET /registry/agents/self.cook": notFound,
    });
    const { code, stdout } = await runInProcess("card", "get", "-a", name, "--registry", url, "-o", "json");
    expect(code).toBe(3);
    expect(JSON.parse(stdout).error).toMatchObject({
      code: "A2ACLI_ERR_CARD_NOT_FOUND",
      message: expect.stringContaining(message),
    });
  });

  it("has to be named by its id if there are several of the name", async () => {
    const items = [known("a1"), known("a2", { url: "https://other.example/card.json" })];
    const { url } = await scriptRegistry({
      "GET /registry/agents": [200, { items }],
      "POST /registry/search": [200, { results: [] }],
      "GET /registry/agents/talker": notFound,
      "GET /registry/agents/self.talker": notFound,
    });
    const { code, stderr } = await runInProcess("card", "get", "-a", "talker", "--registry", url);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /"talker" is the name of 2 agents in .*: a1 \(Talker, http:.*\); a2 \(Talker, https:.*\)\./s,
    );
    expect(stderr).toContain("Code: DRAGOMAN_ERR_AMBIGUOUS_AGENT");
  });

  it("cannot be looked up if the registry is away: exit 3", async () => {
    const { code, stderr } = await runInProcess("card", "get", "-a", "skill:x", "--registry", "http://127.0.0.1:9");
    expect(code).toBe(3);
    expect(stderr).toMatch(/the registry at http:\/\/127\.0\.0\.1:9\/ cannot be reached[\s\S]*A2ACLI_ERR_UNREACHABLE/);
  });
});

describe("dragoman registry", () => {
  it("lists agents with filters and pages", async () => {
    const { received, url } = await scriptRegistry({
      "GET /registry/agents": [200, { items: [known("a1")], total: 7, pageToken: "p 2" }],
    });
    const list = ["registry", "list", "--registry", url, "--skill", "talk", "--health", "up", "--health", "stale"];
    const { code, stdout } = await runInProcess(...list);
    expect(code).toBe(0);
    expect(stdout).toContain(`a1  up  Talker  talk  ${cardUrl()}\n`);
    expect(stdout).toContain("Agents: 1 of 7\n");
    expect(stdout).toContain(`Next Page: dragoman registry list --registry ${url}/ --page-token 'p 2'\n`);
    expect(received[0]?.line).toBe("GET /registry/agents?skill=talk&health=up%2Cstale");
    const json = await runInProcess(...list, "-o", "json");
    expect(JSON.parse(json.stdout)).toMatchObject({ items: [{ id: "a1" }], total: 7, pageToken: "p 2" });
    const lines = await runInProcess(...list, "-o", "json", "--stream");
    expect(JSON.parse(lines.stdout)).toMatchObject({ id: "a1" });
  });

  it("searches, and names the peers that did not answer", async () => {
    const unanswered = [{ url: "https://peer.example/registry", reason: "timeout" }];
    const { received, url } = await scriptRegistry({
      "POST /registry/search": [200, { results: [{ ...known("a1"), score: 9, source: "x" }], unanswered }],
    });
    const { stderr, stdout } = await runInProcess("registry", "search", "small", "talk", "--registry", url, "--local");
    expect(stdout).toContain("a1  up  Talker");
    expect(stderr).toContain("https://peer.example/registry did not answer: timeout");
    expect(received[0]?.body).toEqual({ query: { text: "small talk", filter: {} }, federation: "none" });
  });

  it("adds an agent by its URL or its card, with the credentials for the registry", async () => {
    const folder = mkdtempSync(join(tmpdir(), "dragoman-finding-"));
    writeFileSync(join(folder, "card.json"), '{"name":"File"}');
    const details = known("a1", {
      registration: { expiresAt: "2026-11-16T16:00:00.000Z", findings: [{ message: "No skills." }] },
    });
    const { received, url } = await scriptRegistry({ "POST /registry/agents": [201, details] });
    const add = ["--registry", url, "--api-key", "key-123456"];
    const { stdout } = await runInProcess("registry", "add", agent.url, "--ttl", "1m", "--public", ...add);
    expect(stdout).toMatch(/^ID: a1\nName: Talker\n[\s\S]*Expires: 2026-[\s\S]*Finding: No skills\.\n$/);
    await runInProcess("registry", "add", join(folder, "card.json"), ...add);
    rmSync(folder, { recursive: true });
    expect(received.map(({ body }) => body)).toEqual([
      { url: agent.url, ttlSeconds: 60, visibility: "public" },
      { card: { name: "File" } },
    ]);
    expect(received[0]?.headers["x-api-key"]).toBe("key-123456");
  });

  it.each(["missing.json", "cards/missing.json"])(
    "says that there is no file %s instead of taking it for a host",
    async (name) => {
      const { received, url } = await scriptRegistry({});
      const { code, stderr } = await runInProcess("registry", "add", name, "--registry", url);
      expect(code).not.toBe(0);
      expect(stderr).toContain(`The card file ${name} could not be read (ENOENT).`);
      expect(received).toEqual([]);
    },
  );

  it("takes the name of a card at a host for an address", async () => {
    const { received, url } = await scriptRegistry({ "POST /registry/agents": [201, known("a1")] });
    await runInProcess("registry", "add", "agents.example.com/card.json", "--registry", url);
    expect(received[0]?.body).toEqual({ url: "https://agents.example.com/card.json" });
  });

  it("names the flags for the credentials that a registry requires", async () => {
    const refused = [401, { errorCode: "UNAUTHENTICATED", message: "Who?" }] as const;
    const { url } = await scriptRegistry({ "GET /registry/agents": refused });
    const { code, stderr } = await runInProcess("registry", "list", "--registry", url);
    expect(code).toBe(4);
    expect(stderr).toContain("--api-key or --bearer");
    expect(stderr).not.toContain("-a,");
    const found = await runInProcess("send", "-a", "skill:talk", "--registry", url, "hello");
    expect(found.stderr).toContain("--credential-origin");
  });

  it("shows and removes an agent by its name", async () => {
    const { received, url } = await scriptRegistry({
      "GET /registry/agents/talker": notFound,
      "GET /registry/agents/self.talker": notFound,
      "GET /registry/agents": [200, { items: [known("a1")] }],
      "POST /registry/search": [200, { results: [] }],
      "GET /registry/agents/a1": [200, known("a1", { registration: { problem: "timeout" } })],
      "DELETE /registry/agents/a1": [204],
    });
    expect((await runInProcess("registry", "show", "talker", "--registry", url)).stdout).toContain(
      "Problem: timeout\n",
    );
    const removed = await runInProcess("registry", "remove", "talker", "--registry", url);
    expect(removed.stdout).toBe("Removed: a1 (Talker)\n");
    expect(received.at(-1)?.line).toBe("DELETE /registry/agents/a1");
  });

  it("refuses to remove what is somebody else's, or unknown", async () => {
    const { url } = await scriptRegistry({
      "GET /registry/agents/a1": [200, known("a1")],
      "GET /registry/agents/self.a1": notFound,
      "GET /registry/agents/a.2": notFound,
      "GET /registry/agents/self.a.2": notFound,
      "GET /registry/agents": [200, { items: [] }],
      "POST /registry/search": [200, { results: [] }],
      "DELETE /registry/agents/a1": [403, { errorCode: "PERMISSION_DENIED", message: "It is not yours." }],
    });
    const refused = await runInProcess("registry", "remove", "a1", "--registry", url);
    expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining("It is not yours.")]);
    const unknown = await runInProcess("registry", "remove", "a.2", "--registry", url);
    expect([unknown.code, unknown.stderr]).toEqual([3, expect.stringContaining("A2ACLI_ERR_CARD_NOT_FOUND")]);
  });

  it("watches until the time is over, one line for each change", async () => {
    const { received, url } = await scriptRegistry({
      "GET /registry/watch": (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write('event: stale\nid: 8\ndata: {"id":"a1","displayName":"Talker","health":"stale","at":"now"}\n\n');
      },
    });
    const watch = ["registry", "watch", "--registry", url, "--after", "7", "--timeout", "1s"];
    const { code, stdout } = await runInProcess(...watch);
    expect([code, stdout]).toEqual([0, "8  now  stale  a1  Talker  stale\n"]);
    expect(received[0]?.headers["last-event-id"]).toBe("7");
    expect(JSON.parse((await runInProcess(...watch, "-o", "json")).stdout)).toMatchObject({
      kind: "stale",
      number: "8",
      id: "a1",
    });
  });
});
