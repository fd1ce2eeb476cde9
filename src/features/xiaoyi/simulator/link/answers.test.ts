import { describe, expect, test } from "vitest";
import { type Fields, fieldsOf } from "../../../../core/model/json.ts";
import type { Simulator } from "../simulator.ts";
import { artifact, messageText, type RawAgent, status } from "../testing/raw-agent.ts";
import { createStage, rulesOf, waitForViolations } from "../testing/stage.ts";

const stage = createStage();

async function asked(text = "hello"): Promise<{ simulator: Simulator; agent: RawAgent; request: Fields }> {
  const simulator = await stage.simulate();
  const agent = await stage.join(simulator);
  simulator.phone.say(text);
  return { simulator, agent, request: await agent.next() };
}

/** A task must exist for the most part; what is wrong is all that differs. */
const detail = (request: Fields, response: Fields) => JSON.stringify({ jsonrpc: "2.0", id: request.id, ...response });

const longStatus = (text: string): Fields => ({
  status: { state: "working", message: { role: "agent", parts: [{ kind: "text", text }] } },
});

describe("a correct agent", () => {
  test("is shown, and breaks no rule", async () => {
    const { agent, request, simulator } = await asked("你好");
    const task = simulator.phone.current;
    expect(messageText(request)).toBe("你好");
    agent.respond(request, status("working"));
    agent.respond(request, artifact("a", "你"));
    agent.respond(request, artifact("b", "你好"));
    agent.respond(request, status("completed", { final: true }));
    await task?.waitUntilSettled();
    expect(task).toMatchObject({ ending: "final", state: "completed", shown: 4, ignored: 0, finals: 1 });
    expect(task?.screen()).toMatchObject({ text: "你好", painted: true, state: "completed" });
    expect(simulator.violations).toEqual([]);
  });

  test("may end with the artifact instead", async () => {
    const { agent, request, simulator } = await asked();
    agent.respond(request, status("completed"));
    agent.respond(request, artifact("a", "done", { final: true }));
    await simulator.phone.current?.waitUntilSettled();
    expect(simulator.phone.current).toMatchObject({ ending: "final", state: "completed", shown: 2 });
    expect(simulator.violations).toEqual([]);
  });

  test("may leave out and add what is tolerated", async () => {
    const { agent, request, simulator } = await asked();
    const { taskId: _named, ...result } = { taskId: "", ...artifact("a", "done", { final: true }) };
    const response = { id: "msg_1_1", result, error: { code: "0", message: "" }, hostname: "here" };
    agent.envelope(request, { sessionId: request.sessionId, msgDetail: detail(request, response) });
    await simulator.phone.current?.waitUntilSettled();
    expect(simulator.phone.current?.screen().text).toBe("done");
    expect(simulator.violations).toEqual([]);
  });

  test.each([
    [
      "an error beside its last result",
      { result: artifact("a", "no", { final: true }), error: { code: 99921111, message: "任务执行异常，请重试" } },
    ],
    ["an error alone", { error: { code: "ERROR_CODE", message: "任务执行异常，请重试" } }],
  ])("may fail with %s", async (_what, response) => {
    const { agent, request, simulator } = await asked();
    agent.envelope(request, { msgDetail: detail(request, response) });
    await simulator.phone.current?.waitUntilSettled();
    expect(simulator.phone.current?.screen()).toMatchObject({ state: "failed", failure: "任务执行异常，请重试" });
    expect(simulator.violations).toEqual([]);
  });
});

