/** Agents that do not stream, on a platform that knows nothing but streams. */
import { describe, expect, test } from "vitest";
import { runScenario, type Simulator } from "../../src/features/xiaoyi/simulator/index.ts";
import { createStage, sceneOf } from "./stage.ts";
import { createTalker } from "./talker.ts";

const SEED = 31;
const stage = createStage(SEED);
const options = sceneOf(SEED, 30_000);
const talker = createTalker({ streaming: false });

async function called(): Promise<Simulator> {
  const server = await stage.serve({ http: [{ agent: "talker", ak: "key", sk: "secret" }] }, talker);
  const credentials = { kind: "signed", accessKey: "key", secretKey: "secret" } as const;
  return stage.simulate({ http: { url: `${server.url}/agents/talker/agent/message`, credentials } });
}

async function linked(): Promise<Simulator> {
  const simulator = await stage.simulate();
  const { accessKey: ak, agentId, secretKey: sk } = simulator.agent;
  const [url = ""] = simulator.linkUrls;
  await stage.serve({ links: [{ agent: "talker", agentId, ak, sk, url }] }, talker);
  await simulator.link.ready(agentId);
  return simulator;
}

describe.each([
  ["that the platform calls", called],
  ["that dials the platform", linked],
])("an agent %s and that does not stream", (_how, open) => {
  test.each(["normal", "two-messages", "cancel", "clear", "question", "crowd"] as const)("passes %s", async (name) => {
    const report = await runScenario(name, await open(), { ...options, crowd: 20 });
    expect(report).toEqual({ name, outcome: "passed", why: undefined, violations: [], notes: [] });
  });
});
