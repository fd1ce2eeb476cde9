import { describe, expect, it } from "vitest";
import type { Agent, Turn } from "../../../core/engine/agent.ts";
import { agentOf, chunk, createGate, inputText, status } from "../../../core/engine/testing/agents.ts";
import { promptly, settle } from "../../../core/engine/testing/fake-clock.ts";
import { framesOf } from "../../../core/engine/testing/harness.ts";
import { logViolations } from "../../../core/engine/testing/log-invariants.ts";
import { EXTENSIONS } from "../../../core/model/extensions.ts";
import type { JsonValue } from "../../../core/model/json.ts";
import { progressOf, startWorld, statusTextOf, stepsIn, textsOf, workflowOf } from "./testing/workflows.ts";

/** Answers with an artifact. */
const saying = (say: (turn: Turn) => string): Agent =>
  agentOf(async function* (turn) {
    yield chunk("text", say(turn), false);
  });

/** Puts its name around what it gets. */
const wrapping = (name: string) => saying((turn) => `${name}(${inputText(turn)})`);

const returning = (data: JsonValue): Agent =>
  agentOf(async function* () {
    yield { artifact: { artifactId: "data", parts: [{ data }] } };
  });

const failing = (reason: string, state: "TASK_STATE_FAILED" | "TASK_STATE_REJECTED" = "TASK_STATE_FAILED"): Agent =>
  agentOf(async function* () {
    yield status(state, reason);
  });

