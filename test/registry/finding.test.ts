/** Servers that announce their agents, find those of others, and what a client of the registry sees of it. */
import { expect, it } from "vitest";
import { connect, createRegistryClient, textOf } from "../../src/client.ts";
import { createFindingAgent } from "../../src/features/gateway/finding-agent.ts";
import { defineAgent } from "../../src/index.ts";
import { startServer } from "../support/lifecycle.ts";
import { ask, startSite } from "./support.ts";

const writer = defineAgent({
  name: "Writer",
  description: "Writes.",
  skills: [{ id: "write", name: "Write", description: "Writes." }],
  run: async (turn) => `written: ${turn.text}`,
});

it("an agent that its server announces is found by name and skill, also through a peer, until the server closes", async () => {
  const hub = await startServer({
    agents: { hello: defineAgent({ name: "Hello", description: ".", run: () => "hi" }) },
  });
  const registry = createRegistryClient(hub.url);
  const events = registry.watch()[Symbol.asyncIterator]();
  const first = events.next();
  const server = await startServer({ agents: { writer }, registry: { registerWith: [hub.url] } });
  const { value } = await first;
  expect(value).toMatchObject({ kind: "registered", data: { displayName: "Writer", health: "up" } });
  const id: string = value.id;
  const [bySkill] = await registry.find({ skill: "write" });
  const [byName] = await registry.find({ registered: "writer" });
  expect([bySkill?.id, byName?.id]).toEqual([id, id]);
  expect(await registry.heartbeat(id)).toEqual({ id, expiresAt: expect.stringMatching(/^\d{4}-/) });
  await expect(registry.heartbeat("unknown")).rejects.toMatchObject({ code: "NOT_FOUND" });

  const pen = createFindingAgent({ name: "Pen", wanted: { skill: "write" } });
  const far = await startServer({ agents: { pen }, registry: { peers: [`${hub.url}/registry`] } });
  const caller = await connect(`${far.url}/agents/pen`);
  expect(textOf(await caller.send("a letter"))).toBe("written: a letter");

  await server.close();
  expect((await events.next()).value).toMatchObject({ kind: "removed", id });
  await events.return?.();
  const failed = await caller.send("another letter");
  expect(failed).toMatchObject({ task: { status: { state: "TASK_STATE_FAILED" } } });
  expect(textOf(failed)).toBe('There is no agent with the skill "write".');
});

it("an agent whose card becomes that of another one is not called any more", async () => {
  const server = await startServer({ agents: { writer }, grpcPort: false });
  const other = await startServer({ agents: { writer }, grpcPort: false });
  let target = server.url;
  const site = await startSite((request, response) => {
    if (request.url !== "/.well-known/agent-card.json") return void response.writeHead(404).end();
    const headers = { "a2a-version": "1.0" };
    void ask(target, "/.well-known/agent-card.json", undefined, { headers }).then(({ text }) => response.end(text));
  });
  const pen = createFindingAgent({ name: "Pen", wanted: { skill: "write" } });
  const hub = await startServer({ agents: { pen } });
  await createRegistryClient(hub.url).register({ url: site });
  const caller = await connect(`${hub.url}/agents/pen`);
  expect(textOf(await caller.send("a letter"))).toBe("written: a letter");
  target = other.url;
  const failed = await caller.send("another letter");
  expect(failed).toMatchObject({ task: { status: { state: "TASK_STATE_FAILED" } } });
  const hosts = `hosts: ${new URL(server.url).host} → ${new URL(other.url).host}`;
  expect(textOf(failed)).toContain(`The card is not that of the registered agent (${hosts})`);
});
