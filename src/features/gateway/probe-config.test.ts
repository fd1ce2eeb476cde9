import { EventEmitter, once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createFolder, listen, startServer } from "../../../test/support/lifecycle.ts";
import { createEchoAgent } from "../../core/agents/builtin.ts";
import type { AgentReport } from "../../core/cli/doctor/probe/claims.ts";
import { finished, startCli, stopAll } from "../../core/cli/testing/run-cli.ts";
import { runInProcess } from "../../core/cli/testing/run-in-process.ts";
import { ProtocolError } from "../../core/model/errors.ts";

const folder = createFolder();
beforeAll(() => vi.stubEnv("HOME", "/nonexistent"));
afterAll(() => {
  vi.unstubAllEnvs();
  stopAll();
});

let files = 0;
function write(text: string): string {
  const file = join(folder, `${++files}.yaml`);
  writeFileSync(file, `store: "memory:"\n${text}`, { mode: 0o600 });
  return file;
}

async function probe(text: string, ...words: readonly string[]) {
  const { code, stdout } = await runInProcess("doctor", write(text), ...words, "-o", "json");
  return { code, agents: (JSON.parse(stdout) as { agents: readonly AgentReport[] }).agents };
}

const claimsOf = (report: AgentReport | undefined) =>
  Object.fromEntries((report?.claims ?? []).map(({ claim, detail, status }) => [claim, `${status}: ${detail}`]));

describe("doctor on the agents of a configuration", () => {
  it("says that they are not checked while the server does not run", async () => {
    const { agents, code } = await probe("server: { port: 0 }\nagents: { echo: { use: echo } }\n");
    expect(code).toBe(0);
    expect(agents).toEqual([
      {
        agent: "echo",
        source: "configuration",
        status: "not-checked",
        claims: [{ claim: "card", status: "not-checked", detail: "the server does not run; dragoman serve starts it" }],
      },
    ]);
  });

  it("probes them at the running server, over every interface of their cards", async () => {
    const server = await startServer({ agents: { echo: createEchoAgent(), other: createEchoAgent() } });
    const { agents, code } = await probe(`server: { port: ${server.port} }\nagents: { other: { use: echo } }\n`);
    expect(code).toBe(0);
    const claims = claimsOf(agents[0]);
    expect(Object.values(claims).filter((claim) => claim.startsWith("wrong"))).toEqual([]);
    expect(Object.keys(claims).filter((claim) => claim.startsWith("interface")).length).toBeGreaterThan(4);
    expect(claims["interface GRPC 1.0"]).toMatch(/^ok: /);
  });

  it("also probes what others registered at the running server, and each agent once", async () => {
    const other = await startServer({ agents: { foreign: createEchoAgent() }, grpcPort: false });
    const server = await startServer({ agents: { echo: createEchoAgent() }, registry: { allowPrivateTargets: true } });
    const card = `${other.url}/agents/foreign/.well-known/agent-card.json`;
    const body = JSON.stringify({ url: card, visibility: "public" });
    const headers = { "content-type": "application/json" };
    const registered = await fetch(`${server.url}/registry/agents`, { method: "POST", headers, body });
    expect(registered.status).toBe(201);
    const text = `server: { port: ${server.port} }\nagents: { echo: { use: echo } }\n`;
    const probed = await probe(text);
    expect(probed.agents.map(({ source, status, url }) => [source, status, url])).toEqual([
      ["configuration", "ok", `${server.url}/agents/echo/.well-known/agent-card.json`],
      [server.url, "ok", card],
    ]);
    expect(probed.code).toBe(0);
    const claims = claimsOf(probed.agents[1]);
    expect(Object.values(claims).filter((claim) => claim.startsWith("wrong"))).toEqual([]);
    expect(claims["interface JSONRPC 1.0"]).toMatch(/^ok: /);
  });

  it("probes the upstream of a remote agent with the credentials of the configuration, and tells when they are refused", async () => {
    const server = await startServer({
      agents: { echo: createEchoAgent() },
      grpcPort: false,
      authenticate: ({ headers }) => {
        if (headers.authorization !== "Bearer sesame") throw new ProtocolError("UNAUTHENTICATED", "Who are you?");
        return { owner: "alice", authenticated: true };
      },
    });
    const remote = (token: string) =>
      probe(
        `server: { port: 0 }\nagents: { up: { remote: "${server.url}", credentials: { bearer: ${token} } } }\n`,
        "--agent",
        "up",
      );
    const upstream = ({ agents }: { readonly agents: readonly AgentReport[] }) =>
      claimsOf(agents.find(({ part }) => part === "upstream"));
    const right = upstream(await remote("sesame"));
    expect(right["interface JSONRPC 1.0"]).toMatch(/^ok: .* answers$/);
    expect(right.authentication).toMatch(/a call without credentials is refused, and with them answered/);
    expect(right.streaming).toBe("ok: the operation to subscribe to a task is known");
    expect(upstream(await remote("wrong"))["interface JSONRPC 1.0"]).toMatch(/^wrong: .* refused the credentials$/);
    const gone = await probe('server: { port: 0 }\nagents: { up: { remote: "http://127.0.0.1:2" } }\n');
    expect(gone.code).toBe(1);
    expect(upstream(gone).card).toMatch(/^wrong: Connection refused/);
  });

  it("reports what it has when it is interrupted", async () => {
    const called = new EventEmitter();
    const agent = createServer((request, response) => {
      if (request.method === "GET") response.end(JSON.stringify({ ...CARD, supportedInterfaces: [{ ...RPC, url }] }));
      else called.emit("called");
    });
    const url = `http://127.0.0.1:${await listen(agent)}`;
    const isCalled = once(called, "called");
    const file = write(`server: { port: 0 }\nagents: { up: { remote: "${url}" } }\n`);
    const child = startCli(["doctor", file, "--probe-timeout", "10m", "-o", "json"]);
    const end = finished(child);
    await isCalled;
    child.kill("SIGINT");
    const { code, stdout } = await end;
    expect(code).toBe(130);
    const { agents } = JSON.parse(stdout) as { agents: readonly AgentReport[] };
    expect(claimsOf(agents.at(-1))["interface JSONRPC 1.0"]).toMatch(
      /^not-checked: .* was stopped before it was done$/,
    );
  });
});