describe("steps", () => {
  it("run one after another, each with what it asks for of those before", async () => {
    const harness = await startWorld({
      workflow: workflowOf(
        {
          a: {},
          b: { needs: ["a"], input: "${steps.a.text}!" },
          c: { needs: ["a", "b"], input: "${steps.b.text} ${steps.a.text}" },
        },
        ["c", "a"],
      ),
      agents: { a: wrapping("a"), b: wrapping("b"), c: wrapping("c") },
    });
    const task = await harness.task("x");
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(textsOf(task)).toEqual({ a: "a(x)", c: "c(b(a(x)!) a(x))" });
    const log = await harness.log(task.id);
    expect(progressOf(log)).toEqual([
      "a started",
      "a completed",
      "b started",
      "b completed",
      "c started",
      "c completed",
    ]);
    expect(logViolations(log, { ended: true })).toEqual([]);
  });

  it("are tasks of one conversation that refer to the run and to the steps they need", async () => {
    const turns: Turn[] = [];
    const noting = agentOf(async function* (turn) {
      turns.push(turn);
      yield status("TASK_STATE_COMPLETED", "done");
    });
    const harness = await startWorld({
      workflow: workflowOf({ a: {}, b: { needs: ["a"] } }),
      agents: { a: noting, b: noting },
    });
    const { contextId, id } = await harness.task("x", { contextId: "conversation" });
    const [first, second] = turns;
    expect(turns.map(({ task }) => task.contextId)).toEqual([contextId, contextId]);
    expect(turns.map(({ message }) => message.referenceTaskIds)).toEqual([[id], [id, first?.task.id]]);
    expect(turns.map(({ hops }) => hops)).toMatchObject([{ hops: 1 }, { hops: 1 }]);
    expect(stepsIn(await harness.log(id))).toEqual([
      { step: "a", state: "started", agent: "a", dialect: "local", task: first?.task.id, attempt: 1 },
      { step: "a", state: "completed", agent: "a", dialect: "local", task: first?.task.id, attempt: 1 },
      { step: "b", state: "started", agent: "b", dialect: "local", task: second?.task.id, attempt: 1 },
      { step: "b", state: "completed", agent: "b", dialect: "local", task: second?.task.id, attempt: 1 },
    ]);
  });

  it("know when their caller gives up: with the attempt, or with the run", async () => {
    const deadlines: (number | undefined)[] = [];
    const noting = agentOf(async function* (turn) {
      deadlines.push(turn.hops.deadline);
      yield status("TASK_STATE_COMPLETED", "done");
    });
    const harness = await startWorld({
      workflow: workflowOf({ a: { timeoutMs: 5_000 }, b: { timeoutMs: 50_000 }, c: {} }),
      agents: { a: noting, b: noting, c: noting },
    });
    const now = harness.clock.now();
    await harness.task("x");
    const metadata = { [EXTENSIONS.hops]: { remainingMs: 20_000 } };
    await harness.task("x", { metadata });
    const sorted = deadlines.map((deadline) => deadline && deadline - now);
    expect(sorted).toEqual([5_000, 50_000, undefined, 5_000, 20_000, 20_000]);
  });

  it("that need nothing of each other run at the same time", async () => {
    const gates = { a: createGate(), b: createGate() };
    const held = (name: "a" | "b") =>
      agentOf(async function* () {
        yield status("TASK_STATE_WORKING");
        await gates[name].pass();
        yield chunk("text", name, false);
      });
    const harness = await startWorld({
      workflow: workflowOf({ a: {}, b: {}, c: { needs: ["a", "b"], input: "${steps.a.text}${steps.b.text}" } }),
      agents: { a: held("a"), b: held("b"), c: wrapping("c") },
    });
    const done = harness.task("x");
    await Promise.all([gates.a.reached, gates.b.reached]);
    gates.b.open();
    gates.a.open();
    expect(textsOf(await promptly(done))).toEqual({ c: "c(ab)" });
  });

  it("stream what an output step makes under its name, and nothing else", async () => {
    const harness = await startWorld({
      workflow: workflowOf({ a: {}, b: { needs: ["a"] } }, ["b"]),
      agents: {
        a: wrapping("a"),
        b: agentOf(async function* () {
          yield status("TASK_STATE_WORKING", "Thinking");
          yield chunk("one", "Hel", false);
          yield chunk("one", "lo");
          yield chunk("two", "More", false);
        }),
      },
    });
    const frames = await framesOf(await harness.stream("x"));
    const updates = frames.flatMap(({ event }) => ("artifactUpdate" in event ? [event.artifactUpdate] : []));
    expect(updates.map(({ append, artifact }) => [artifact.artifactId, artifact.name, append, artifact.parts])).toEqual(
      [
        ["b", "b", undefined, [{ text: "Hel" }]],
        ["b", "b", true, [{ text: "lo" }]],
        ["b/two", "b/two", undefined, [{ text: "More" }]],
      ],
    );
    const texts = frames.flatMap(({ event }) =>
      "statusUpdate" in event ? (event.statusUpdate.status.message?.parts ?? []) : [],
    );
    expect(texts).toContainEqual({ text: "Step b: Thinking" });
  });

  it("hand over data as data, and the message of an agent that makes no artifacts", async () => {
    const got: unknown[] = [];
    const harness = await startWorld({
      workflow: workflowOf({ a: {}, b: { needs: ["a"], input: "${steps.a.data}" }, c: { needs: ["b"] } }, ["b"]),
      agents: {
        a: returning({ sections: ["x"] }),
        b: agentOf(async function* (turn) {
          got.push(turn.message.parts);
          yield status("TASK_STATE_COMPLETED", "b is done");
        }),
        // biome-ignore lint/correctness/useYield: it answers without a task.
        c: agentOf(async function* () {
          return { parts: [{ text: "c is done" }] };
        }),
      },
    });
    const task = await harness.task("x");
    expect(got).toEqual([[{ data: { sections: ["x"] } }]]);
    expect(textsOf(task)).toEqual({ b: "b is done" });
  });

  it("hand over what an agent wrote while it worked, if it has no other answer", async () => {
    const worker = agentOf(async function* () {
      yield status("TASK_STATE_WORKING", "It is");
      yield status("TASK_STATE_WORKING", " 330 m.");
    });
    const harness = await startWorld({
      workflow: workflowOf({ a: {}, b: { needs: ["a"], input: "${steps.a.text}" } }),
      agents: { a: worker, b: wrapping("b") },
    });
    expect(textsOf(await harness.task("x"))).toEqual({ b: "b(It is 330 m.)" });
  });

  it("are skipped where their condition says so, which later ones can see", async () => {
    const harness = await startWorld({
      workflow: workflowOf({
        a: {},
        b: { needs: ["a"], when: "${steps.a.text} == no" },
        c: { needs: ["b"], input: "${steps.b.state}${steps.b.text}" },
      }),
      agents: { a: wrapping("a"), b: wrapping("b"), c: wrapping("c") },
    });
    const task = await harness.task("x");
    expect(textsOf(task)).toEqual({ c: "c(skipped)" });
    expect(progressOf(await harness.log(task.id))).toContain("b skipped");
  });

  it("of a sub-workflow run in the same task", async () => {
    const inner = workflowOf({ one: {}, two: { needs: ["one"], input: "${steps.one.text}${input.text}" } });
    const harness = await startWorld({
      workflow: workflowOf(
        { sub: { target: { workflow: inner } }, last: { needs: ["sub"], input: "${steps.sub.text}" } },
        ["sub", "last"],
      ),
      agents: { one: wrapping("one"), two: wrapping("two"), last: wrapping("last") },
    });
    const task = await harness.task("x");
    expect(textsOf(task)).toEqual({ sub: "two(one(x)x)", last: "last(two(one(x)x))" });
    expect(progressOf(await harness.log(task.id))).toEqual([
      "sub started",
      "sub/one started",
      "sub/one completed",
      "sub/two started",
      "sub/two completed",
      "sub completed",
      "last started",
      "last completed",
    ]);
  });
});

