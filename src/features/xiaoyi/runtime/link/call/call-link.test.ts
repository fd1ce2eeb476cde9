import { describe, expect, it } from "vitest";
import { linkToolsOf } from "../../../../../core/dialects/suite/join.ts";
import { promptly, settle } from "../../../../../core/engine/testing/fake-clock.ts";
import { textOf } from "../../../../../core/model/message.ts";
import { createLinkPair } from "../../../../../core/wire/testing/link-pair.ts";
import { AGENT, CalledAgent, eventsOf, failureOf, message, send, setUp } from "../testing/called-agent.ts";
import { linkCalling } from "./call-link.ts";

describe("a message", () => {
  it("is encoded as the platform encodes it", async () => {
    const { calls, connect } = setUp();
    const agent = connect().introduce();
    const operation = message("Hello");
    void calls.dispatch(operation, {});
    expect(await agent.next()).toEqual({
      jsonrpc: "2.0",
      id: "t1",
      method: "message/stream",
      agentId: AGENT,
      deviceId: "dragoman",
      conversationId: "s",
      sessionId: "s",
      params: {
        id: "t1",
        sessionId: "s",
        agentLoginSessionId: "",
        message: { kind: "message", messageId: "m-Hello", role: "user", parts: [{ kind: "text", text: "Hello" }] },
      },
    });
  });

  it("is a task of its conversation, which its id contains", async () => {
    const { calls, connect } = setUp();
    const agent = connect().introduce();
    const { taskId: _, ...words } = message("Hello").message;
    void calls.dispatch({ kind: "stream", message: words, chosenId: "chosen" }, {});
    expect(await agent.next()).toMatchObject({ id: "s&chosen", params: { id: "s&chosen", sessionId: "s" } });
    void calls.dispatch({ kind: "stream", message: { ...words, contextId: "other" } }, {});
    expect((await agent.next()).id).toBe("other&m-Hello");
    void calls.dispatch({ kind: "cancel", id: "gone&1" }, {}).catch(() => {});
    expect(await agent.next()).toMatchObject({ sessionId: "gone", taskId: "gone&1" });
  });

  it("is answered by events of its task, the task itself first", async () => {
    const { calls, connect } = setUp();
    const agent = connect().introduce();
    const frames = await calls.dispatch(message("Hello"), {});
    agent.status("t1", "working");
    agent.text("t1", "Hel");
    agent.text("t1", "Hello!");
    agent.status("t1", "completed", true);
    const place = { taskId: "t1", contextId: "s" };
    const answer = (text: string) => ({ artifactId: "a-Hel", parts: [{ text }] });
    expect(await promptly(eventsOf(frames))).toEqual([
      { task: { id: "t1", contextId: "s", status: { state: "TASK_STATE_SUBMITTED" } } },
      { statusUpdate: { ...place, status: { state: "TASK_STATE_WORKING" } } },
      { artifactUpdate: { ...place, artifact: answer("Hel") } },
      { artifactUpdate: { ...place, artifact: answer("lo!"), append: true } },
      { statusUpdate: { ...place, status: { state: "TASK_STATE_COMPLETED" } } },
    ]);
  });

  it("is answered as a whole to those who want no stream", async () => {
    const { calls, connect } = setUp();
    const agent = connect().introduce();
    const asked = calls.dispatch(send("Hello"), {});
    await agent.next();
    agent.text("t1", "Hi", true);
    expect(await promptly(asked)).toEqual({
      task: {
        id: "t1",
        contextId: "s",
        status: { state: "TASK_STATE_COMPLETED" },
        artifacts: [{ artifactId: "a-Hi", parts: [{ text: "Hi" }] }],
      },
    });
  });

  it("waits for the one before it in its conversation, and for no other", async () => {
    const { calls, connect } = setUp();
    const agent = connect().introduce();
    const asked = ["t1", "t2", "t3"].map((task) => calls.dispatch(send(task, { task }), {}));
    const elsewhere = calls.dispatch(send("x", { task: "x", context: "other" }), {});
    expect((await agent.next()).id).toBe("t1");
    expect((await agent.next()).id).toBe("x");
    agent.text("x", "x", true);
    await promptly(elsewhere);
    for (const [at, task] of ["t1", "t2", "t3"].entries()) {
      if (at > 0) expect((await agent.next()).id).toBe(task);
      agent.text(task, task, true);
      await promptly(asked[at] as Promise<unknown>);
    }
    await agent.receivesNothing();
  });

  it("does not wait for one whose asker gave up", async () => {
    const { calls, connect } = setUp();
    const agent = connect().introduce();
    const abort = new AbortController();
    const asked = ["t1", "t2", "t3"].map((task) =>
      calls.dispatch(send(task, { task }), task === "t3" ? {} : { signal: abort.signal }),
    );
    expect((await agent.next()).id).toBe("t1");
    const failures = Promise.all(asked.slice(0, 2).map(failureOf));
    abort.abort();
    expect((await promptly(failures)).map(({ code }) => code)).toEqual(["UNAVAILABLE", "UNAVAILABLE"]);
    expect((await agent.next()).id).toBe("t3");
  });

  it("is sent once under one id at a time", async () => {
    const { calls, connect } = setUp();
    connect().introduce();
    await calls.dispatch(message("Hello"), {});
    expect((await failureOf(calls.dispatch(message("Again"), {}))).code).toBe("UNSUPPORTED_OPERATION");
  });

  it("loses what Xiaoyi cannot express, and reports it", async () => {
    const lost: string[] = [];
    const [near, far] = createLinkPair();
    const caller = linkCalling.open({
      ...linkToolsOf(),
      report: (losses) => lost.push(...losses.map((one) => one.path)),
    });
    void caller.attach(near);
    new CalledAgent(far).introduce();
    const { message: plain } = message("Hello");
    await caller.dispatch(
      { kind: "stream", message: { ...plain, metadata: { a: 1 } }, configuration: { historyLength: 1 } },
      {},
    );
    expect(lost.splice(0)).toEqual(["configuration", "message"]);
    void caller.dispatch({ kind: "cancel", id: "t", metadata: { a: 1 } }, {}).catch(() => {});
    expect(lost).toEqual(["metadata"]);
  });
});

