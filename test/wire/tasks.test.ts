import { expect, it } from "vitest";
import { readMetric, untilMetric } from "../support/metrics.ts";
import { describeStores } from "../support/scene.ts";
import { statesOf, userMessage } from "../support/wire-client.ts";
import { textOf } from "../support/wire-types.ts";

const DROPPED = "dragoman_events_dropped_after_terminal_total";

describeStores("tasks", { agents: { other: {} }, times: { cancelGraceMs: 80 } }, (scene) => {
  it("[AUTH-SCOPE-003, CORE-GET-002] that are unknown and those of another agent look the same", async () => {
    const { id } = await scene.client("other").task("artifact ok");
    const invisible = await scene.client().refusal("GetTask", { id });
    const unknown = await scene.client().refusal("GetTask", { id: "no-such-task" });
    expect(JSON.stringify(invisible).replaceAll(id, "no-such-task")).toBe(JSON.stringify(unknown));
    expect(unknown.reason).toBe("TASK_NOT_FOUND");
  });

  it("[AUTH-SCOPE-003, CORE-GET-002] with odd ids are not found", async () => {
    for (const id of ["a/b", "a:cancel", "..", "%", "\u2713", "__proto__", "x".repeat(2_000), " "]) {
      const { reason } = await scene.client().refusal("GetTask", { id });
      expect(reason, id).toBe("TASK_NOT_FOUND");
    }
  });

  it("[CORE-HIST-001, CORE-HIST-002, CORE-HIST-005] give no more history than asked for, the newest messages, oldest first", async () => {
    let task = await scene.client().task("input 0?");
    for (let round = 1; round < 4; round++) {
      task = await scene.client().task(userMessage(`input ${round}?`, { taskId: task.id }));
    }
    const all = task.history ?? [];
    expect(all.map(({ parts }) => textOf(parts))).toEqual([
      "input 0?",
      "0?",
      "input 1?",
      "1?",
      "input 2?",
      "2?",
      "input 3?",
    ]);
    for (const historyLength of [1, 2, 3, 6, 7, 8, 100]) {
      const got = await scene.client().get(task.id, { historyLength });
      expect(got.history, String(historyLength)).toEqual(all.slice(-historyLength));
      const { tasks } = await scene.client().list({ contextId: task.contextId, historyLength });
      expect(tasks[0]?.history).toEqual(all.slice(-historyLength));
    }
    const bare = await scene.client().get(task.id, { historyLength: 0 });
    expect("history" in bare).toBe(false);
    const listed = await scene.client().list({ contextId: task.contextId, historyLength: 0 });
    expect(listed.tasks.some((each) => "history" in each)).toBe(false);
  });

  it("[CORE-HIST-001, CORE-HIST-002, CORE-HIST-003] give no more history than asked for in the answer to a message", async () => {
    const asked = await scene.client().task("input 0?", { configuration: { historyLength: 0 } });
    expect("history" in asked).toBe(false);
    const message = userMessage("artifact ok", { taskId: asked.id });
    const done = await scene.client().task(message, { configuration: { historyLength: 1 } });
    expect(done.history?.map(({ parts }) => textOf(parts))).toEqual(["artifact ok"]);
  });

  it("[CORE-CANCEL-001] that run are cancelled, and their agent is asked to stop", async () => {
    const script = "work; artifact half; hold for-cancel; artifact never";
    const started = await scene.client().start(script);
    await scene.stage.reached("for-cancel");
    const cancelled = await scene.client().cancel(started.id);
    expect(cancelled.status.state).toBe("TASK_STATE_CANCELED");
    expect(cancelled.artifacts?.[0]?.parts).toEqual([{ text: "half" }]);
    expect(scene.stage.stopped).toContain(script);
    expect(await scene.client().get(started.id)).toEqual(cancelled);
  });

  it("[CORE-CANCEL-001] that wait for input are cancelled too", async () => {
    for (const verb of ["input", "auth"]) {
      const asked = await scene.client().task(`${verb} more?`);
      const cancelled = await scene.client().cancel(asked.id);
      expect(cancelled.status.state).toBe("TASK_STATE_CANCELED");
    }
  });

  it("[CORE-CANCEL-001] end after the grace time when their agent does not listen", async () => {
    const started = await scene.client().start("work; deaf ignoring; artifact too-late");
    await scene.stage.reached("ignoring");
    const cancelled = await scene.client().cancel(started.id);
    expect(cancelled.status.state).toBe("TASK_STATE_CANCELED");
    scene.stage.open("ignoring");
  });

  it.each(["artifact ok", "fail no", "reject no"])(
    "[CORE-CANCEL-002] that ended by themselves are not cancelable (%s)",
    async (script) => {
      const task = await scene.client().task(script);
      const { reason, details } = await scene.client().refusal("CancelTask", { id: task.id });
      expect(reason).toBe("TASK_NOT_CANCELABLE");
      expect(details[0]?.metadata).toEqual({ taskId: task.id });
      expect(await scene.client().get(task.id)).toEqual(task);
    },
  );

  it("[CORE-CANCEL-003] that are unknown, or another agent's, are not found when cancelled", async () => {
    expect((await scene.client().refusal("CancelTask", { id: "no-such-task" })).reason).toBe("TASK_NOT_FOUND");
    const { id } = await scene.client("other").start("work; hold others");
    expect((await scene.client().refusal("CancelTask", { id })).reason).toBe("TASK_NOT_FOUND");
    expect((await scene.client("other").get(id)).status.state).not.toBe("TASK_STATE_CANCELED");
    scene.stage.open("others");
    await scene.client("other").ended(id);
  });

  it("[CORE-CANCEL-004] may be cancelled twice, one after the other and at once", async () => {
    const started = await scene.client().start("work; hold twice");
    await scene.stage.reached("twice");
    const both = await Promise.all([1, 2, 3].map(() => scene.client().cancel(started.id)));
    const again = await scene.client().cancel(started.id);
    for (const task of both) expect(task).toEqual(again);
    expect(again.status.state).toBe("TASK_STATE_CANCELED");
  });

  it("[CORE-TASK-001] that have ended drop what their agent still says, and count it", async () => {
    const stream = await scene.client().stream("work; deaf late-words; artifact never; fail never");
    const { id } = await stream.task();
    await scene.stage.reached("late-words");
    const cancelled = await scene.client().cancel(id);
    const before = await readMetric(scene.server.url, DROPPED);
    scene.stage.open("late-words");
    const events = await stream.rest();
    expect(statesOf(events)).toEqual(["WORKING", "CANCELED"]);
    expect(await scene.client().get(id)).toEqual(cancelled);
    await untilMetric(scene.server.url, DROPPED, (value) => value > before);
  });

  it("[CORE-TASK-001] ignore a second ending", async () => {
    const stream = await scene.client().stream("fail first; reject second; artifact third");
    const events = await stream.rest();
    expect(statesOf(events)).toEqual(["SUBMITTED", "FAILED"]);
  });

  it("race their end against a cancellation: one of the two wins, for everybody", async () => {
    for (let round = 0; round < 10; round++) {
      const started = await scene.client().start(`work; hold race-${round}; artifact done`);
      await scene.stage.reached(`race-${round}`);
      const cancelling = scene.client().call("CancelTask", { id: started.id });
      scene.stage.open(`race-${round}`);
      const { error } = await cancelling;
      const { status } = await scene.client().ended(started.id);
      if (error === undefined) expect(status.state).toBe("TASK_STATE_CANCELED");
      else {
        expect(error.reason).toBe("TASK_NOT_CANCELABLE");
        expect(status.state).toBe("TASK_STATE_COMPLETED");
      }
    }
  });
});