describe("foreach", () => {
  const items = ["a", "b", "c", "d", "e"];

  it("runs so many items at a time and returns what they return in their order", async () => {
    let running = 0;
    let most = 0;
    const gates = new Map(items.map((item) => [item, createGate()]));
    const harness = await startWorld({
      workflow: workflowOf(
        {
          list: {},
          each: { needs: ["list"], foreach: "${steps.list.data}", input: "${index}${item}", concurrency: 2 },
          all: { needs: ["each"], input: "${steps.each.data}" },
        },
        ["each", "all"],
      ),
      agents: {
        list: returning(items),
        each: agentOf(async function* (turn) {
          most = Math.max(most, ++running);
          yield status("TASK_STATE_WORKING");
          await gates.get(inputText(turn).slice(1))?.pass();
          running--;
          yield { artifact: { artifactId: "x", parts: [{ text: inputText(turn) }, { data: inputText(turn) }] } };
        }),
        all: agentOf(async function* (turn) {
          yield chunk("text", JSON.stringify(turn.message.parts[0]), false);
        }),
      },
    });
    const done = harness.task("x");
    for (const item of ["b", "a", "d", "c", "e"]) {
      await gates.get(item)?.reached;
      gates.get(item)?.open();
      await settle();
    }
    const task = await promptly(done);
    expect(most).toBe(2);
    expect(textsOf(task)).toEqual({
      each: "0a\n1b\n2c\n3d\n4e",
      all: '{"data":["0a","1b","2c","3d","4e"]}',
    });
  });

  it("names the items that failed, and ends or goes on as the step says", async () => {
    const agents = {
      list: returning(items),
      each: agentOf(async function* (turn) {
        if (inputText(turn) === "c") yield status("TASK_STATE_FAILED", "No c.");
        else yield chunk("text", inputText(turn), false);
      }),
      last: wrapping("last"),
    };
    const steps = (onFailure: "stop" | "continue") =>
      workflowOf({
        list: {},
        each: { needs: ["list"], foreach: "${steps.list.data}", input: "${item}", onFailure },
        last: { needs: ["each"], input: "${steps.each.text}" },
      });
    const stopped = await (await startWorld({ workflow: steps("stop"), agents })).task("x");
    expect(stopped.status.state).toBe("TASK_STATE_FAILED");
    expect(statusTextOf(stopped)).toBe("Step each failed: 1 of 5 items did not complete: each[2]: No c.");
    const continued = await (await startWorld({ workflow: steps("continue"), agents })).task("x");
    expect(continued.status.state).toBe("TASK_STATE_COMPLETED");
    expect(textsOf(continued)).toEqual({ last: "last(a\nb\nd\ne)" });
  });

  it("tries its items again, continues without those that fail, and is skipped where its condition is false", async () => {
    const tries: string[] = [];
    const all = { foreach: "${steps.list.data}", input: "${item}", needs: ["list"] };
    const harness = await startWorld({
      workflow: workflowOf(
        {
          list: {},
          each: { ...all, retry: { attempts: 3, baseMs: 100, capMs: 1_000 }, onFailure: "continue", concurrency: 2 },
          partly: {
            agent: "last",
            needs: ["each"],
            when: "${steps.each.state} == failed",
            input: "${steps.each.data}",
          },
          wholly: { ...all, agent: "each", needs: ["list", "each"], when: "${steps.each.state} == completed" },
          end: { agent: "last", needs: ["partly", "wholly"], input: "${steps.wholly.state} ${steps.partly.text}" },
        },
        ["each", "end"],
      ),
      agents: {
        list: returning(["ok", "later", "never", "refused"]),
        each: agentOf(async function* (turn) {
          const item = inputText(turn);
          tries.push(item);
          const count = tries.filter((tried) => tried === item).length;
          if (item === "refused") yield status("TASK_STATE_REJECTED", "Not this.");
          else if (item === "never" || (item === "later" && count < 3))
            yield status("TASK_STATE_FAILED", `No ${item}.`);
          else yield { artifact: { artifactId: "x", parts: [{ text: item }, { data: { item } }] } };
        }),
        last: agentOf(async function* (turn) {
          const [part] = turn.message.parts;
          yield chunk(
            "text",
            part !== undefined && "data" in part ? JSON.stringify(part.data) : inputText(turn),
            false,
          );
        }),
      },
    });
    const done = harness.task("x");
    await harness.clock.advance(10_000);
    const task = await promptly(done);
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(statusTextOf(task)).toBe("Completed without step each.");
    expect([...tries].sort()).toEqual(["later", "later", "later", "never", "never", "never", "ok", "refused"]);
    expect(textsOf(task)).toEqual({
      each: "ok\nlater",
      end: 'skipped [{"item":"ok"},{"item":"later"},null,null]',
    });
    const log = await harness.log(task.id);
    expect(progressOf(log).filter((one) => one.startsWith("each ") || one.startsWith("wholly"))).toEqual([
      "each started",
      "each failed",
      "wholly skipped",
    ]);
    expect(logViolations(log, { ended: true })).toEqual([]);
  });

  it("of something that is not a list fails the step", async () => {
    const harness = await startWorld({
      workflow: workflowOf({ list: {}, each: { needs: ["list"], foreach: "${steps.list.data}" } }),
      agents: { list: returning({ a: 1 }), each: wrapping("each") },
    });
    expect(statusTextOf(await harness.task("x"))).toBe(
      "Step each failed: ${steps.list.data} must be a list, not a map",
    );
  });
});

