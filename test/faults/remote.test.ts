/** A gateway that is killed in the middle of answers; the upstream counts what it was sent. */
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { textOf } from "../../src/core/model/message.ts";
import { HTTP_BINDINGS } from "../support/bindings.ts";
import { startUpstream, UPSTREAMS } from "../support/gateway.ts";
import { createFolder } from "../support/lifecycle.ts";
import { WireClient } from "../support/wire-client.ts";
import { Victim } from "./victim.ts";

const [JSON_RPC] = HTTP_BINDINGS;
const { server, stage } = await startUpstream();
// Tasks of the other dialect cannot be read, so that its runs are failed or repeated, as configured.
const readable = UPSTREAMS.filter(({ name }) => name !== "xiaoyi-http");
const agents = Object.fromEntries(readable.map(({ remote }, at) => [`remote-${at}`, remote(server)]));
process.env.REMOTE_AGENTS = JSON.stringify({ agents });
const victim = new Victim(join(createFolder(), "data.db"), "./remote-child.ts");
afterAll(() => victim.kill());

test("tasks that were under way when the gateway was killed are continued: sent once, every chunk once", async () => {
  await victim.start();
  const clientOf = async (agent: string) => new WireClient(JSON_RPC, `${await victim.url}/agents/${agent}`);
  const tasks = await Promise.all(
    Object.keys(agents).map(async (agent) => {
      const script = `artifact before; hold ${agent}; chunks 5`;
      const { id } = await (await clientOf(agent)).start(script);
      return { agent, id, script };
    }),
  );
  for (const { agent, id } of tasks) {
    await expect.poll(async () => (await (await clientOf(agent)).get(id)).artifacts).toHaveLength(1);
  }
  await victim.kill();
  // Half of them end while no one listens.
  for (const { agent } of tasks.filter((_, at) => at % 2 === 0)) stage.open(agent);
  await victim.start();
  for (const { agent } of tasks) stage.open(agent);
  for (const { agent, id } of tasks) {
    const done = await (await clientOf(agent)).ended(id);
    expect([agent, done.status.state]).toEqual([agent, "TASK_STATE_COMPLETED"]);
    const texts = (done.artifacts ?? []).map(({ parts }) => textOf(parts as never).replaceAll("\n", ""));
    expect([agent, ...texts]).toEqual([agent, "before", "0,1,2,3,4,"]);
  }
  const scripts = tasks.map(({ script }) => script);
  expect([...stage.started].sort()).toEqual([...scripts].sort());
  expect(victim.runsResumed).toBe(tasks.length);
});
