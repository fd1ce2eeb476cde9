/** A workflow and its steps are tasks of their own, each on the node that can run it. */
import { describe, expect, it } from "vitest";
import { createWorkflowAgent } from "../../src/features/workflow/agent/index.ts";
import { parseWorkflow } from "../../src/features/workflow/definition/load.ts";
import { createDialInAgent } from "../../src/features/xiaoyi/server/dial-in-agent.ts";
import { type Credentials, RawAgent } from "../dial-in/raw-agent.ts";
import { HTTP_BINDINGS } from "../support/http-bindings.ts";
import { closeLater } from "../support/lifecycle.ts";
import { Stage } from "../support/stage.ts";
import { textOf, type WireTask } from "../support/wire-types.ts";
import { CLUSTER_STORES, Cluster, type Node } from "./nodes.ts";

const createFlow = (steps: object) =>
  createWorkflowAgent({ workflow: parseWorkflow({ name: "flow", steps }, { source: "flow.yaml" }) });

const outputOf = (task: WireTask) =>
  Object.fromEntries((task.artifacts ?? []).map(({ name, parts }) => [name, textOf(parts)]));

describe.each(CLUSTER_STORES)("a workflow on nodes that share $name", (spec) => {
  const WRITERS = {
    first: { agent: "writer", input: { text: "artifact one" } },
    left: { agent: "writer", needs: ["first"], input: { text: "hold left; artifact ${steps.first.text} left" } },
    right: { agent: "writer", needs: ["first"], input: { text: "hold right; artifact ${steps.first.text} right" } },
    last: { agent: "writer", input: { text: "artifact ${steps.left.text}, ${steps.right.text}" } },
  };

  async function startWriters(): Promise<readonly Node[]> {
    const cluster = new Cluster(HTTP_BINDINGS[0], spec);
    const startNode = () => {
      const stage = new Stage();
      const agents = { flow: createFlow(WRITERS), writer: stage.agent({ onCrash: "resume" }) };
      return cluster.start({ agents, stage, times: { leaseMs: 3_000, drainMs: 0 } });
    };
    return [await startNode(), await startNode(), await startNode()];
  }

  it.each(["ends", "is cut off"])("continues when its node %s, and repeats no step that has ended", async (how) => {
    const [here, ...others] = (await startWriters()) as [Node, ...Node[]];
    const { id } = await here.client("flow").start("go");
    await Promise.all(["left", "right"].map((gate) => here.stage.reached(gate)));
    if (how === "ends") await here.server.close();
    else here.access.leave();
    for (const gate of ["left", "right"]) {
      await Promise.race(others.map(({ stage }) => stage.reached(gate)));
      for (const { stage } of others) stage.open(gate);
    }
    for (const node of others) {
      const task = await node.client("flow").ended(id);
      expect(task.status.state).toBe("TASK_STATE_COMPLETED");
      expect(outputOf(task)).toMatchObject({ last: "one left, one right" });
    }
    const started = [here, ...others].flatMap(({ stage }) => stage.started);
    expect(started.filter((script) => script === "artifact one")).toHaveLength(1);
    expect(started.filter((script) => script === "artifact one left, one right")).toHaveLength(1);
  });

  const HELPER: Credentials = { agentId: "agent-1", ak: "access-1", sk: "secret-1" };

  /** The agent of the step has dialled the first node; the workflow is called at the second. */
  async function startHelper() {
    const cluster = new Cluster(HTTP_BINDINGS[0], spec);
    const helper = () => createDialInAgent({ name: "Helper", description: "Dials in.", ...HELPER });
    const startNode = () =>
      cluster.start({ agents: { flow: createFlow({ ask: { agent: "helper" } }), helper: helper() } });
    const [here, there] = [await startNode(), await startNode()];
    const agent = await RawAgent.dial(here.server.url, HELPER);
    closeLater(() => agent.socket.terminate());
    const stream = await there.client("flow").stream("Book a table");
    const { id } = await stream.task();
    return { here, there, agent, stream, id, request: await agent.next() };
  }

  it("has a step run by an agent that only another node can call, and passes its answer on", async () => {
    const { agent, request, stream, there, id } = await startHelper();
    expect(request.params.message.parts).toEqual([{ kind: "text", text: "Book a table" }]);
    agent.text(request, "Booked.", { final: true });
    await stream.rest();
    const task = await there.client("flow").get(id);
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(outputOf(task)).toMatchObject({ ask: "Booked." });
  });

  it("is cancelled anywhere, and the step on another node with it", async () => {
    const { agent, here, request, stream, id } = await startHelper();
    const cancelled = here.client("flow").cancel(id);
    expect((await agent.next()).method).toBe("tasks/cancel");
    agent.status(request, "canceled", { final: true });
    expect((await cancelled).status.state).toBe("TASK_STATE_CANCELED");
    await stream.rest();
  });
});