const RPC = { protocolBinding: "JSONRPC", protocolVersion: "1.0" };
const CARD = {
  name: "Silent",
  description: "Answers nothing.",
  version: "1.0.0",
  capabilities: {},
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [],
};

describe("doctor on a language model", () => {
  const models = (body: string, accepts: (request: IncomingMessage) => number) => {
    const requests: string[] = [];
    const server = createServer((request, response) => {
      requests.push(`${request.method} ${request.url}`);
      response.writeHead(accepts(request), { location: "http://127.0.0.1:2" }).end(body);
    });
    return { requests, listening: listen(server) };
  };
  const LIST = JSON.stringify({ data: [{ id: "small" }, { id: "large" }, 7] });
  const byKey = ({ headers }: IncomingMessage) => (headers.authorization === "Bearer sk-right" ? 200 : 401);

  it.each<[string, string, (request: IncomingMessage) => number, string, Record<string, string>]>([
    [
      "accepts the key",
      LIST,
      byKey,
      "model: large, apiKey: sk-right",
      { "model address": "ok: answers", "model key": "ok: is accepted", "model large": "ok: is in the list of models" },
    ],
    [
      "refuses it",
      LIST,
      byKey,
      "model: large, apiKey: sk-wrong",
      { "model address": "ok: answers", "model key": "wrong: is refused (401)" },
    ],
    [
      "lists models to anyone",
      LIST,
      () => 200,
      "model: other, apiKey: sk-right",
      {
        "model address": "ok: answers",
        "model key": "not-checked: the list of models is shown without a key, too",
        "model other": "not-checked: is not in the list of 2 models; only a prompt can show whether it exists",
      },
    ],
    [
      "has no list",
      "nothing",
      () => 404,
      "model: large",
      { "model address": "ok: answers, but has no list of models (404)" },
    ],
    ["fails", "", () => 503, "model: large", { "model address": "wrong: answers with 503" }],
    [
      "redirects",
      "",
      () => 307,
      "model: large, apiKey: sk-right",
      {
        "model address": "wrong: redirects elsewhere (307)",
        "model key": "not-checked: only a list of models can show it without a prompt",
      },
    ],
  ])("that %s sends no prompt", async (_, body, accepts, llm, expected) => {
    const { listening, requests } = models(body, accepts);
    const baseUrl = `http://127.0.0.1:${await listening}/v1`;
    const { agents, code } = await probe(
      `server: { port: 0 }\nagents: { think: { llm: { baseUrl: "${baseUrl}", ${llm} } } }\n`,
    );
    const report = agents.find(({ part }) => part === "model");
    expect(claimsOf(report)).toEqual(expected);
    expect(code).toBe(Object.values(expected).some((claim) => claim.startsWith("wrong")) ? 1 : 0);
    expect(new Set(requests)).toEqual(new Set(["GET /v1/models"]));
    expect(JSON.stringify(report)).not.toMatch(/sk-(?:right|wrong)/);
  });

  it("reports one that cannot be reached, and one that stays silent", async () => {
    const silent = `http://127.0.0.1:${await listen(createServer(() => {}))}`;
    const llm = (url: string) => `{ llm: { baseUrl: "${url}", model: m } }`;
    const { agents, code } = await probe(
      `server: { port: 0 }\nagents: { gone: ${llm("http://127.0.0.1:2")}, silent: ${llm(silent)} }\n`,
      "--probe-timeout",
      "500ms",
    );
    expect(code).toBe(1);
    const found = agents.filter(({ part }) => part === "model").map((report) => claimsOf(report)["model address"]);
    expect(found).toEqual([expect.stringMatching(/^wrong: cannot be reached: /), "wrong: does not answer in time"]);
  });
});
