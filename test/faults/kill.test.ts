import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { SILENT_LOG } from "../../src/core/model/ports.ts";
import { cases } from "../../src/core/model/testing/exploring.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import { openStore } from "../../src/core/store/open.ts";
import { seededRandom } from "../../src/features/xiaoyi/simulator/random.ts";
import { createFolder } from "../support/lifecycle.ts";
import { Follower } from "./client.ts";
import { storedViolations } from "./stored-violations.ts";
import { untilStuck, Victim } from "./victim.ts";

/** Unfinished tasks whenever a life begins, so that there are still 200 when it ends. */
const UNDER_WAY = 240;
const RUNNING = 200;
const KILLS = cases(60);
const SEED = Number(process.env.FAULT_SEED ?? Math.floor(Math.random() * 2 ** 31));

const folder = createFolder();
const victim = new Victim(join(folder, "data.db"));

afterAll(() => victim.kill());

test(`nothing acknowledged is lost to ${KILLS} kills (FAULT_SEED=${SEED})`, async () => {
  const random = seededRandom(SEED);
  const followers: Follower[] = [];
  const runs: Promise<void>[] = [];
  const unfinished = () => followers.filter(({ end }) => end === undefined).length;
  const killedWith: number[] = [];
  for (let life = 0; life < KILLS; life++) {
    await victim.start();
    for (let missing = UNDER_WAY - unfinished(); missing > 0; missing--) {
      const follower = followerOf(followers.length, random);
      followers.push(follower);
      runs.push(follower.run());
    }
    await pause(30 + random() * 350);
    killedWith.push(unfinished());
    await victim.kill();
  }
  expect(Math.min(...killedWith)).toBeGreaterThanOrEqual(RUNNING);
  await victim.start();
  await Promise.race([Promise.all(runs), untilStuck(() => followers.reduce((sum, { seen }) => sum + seen.size, 0))]);
  await victim.kill();

  expect(followers.filter(({ end }) => end === undefined).map(({ position }) => position)).toEqual([]);
  expect(followers.flatMap(({ id, violations }) => violations.map((violation) => `${id}: ${violation}`))).toEqual([]);
  await expectStored(followers);

  expect(victim.kills).toBeGreaterThanOrEqual(KILLS);
  expect(victim.runsResumed).toBeGreaterThan(0);
  expect(victim.runsFailedByCrash).toBeGreaterThan(0);
  expect(followers.reduce((sum, { reconnects }) => sum + reconnects, 0)).toBeGreaterThan(KILLS);
});

function followerOf(index: number, random: () => number): Follower {
  const agent = ["fragile", "sturdy", "sturdy", "fragile", "asking"][index % 5] as string;
  const steps = index % 10 === 0 ? 5 + Math.floor(random() * 20) : 60 + Math.floor(random() * 60);
  return new Follower(victim, agent, steps, `send ${index}`, random() < 0.3);
}

/** Looks into the file itself, after the last server is gone. */
async function expectStored(followers: readonly Follower[]): Promise<void> {
  const store = await openStore(`sqlite:${join(folder, "data.db")}`, {
    baseDirectory: folder,
    clock: systemClock,
    log: SILENT_LOG,
  });
  try {
    const found: string[] = [];
    for (const follower of followers) found.push(...(await storedViolations(store, follower)));
    expect(found).toEqual([]);
    const { tasks } = await store.stats();
    expect(tasks).toBe(followers.length);
  } finally {
    await store.close();
  }
}
