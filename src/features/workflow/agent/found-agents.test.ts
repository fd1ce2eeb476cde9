/** Steps whose agents are found in a registry. */

import { describe, expect, it } from "vitest";
import type { AgentTarget, CallableAgent } from "../../../core/agents/directory.ts";
import { agentOf, chunk, createGate, status } from "../../../core/engine/testing/agents.ts";
import { settle } from "../../../core/engine/testing/fake-clock.ts";
import type { LogEntry } from "../../../core/model/event.ts";
import { textOf } from "../../../core/model/message.ts";
import { progressOf, startWorld, stepsIn, textsOf, workflowOf } from "./testing/workflows.ts";

const LEASE = 15_000;

const says = (text: string) =>
  agentOf(async function* () {
    yield chunk("text", text);
  });

const urlOf = (id: string) => `https://${id}.example/card.json`;

/** As it would be at another server, which gives its tasks ids of its own. */
const remote = (agent: CallableAgent): CallableAgent => ({
  ...agent,
  name: `https://${agent.name}.example`,
  dialect: "a2a-v1",
  isLocal: false,
  chosen: { id: agent.name, url: urlOf(agent.name) },
});

function textsIn(entries: readonly LogEntry[]): readonly string[] {
  return entries.flatMap(({ event }) => {
    const parts = "statusUpdate" in event ? event.statusUpdate.status.message?.parts : undefined;
    return parts === undefined ? [] : [textOf(parts)];
  });
}

describe("a step that names a skill", () => {
  it("tells which agent was found, and takes another for the next attempt", async () => {
    const fails = agentOf(async function* () {
      yield status("TASK_STATE_FAILED", "Out of paper.");
    });
    const asked: (readonly string[])[] = [];
    const world = await startWorld({
      workflow: workflowOf({ s: { target: { skill: "write" }, retry: { attempts: 3, baseMs: 0, capMs: 0 } } }),
      agents: { bad: fails, worse: fails, good: says("written") },
      find(_target, options, local) {
        const tried = options?.avoid?.map(({ id }) => id) ?? [];
        asked.push(tried);
        return remote(local(["bad", "worse", "good"].find((id) => !tried.includes(id)) ?? "bad"));
      },
    });
    const { id } = await world.begin("x");
    for (let at = 0; at < 4; at++) {
      await settle();
      await world.clock.advance(1);
    }
    expect(textsOf(await world.get(id))).toEqual({ s: "written" });
    expect(asked).toEqual([[], ["bad"], ["bad", "worse"]]);
    const log = await world.log(id);
    const started = stepsIn(log).filter(({ state }) => state === "started");
    expect(started.map(({ agent, attempt, registered, skill }) => [agent, attempt, registered, skill])).toEqual([
      ["https://bad.example", 1, "bad", "write"],
      ["https://worse.example", 2, "worse", "write"],
      ["https://good.example", 3, "good", "write"],
    ]);
    expect(textsIn(log)).toContain("Step s started (https://bad.example, found by skill write).");
    expect(textsIn(log)).toContain("Step s started (https://good.example, found by skill write, attempt 3).");
  });

  it("continues after a crash with the agent that it had chosen, not with another one", async () => {
    const gate = createGate();
    const runs: string[] = [];
    const elsewhere = await startWorld({
      workflow: workflowOf({}),
      agents: Object.fromEntries(
        ["one", "two"].map((name) => [
          name,
          agentOf(async function* () {
            runs.push(name);
            yield chunk("text", "half ", false);
            await gate.pass();
            yield chunk("text", "whole");
          }),
        ]),
      ),
    });
    const at = (name: string, agent: CallableAgent): CallableAgent => ({
      ...remote({ ...agent, name }),
      dispatch: (operation, call) => elsewhere.engine.agent(name).dispatch(operation, call),
    });
    const targets: AgentTarget[] = [];
    const world = (best: string) => ({
      workflow: workflowOf({ s: { target: { skill: "write" } } }),
      agents: { any: says("") },
      find(target: AgentTarget, _options: unknown, local: (name: string) => CallableAgent) {
        targets.push(target);
        return at("chosen" in target ? target.chosen.id : best, local("any"));
      },
    });
    const first = await startWorld(world("one"));
    const { id } = await first.begin("x");
    await gate.reached;
    await settle();
    first.crash();
    gate.open();
    await first.clock.advance(LEASE + 1);
    const second = await startWorld({ ...world("two"), after: first });
    await settle();
    expect(textsOf(await second.get(id))).toEqual({ s: "half whole" });
    expect(runs).toEqual(["one"]);
    expect(targets).toEqual([{ skill: "write" }, { chosen: { id: "one", url: urlOf("one") } }]);
    expect(progressOf(await second.log(id)).at(-1)).toBe("s completed");
  });

  it("cancels the task at the agent that it had chosen when it is dropped", async () => {
    const cancelled: string[] = [];
    const asks = agentOf(async function* () {
      yield status("TASK_STATE_INPUT_REQUIRED", "Which paper?");
    });
    const world = await startWorld({
      workflow: workflowOf({ s: { target: { skill: "write" } } }),
      agents: { one: asks, two: says("") },
      find(target, _options, local) {
        const agent = remote(local("chosen" in target ? target.chosen.id : cancelled.length === 0 ? "one" : "two"));
        return {
          ...agent,
          dispatch(operation, call) {
            if (operation.kind === "cancel") cancelled.push(agent.name);
            return agent.dispatch(operation, call);
          },
        };
      },
    });
    const { id } = await world.task("x");
    await world.cancel(id);
    await settle();
    expect(cancelled).toEqual(["https://one.example"]);
  });
});
