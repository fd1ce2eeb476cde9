import { expect, it } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import type { Agent, AgentEvent, AgentRun } from "../../src/core/engine/agent.ts";
import { readMetric } from "../support/metrics.ts";
import { describeStores } from "../support/scene.ts";
import { statesOf } from "../support/wire-client.ts";

const circular: Record<string, unknown> = {};
circular.self = circular;

/** What modules without types may yield. */
const NONSENSE: Readonly<Record<string, unknown>> = {
  number: 5,
  nothing: null,
  text: "hello",
  empty: {},
  "unknown-state": { status: "TASK_STATE_DREAMING" },
  "old-state": { status: "completed" },
  circular: { artifact: { artifactId: "a", parts: [{ data: circular }] } },
  bigint: { artifact: { artifactId: "a", parts: [{ data: 1n }] } },
  "no-parts": { artifact: { artifactId: "a" } },
  "empty-parts": { artifact: { artifactId: "a", parts: [] } },
  "empty-message": { status: "TASK_STATE_WORKING", message: { parts: [] } },
};

function yielding(value: unknown): Agent {
  return {
    ...defineAgent({ name: "Bad", description: "Breaks its promises.", run: () => undefined }),
    async *run() {
      yield { status: "TASK_STATE_WORKING" };
      yield value as AgentEvent;
      yield { status: "TASK_STATE_COMPLETED" };
    },
  };
}

const throwing: Agent = {
  ...yielding(undefined),
  run(): AgentRun {
    throw new Error("No run at all.");
  },
};

const others = {
  ...Object.fromEntries(Object.entries(NONSENSE).map(([name, value]) => [name, yielding(value)])),
  throwing,
};

describeStores("agents that break their promises", { others }, (scene) => {
  it.each(Object.keys(NONSENSE))("fail their task and no other (%s)", async (name) => {
    const neighbours = Array.from({ length: 5 }, () => scene.client().task("work; chunks 20; artifact ok"));
    const events = await (await scene.client(name).stream("go")).rest();
    expect(statesOf(events)).toEqual(["SUBMITTED", "WORKING", "FAILED"]);
    const task = await scene.client(name).get(events[0]?.event.task?.id ?? "");
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    for (const { status } of await Promise.all(neighbours)) expect(status.state).toBe("TASK_STATE_COMPLETED");
    expect(await readMetric(scene.server.url, "dragoman_tasks_live")).toBe(0);
  });

  it("that throw before they run fail their task", async () => {
    expect((await scene.client("throwing").task("go")).status.state).toBe("TASK_STATE_FAILED");
  });
});