describe("an agent that is wrong", () => {
  const done = artifact("a", "done", { final: true });
  const wrong: readonly [string, string, (agent: RawAgent, request: Fields) => void][] = [
    ["sends no JSON", "not-a-frame", (agent) => agent.send("hello")],
    ["sends a list", "not-a-frame", (agent) => agent.send("[]")],
    ["sends binary", "not-a-frame", (agent) => agent.socket.send(Buffer.from("{}"))],
    [
      "sends bare JSON-RPC",
      "bare-json-rpc",
      (agent, request) => agent.send({ jsonrpc: "2.0", id: request.id ?? "", result: done }),
    ],
    ["invents a msgType", "unknown-msg-type", (agent) => agent.send({ msgType: "reply", agentId: agent.agentId })],
    [
      "names another agent",
      "wrong-agent-id",
      (agent, request) => agent.envelope(request, { agentId: "x", msgDetail: detail(request, { result: done }) }),
    ],
    [
      "does not encode msgDetail twice",
      "detail-not-a-string",
      (agent, request) => agent.envelope(request, { msgDetail: { result: done } }),
    ],
    ["leaves msgDetail out", "detail-not-a-string", (agent, request) => agent.envelope(request, {})],
    ["puts no JSON into msgDetail", "bad-response", (agent, request) => agent.envelope(request, { msgDetail: "done" })],
    [
      "leaves jsonrpc out",
      "bad-response",
      (agent, request) => agent.envelope(request, { msgDetail: JSON.stringify({ id: 1, result: done }) }),
    ],
    [
      "leaves the id out",
      "bad-response",
      (agent, request) => agent.envelope(request, { msgDetail: JSON.stringify({ jsonrpc: "2.0", result: done }) }),
    ],
    [
      "sends neither result nor error",
      "bad-response",
      (agent, request) => agent.envelope(request, { msgDetail: detail(request, { error: { code: 0 } }) }),
    ],
    [
      "sends an error without a code",
      "bad-response",
      (agent, request) => agent.envelope(request, { msgDetail: detail(request, { error: { message: "no" } }) }),
    ],
    [
      "leaves the session out",
      "bad-response",
      (agent, request) =>
        agent.envelope(request, { sessionId: undefined, msgDetail: detail(request, { result: done }) }),
    ],
    [
      "names an unknown task",
      "unknown-task",
      (agent, request) => agent.envelope(request, { taskId: "x", msgDetail: detail(request, { result: done }) }),
    ],
    [
      "names an unknown session",
      "unknown-session",
      (agent, request) => agent.envelope(request, { sessionId: "x", msgDetail: detail(request, { result: done }) }),
    ],
    ["names two tasks", "task-id-mismatch", (agent, request) => agent.respond(request, { ...done, taskId: "x" })],
    [
      "invents a kind of result",
      "bad-response",
      (agent, request) => agent.respond(request, { kind: "message", final: true }),
    ],
    ["invents a state", "bad-response", (agent, request) => agent.respond(request, status("TASK_STATE_WORKING"))],
    ["leaves final out", "bad-response", (agent, request) => agent.respond(request, { ...done, final: undefined })],
    [
      "puts append into the artifact",
      "bad-response",
      (agent, request) =>
        agent.respond(request, {
          ...done,
          append: undefined,
          artifact: { artifactId: "a", append: false, parts: [{ kind: "text", text: "" }] },
        }),
    ],
    [
      "leaves artifactId out",
      "bad-response",
      (agent, request) => agent.respond(request, { ...done, artifact: { parts: [{ kind: "text", text: "x" }] } }),
    ],
    [
      "sends no parts",
      "bad-response",
      (agent, request) => agent.respond(request, { ...done, artifact: { artifactId: "a", parts: [] } }),
    ],
    [
      "spells parts by another version",
      "bad-response",
      (agent, request) => agent.respond(request, { ...done, artifact: { artifactId: "a", parts: [{ text: "x" }] } }),
    ],
    [
      "puts reasoning into text",
      "bad-response",
      (agent, request) =>
        agent.respond(request, {
          ...done,
          artifact: { artifactId: "a", parts: [{ kind: "reasoningText", text: "x" }] },
        }),
    ],
    [
      "sends a file that is nowhere",
      "bad-response",
      (agent, request) =>
        agent.respond(request, {
          ...done,
          artifact: { artifactId: "a", parts: [{ kind: "file", file: { name: "x", mimeType: "text/plain" } }] },
        }),
    ],
    [
      "speaks as the user",
      "bad-response",
      (agent, request) =>
        agent.respond(
          request,
          status("working", { status: { state: "working", message: { role: "user", parts: [] } } }),
        ),
    ],
    [
      "names a file nobody uploaded",
      "unknown-file",
      (agent, request) =>
        agent.respond(request, {
          ...done,
          artifact: { artifactId: "a", parts: [{ kind: "file", file: { name: "x", mimeType: "y", fileId: "z" } }] },
        }),
    ],
    [
      "says too much at once",
      "text-too-long",
      (agent, request) => agent.respond(request, artifact("a", "x".repeat(4001))),
    ],
    [
      "says too much in several parts",
      "text-too-long",
      (agent, request) => {
        const text = "x".repeat(2500);
        const parts = [
          { kind: "text", text },
          { kind: "reasoningText", reasoningText: text },
        ];
        agent.respond(request, artifact("a", "", { artifact: { artifactId: "a", parts } }));
      },
    ],
    [
      "says too much in a status",
      "text-too-long",
      (agent, request) => agent.respond(request, status("working", longStatus("x".repeat(4001)))),
    ],
    [
      "wipes its answer away",
      "blanking-final",
      (agent, request) => agent.respond(request, artifact("a", "", { final: true })),
    ],
    [
      "ends while it asks",
      "final-while-asking",
      (agent, request) => agent.respond(request, status("input-required", { final: true })),
    ],
    [
      "answers a request nobody made",
      "answer-to-nothing",
      (agent, request) => agent.control(request, { status: { state: "cleared" } }),
    ],
    [
      "sends a card without a name",
      "bad-data-part",
      (agent, request) =>
        agent.respond(request, {
          ...done,
          artifact: { artifactId: "a", parts: [{ kind: "data", data: { cardsInfo: [{ cardData: {} }] } }] },
        }),
    ],
    [
      "ends twice",
      "two-finals",
      (agent, request) => {
        agent.respond(request, done);
        agent.respond(request, status("completed", { final: true }));
      },
    ],
    [
      "goes on after the end",
      "content-after-final",
      (agent, request) => {
        agent.respond(request, done);
        agent.respond(request, status("working"));
      },
    ],
    [
      "fails after the end",
      "content-after-final",
      (agent, request) => {
        agent.respond(request, done);
        agent.envelope(request, { msgDetail: detail(request, { error: { code: 1 } }) });
      },
    ],
  ];

  test.each(wrong)("%s: %s", async (_what, rule, act) => {
    const { agent, request, simulator } = await asked();
    act(agent, request);
    await waitForViolations(simulator, 1);
    agent.socket.ping();
    await agent.until(() => agent.pongs === 1);
    expect(rulesOf(simulator)).toEqual([rule]);
    expect(agent.closure).toBeUndefined();
  });

  test("is cut off for a long text, where the platform does that", async () => {
    const simulator = await stage.simulate({ cutAbove: 4000 });
    const agent = await stage.join(simulator);
    const task = simulator.phone.say("hello");
    const request = await agent.next();
    agent.respond(request, artifact("a", "😀".repeat(4000)));
    await task.waitUntil(({ shown }) => shown === 1);
    agent.respond(request, status("working", longStatus("x".repeat(4001))));
    expect(await agent.closed()).toMatchObject({ code: 1006 });
    expect(task.shown).toBe(1);
  });
});