describe("a step that fails", () => {
  it.each([
    ["failed", failing("No idea."), "Step a failed: No idea."],
    ["was rejected", failing("Not me.", "TASK_STATE_REJECTED"), "Step a rejected: Not me."],
    [
      "threw",
      agentOf(() => {
        throw new Error("secret");
      }),
      "Step a failed: The agent failed while it worked on this message.",
    ],
  ])("because it %s ends the run, which names it", async (_name, agent, expected) => {
    const harness = await startWorld({
      workflow: workflowOf({ a: {}, b: { needs: ["a"] } }),
      agents: { a: agent, b: wrapping("b") },
    });
    const task = await harness.task("x");
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(statusTextOf(task)).toBe(expected);
  });

  it("cancels those that run beside it", async () => {
    const gate = createGate();
    let stopped = false;
    const harness = await startWorld({
      workflow: workflowOf({ a: {}, b: {} }),
      agents: {
        a: agentOf(async function* () {
          await gate.pass();
          yield status("TASK_STATE_FAILED", "No.");
        }),
        b: agentOf(async function* (turn) {
          yield status("TASK_STATE_WORKING");
          gate.open();
          await new Promise<void>((resolve) => {
            turn.signal.addEventListener("abort", () => resolve());
          });
          stopped = true;
        }),
      },
    });
    expect(statusTextOf(await promptly(harness.task("x")))).toBe("Step a failed: No.");
    expect(stopped).toBe(true);
    expect(harness.engine.load.tasks).toBe(0);
  });

  it("does not end a run that may continue without it", async () => {
    const harness = await startWorld({
      workflow: workflowOf({
        a: { onFailure: "continue" },
        b: { needs: ["a"], input: "${steps.a.state}${steps.a.text}" },
      }),
      agents: { a: failing("No."), b: wrapping("b") },
    });
    const task = await harness.task("x");
    expect(textsOf(task)).toEqual({ b: "b(failed)" });
    expect(statusTextOf(task)).toBe("Completed without step a.");
  });

  it("is tried again after growing delays, as a new task each time", async () => {
    const tasks: string[] = [];
    const harness = await startWorld({
      workflow: workflowOf({ a: { retry: { attempts: 3, baseMs: 1_000, capMs: 10_000 } } }),
      agents: {
        a: agentOf(async function* (turn) {
          tasks.push(turn.task.id);
          if (tasks.length < 3) yield status("TASK_STATE_FAILED", "Busy.");
          else yield chunk("text", "done", false);
        }),
      },
    });
    const done = harness.task("x");
    await settle();
    expect(tasks).toHaveLength(1);
    await harness.clock.advance(500);
    expect(tasks).toHaveLength(2);
    await harness.clock.advance(999);
    expect(tasks).toHaveLength(2);
    await harness.clock.advance(1);
    const task = await promptly(done);
    expect(new Set(tasks).size).toBe(3);
    expect(textsOf(task)).toEqual({ a: "done" });
    expect(progressOf(await harness.log(task.id))).toEqual([
      "a started",
      "a retrying",
      "a started",
      "a retrying",
      "a started",
      "a completed",
    ]);
  });

  it("is not tried again where that cannot help, nor more often than it may be", async () => {
    let runs = 0;
    const counting = (agent: Agent): Agent => ({
      ...agent,
      run(turn) {
        runs++;
        return agent.run(turn);
      },
    });
    const workflow = workflowOf({ a: { retry: { attempts: 3, baseMs: 0, capMs: 0 } } });
    const rejected = await startWorld({
      workflow,
      agents: { a: counting(failing("Not me.", "TASK_STATE_REJECTED")) },
    });
    await rejected.task("x");
    expect(runs).toBe(1);
    const failed = await startWorld({ workflow, agents: { a: counting(failing("No.")) } });
    const done = failed.task("x");
    await failed.clock.advance(1);
    expect(statusTextOf(await promptly(done))).toBe("Step a failed: No.");
    expect(runs).toBe(4);
  });

  it("because it takes too long is cancelled", async () => {
    let stopped = false;
    const harness = await startWorld({
      workflow: workflowOf({ a: { timeoutMs: 5_000 } }),
      agents: {
        a: agentOf(async function* (turn) {
          yield status("TASK_STATE_WORKING");
          await new Promise<void>((resolve) => {
            turn.signal.addEventListener("abort", () => resolve());
          });
          stopped = true;
        }),
      },
    });
    const done = harness.task("x");
    await harness.clock.advance(5_000);
    expect(statusTextOf(await promptly(done))).toBe("Step a failed: Timed out after 5 s.");
    expect(stopped).toBe(true);
  });

  it("because its result is not what it declares names what is wrong", async () => {
    const outputSchema = { type: "object", required: ["title"] };
    const harness = await startWorld({
      workflow: workflowOf({ a: { outputSchema } }),
      agents: { a: returning({ name: "x" }) },
    });
    expect(statusTextOf(await harness.task("x"))).toMatch(
      /^Step a failed: The result is not what the step declares: .*title/,
    );
  });

  it("because a sub-workflow returns something else than it declares names what is wrong", async () => {
    const outputSchema = { type: "object", required: ["title"] };
    const harness = await startWorld({
      workflow: workflowOf({ sub: { target: { workflow: workflowOf({ a: {} }) }, outputSchema } }),
      agents: { a: returning({ name: "x" }) },
    });
    expect(statusTextOf(await harness.task("x"))).toMatch(/^Step sub failed: The result is not what .*title/);
  });

  it("because its template cannot be rendered names the reference", async () => {
    const harness = await startWorld({
      workflow: workflowOf({ a: {}, b: { needs: ["a"], input: "${steps.a.data.title}" } }),
      agents: { a: returning({ name: "x" }), b: wrapping("b") },
    });
    expect(statusTextOf(await harness.task("x"))).toMatch(/^Step b failed: .*title/);
  });

  it("inside a sub-workflow fails the sub-workflow, which may be tried again", async () => {
    let runs = 0;
    const inner = workflowOf({ one: {} });
    const harness = await startWorld({
      workflow: workflowOf({ sub: { target: { workflow: inner }, retry: { attempts: 2, baseMs: 0, capMs: 0 } } }),
      agents: {
        one: agentOf(async function* () {
          if (++runs === 1) yield status("TASK_STATE_FAILED", "Not yet.");
          else yield chunk("text", "now", false);
        }),
      },
    });
    const done = harness.task("x");
    await harness.clock.advance(1);
    const task = await promptly(done);
    expect(textsOf(task)).toEqual({ sub: "now" });
    expect(progressOf(await harness.log(task.id))).toEqual([
      "sub started",
      "sub/one started",
      "sub/one failed",
      "sub retrying",
      "sub started",
      "sub#2/one started",
      "sub#2/one completed",
      "sub completed",
    ]);
  });
});
