/** The built-in agent with which anybody can try the simulated platform, and what is said to it unless told otherwise. */
import { expect, test } from "vitest";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import { createTckAgent } from "../../src/features/writers/tck.ts";
import {
  runScenario,
  SCENARIO_NAMES,
  type Simulator,
  seededRandom,
} from "../../src/features/xiaoyi/simulator/index.ts";
import { createStage } from "./stage.ts";

const SEED = 37;
const stage = createStage(SEED);

async function dialled(): Promise<Simulator> {
  const simulator = await stage.simulate();
  const { accessKey: ak, agentId, secretKey: sk } = simulator.agent;
  const [url = ""] = simulator.linkUrls;
  const reconnect = { baseMs: 4, capMs: 16, resetAfterMs: 0 };
  await stage.serve({ links: [{ agent: "talker", agentId, ak, sk, url, reconnect }] }, createTckAgent());
  return simulator;
}

async function called(): Promise<Simulator> {
  const server = await stage.serve({ http: [{ agent: "talker", ak: "key", sk: "secret" }] }, createTckAgent());
  const credentials = { kind: "signed", accessKey: "key", secretKey: "secret" } as const;
  return stage.simulate({ http: { url: `${server.url}/agents/talker/agent/message`, credentials } });
}

test.each([
  ["dials", dialled],
  ["is called", called],
])("the conformance agent that %s fails no scenario as it comes", async (_how, open) => {
  const simulator = await open();
  const random = seededRandom(SEED);
  const reports = [];
  for (const name of SCENARIO_NAMES) {
    const options = { clock: systemClock, random, crowd: 20, disconnects: 1, quietMs: 20 };
    reports.push(await runScenario(name, simulator, options));
  }
  expect(reports.filter(({ outcome }) => outcome === "failed")).toEqual([]);
  const seen = reports.filter(({ outcome }) => outcome === "passed").map(({ name }) => name);
  expect(seen).toEqual(expect.arrayContaining(["normal", "two-messages", "cancel", "question", "crowd", "spellings"]));
});
