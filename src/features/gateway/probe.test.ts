import { writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createFolder, listen } from "../../../test/support/lifecycle.ts";
import type { AgentReport } from "../../core/cli/doctor/probe/claims.ts";
import { UNKNOWN_METHOD } from "../../core/cli/doctor/probe/interface.ts";
import { startTestAgent, statusUpdate, type TestAgent, task, textChunk } from "../../core/cli/testing/agent-server.ts";
import { runInProcess } from "../../core/cli/testing/run-in-process.ts";
import type { JsonObject, JsonValue } from "../../core/model/json.ts";

const NOT_FOUND = { error: { code: -32001, message: "Task not found." } };
const UNAUTHENTICATED = { status: 401 };

/** With a configuration whose server does not run: only the registry matters here. */
const config = join(createFolder(), "dragoman.yaml");
writeFileSync(config, 'server: { port: 0 }\nstore: "memory:"\nagents: { echo: { use: echo } }\n', { mode: 0o600 });

const agents: TestAgent[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const agent of agents.splice(0)) await agent.close();
});

/** An agent that does what its card says, as far as it is asked without a message. */
async function startAgent(card: JsonObject = {}, replies: TestAgent["replies"] = {}): Promise<TestAgent> {
  vi.stubEnv("HOME", "/nonexistent");
  const agent = await startTestAgent();
  agent.card = card;
  agent.replies = {
    GetTask: NOT_FOUND,
    SubscribeToTask: NOT_FOUND,
    GetTaskPushNotificationConfig: NOT_FOUND,
    ...replies,
  };
  agents.push(agent);
  return agent;
}

const serveHttp = async (handler: RequestListener) => `http://127.0.0.1:${await listen(createServer(handler))}`;

async function startRegistry(items: readonly JsonValue[]): Promise<string> {
  return serveHttp((_, response) => response.end(JSON.stringify({ items, total: items.length })));
}

const entryOf = (agent: { readonly url: string }, more: JsonObject = {}): JsonObject => ({
  id: `id-${agent.url.split(":").at(-1)}`,
  displayName: "Test agent",
  version: "1.2.3",
  url: `${agent.url}/.well-known/agent-card.json`,
  ...more,
});

interface Result {
  readonly healthy: boolean;
  readonly checks: readonly { readonly name: string; readonly status: string; readonly detail: string }[];
  readonly agents: readonly AgentReport[];
}

async function doctor(registry: string, ...words: readonly string[]) {
  const args = ["doctor", config, "--registry", registry, ...words, "-o", "json"];
  const { code, stdout } = await runInProcess(...args);
  const result = JSON.parse(stdout) as Result;
  return { code, result: { ...result, agents: result.agents.filter(({ source }) => source !== "configuration") } };
}

async function probe(agent: TestAgent, ...words: readonly string[]) {
  const { code, result } = await doctor(await startRegistry([entryOf(agent)]), PRIVATE, ...words);
  const claims = result.agents[0]?.claims ?? [];
  return {
    code,
    claims: Object.fromEntries(claims.map(({ claim, detail, status }) => [claim, `${status}: ${detail}`])),
  };
}

const PRIVATE = "--allow-private-targets";

const methodsOf = (agent: TestAgent) => [...new Set(agent.received.map(({ body }) => String(body.method)))].sort();

const SECURED = {
  securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "X-Key" } } },
  securityRequirements: [{ schemes: { key: { list: [] } } }],
};