describe("an answer", () => {
  it("is found by any of its ids, and what belongs to no task is dropped and counted", async () => {
    const { calls, connect, dropped, warnings } = setUp();
    const agent = connect().introduce();
    const frames = await calls.dispatch(message("Hello"), {});
    const part = (text: string) => ({ artifact: { artifactId: text, parts: [{ kind: "text", text }] }, append: true });
    agent.respond({ taskId: "t1" }, { id: "x", result: part("a") });
    agent.respond({}, { id: "t1", result: part("b"), error: { code: "0", message: "" }, hostname: "h" });
    agent.respond({ taskId: "other", sessionId: "s" }, { id: "y", result: { taskId: "other", ...part("c") } });
    agent.respond({ taskId: "other", sessionId: "s" }, { id: "y", result: { taskId: "other", ...part("d") } });
    agent.status("t1", "completed", true);
    agent.text("t1", "too late");
    const text = (await promptly(eventsOf(frames))).flatMap((event) =>
      "artifactUpdate" in event ? event.artifactUpdate.artifact.parts : [],
    );
    expect(text).toEqual([{ text: "a" }, { text: "b" }]);
    await settle();
    expect(dropped()).toBe(3);
    expect(warnings).toEqual(["not-asked"]);
  });

  it("that is an error is one", async () => {
    const { calls, connect } = setUp();
    const agent = connect().introduce();
    const asked = failureOf(calls.dispatch(send("Hello"), {}));
    await agent.next();
    agent.respond({ taskId: "t1" }, { id: "t1", error: { code: "99911113", message: "Slow down" } });
    expect(await promptly(asked)).toMatchObject({ code: "RESOURCE_EXHAUSTED", message: "Slow down" });
  });

  it("that cannot be read ends the call, and only that one", async () => {
    const { calls, connect } = setUp();
    const agent = connect().introduce();
    const asked = failureOf(calls.dispatch(send("Hello"), {}));
    const other = calls.dispatch(send("Hi", { task: "t2", context: "other" }), {});
    agent.respond({ taskId: "t1" }, { id: "t1", result: { taskId: "t1", kind: "status-update" } });
    expect((await promptly(asked)).code).toBe("INVALID_AGENT_RESPONSE");
    agent.text("t2", "fine", true);
    expect(await promptly(other)).toMatchObject({ task: { status: { state: "TASK_STATE_COMPLETED" } } });
  });

  it("ends a while after its last state if the agent sends no final frame", async () => {
    const { calls, clock, connect } = setUp();
    const agent = connect().introduce();
    const asked = calls.dispatch(send("Hello"), {});
    await agent.next();
    agent.status("t1", "failed");
    await clock.advance(4_999);
    agent.text("t1", "Sorry.");
    await clock.advance(4_999);
    let answered = false;
    void asked.then(() => {
      answered = true;
    });
    await settle();
    expect(answered).toBe(false);
    await clock.advance(1);
    expect(await promptly(asked)).toMatchObject({
      task: { status: { state: "TASK_STATE_FAILED" }, artifacts: [{ parts: [{ text: "Sorry." }] }] },
    });
  });

  it("that is thought word by word is shown soon, and a long thought in few messages", async () => {
    const { calls, clock, connect } = setUp();
    const agent = connect().introduce();
    const frames = (await calls.dispatch(message("Hello"), {}))[Symbol.asyncIterator]();
    await frames.next();
    const shown: string[] = [];
    void (async () => {
      for (let step = await frames.next(); step.done !== true; step = await frames.next()) {
        for (const { event } of step.value) {
          if ("statusUpdate" in event) shown.push(textOf(event.statusUpdate.status.message?.parts ?? []));
        }
      }
    })();
    const think = (reasoningText: string) =>
      agent.say("t1", {
        append: true,
        artifact: { artifactId: "r", parts: [{ kind: "reasoningText", reasoningText }] },
      });
    think("I");
    await settle();
    expect(shown.splice(0)).toEqual(["I"]);
    think(" look");
    await clock.advance(200);
    think(" it");
    await clock.advance(49);
    expect(shown).toEqual([]);
    await clock.advance(1);
    expect(shown.splice(0)).toEqual([" look it"]);
    await clock.advance(1_000);
    think(" up");
    await clock.advance(300);
    expect(shown.splice(0)).toEqual([" up"]);
    for (let second = 0; second < 60; second++) {
      think(".");
      await clock.advance(1_000);
    }
    expect(shown.splice(0).length).toBeLessThan(15);
    await clock.advance(10_000);
    shown.length = 0;
    think(", nearly.");
    agent.status("t1", "completed", true);
    await settle();
    expect(shown).toEqual([", nearly.", ""]);
  });

  it("is a question, and the message that answers it goes out under the same ids", async () => {
    const { calls, connect } = setUp();
    const agent = connect().introduce();
    const asked = calls.dispatch(send("Book it"), {});
    const first = await agent.next();
    agent.say("t1", {
      kind: "status-update",
      final: false,
      status: { state: "input-required", message: { role: "agent", parts: [{ kind: "text", text: "When?" }] } },
    });
    expect(await promptly(asked)).toMatchObject({
      task: { status: { state: "TASK_STATE_INPUT_REQUIRED", message: { parts: [{ text: "When?" }] } } },
    });
    const { message: answer } = message("Now");
    void calls.dispatch({ kind: "stream", message: answer }, {});
    const second = await agent.next();
    expect([second.id, second.params.id]).toEqual([first.id, first.params.id]);
    expect(second.params.message.parts).toEqual([{ kind: "text", text: "Now" }]);
  });

  it("that is not read is given up at a bound, and the link continues", async () => {
    const { calls, connect, dropped } = setUp();
    const agent = connect().introduce();
    const frames = await calls.dispatch(message("Hello"), {});
    const long = "x".repeat(3_000_000);
    for (let at = 0; at < 6; at++)
      agent.say("t1", { append: true, artifact: { artifactId: "a", parts: [{ kind: "text", text: long }] } });
    await settle();
    expect(dropped()).toBe(0);
    expect((await failureOf(eventsOf(frames))).code).toBe("RESOURCE_EXHAUSTED");
    const other = calls.dispatch(send("Hi", { task: "t2" }), {});
    agent.text("t2", "fine", true);
    await promptly(other);
  });
});

