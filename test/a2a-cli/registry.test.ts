/** `-a` with an entry of a registry: served by us, by its name and by its skill. */

import { writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startTestAgent, type TestAgent, task } from "../../src/core/cli/testing/agent-server.ts";
import { runInProcess } from "../../src/core/cli/testing/run-in-process.ts";
import { entry, scriptRegistry } from "../../src/features/registry/client/testing/scripted-registry.ts";
import { BUILTIN_AGENTS } from "../support/builtin-agents.ts";
import { createAuthority } from "../support/certificates.ts";
import { closeLater, createFolder, listen, startServer } from "../support/lifecycle.ts";

let agent: TestAgent;
let registry: string;
beforeEach(async () => {
  vi.stubEnv("HOME", "/nonexistent");
  agent = await startTestAgent();
  closeLater(() => agent.close());
  agent.card = { capabilities: {} };
  agent.replies = { SendMessage: { result: { task: task("COMPLETED") } }, GetTask: { result: task("COMPLETED") } };
  const server = await startServer({
    agents: { echo: BUILTIN_AGENTS.echo() },
    registry: { allowPrivateTargets: true },
  });
  registry = server.url;
});
afterEach(() => vi.unstubAllEnvs());

async function register(body: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  const { status } = await fetch(`${registry}/registry/agents`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  expect(status).toBe(201);
}

describe("[A2ACLI_CARD_GET_005] an entry of a registry", () => {
  it.each(["skill:talk", "Test agent"])("is resolved before any operation: %s", async (reference) => {
    await register({ url: agent.url });
    const card = await runInProcess("card", "get", "-a", reference, "--registry", registry);
    expect([card.code, card.stdout]).toEqual([0, expect.stringContaining("Name: Test agent\n")]);
    vi.stubEnv("A2ACLI_REGISTRY", registry);
    const sent = await runInProcess("send", "-a", reference, "--text", "hello");
    expect([sent.code, sent.stdout]).toEqual([0, expect.stringContaining("State: TASK_STATE_COMPLETED\n")]);
    expect(sent.stdout).toContain(`Resume: dragoman send -a ${agent.url}`);
    expect((await runInProcess("task", "get", "-a", reference, "task-1")).code).toBe(0);
    expect(agent.received.map(({ body }) => body.method)).toEqual(["SendMessage", "GetTask"]);
  });

  it.each(["skill:nothing", "nobody here"])("that is unknown is a card that was not found: %s", async (reference) => {
    const { code, stdout } = await runInProcess("card", "get", "-a", reference, "--registry", registry, "-o", "json");
    expect([code, JSON.parse(stdout).error.code]).toEqual([3, "A2ACLI_ERR_CARD_NOT_FOUND"]);
  });
});

it("[A2ACLI_AUTH_009] a registry does not decide who sees the client certificate", async () => {
  const folder = createFolder();
  const authority = createAuthority();
  const own = authority.issue({ commonName: "server", addresses: ["127.0.0.1"] });
  const alice = authority.issue({ commonName: "Alice" });
  const seen: unknown[] = [];
  const asking = { ...own, ca: authority.cert, requestCert: true, rejectUnauthorized: false };
  const curious = createServer(asking, (request, response) => {
    seen.push((request.socket as TLSSocket).getPeerCertificate().subject?.CN);
    response.end(JSON.stringify(request.url?.startsWith("/registry/") ? { items: [] } : card));
  });
  const url = `https://127.0.0.1:${await listen(curious)}`;
  const card = {
    ...JSON.parse((await runInProcess("card", "get", "-a", agent.url, "-o", "json")).stdout),
    name: "Curious",
    supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  };
  const listed = entry("c", { displayName: "Curious", url: `${url}/card.json`, capabilities: ["talk"] });
  const scripted = await scriptRegistry({ "GET /registry/agents": [200, { items: [listed] }] });
  const words = ["task", "get", "-a", "skill:talk", "--registry", scripted.url, "task-1"];
  const files = { "ca.pem": authority.cert, "alice.pem": alice.cert + alice.key };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const tls = ["--ca-cert", join(folder, "ca.pem"), "--client-cert", join(folder, "alice.pem")];
  await runInProcess(...words, ...tls);
  expect(seen.filter((name) => name !== undefined)).toEqual([]);
  expect(seen.length).toBeGreaterThan(1);
  await runInProcess(...words, ...tls, "--credential-origin", url);
  expect(seen.at(-1)).toBe("Alice");

  seen.length = 0;
  const ask = ["card", "get", "-a", "skill:talk", "--registry", url, ...tls];
  expect((await runInProcess(...ask)).stderr).not.toContain("certificate");
  expect(seen).toContain(undefined);
  expect(seen).not.toContain("Alice");
  await runInProcess(...ask, "--credential-origin", url);
  expect(seen.at(-1)).toBe("Alice");
});