describe("doctor on an agent of a registry", () => {
  it("finds that an agent does what its card says, without sending it a message", async () => {
    const agent = await startAgent({ capabilities: { streaming: true, pushNotifications: true } });
    const { claims, code } = await probe(agent);
    expect(code).toBe(0);
    expect(claims).toEqual({
      card: "ok: Test agent 1.2.3",
      "interface JSONRPC 1.0": `ok: ${agent.url}/rpc answers`,
      authentication: "ok: the card demands none, and calls without credentials are answered",
      streaming: "ok: the operation to subscribe to a task is known",
      "push notifications": "ok: the operation to read a webhook is known",
      modes: "ok: text/plain",
      "skill talk": "not-checked: the card has no example for it",
    });
    expect(methodsOf(agent)).toEqual([UNKNOWN_METHOD, "GetTask", "GetTaskPushNotificationConfig", "SubscribeToTask"]);
  });

  it("takes nothing as shown by an agent that answers everything alike", async () => {
    const capabilities = { streaming: true, pushNotifications: true };
    const { claims } = await probe(await startAgent({ capabilities }, { [UNKNOWN_METHOD]: NOT_FOUND }));
    expect(claims.streaming).toMatch(/^not-checked: not shown: /);
    expect(claims["push notifications"]).toMatch(/^not-checked: not shown: /);
  });

  it.each<[string, JsonObject, TestAgent["replies"], string, RegExp]>([
    [
      "streaming",
      {},
      { SubscribeToTask: { error: { code: -32004, message: "No." } } },
      "streaming",
      /cannot be subscri/,
    ],
    [
      "a method",
      {},
      { SubscribeToTask: { error: { code: -32601, message: "No." } } },
      "streaming",
      /cannot be subscribed/,
    ],
    [
      "push notifications",
      { capabilities: { pushNotifications: true } },
      { GetTaskPushNotificationConfig: { error: { code: -32003, message: "No." } } },
      "push notifications",
      /cannot be registered: PUSH_NOTIFICATION_NOT_SUPPORTED/,
    ],
    ["refusal", SECURED, {}, "authentication", /without the credentials that the card demands is answered/],
    ["openness", {}, { GetTask: UNAUTHENTICATED }, "authentication", /is refused, but the card demands none/],
    [
      "an extended card",
      { ...SECURED, capabilities: { extendedAgentCard: true } },
      { GetTask: UNAUTHENTICATED, GetExtendedAgentCard: { error: { code: -32007, message: "None." } } },
      "extended card",
      /there is none: EXTENDED_AGENT_CARD_NOT_CONFIGURED/,
    ],
    ["the version", {}, { GetTask: { error: { code: -32009, message: "No." } } }, "interface JSONRPC 1.0", /version/],
    ["the protocol", {}, { GetTask: { status: 500 } }, "interface JSONRPC 1.0", /500|INTERNAL|UNAVAILABLE/],
    ["tasks", {}, { GetTask: { result: task("WORKING") } }, "interface JSONRPC 1.0", /an id that no task has/],
    ["media types", { defaultOutputModes: ["text"] }, {}, "modes", /not a media type: text/],
    ["its name", { name: "Other" }, {}, "card", /the registry has Test agent 1\.2\.3, the agent shows Other 1\.2\.3/],
    [
      "skills",
      { skills: [1, 2].map(() => ({ id: "a", name: "A", description: "A.", tags: [] })) },
      {},
      "card",
      /two skills/,
    ],
  ])("reports a card that is wrong about %s", async (_, card, replies, claim, detail) => {
    const { claims, code } = await probe(await startAgent(card, replies));
    expect(code).toBe(1);
    expect(claims[claim]).toMatch(/^wrong: /);
    expect(claims[claim]).toMatch(detail);
  });

  it("says that credentials are needed for what is refused without them", async () => {
    const agent = await startAgent(
      { ...SECURED, capabilities: { streaming: true, extendedAgentCard: true } },
      { GetTask: UNAUTHENTICATED, SubscribeToTask: UNAUTHENTICATED, GetExtendedAgentCard: UNAUTHENTICATED },
    );
    const { claims, code } = await probe(agent);
    expect(code).toBe(0);
    expect(claims.authentication).toBe("ok: a call without credentials is refused");
    expect(claims.streaming).toBe(
      `not-checked: credentials are needed: dragoman auth login -a ${agent.url}/.well-known/agent-card.json`,
    );
    expect(claims["extended card"]).toMatch(/^ok: is refused without credentials; what it contains was not checked/);
  });

  it("does not check interfaces that it cannot call", async () => {
    const { claims, code } = await probe(await startAgent({ supportedInterfaces: INLINE.supportedInterfaces }));
    expect(code).toBe(0);
    expect(claims["interface WEBSOCKET 1.0"]).toMatch(/^not-checked: .*this client does not support it/);
  });

  it("does not hold a wrong code against an agent that says in words that there is no such task", async () => {
    const words = { error: { code: -32603, message: "Task not found: x" } };
    const { claims, code } = await probe(await startAgent({}, { GetTask: words, SubscribeToTask: words }));
    expect(code).toBe(0);
    expect(claims["interface JSONRPC 1.0"]).toMatch(/^ok: /);
    expect(claims.streaming).toMatch(/^ok: /);
  });

  it("does not hold protocols against an agent whose card names none", async () => {
    const { supportedInterfaces: _, ...old } = INLINE;
    const url = await serveHttp(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      if (request.method === "GET" && request.url?.endsWith("agent-card.json") === true) {
        response.end(JSON.stringify({ ...old, url: `${url}/rpc` }));
      } else if (request.method === "POST" && chunks.length > 0) {
        const { id } = JSON.parse(Buffer.concat(chunks).toString());
        const error = { code: -32001, message: "Task not found." };
        response.setHeader("content-type", "application/json").end(JSON.stringify({ jsonrpc: "2.0", id, error }));
      } else response.writeHead(404).end();
    });
    const { code, result } = await doctor(await startRegistry([entryOf({ url })]), PRIVATE);
    const claims = Object.fromEntries(
      result.agents[0]?.claims.map((one) => [one.claim, `${one.status}: ${one.detail}`]) ?? [],
    );
    expect(code).toBe(0);
    const interfaces = Object.entries(claims).filter(([claim]) => claim.startsWith("interface"));
    expect(interfaces.map(([, finding]) => finding.split(":")[0])).toContain("ok");
    expect(interfaces.map(([, finding]) => finding).join()).toMatch(/not-checked: .*which the card does not name/);
  });

  it("is stopped neither by dead agents nor by silent ones", async () => {
    const [living, silent] = [await startAgent(), await startAgent({}, { GetTask: { silence: true } })];
    const dead = { url: "http://127.0.0.1:2" };
    const registry = await startRegistry([entryOf(dead), entryOf(silent), entryOf(living)]);
    const { code, result } = await doctor(registry, PRIVATE, "--probe-timeout", "1s");
    expect(code).toBe(1);
    expect(result.agents.map(({ status }) => status)).toEqual(["wrong", "wrong", "ok"]);
    expect(result.agents[0]?.claims).toEqual([
      { claim: "card", status: "wrong", detail: expect.stringMatching(/refused/) },
    ]);
    expect(result.agents[1]?.claims[1]?.detail).toMatch(/does not answer in time/);
  });

  it("calls no private address that a registry names, not even over gRPC, unless the user allows it", async () => {
    const agent = { url: "http://10.255.255.1:2" };
    const grpc = { url: "10.255.255.1:2", protocolBinding: "GRPC", protocolVersion: "1.0" };
    const rpc = { url: `${agent.url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" };
    const name = { ...grpc, url: "agent.internal:2", tenant: "t" };
    const data = { ...INLINE, supportedInterfaces: [rpc, grpc, name] };
    const { url: _, ...inline } = entryOf(agent, { data, id: "inline" });
    const registry = await startRegistry([entryOf(agent), inline]);
    const { code, result } = await doctor(registry);
    const { agents: found } = result;
    expect(code).toBe(0);
    expect(found.map(({ status }) => status)).toEqual(["not-checked", "ok"]);
    expect(found[0]?.claims[0]?.detail).toMatch(/private networks; --allow-private-targets/);
    expect(found[1]?.claims.slice(1, 4).map(({ status }) => status)).toEqual(Array(3).fill("not-checked"));
  });

  it("calls agents on this machine that a registry on this machine names", async () => {
    const { code, result } = await doctor(await startRegistry([entryOf(await startAgent())]), "--strict");
    expect(result.agents.map(({ status }) => status)).toEqual(["ok"]);
    expect(result.checks.map(({ name }) => name)).not.toContain("agents");
    expect(code).toBe(0);
  });

  it("warns if nothing could be checked", async () => {
    const registry = await startRegistry([entryOf({ url: "http://10.255.255.1:2" })]);
    const { code, result } = await doctor(registry);
    expect([code, result.checks.at(-1)]).toEqual([
      0,
      { name: "agents", status: "warning", detail: "none of them could be checked" },
    ]);
    expect((await doctor(registry, "--strict")).code).toBe(1);
  });

  it("shows people the same", async () => {
    const agent = await startAgent(
      { name: "Bad\u001b[31m" },
      { SubscribeToTask: { error: { code: -32004, message: "" } } },
    );
    const registry = await startRegistry([entryOf(agent)]);
    const { stdout } = await runInProcess("doctor", config, "--registry", registry, PRIVATE);
    expect(stdout).toContain(`\nok  registry       ${registry}/, 1 agent\n`);
    expect(stdout).toContain(
      `\nTest agent at ${agent.url}/.well-known/agent-card.json, from ${registry}/\n  wrong        card `,
    );
    expect(stdout).toMatch(/\n {2}not checked {2}skill talk +the card has no example for it\n$/);
    expect(stdout).not.toContain("\u001b");
  });
});

const INLINE = {
  name: "Test agent",
  description: "Inline.",
  version: "1.2.3",
  supportedInterfaces: [{ url: "wss://agent.example", protocolBinding: "WEBSOCKET", protocolVersion: "1.0" }],
  capabilities: {},
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [],
};

describe("doctor --send", () => {
  const skills = [
    { id: "talk", name: "Talk", description: "Talks.", tags: ["test"], examples: ["Say something.", "Say more."] },
    { id: "mute", name: "Mute", description: "Has no example.", tags: ["test"] },
  ];
  const streamed = (...events: JsonValue[]) => ({
    SendStreamingMessage: { events: [{ task: task("WORKING") }, ...events] },
  });

  it("sends nothing unless it is asked to", async () => {
    const agent = await startAgent({ skills }, streamed(statusUpdate("COMPLETED")));
    expect((await probe(agent)).claims["skill talk"]).toBe("not-checked: its example is sent only with --send");
    expect(methodsOf(agent)).not.toContain("SendStreamingMessage");
  });

  it("sends the first example of every skill and looks at what comes of it", async () => {
    const agent = await startAgent({ skills }, streamed(textChunk("Something."), statusUpdate("COMPLETED")));
    const { claims, code } = await probe(agent, "--send");
    expect(code).toBe(0);
    expect(claims["skill talk"]).toBe(
      "ok: its example is answered by a task that is TASK_STATE_COMPLETED, with text/plain",
    );
    expect(claims["skill mute"]).toBe("not-checked: the card has no example for it");
    const sent = agent.received.filter(({ body }) => body.method === "SendStreamingMessage");
    expect(sent.map(({ body }) => body.params)).toMatchObject([{ message: { parts: [{ text: "Say something." }] } }]);
  });

  it("shows streaming and webhooks by using them", async () => {
    const capabilities = { streaming: true, pushNotifications: true };
    const config = { id: "c", taskId: "task-1", url: "https://webhook.invalid/dragoman-doctor" };
    const agent = await startAgent(
      { skills, capabilities },
      {
        ...streamed(statusUpdate("COMPLETED")),
        CreateTaskPushNotificationConfig: { result: config },
        GetTaskPushNotificationConfig: [NOT_FOUND, { result: config }],
        DeleteTaskPushNotificationConfig: { result: {} },
      },
    );
    const { claims, code } = await probe(agent, "--send");
    expect(code).toBe(0);
    expect(claims.streaming).toBe("ok: an example was streamed");
    expect(claims["push notifications"]).toBe("ok: a webhook was registered, read and removed");
  });

  it("reports streaming and webhooks that do not work", async () => {
    const capabilities = { streaming: true, pushNotifications: true };
    const blind = await startAgent(
      { skills, capabilities },
      { [UNKNOWN_METHOD]: NOT_FOUND, SendStreamingMessage: NOT_FOUND },
    );
    expect((await probe(blind, "--send")).claims.streaming).toMatch(/^wrong: an example could not be streamed/);
    const deaf = await startAgent(
      { skills, capabilities },
      { ...streamed(statusUpdate("COMPLETED")), CreateTaskPushNotificationConfig: NOT_FOUND },
    );
    expect((await probe(deaf, "--send")).claims["push notifications"]).toMatch(/^wrong: .*TASK_NOT_FOUND/);
  });

  it.each<[string, JsonValue[], RegExp]>([
    ["fails", [statusUpdate("FAILED")], /TASK_STATE_FAILED/],
    [
      "answers in another mode",
      [
        { artifactUpdate: { ...CHUNK, artifact: { artifactId: "a", parts: [{ data: { a: 1 } }] } } },
        statusUpdate("COMPLETED"),
      ],
      /answers with application\/json, which its output modes do not name/,
    ],
  ])("reports an agent that %s", async (_, events, detail) => {
    const { claims, code } = await probe(await startAgent({ skills }, streamed(...events)), "--send");
    expect(code).toBe(1);
    expect(claims["skill talk"]).toMatch(/^wrong: /);
    expect(claims["skill talk"]).toMatch(detail);
  });

  it("cancels a task that waits for an answer, and one that takes too long", async () => {
    const waiting = await startAgent(
      { skills },
      { ...streamed(statusUpdate("INPUT_REQUIRED")), CancelTask: NOT_FOUND },
    );
    expect((await probe(waiting, "--send")).claims["skill talk"]).toMatch(/^ok: .*TASK_STATE_INPUT_REQUIRED/);
    expect(methodsOf(waiting)).toContain("CancelTask");
    const slow = await startAgent(
      { skills },
      { SendStreamingMessage: { events: [{ task: task("WORKING") }], keepOpen: true }, CancelTask: NOT_FOUND },
    );
    const { claims } = await probe(slow, "--send", "--probe-timeout", "1s");
    expect(claims["skill talk"]).toBe("not-checked: was stopped before it was done");
    expect(methodsOf(slow)).toContain("CancelTask");
  });
});

const CHUNK = { taskId: "task-1", contextId: "context-1" };

describe("doctor on a registry", () => {
  const check = (result: Result) => result.checks.find(({ name }) => name === "registry");

  it.each<[string, RequestListener, RegExp]>([
    ["is not one", (_, response) => response.writeHead(404).end(), /there is none at/],
    [
      "refuses",
      (_, response) => response.writeHead(401).end('{"errorCode":"x","message":"Who?"}'),
      /answered 401: Who\?/,
    ],
    ["breaks off", (_, response) => response.destroy(), /could not be reached/],
    [
      "redirects",
      (_, response) => response.writeHead(302, { location: "http://127.0.0.2:1" }).end(),
      /must not go|not be reached/,
    ],
  ])("reports one that %s", async (_, handler, detail) => {
    const { code, result } = await doctor(await serveHttp(handler));
    expect(code).toBe(1);
    expect(check(result)).toMatchObject({ status: "failed", detail: expect.stringMatching(detail) });
    expect(result.agents).toEqual([]);
  });

  it("reads all pages, and no page twice", async () => {
    const asked: string[] = [];
    const registry = await serveHttp((request, response) => {
      asked.push(request.url ?? "");
      const token = new URL(request.url ?? "", "http://x").searchParams.get("pageToken");
      const items = [{ id: `a-${token}`, displayName: "A", data: INLINE }, 7, { id: 1 }];
      response.end(JSON.stringify({ items, pageToken: token === null ? "next" : "same" }));
    });
    const { result } = await doctor(registry);
    expect(asked).toEqual([
      "/registry/agents?pageSize=100",
      "/registry/agents?pageSize=100&pageToken=next",
      "/registry/agents?pageSize=100&pageToken=same",
    ]);
    expect(check(result)).toMatchObject({ status: "ok", detail: expect.stringContaining("3 agents") });
  });

  it("probes only the agents that are named, and says which are unknown", async () => {
    const [one, other] = [await startAgent(), await startAgent()];
    const registry = await startRegistry([entryOf(one, { id: "one" }), entryOf(other, { id: "other" })]);
    const { code, result } = await doctor(registry, PRIVATE, "--agent", "one", "--agent", "third");
    expect(code).toBe(1);
    expect(result.agents.map(({ url }) => url)).toEqual([`${one.url}/.well-known/agent-card.json`]);
    expect(other.cardRequests).toEqual([]);
    expect(result.checks.at(-1)).toEqual({
      name: "agent third",
      status: "failed",
      detail: "is in no configuration or registry",
    });
  });

  it("calls nothing with --no-probe, and refuses what is not a URL or a time", async () => {
    const registry = await serveHttp(() => expect.unreachable());
    expect((await doctor(registry, "--no-probe")).result.agents).toEqual([]);
    expect((await runInProcess("doctor", "--registry", "nonsense")).code).toBe(2);
    expect((await runInProcess("doctor", "--probe-timeout", "soon")).code).toBe(2);
  });
});
