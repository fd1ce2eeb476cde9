/** A task is submitted until its run begins, and works from then on, whether its agent reports it or not. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StreamEvent } from "../../src/core/model/event.ts";
import { type DragomanServer, serve } from "../../src/index.ts";
import { INTERFACES, speaking } from "../limits/interfaces.ts";
import { describeStores } from "../support/scene.ts";
import { Stage } from "../support/stage.ts";
import { statesOf, type WireStream } from "../support/wire-client.ts";

async function untilWorking(stream: WireStream): Promise<void> {
  for (;;) {
    const { statusUpdate, task } = await stream.event();
    if ((statusUpdate ?? task)?.status.state === "TASK_STATE_WORKING") return;
  }
}

describeStores("a run", { agents: { narrow: { concurrency: 1 }, again: { onCrash: "resume" } } }, (scene) => {
  it.each(["stage", "again"])("that streams without a status works (%s)", async (agent) => {
    const events = await (await scene.client(agent).stream("chunks 3")).rest();
    expect(statesOf(events)).toEqual(["SUBMITTED", "WORKING", "COMPLETED"]);
    expect(events[1]?.event.statusUpdate?.status.state).toBe("TASK_STATE_WORKING");
    expect(events.map(({ number }) => number)).toEqual(events.map((_, at) => at + 1));
  });

  it.each(["stage", "again"])("that computes without an event works, for those who look (%s)", async (agent) => {
    const client = scene.client(agent);
    const { id } = await client.start(`hold computing-${agent}; artifact ok`);
    await scene.stage.reached(`computing-${agent}`);
    const stream = await client.subscribe(id);
    await untilWorking(stream);
    expect((await client.get(id)).status.state).toBe("TASK_STATE_WORKING");
    scene.stage.open(`computing-${agent}`);
    expect(statesOf(await stream.rest())).toEqual(["COMPLETED"]);
  });

  it("that reports it itself is not doubled, nor is one that ends or asks at once", async () => {
    const client = scene.client();
    for (const [script, states] of [
      ["work; artifact ok", ["SUBMITTED", "WORKING", "COMPLETED"]],
      ["input Which?", ["SUBMITTED", "INPUT_REQUIRED"]],
      ["fail no", ["SUBMITTED", "FAILED"]],
      ["", ["SUBMITTED", "COMPLETED"]],
    ] as const) {
      expect(statesOf(await (await client.stream(script)).rest()), script).toEqual(states);
    }
  });

  it("that waits for its agent does not work yet", async () => {
    const client = scene.client("narrow");
    const first = await client.start("hold narrow; artifact ok");
    const second = await client.start("chunks 2");
    await scene.stage.reached("narrow");
    await untilWorking(await client.subscribe(first.id));
    expect((await client.get(second.id)).status.state).toBe("TASK_STATE_SUBMITTED");
    const stream = await client.subscribe(second.id);
    scene.stage.open("narrow");
    expect(statesOf(await stream.rest())).toEqual(["SUBMITTED", "WORKING", "COMPLETED"]);
  });
});

describe.each(INTERFACES)("$dialect over $binding", (spoken) => {
  const stage = new Stage();
  let server: DragomanServer;
  beforeAll(async () => {
    server = await serve({ port: 0, log: false, agents: { stage: stage.agent() } });
  });
  afterAll(() => server.close());

  it("shows that a run works which only streams", async () => {
    const agent = await speaking(server.url, spoken);
    const states: (string | undefined)[] = [];
    for await (const { event } of agent.stream("chunks 3")) states.push(stateOf(event));
    expect(states.filter((state, at) => state !== undefined && state !== states[at - 1])).toEqual([
      "TASK_STATE_SUBMITTED",
      "TASK_STATE_WORKING",
      "TASK_STATE_COMPLETED",
    ]);
  });
});

function stateOf(event: StreamEvent): string | undefined {
  if ("task" in event) return event.task.status.state;
  return "statusUpdate" in event ? event.statusUpdate.status.state : undefined;
}