describe("requests to cancel and to clear", () => {
  it("name the task wherever an agent may look, and are answered in any way agents do", async () => {
    const { calls, connect } = setUp();
    const agent = connect().introduce();
    for (const [envelope, detail] of [
      [{ taskId: "t1" }, { id: "t1", result: { id: "t1", status: { state: "canceled" } }, error: { code: 0 } }],
      [
        { taskId: "gen", sessionId: "s" },
        { id: "gen", result: { id: "t1", status: { state: "canceled" } } },
      ],
      [
        { taskId: "t1", sessionId: "s" },
        { id: "gen", result: { id: "gen", status: { state: "canceled" } } },
      ],
    ] as const) {
      const frames = await calls.dispatch(message("Hello"), {});
      await agent.next();
      const cancelled = calls.dispatch({ kind: "cancel", id: "t1" }, {});
      expect(await agent.next()).toMatchObject({
        id: "t1",
        method: "tasks/cancel",
        agentId: AGENT,
        sessionId: "s",
        taskId: "t1",
        params: { id: "t1", sessionId: "s" },
      });
      agent.status("t1", "working");
      agent.respond(envelope, detail);
      expect(await promptly(cancelled)).toMatchObject({ id: "t1", status: { state: "TASK_STATE_CANCELED" } });
      agent.status("t1", "canceled", true);
      const last = (await promptly(eventsOf(frames))).at(-1);
      expect(last).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_CANCELED" } } });
    }
  });

  it.each([
    ["unknown", "TASK_NOT_FOUND"],
    ["failed", "TASK_NOT_CANCELABLE"],
  ])("state %s is %s", async (state, code) => {
    const { calls, connect } = setUp();
    const agent = connect().introduce();
    await settle();
    const cancelled = failureOf(calls.dispatch({ kind: "cancel", id: "t1" }, {}));
    await agent.next();
    agent.respond({ taskId: "t1" }, { id: "t1", result: { id: "t1", status: { state } } });
    expect((await promptly(cancelled)).code).toBe(code);
  });

  it("can be refused, given up, and lost with the link", async () => {
    const { calls, connect } = setUp();
    expect((await failureOf(calls.dispatch({ kind: "cancel", id: "t1" }, {}))).code).toBe("UNAVAILABLE");
    const agent = connect().introduce();
    await settle();
    const refused = failureOf(calls.dispatch({ kind: "cancel", id: "t1" }, {}));
    agent.respond({ taskId: "t1" }, { id: "t1", error: { code: -32601, message: "What?" } });
    expect((await promptly(refused)).code).toBe("METHOD_NOT_FOUND");
    const abort = new AbortController();
    const givenUp = failureOf(calls.dispatch({ kind: "cancel", id: "t1" }, { signal: abort.signal }));
    abort.abort();
    expect((await promptly(givenUp)).code).toBe("UNAVAILABLE");
    const lost = failureOf(calls.dispatch({ kind: "cancel", id: "t1" }, {}));
    agent.link.close();
    expect((await promptly(lost)).code).toBe("UNAVAILABLE");
  });
});

