import { describe, expect, it } from "vitest";
import type { CallableAgent } from "../../../core/agents/directory.ts";
import { agentOf, chunk } from "../../../core/engine/testing/agents.ts";
import { promptly, settle } from "../../../core/engine/testing/fake-clock.ts";
import { ProtocolError } from "../../../core/model/errors.ts";
import type { StreamEvent, TaskEvent } from "../../../core/model/event.ts";
import type { Operation } from "../../../core/model/operation.ts";
import type { TaskState } from "../../../core/model/task.ts";
import { createWorkflowAgent } from "./index.ts";
import { startWorld, statusTextOf, textsOf, workflowOf } from "./testing/workflows.ts";

const place = { taskId: "theirs", contextId: "c" };
const task = (state: TaskState, id = "theirs"): TaskEvent => ({ task: { id, contextId: "c", status: { state } } });
const moved = (state: TaskState, taskId = "theirs"): TaskEvent => ({
  statusUpdate: { ...place, taskId, status: { state } },
});
const written = (text: string, append = true): TaskEvent => ({
  artifactUpdate: { ...place, artifact: { artifactId: "a", parts: [{ text }] }, append },
});

/** An agent elsewhere that sends these events, each list on a connection of its own, and then breaks the connection. */
async function runWith(...connections: readonly (readonly (StreamEvent | ProtocolError)[])[]) {
  const asked: Operation["kind"][] = [];
  const left = [...connections];
  const scripted = (agent: CallableAgent): CallableAgent => ({
    ...agent,
    isLocal: false,
    recognizesRepeats: false,
    async dispatch(operation: Operation) {
      asked.push(operation.kind);
      if (operation.kind !== "stream" && operation.kind !== "subscribe") return undefined as never;
      const events = left.shift() ?? [];
      return (async function* () {
        for (const event of events) {
          if (ProtocolError.is(event)) throw event;
          yield [{ event, json: JSON.stringify(event) }];
        }
      })() as never;
    },
  });
  const agents = { a: agentOf(async function* () {}) };
  const harness = await startWorld({ workflow: workflowOf({ a: {} }), agents, resolve: scripted });
  return { task: await promptly(harness.task("x")), asked };
}

describe("an agent that cannot be trusted", () => {
  it.each<[string, readonly (StreamEvent | ProtocolError)[], string]>([
    [
      "changes the id of its task",
      [task("TASK_STATE_WORKING"), moved("TASK_STATE_COMPLETED", "another")],
      "Step a failed: The agent changed the id of its task.",
    ],
    [
      "returns to a state that lies behind it",
      [task("TASK_STATE_WORKING"), moved("TASK_STATE_SUBMITTED")],
      "Step a failed: The agent sent a state that cannot follow the one before.",
    ],
    [
      "fails in the middle of a stream",
      [task("TASK_STATE_WORKING"), new ProtocolError("INTERNAL_ERROR", "Out of paper.")],
      "Step a failed: Out of paper.",
    ],
    ["ends its stream again and again", [task("TASK_STATE_WORKING")], "Step a failed: The agent's answer broke off."],
  ])("and %s fails its step, which is named", async (_name, events, expected) => {
    const { task: ended } = await runWith(events);
    expect(ended.status.state).toBe("TASK_STATE_FAILED");
    expect(statusTextOf(ended)).toBe(expected);
  });

  it("has its task cancelled when it sends what no task can have", async () => {
    const { asked } = await runWith([task("TASK_STATE_WORKING"), moved("TASK_STATE_SUBMITTED")]);
    expect(asked).toEqual(["stream", "cancel"]);
  });

  it("may send what it likes after the end", async () => {
    const events = [written("done", false), moved("TASK_STATE_COMPLETED"), written("more"), moved("TASK_STATE_FAILED")];
    const { task: ended } = await runWith(events);
    expect(textsOf(ended)).toEqual({ a: "done" });
  });

  it("is followed again after its stream ended too early", async () => {
    const half = [task("TASK_STATE_WORKING"), written("one ", false)];
    const artifacts = [{ artifactId: "a", parts: [{ text: "one two " }] }];
    const status = { state: "TASK_STATE_WORKING" } as const;
    const rest = [
      { task: { id: "theirs", contextId: "c", status, artifacts } },
      written("three"),
      moved("TASK_STATE_COMPLETED"),
    ];
    const { asked, task: ended } = await runWith(half, rest);
    expect(textsOf(ended)).toEqual({ a: "one two three" });
    expect(asked).toEqual(["stream", "subscribe"]);
  });

  it("is stopped when it returns more than a run can keep", async () => {
    const text = "x".repeat(1024 * 1024);
    let chunks = 0;
    const harness = await startWorld({
      workflow: workflowOf({ a: {} }, []),
      agents: {
        a: agentOf(async function* (turn) {
          while (!turn.signal.aborted && chunks < 100) {
            yield chunk("text", text, chunks++ > 0);
            await settle(1);
          }
        }),
      },
    });
    const task = await harness.task("x");
    expect(statusTextOf(task)).toBe("Step a failed: The agent returned more than 16777216 characters.");
    expect(chunks).toBeLessThan(100);
  });

  it("calls itself only as often as the loop guard allows", async () => {
    const harness = await startWorld({ workflow: workflowOf({ again: { agent: "agent" } }), agents: {} });
    const task = await harness.task("x");
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(statusTextOf(task)).toContain("more than the 8 allowed");
    expect(harness.engine.load.tasks).toBe(0);
  });

  it.each([
    ["itself", workflowOf({ again: { agent: "agent" } }), "Step again failed: "],
    ["itself through another", workflowOf({ other: {} }), "Step other failed: Step back failed: "],
  ])("that runs once at a time does not wait for its own place when it calls %s", async (_name, workflow, step) => {
    const other = createWorkflowAgent({ workflow: workflowOf({ back: { agent: "agent" } }) });
    const harness = await startWorld({ workflow, agents: { other }, concurrency: 1 });
    const task = await promptly(harness.task("x"));
    expect(statusTextOf(task)).toBe(`${step}The agent calls itself, and no further run of it may start meanwhile.`);
    expect(harness.engine.load).toMatchObject({ tasks: 0, queued: 0 });
  });

  it("that does not exist is named", async () => {
    const harness = await startWorld({ workflow: workflowOf({ a: { agent: "nobody" } }), agents: {} });
    expect(statusTextOf(await harness.task("x"))).toBe('Step a failed: There is no agent "nobody".');
  });
});