describeStores("a limited agent", { agents: { narrow: { concurrency: 2 } } }, (scene) => {
  it("runs no more turns at a time than it may, and in the order they came", async () => {
    const client = scene.client("narrow");
    const texts = Array.from({ length: 8 }, (_, at) => `work; hold narrow-${at}; artifact ${at}`);
    const tasks = [];
    for (const text of texts) tasks.push(await client.start(text));
    await scene.stage.reached("narrow-1");
    expect(scene.stage.started).toEqual(texts.slice(0, 2));
    expect(await readMetric(scene.server.url, "dragoman_tasks_queued")).toBe(6);
    expect((await client.get(tasks[7]?.id ?? "")).status.state).toBe("TASK_STATE_SUBMITTED");
    for (let at = 0; at < texts.length; at++) scene.stage.open(`narrow-${at}`);
    for (const { id } of tasks) expect((await client.ended(id)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(scene.stage.started).toEqual(texts);
    expect(scene.stage.mostAtWork).toBe(2);
  });

  it("takes a cancelled task out of the line, and one whose caller waits", async () => {
    const client = scene.client("narrow");
    const running = await Promise.all([client.start("work; hold busy"), client.start("work; hold busy")]);
    await scene.stage.reached("busy");
    const waiting = await client.start("artifact never-run");
    expect((await client.cancel(waiting.id)).status.state).toBe("TASK_STATE_CANCELED");
    scene.stage.open("busy");
    for (const { id } of running) await client.ended(id);
    expect((await client.task("artifact after")).status.state).toBe("TASK_STATE_COMPLETED");
    expect(scene.stage.started).not.toContain("artifact never-run");
    expect(await readMetric(scene.server.url, "dragoman_tasks_queued")).toBe(0);
    expect(await readMetric(scene.server.url, "dragoman_tasks_live")).toBe(0);
  });
});

describeStores("limits", { limits: { tasksPerOwner: 2, streamsPerOwner: 1 } }, (scene, binding) => {
  it("on running tasks are reported with a time to try again", async () => {
    const first = await scene.client().start("work; hold full");
    await scene.client().start("work; hold full");
    const answer = await scene.client().call("SendMessage", { message: userMessage("artifact ok") });
    expect(answer.error?.reason).toBe("RESOURCE_EXHAUSTED");
    if (binding.http === undefined) expect(answer.error?.code).toBe(8);
    else expect(answer.status).toBe(429);
    expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
    const stream = await scene.client().subscribe(first.id);
    await stream.task();
    const second = await scene.client().tryOpen("SubscribeToTask", { id: first.id });
    expect(second).toMatchObject({ reason: "RESOURCE_EXHAUSTED" });
    scene.stage.open("full");
    await stream.rest();
    await scene.client().ended(first.id);
  });
});

describeStores("messages of tasks under way", { limits: { messageBytesPerOwner: 20_000 } }, (scene, binding) => {
  const large = `artifact ${"x".repeat(8_000)}`;

  it("are bounded together, those of a task that is taken up again included", async () => {
    const client = scene.client();
    const asking = await client.task(`input ${"x".repeat(8_000)}`);
    const held = await client.start(`work; hold bytes; ${large}`);
    const answer = { taskId: asking.id, contextId: asking.contextId };
    for (const message of [userMessage(`${large}; ${large}`), userMessage(large, answer)]) {
      const { error, headers, status } = await client.call("SendMessage", { message });
      expect(error?.reason).toBe("RESOURCE_EXHAUSTED");
      if (binding.http === undefined) expect(error?.code).toBe(8);
      else expect(status).toBe(429);
      expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    }
    expect((await client.get(asking.id)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect((await client.task(large)).status.state).toBe("TASK_STATE_COMPLETED");
    scene.stage.open("bytes");
    await client.ended(held.id);
    expect((await client.task(userMessage(large, answer))).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("never keep an owner with nothing under way from sending one", async () => {
    const task = await scene.client().task(`artifact ${"x".repeat(40_000)}`);
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
  });
});