describe("an introduction", () => {
  it.each([
    ["a heartbeat", { msgType: "heartbeat", agentId: AGENT }],
    ["a response", { msgType: "agent_response", agentId: AGENT, msgDetail: "{}" }],
    ["another agent", { msgType: "clawd_bot_init", agentId: "agent-2" }],
    ["nobody", { msgType: "clawd_bot_init" }],
    ["nonsense", []],
  ])("cannot be %s", async (_what, frame) => {
    const { connect } = setUp();
    const agent = connect();
    void agent.link.send(JSON.stringify(frame));
    expect((await promptly(agent.closed)).code).toBe(1008);
  });

  it("must come in time; more may come in it, and heartbeats after it", async () => {
    const { calls, clock, connect, dropped } = setUp();
    const slow = connect();
    await clock.advance(10_000);
    expect((await promptly(slow.closed)).code).toBe(1008);
    const agent = connect();
    const msgDetail = JSON.stringify({ agentId: AGENT, hostname: "h" });
    void agent.link.send(JSON.stringify({ msgType: "clawd_bot_init", agentId: AGENT, msgDetail }));
    void agent.link.send(JSON.stringify({ msgType: "heartbeat", agentId: AGENT, timestamp: 1 }));
    await clock.advance(10_000);
    expect(calls.connected).toBe(true);
    expect(dropped()).toBe(0);
  });

  it("is who an agent is, where anyone may come", async () => {
    const [near, far] = createLinkPair();
    const caller = linkCalling.open(linkToolsOf());
    void caller.attach(near);
    const agent = new CalledAgent(far).introduce("whoever");
    const asked = failureOf(caller.dispatch(send("Hello"), {}));
    expect((await agent.next()).agentId).toBe("whoever");
    agent.link.close();
    expect((await promptly(asked)).code).toBe("UNAVAILABLE");
    expect((await promptly(failureOf(caller.dispatch(send("Hello"), {})))).code).toBe("UNAVAILABLE");
  });
});

describe("hostile frames", () => {
  it("are dropped, counted, logged once for each reason, and end nothing", async () => {
    const { calls, connect, dropped, warnings } = setUp();
    const agent = connect().introduce();
    const asked = calls.dispatch(send("Hello"), {});
    await agent.next();
    const frames = [
      "",
      "{",
      "null",
      "[]",
      "{}",
      "[".repeat(100_000),
      JSON.stringify({ msgType: "dance" }),
      JSON.stringify({ msgType: "agent_response", agentId: "agent-2", taskId: "t1", msgDetail: "{}" }),
      JSON.stringify({ msgType: "agent_response", agentId: AGENT, taskId: "t1", msgDetail: {} }),
      JSON.stringify({ msgType: "agent_response", agentId: AGENT, taskId: "t1", msgDetail: "nonsense" }),
      JSON.stringify({ msgType: "agent_response", agentId: AGENT, taskId: "t1", msgDetail: "{}" }),
      JSON.stringify({ jsonrpc: "2.0", id: "t1", result: { taskId: "t1", status: { state: "completed" } } }),
    ];
    for (const frame of frames) await agent.link.send(frame);
    agent.text("t1", "fine", true);
    expect(await promptly(asked)).toMatchObject({ task: { status: { state: "TASK_STATE_COMPLETED" } } });
    expect(dropped()).toBe(frames.length);
    expect(warnings).toEqual(["not-json", "no-type", "other-agent", "no-response"]);
  });

  it("operations without a word are refused", async () => {
    const { calls } = setUp();
    expect((await failureOf(calls.dispatch({ kind: "get", id: "t1" }, {}))).code).toBe("UNSUPPORTED_OPERATION");
  });
});
