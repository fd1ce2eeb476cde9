import { afterEach, describe, expect, it } from "vitest";
import { defineAgent } from "../../core/agents/define.ts";
import { type AgentDirectory, type AgentTarget, createDirectoryAgent } from "../../core/agents/directory.ts";
import { connect } from "../../core/client/connect.ts";
import type { Agent, Turn } from "../../core/engine/agent.ts";
import { type Message, textOf } from "../../core/model/message.ts";
import { SILENT_LOG } from "../../core/model/ports.ts";
import { systemClock } from "../../core/server/clock-and-ids.ts";
import { type DragomanServer, serve } from "../../core/server/serve.ts";
import { createUpstreamAgent } from "./index.ts";

const servers: DragomanServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function start(agents: Readonly<Record<string, Agent>>): Promise<DragomanServer> {
  const server = await serve({ port: 0, grpcPort: false, store: "memory:", agents });
  servers.push(server);
  return server;
}

/** Says who asks, and through which agents. */
const witness = (id: string, { skill = "witness", ...more }: { streaming?: boolean; skill?: string } = {}) =>
  defineAgent({
    name: id,
    description: "Tells who called.",
    skills: [{ id: skill, name: "Witness", description: "Tells who called." }],
    ...more,
    async *run(turn) {
      yield turn.completed(`${id}: ${turn.caller.owner}, ${turn.hops.hops} hops, ${turn.task.id}`);
    },
  });

/** Asks the agent that the message describes as JSON, and answers with its last message. */
const caller = (suffix = "") =>
  createDirectoryAgent((directory) =>
    defineAgent({
      name: "Caller",
      description: "Calls others.",
      run: async (turn) => {
        try {
          return (await ask(directory, JSON.parse(turn.text), turn)) + suffix;
        } catch (error) {
          return `${error instanceof Error ? error.message : error}`;
        }
      },
    }),
  );

async function ask(directory: AgentDirectory, target: AgentTarget, turn: Turn): Promise<string> {
  const agent = await directory.resolve(target, turn);
  const message: Message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "Who?" }] };
  const call = { caller: turn.caller, tenant: "", extensions: [], dialect: "test", hops: turn.hops };
  const frames = await agent.dispatch({ kind: "stream", message, chosenId: "chosen" }, call);
  const texts: string[] = [];
  for await (const batch of frames) {
    for (const { event } of batch) {
      const said =
        "task" in event ? event.task.status : "statusUpdate" in event ? event.statusUpdate.status : undefined;
      if (said?.message !== undefined) texts.push(textOf(said.message.parts));
    }
  }
  return `${agent.name} ${agent.dialect}: ${texts.join("|")}`;
}

async function resultOf(server: DragomanServer, target: AgentTarget): Promise<string> {
  const agent = await connect(`${server.url}/agents/caller`);
  const outcome = await agent.send(JSON.stringify(target));
  return "message" in outcome ? textOf(outcome.message.parts) : "a task";
}

describe("an agent of this server", () => {
  it("is called by name as the same caller, one hop further, with the chosen id", async () => {
    const server = await start({ caller: caller(), one: witness("one") });
    expect(await resultOf(server, { agent: "one" })).toBe("one local: one: anonymous, 1 hops, chosen");
  });

  it("is called though it does not stream", async () => {
    const server = await start({ caller: caller(), one: witness("one", { streaming: false }) });
    expect(await resultOf(server, { agent: "one" })).toBe("one local: one: anonymous, 1 hops, chosen");
  });

  it("is found by a skill that no other has", async () => {
    const server = await start({ caller: caller(), one: witness("one") });
    expect(await resultOf(server, { skill: "witness" })).toBe("one local: one: anonymous, 1 hops, chosen");
  });

  it("that does not exist is reported with those that do", async () => {
    const server = await start({ caller: caller(), one: witness("one"), two: witness("two") });
    expect(await resultOf(server, { agent: "onne" })).toBe('There is no agent "onne". Did you mean one?');
    expect(await resultOf(server, { agent: "weather" })).toBe('There is no agent "weather". Agents: caller, one, two.');
    expect(await resultOf(server, { skill: "cook" })).toBe('No agent has the skill "cook". Skills: caller, witness.');
    expect(await resultOf(server, { skill: "witness" })).toBe(
      'More than one agent has the skill "witness": one, two. Name one of them.',
    );
  });

  it("can be called by an agent that replaced another", async () => {
    const server = await start({ caller: caller(), one: witness("one") });
    server.replace("caller", caller("!"));
    expect(await resultOf(server, { agent: "one" })).toMatch(/chosen!$/);
  });
});

describe("an agent elsewhere", () => {
  it("is called by its URL in the dialect of its card, again after it was away", async () => {
    const there = await start({ one: witness("there") });
    const { port, url } = there;
    const server = await start({ caller: caller() });
    const said = new RegExp(`^${url}/ a2a-v1: there: anonymous, 1 hops, `);
    expect(await resultOf(server, { url })).toMatch(said);
    await there.close();
    expect(await resultOf(server, { url })).toMatch(/^Connection refused: /);
    const again = await serve({ port, grpcPort: false, store: "memory:", agents: { one: witness("there") } });
    servers.push(again);
    expect(await resultOf(server, { url })).toMatch(said);
  });

  it("is found by a skill on its card, which is read then if it could not be before", async () => {
    const early = await start({ one: witness("there") });
    const remote = (agent: string, address: string) =>
      createUpstreamAgent({
        agent,
        url: address,
        connect: {},
        clock: systemClock,
        random: Math.random,
        log: SILENT_LOG,
      });
    const { port, url } = early;
    await early.close();
    const server = await start({ caller: caller(), far: remote("far", url), farther: remote("farther", url) });
    const problem = await resultOf(server, { skill: "witness" });
    expect(problem).toMatch(/^No agent has the skill "witness"\. Skills: .*\. Skills not known yet: /);
    expect(problem).toContain(`Upstream ${url} of agent far: Connection refused`);
    expect(problem).toContain(`Upstream ${url} of agent farther: Connection refused`);
    server.replace("farther", witness("farther", { skill: "other" }));
    servers.push(await serve({ port, grpcPort: false, store: "memory:", agents: { one: witness("there") } }));
    expect(await resultOf(server, { skill: "witness" })).toMatch(/^far local: there: anonymous, 2 hops, /);
  });
});

it("an agent without a server reports that", async () => {
  const turn = { caller: { owner: "a", authenticated: false } };
  let directory: AgentDirectory | undefined;
  createDirectoryAgent((given) => {
    directory = given;
    return witness("one");
  });
  await expect(directory?.resolve({ agent: "one" }, turn)).rejects.toThrow("not part of a server");
});
