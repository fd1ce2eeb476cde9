import { describe, expect, it } from "vitest";
import { startServer } from "../../../test/support/lifecycle.ts";
import { defineAgent } from "../../core/agents/define.ts";
import type { ChosenAgent } from "../../core/agents/directory.ts";
import { fetchCard } from "../../core/client/card/fetch-card.ts";
import { ANONYMOUS } from "../../core/model/caller.ts";
import type { JsonObject } from "../../core/model/json.ts";
import { SILENT_LOG } from "../../core/model/ports.ts";
import type { FoundAgent, FoundAgents } from "../../core/server/agent-chooser.ts";
import { systemTools } from "../../core/server/clock-and-ids.ts";
import { createFindingAgent } from "./finding-agent.ts";
import { createAgentChooser } from "./found-agents.ts";

const writer = (name: string, skill = "write") =>
  defineAgent({ name, description: name, skills: [{ id: skill, name: skill, description: skill }], run: () => name });

async function serveWriter(name: string, skill?: string) {
  const server = await startServer({ agents: { writer: writer(name, skill) }, grpcPort: false });
  return { server, url: `${server.url}/agents/writer/.well-known/agent-card.json` };
}

/** Rounds of what registries answer. */
function chooserOf(rounds: readonly (readonly FoundAgent[] | FoundAgents)[], isOwn = (_url: string) => false) {
  const asked: number[] = [];
  const chooser = createAgentChooser({
    ...systemTools,
    log: SILENT_LOG,
    fetch: globalThis.fetch,
    isOwn,
    async *find() {
      for (const [at, round] of rounds.entries()) {
        asked.push(at);
        yield "agents" in round ? round : { agents: round, unanswered: [] };
      }
    },
  });
  return {
    asked,
    choose: (avoid: readonly ChosenAgent[] = []) => chooser.choose({ skill: "write" }, ANONYMOUS, { avoid }),
    chooser,
  };
}

const found = (id: string, url: string, more: Partial<FoundAgent> = {}): FoundAgent => ({
  id,
  url,
  healthy: true,
  score: 0,
  ...more,
});

const DOWN = "http://127.0.0.1:9/card.json";

describe("choosing among agents with a skill", () => {
  it("prefers healthy ones, then the better match, then the smaller id, and one that was not tried before", async () => {
    const { url } = await serveWriter("Writer");
    const { choose } = chooserOf([
      [
        found("e", url, { healthy: false, score: 100 }),
        found("d", url, { score: 5 }),
        found("b", url, { score: 9 }),
        found("c", url, { score: 9 }),
      ],
    ]);
    const order: ChosenAgent[] = [];
    for (let at = 0; at < 4; at++) order.push((await choose(order)).chosen as ChosenAgent);
    expect(order.map(({ id }) => id)).toEqual(["b", "c", "d", "e"]);
    expect((await choose(order)).chosen).toEqual({ id: "b", url });
  });

  it("takes the next one if one cannot be reached, has lost the skill, is this server, or would look for it again", async () => {
    const { url } = await serveWriter("Writer");
    const other = await serveWriter("Cook", "cook");
    const finder = await startServer({
      agents: { writer: createFindingAgent({ name: "Finder", wanted: { skill: "write" } }) },
    });
    const loops = `${finder.url}/agents/writer/.well-known/agent-card.json`;
    const own = "https://own.example/card.json";
    const rounds = [[found("a", DOWN), found("b", other.url), found("c", own), found("d", loops)], [found("e", url)]];
    const { asked, choose } = chooserOf(rounds, (address) => address === own);
    const agent = await choose();
    expect(agent).toMatchObject({
      name: url.replace("/.well-known/agent-card.json", ""),
      isLocal: false,
      dialect: "a2a-v1",
    });
    expect(agent.chosen?.id).toBe("e");
    expect(asked).toEqual([0, 1]);
  });

  it("notices at once that the chosen one has stopped, whatever is cached", async () => {
    const [one, two] = [await serveWriter("One"), await serveWriter("Two")];
    const { choose } = chooserOf([[found("1", one.url), found("2", two.url)]]);
    expect((await choose()).chosen?.id).toBe("1");
    await one.server.close();
    expect((await choose()).chosen?.id).toBe("2");
  });

  it("does not call one that is held back, or whose card is now that of another agent", async () => {
    const { url } = await serveWriter("Writer");
    const hosts = [new URL(url).host];
    const impostor = found("a", url, { identity: { name: "Letters", provider: "", hosts } });
    const held = found("b", url, { heldBack: true });
    const same = found("c", url, { identity: { name: "Writer", provider: "", hosts: [...hosts, "grpc.example:1"] } });
    expect((await chooserOf([[impostor, held, same]]).choose()).chosen).toEqual({ id: "c", url });
    const message =
      'No agent with the skill "write" can be reached. ' +
      `${url}: The card is not that of the registered agent (name: Letters → Writer). ${url}: The registry holds it back`;
    await expect(chooserOf([[impostor, held]]).choose()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining(message),
    });
    for (const refused of [impostor, held]) {
      const { asked, chooser } = chooserOf([[refused], [found("d", url)]]);
      await expect(chooser.choose({ registered: "Letters" }, ANONYMOUS)).rejects.toMatchObject({ code: "UNAVAILABLE" });
      expect(asked).toEqual([0]);
    }
  });

  it("uses a card that only the registry has, and finds the same agent again by it", async () => {
    const { url } = await serveWriter("Writer");
    const { card: read, raw } = await fetchCard(url);
    const card: JsonObject = JSON.parse(raw);
    const place = read.supportedInterfaces[0]?.url ?? "";
    const { choose, chooser } = chooserOf([[found("inline", place, { card })]]);
    const { chosen } = await choose();
    expect(chosen).toMatchObject({ id: "inline", card: { name: "Writer" } });
    expect(chosen && (await chooser.reach(chosen)).dialect).toBe("a2a-v1");
  });

  it("fails with the reasons: no such agent, none that can be reached, registries that did not answer", async () => {
    await expect(chooserOf([[]]).choose()).rejects.toMatchObject({
      code: "INVALID_PARAMS",
      message: 'There is no agent with the skill "write".',
    });
    await expect(chooserOf([[found("a", DOWN)]]).choose()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining('No agent with the skill "write" can be reached. http://127.0.0.1:9/card.json:'),
    });
    const silent = { agents: [], unanswered: ["https://peer.example: timeout"] };
    await expect(chooserOf([silent]).choose()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: 'There is no agent with the skill "write". Not answered: https://peer.example: timeout.',
    });
  });
});

describe("an agent that forwards to one from the registry", () => {
  it("describes itself by what it looks for", () => {
    const { profile } = createFindingAgent({ name: "pen", wanted: { skill: "write" } });
    expect(profile).toMatchObject({
      name: "pen",
      description: "Forwards to an agent with the skill write, which is looked up in the registry.",
      skills: [{ id: "write" }],
      extensions: [{ params: { skill: "write" } }],
    });
  });
});
