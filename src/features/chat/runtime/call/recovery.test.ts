import { describe, expect, it } from "vitest";
import { promptly, settle } from "../../../../core/engine/testing/fake-clock.ts";
import { callerOf, eventsOf, failureOf, message, setUp, summaryOf, taskIdOf } from "./testing/called-participant.ts";

/** A task that the peer has been given, and the process that did is gone. */
async function interrupted(posts: (id: string) => readonly string[] = () => []) {
  const set = await setUp();
  void set.caller.dispatch(message("Write."), {});
  const task = await set.helper.next();
  const id = taskIdOf(task);
  for (const text of posts(id)) set.helper.say(text);
  await settle();
  await set.stage.kill();
  return { ...set, task, id, restart: async () => callerOf(await set.open(set.stage)) };
}

describe("a task of an earlier process", () => {
  it("is followed under its id, and not sent again", async () => {
    const { helper, id, network, restart } = await interrupted();
    const caller = await restart();
    const frames = await caller.dispatch({ kind: "subscribe", id }, {});
    helper.say(`[A2A:status task=${id} state=working]\nBusy.`);
    helper.say(`[A2A:result task=${id} state=completed]\nDone.`);
    expect(summaryOf(await promptly(eventsOf(frames)))).toEqual([
      "task SUBMITTED",
      "WORKING: Busy.",
      "result: Done.",
      "COMPLETED",
    ]);
    expect(network.posts.filter(({ text }) => text.includes("[A2A:task"))).toHaveLength(1);
  });

  it("may have been answered while no one was there, also before the run continues", async () => {
    const { helper, id, restart } = await interrupted((task) => [`[A2A:ack task=${task}]`]);
    helper.say(`[A2A:result task=${id} state=completed]\nDone.`);
    const caller = await restart();
    await settle(40);
    const frames = await caller.dispatch({ kind: "subscribe", id }, {});
    expect(await promptly(eventsOf(frames))).toMatchObject([
      {
        task: {
          id,
          contextId: "c",
          status: { state: "TASK_STATE_COMPLETED" },
          artifacts: [{ parts: [{ text: "Done." }] }],
        },
      },
    ]);
  });

  it("may have been answered in prose while no one was there", async () => {
    const { clock, helper, id, restart, task } = await interrupted((known) => [`Something about ${known}`]);
    helper.say("It drips.", { replyTo: task.id });
    const caller = await restart();
    await settle(40);
    const frames = await caller.dispatch({ kind: "subscribe", id }, {});
    await clock.advance(5_000);
    expect(summaryOf(await promptly(eventsOf(frames))).slice(-2)).toEqual(["result: It drips.", "COMPLETED"]);
  });

  it("has ended if its end was read but not yet shown", async () => {
    const { id, restart } = await interrupted((task) => [
      `[A2A:result task=${task} state=completed]\nDone.\n[附件: a.txt]`,
    ]);
    const caller = await restart();
    const frames = await caller.dispatch({ kind: "subscribe", id }, {});
    const events = await promptly(eventsOf(frames));
    expect(summaryOf(events.slice(-1))).toEqual(["COMPLETED: (The file a.txt could not be read.)"]);
  });

  it("still waits for the answer to its question", async () => {
    const { helper, id, restart } = await interrupted((task) => [
      `[A2A:status task=${task} state=input-required]\nWhen?`,
    ]);
    const caller = await restart();
    const asked = await caller.dispatch({ kind: "subscribe", id }, {});
    expect(summaryOf(await promptly(eventsOf(asked)))).toEqual(["task INPUT_REQUIRED"]);
    const answered = await caller.dispatch(message("Now.", id), {});
    expect((await helper.next()).text).toBe(`[A2A:task id=${id} accept=json to=u-helper]\nNow.`);
    helper.say(`[A2A:result task=${id} state=completed]\nBooked.`);
    expect(summaryOf(await promptly(eventsOf(answered)))).toEqual(["task WORKING", "result: Booked.", "COMPLETED"]);
  });

  it("can be cancelled, and fails if the peer stays silent", async () => {
    const { clock, helper, id, restart } = await interrupted();
    const caller = await restart();
    const cancelled = caller.dispatch({ kind: "cancel", id }, {});
    expect((await helper.next()).text).toContain(`[A2A:cancel task=${id}`);
    helper.say(`[A2A:result task=${id} state=cancelled]`);
    expect((await promptly(cancelled)).status.state).toBe("TASK_STATE_CANCELED");
    const other = await interrupted();
    const frames = await (await other.restart()).dispatch({ kind: "subscribe", id: other.id }, {});
    await other.clock.advance(600_000);
    expect(summaryOf(await promptly(eventsOf(frames)))[1]).toMatch(/^FAILED: u-helper in lobby on memory sent nothing/);
    expect((await failureOf(caller.dispatch({ kind: "get", id: other.id }, {}))).code).toBe("TASK_NOT_FOUND");
    await clock.advance(0);
  });
});
