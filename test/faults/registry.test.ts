import { join } from "node:path";
import { expect, test } from "vitest";
import { cases } from "../../src/core/model/testing/exploring.ts";
import { ask, cardAt } from "../registry/support.ts";
import { closeLater, createFolder } from "../support/lifecycle.ts";
import { Victim } from "./victim.ts";

const KILLS = cases(20);
const AT_ONCE = 40;

test(`no agent whose registration was answered is lost to ${KILLS} kills, and no removed one comes back`, async () => {
  const victim = new Victim(join(createFolder(), "data.db"), "./registry-child.ts");
  closeLater(() => victim.kill());
  const registered = new Map<string, string>();
  const removed = new Set<string>();
  const uncertain = new Set<string>();
  for (let life = 0; life < KILLS; life++) {
    await victim.start();
    const url = await victim.url;
    let answered = 0;
    let enough = () => {};
    const half = new Promise<void>((resolve) => {
      enough = resolve;
    });
    const register = async (at: number) => {
      const name = `Agent ${life}-${at}`;
      uncertain.add(name);
      const { status, json } = await ask(url, "/registry/agents", {
        card: cardAt(`https://a${at}.example.com`, { name }),
      });
      expect(status).toBe(201);
      registered.set(name, json.id);
      uncertain.delete(name);
      answered++;
      if (answered > AT_ONCE / 2) enough();
      if (at % 5 !== 0) return;
      uncertain.add(name);
      registered.delete(name);
      expect((await ask(url, `/registry/agents/${json.id}`, undefined, { method: "DELETE" })).status).toBe(204);
      uncertain.delete(name);
      removed.add(name);
    };
    const all = Promise.allSettled(Array.from({ length: AT_ONCE }, (_, at) => register(at)));
    await half;
    await victim.kill();
    await all;
  }
  await victim.start();
  const url = await victim.url;
  const found = new Map<string, string>();
  for (let token = ""; token !== undefined; ) {
    const { json } = await ask(url, `/registry/agents?pageSize=100${token && `&pageToken=${token}`}`);
    for (const { displayName, id } of json.items) found.set(displayName, id);
    token = json.pageToken;
  }
  for (const [name, id] of registered) expect([name, found.get(name)]).toEqual([name, id]);
  for (const name of removed) expect([name, found.has(name)]).toEqual([name, false]);
  for (const name of found.keys()) expect(name === "Echo" || registered.has(name) || uncertain.has(name)).toBe(true);
  const { json } = await ask(url, "/registry/search", { query: { text: "chess" }, pageSize: 100 });
  expect(json.results.length).toBe(Math.min(100, found.size - 1));
});
