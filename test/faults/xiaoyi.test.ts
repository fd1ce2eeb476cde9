/** A server that is killed when an answer is complete, before the phone was told: the next one sees to that. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client.ts";
import type { TaskState } from "../../src/core/model/task.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import { openDriver } from "../../src/core/store/sqlite/driver.ts";
import type { XiaoyiOptions } from "../../src/features/xiaoyi/server/open-xiaoyi.ts";
import { createSimulator, type Simulator, seededRandom } from "../../src/features/xiaoyi/simulator/index.ts";
import { createFolder } from "../support/lifecycle.ts";
import { Victim } from "./victim.ts";
import { GO, XIAOYI } from "./xiaoyi-files.ts";

const KEY = "key-of-the-platform";
const RECONNECT = { baseMs: 4, capMs: 16, resetAfterMs: 0, maxTries: 100_000 };

let file: string;
let simulator: Simulator;
let victim: Victim;
beforeEach(async () => {
  file = join(createFolder(), "data.db");
  simulator = await createSimulator({ clock: systemClock, random: seededRandom(20_261_115), pushSpacingMs: 0 });
  simulator.phone.variables = "object";
  victim = new Victim(file, "./xiaoyi-child.ts");
});
afterEach(async () => {
  await victim.kill();
  await simulator.close();
});

function linkTo({ agent: { accessKey: ak, agentId, secretKey: sk }, linkUrls: [url = ""] }: Simulator) {
  return { agent: "patient", agentId, ak, sk, url, reconnect: RECONNECT };
}

function pushOf({ agent: { accessKey: ak, apiId = "", secretKey: sk }, webhookUrl: url }: Simulator) {
  return { apiId, url, ak, sk, spacingMs: 0 };
}

async function start(xiaoyi: XiaoyiOptions): Promise<string> {
  await writeFile(file + XIAOYI, JSON.stringify(xiaoyi));
  await victim.start();
  return victim.url;
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await pause(5);
}

/** Waits until the store has these tasks as those whose answers are owed. */
async function owed(...taskIds: readonly string[]): Promise<void> {
  const driver = await openDriver(file);
  const tasks = driver.prepare<{ id: string }>(
    "SELECT CAST(task.id AS TEXT) AS id FROM delivery JOIN task ON task.seq = delivery.task ORDER BY place",
  );
  const found = () => tasks.all().map(({ id }) => id);
  await until(() => JSON.stringify(found()) === JSON.stringify(taskIds));
  driver.close();
}

/** Lets the agent answer, and kills the server when the log has it. */
async function killWhen(url: string, taskId: string, state: TaskState): Promise<void> {
  const agent = await connect(`${url}/agents/patient`);
  await writeFile(file + GO, "");
  await until(async () => (await agent.get(taskId)).status.state === state);
  await victim.kill();
}

async function metrics(): Promise<string> {
  return (await fetch(`${await victim.url}/metrics`)).text();
}

const titles = () => simulator.phone.notifications.map(({ title }) => title);

describe("a phone on the link", () => {
  /** The link is gone before the answer comes, so that no word of it can have left. */
  async function killed(xiaoyi: XiaoyiOptions, text: string, state: TaskState) {
    const url = await start(xiaoyi);
    await simulator.ready();
    const task = simulator.phone.say(text);
    await task.waitUntil(({ shown }) => shown > 0);
    await owed(task.id);
    simulator.faults.refuse(503);
    simulator.faults.cut();
    await killWhen(url, task.id, state);
    simulator.faults.refuse();
    return task;
  }

  it("is asked on the link when it is open again", async () => {
    const task = await killed({ links: [linkTo(simulator)] }, "ask", "TASK_STATE_INPUT_REQUIRED");
    await victim.start();
    await task.waitUntil(({ state }) => state === "input-required");
    expect(task.screen().text).toBe("Which one?");
    await owed();
    expect(simulator.violations).toEqual([]);
  });

  it.each([
    ["without notifications", () => ({})],
    ["with them", () => ({ push: pushOf(simulator) })],
  ])("is answered on the link when it is open again, once, %s", async (_, more) => {
    const task = await killed({ links: [{ ...linkTo(simulator), ...more() }] }, "tea", "TASK_STATE_COMPLETED");
    await victim.start();
    await task.waitUntilSettled();
    expect([task.ending, task.screen().text, task.finals]).toEqual(["final", "About tea", 1]);
    await owed();
    await victim.kill();
    await victim.start();
    await simulator.ready();
    await simulator.phone.say("coffee").waitUntilSettled();
    expect(task.finals).toBe(1);
    expect(titles()).toEqual([]);
    expect(simulator.violations).toEqual([]);
  });

  it("is not notified of an answer that was delivered", async () => {
    await writeFile(file + GO, "");
    await start({ links: [{ ...linkTo(simulator), push: pushOf(simulator) }] });
    await simulator.ready();
    await simulator.phone.say("tea").waitUntilSettled();
    await owed();
    await victim.kill();
    await victim.start();
    await simulator.ready();
    await simulator.phone.say("milk").waitUntilSettled();
    expect(titles()).toEqual([]);
    expect(simulator.violations).toEqual([]);
  });
});

describe("a phone whose platform calls over HTTP", () => {
  it("is notified once", async () => {
    const url = await start({ http: [{ agent: "patient", apiKey: KEY, push: pushOf(simulator) }] });
    const variables = { kind: "data", data: { variables: { systemVariables: { push_id: simulator.phone.pushId } } } };
    const message = { role: "user", parts: [variables, { kind: "text", text: "tea" }] };
    const params = { id: "session&1", sessionId: "session", message };
    const { body } = await fetch(`${url}/agents/patient/agent/message`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: "1", method: "message/stream", params }),
    });
    await body?.getReader().read();
    await owed("session&1");
    await victim.kill();
    await writeFile(file + GO, "");
    await victim.start();
    await until(async () => (await metrics()).includes("dragoman_phone_notices_sent_total 1\n"));
    await owed();
    await victim.kill();
    await victim.start();
    expect(titles()).toHaveLength(1);
  });
});