describe("cancelling", () => {
  test("ends the task; what comes later is not shown, and one last word is no fault", async () => {
    const { agent, request, simulator } = await asked();
    const task = simulator.phone.current;
    const answer = simulator.phone.cancel();
    const cancel = await agent.next();
    expect(cancel).toEqual({
      jsonrpc: "2.0",
      id: cancel.id,
      method: "tasks/cancel",
      agentId: agent.agentId,
      sessionId: request.sessionId,
    });
    agent.control(cancel, { id: cancel.id, status: { state: "canceled" } });
    expect(await answer).toBe("canceled");
    agent.respond(request, artifact("a", "late"));
    agent.respond(request, status("canceled", { final: true }));
    await task?.waitUntil(({ ignored }) => ignored === 2);
    expect(task).toMatchObject({ ending: "canceled", state: "canceled" });
    expect(task?.screen().text).toBe("");
    expect(simulator.violations).toEqual([]);
  });

  test.each(["failed", "unknown"])("may be answered with %s, and the task goes on", async (state) => {
    const { agent, simulator } = await asked();
    const answer = simulator.phone.cancel();
    const cancel = await agent.next();
    agent.control(cancel, { id: simulator.phone.current?.id, status: { state } });
    expect(await answer).toBe(state);
    expect(simulator.phone.current?.isOpen).toBe(true);
  });

  test.each([
    ["a state of another question", { id: "", status: { state: "cleared" } }],
    ["no id", { status: { state: "canceled" } }],
    ["somebody's id", { id: "x", status: { state: "canceled" } }],
  ])("is not answered with %s", async (_what, result) => {
    const { agent, simulator } = await asked();
    const answer = simulator.phone.cancel();
    agent.control(await agent.next(), result);
    expect(await answer).toBe("error");
    expect(rulesOf(simulator)).toEqual(["wrong-control-answer"]);
  });

  test("may be refused with an error, or not answered at all", async () => {
    const { agent, request, simulator } = await asked();
    const refused = simulator.phone.cancel();
    const cancel = await agent.next();
    const error = { jsonrpc: "2.0", id: cancel.id, error: { code: -32002, message: "no" } };
    agent.envelope(request, { msgDetail: JSON.stringify(error) });
    expect(await refused).toBe("error");
    expect(simulator.phone.current?.isOpen).toBe(true);
    const unanswered = simulator.phone.cancel();
    await stage.clock.advance(10_000);
    expect(await unanswered).toBe("no-answer");
    expect(simulator.violations).toEqual([]);
  });
});

describe("clearing", () => {
  test("begins another conversation, in the same session of the app", async () => {
    const { agent, request, simulator } = await asked();
    const { conversationId } = simulator.phone;
    const answer = simulator.phone.clear();
    const clear = await agent.next();
    expect(clear).toEqual({
      jsonrpc: "2.0",
      id: clear.id,
      method: "clearContext",
      agentId: agent.agentId,
      sessionId: request.sessionId,
    });
    agent.send({
      msgType: "agent_response",
      agentId: agent.agentId,
      sessionId: conversationId,
      taskId: conversationId,
      msgDetail: JSON.stringify({ jsonrpc: "2.0", id: "any", result: { status: { state: "cleared" } } }),
    });
    expect(await answer).toBe("cleared");
    simulator.phone.say("again");
    const next = await agent.next();
    expect(next.sessionId).toBe(request.sessionId);
    expect(fieldsOf(next.params).sessionId).not.toBe(conversationId);
    expect(fieldsOf(next.params).id).toBe(`${simulator.phone.conversationId}&1`);
    expect(simulator.violations).toEqual([]);
  });
});
