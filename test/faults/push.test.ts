import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { SILENT_LOG } from "../../src/core/model/ports.ts";
import { isTerminal, type TaskState } from "../../src/core/model/task.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import type { TaskStore } from "../../src/core/store/contract.ts";
import { openStore } from "../../src/core/store/open.ts";
import { seededRandom } from "../../src/features/xiaoyi/simulator/random.ts";
import { type Arrival, Receiver } from "../push/receiver.ts";
import { createFolder } from "../support/lifecycle.ts";
import { untilStuck, Victim } from "./victim.ts";

const WEBHOOKS = 100;
const KILLS = 5;
const SEED = Number(process.env.FAULT_SEED ?? Math.floor(Math.random() * 2 ** 31));

const folder = createFolder();
const file = join(folder, "data.db");
const victim = new Victim(file, "./push-child.ts");
const receiver = await Receiver.start();

afterAll(() => victim.kill());

const title = `${WEBHOOKS} webhooks that fail 30 % of the time are told all, in order, by a server killed ${KILLS} times`;

test(`${title} (FAULT_SEED=${SEED})`, async () => {
  const random = seededRandom(SEED);
  const ended = new Set<string>();
  receiver.reply = (arrival) => {
    const roll = random();
    if (roll < 0.2) return 503;
    if (roll < 0.3) return roll < 0.29 ? "cut" : "silence";
    if (isEnd(arrival)) ended.add(arrival.path);
    return 204;
  };
  const ids = new Map<string, string>();
  const undelivered: number[] = [];
  await victim.start();
  for (let life = 0; life < KILLS; life++) {
    const url = await victim.url;
    const share = Array.from({ length: WEBHOOKS / KILLS }, (_, at) => `/${life}-${at}`);
    await Promise.all(share.map(async (path) => ids.set(path, await begin(url, path, 15 + Math.floor(random() * 20)))));
    await pause(150 + random() * 500);
    await victim.kill();
    undelivered.push(ids.size - ended.size);
    await victim.start();
  }
  expect(victim.kills).toBe(KILLS);
  expect(Math.min(...undelivered)).toBeGreaterThan(0);
  await Promise.race([receiver.until(() => ended.size === WEBHOOKS), untilStuck(() => receiver.arrivals.length)]);
  await victim.kill();

  const store = await openStore(`sqlite:${file}`, { baseDirectory: folder, clock: systemClock, log: SILENT_LOG });
  const found: string[] = [];
  for (const [path, id] of ids) found.push(...(await violations(store, path, id)));
  const left = (await store.pendingDeliveries({ limit: 1_000 })).filter(({ cursor, number }) => cursor < number - 1);
  await store.close();
  expect(found).toEqual([]);
  // The last of each may have been taken just before the kill that kept it from being noted down.
  expect(left).toEqual([]);
  expect(receiver.arrivals.length - receiver.taken.length).toBeGreaterThan(receiver.arrivals.length * 0.2);
});

async function begin(url: string, path: string, steps: number): Promise<string> {
  const message = { messageId: path, role: "ROLE_USER", parts: [{ text: String(steps) }] };
  const taskPushNotificationConfig = { url: receiver.url(path), token: path };
  const configuration = { returnImmediately: true, taskPushNotificationConfig };
  const response = await fetch(`${url}/agents/sturdy`, {
    method: "POST",
    headers: { "content-type": "application/json", "a2a-version": "1.0" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message, configuration } }),
  });
  const { result } = (await response.json()) as { result: { task: { id: string } } };
  return result.task.id;
}

/** Whether an event is the end of its task. */
function isEnd({ body }: Arrival): boolean {
  const { statusUpdate } = JSON.parse(body) as { statusUpdate?: { status: { state: TaskState } } };
  return statusUpdate !== undefined && isTerminal(statusUpdate.status.state);
}

async function violations(store: TaskStore, path: string, id: string): Promise<string[]> {
  const [read] = await store.read([{ id, after: 0 }], Number.MAX_SAFE_INTEGER);
  if (read?.kind !== "entries") return [`${path}: its task is gone`];
  const told = receiver.taken.filter((arrival) => arrival.path === path);
  const found: string[] = [];
  let last = 0;
  for (const { number, body, headers } of told) {
    // Told twice only if it was the last before a crash, or an answer was lost.
    if (number !== last && number !== last + 1) found.push(`${path}: ${number} was told after ${last}`);
    last = number;
    if (body !== read.entries[number - 1]?.json) found.push(`${path}: ${number} was told as ${body}`);
    if (headers["x-a2a-notification-token"] !== path) found.push(`${path}: ${number} came without its token`);
  }
  if (last !== read.entries.length) found.push(`${path}: told up to ${last} of ${read.entries.length}`);
  return found;
}
