import { describe, expect, it } from "vitest";
import { promptly, settle } from "../../../../../core/engine/testing/fake-clock.ts";
import { createLinkPair } from "../../../../../core/wire/testing/link-pair.ts";
import { CalledAgent, failureOf, send, setUp } from "../testing/called-agent.ts";

describe("an agent that is away", () => {
  it("is waited for with a new message: 10 s, not longer, however often its link comes and goes", async () => {
    const { calls, clock, connect } = setUp();
    const inTime = calls.dispatch(send("Hello"), {});
    await clock.advance(9_999);
    const agent = connect().introduce();
    expect((await agent.next()).id).toBe("t1");
    agent.text("t1", "Hi", true);
    await promptly(inTime);
    agent.link.close();
    await settle();
    const tooLate = failureOf(calls.dispatch(send("Hello"), {}));
    await clock.advance(6_000);
    connect().link.close();
    await clock.advance(4_000);
    expect(await promptly(tooLate)).toMatchObject({ code: "UNAVAILABLE", message: "The agent is not connected." });
  });

  it("continues its tasks when it comes back within its patience, and no message is sent twice", async () => {
    const { calls, clock, connect } = setUp();
    const first = connect().introduce();
    const asked = calls.dispatch(send("Hello"), {});
    await first.next();
    first.text("t1", "Hel");
    await settle();
    first.link.close();
    await clock.advance(89_999);
    const second = connect().introduce();
    await second.receivesNothing();
    second.text("t1", "Hello!", true);
    expect(await promptly(asked)).toMatchObject({
      task: { status: { state: "TASK_STATE_COMPLETED" }, artifacts: [{ parts: [{ text: "Hello!" }] }] },
    });
  });

  it("may lose its link again and again: its patience begins each time", async () => {
    const { calls, clock, connect } = setUp();
    const first = connect().introduce();
    const asked = calls.dispatch(send("Hello"), {});
    await first.next();
    first.link.close();
    for (const at of [1, 2, 3]) {
      await clock.advance(80_000);
      const again = connect().introduce();
      again.status("t1", "working");
      await settle();
      if (at < 3) again.link.close();
      else again.text("t1", "Here I am.", true);
    }
    expect(await promptly(asked)).toMatchObject({ task: { artifacts: [{ parts: [{ text: "Here I am." }] }] } });
  });

  it("is waited for also where only its last frame is missing", async () => {
    const { calls, clock, connect } = setUp();
    const first = connect().introduce();
    const asked = calls.dispatch(send("Hello"), {});
    await first.next();
    first.status("t1", "completed");
    await settle();
    first.link.close();
    await clock.advance(60_000);
    connect().introduce().text("t1", "All of it.", true);
    expect(await promptly(asked)).toMatchObject({
      task: { status: { state: "TASK_STATE_COMPLETED" }, artifacts: [{ parts: [{ text: "All of it." }] }] },
    });
  });

  it("fails its tasks when it does not come back, or sends no more of them", async () => {
    const { calls, clock, connect } = setUp();
    const first = connect().introduce();
    const asked = failureOf(calls.dispatch(send("Hello"), {}));
    await first.next();
    first.link.close();
    await clock.advance(90_000);
    expect(await promptly(asked)).toMatchObject({
      code: "UNAVAILABLE",
      message: "The connection to the agent was lost, and it did not come back within 90 s.",
    });
    const second = connect().introduce();
    const again = failureOf(calls.dispatch(send("Hello"), {}));
    await second.next();
    await settle();
    connect().introduce();
    await clock.advance(90_000);
    expect((await promptly(again)).message).toBe("The agent came back and sent no more of the task.");
  });

  it("is sent again unchanged what it may not have received", async () => {
    const { calls, connect } = setUp();
    const [near, far] = createLinkPair();
    // An end that cannot tell whether the other has read anything.
    void calls.attach({ ...near, messages: near.messages, received: async () => false });
    const first = new CalledAgent(far).introduce();
    void calls.dispatch(send("Hello"), {});
    const heard = await first.next();
    const second = connect().introduce();
    expect(await second.next()).toEqual(heard);
  });

  it("has one link: a new one replaces the old", async () => {
    const { calls, connect } = setUp();
    const first = connect().introduce();
    await settle();
    const second = connect();
    expect((await first.closed).code).toBe(1000);
    expect(calls.connected).toBe(false);
    second.introduce();
    await settle();
    expect(calls.connected).toBe(true);
    void calls.dispatch(send("Hello"), {});
    await second.next();
    second.link.close(1001, "bye");
    await settle();
    expect(calls.connected).toBe(false);
  });
});
