import { describe, expect, it } from "vitest";
import {
  agentOf,
  chunk,
  createGate,
  echo,
  inputText,
  status,
  textDraft,
} from "../../../../core/engine/testing/agents.ts";
import { settle } from "../../../../core/engine/testing/fake-clock.ts";
import type { Message } from "../../../../core/model/message.ts";
import { DEFAULT_LINK_TIMES } from "./options.ts";
import { AGENT_ID, message, Stage } from "./testing/stage.ts";

/** Works until it is cancelled. */
const busy = () =>
  agentOf(async function* ({ signal }) {
    yield status("TASK_STATE_WORKING");
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  });

/** Asks once, then says what it heard. */
const asking = () =>
  agentOf(async function* (turn) {
    if (turn.history.length < 2) {
      yield chunk("draft", "A draft.", false);
      yield status("TASK_STATE_INPUT_REQUIRED", "Go on?");
      return;
    }
    yield chunk("answer", `You said ${inputText(turn)}.`, false);
  });

describe("an answer", () => {
  it("begins at once, is sent as the phone shows it, and ends with one final", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    await platform.say(message("hello", { taskId: "t", id: "r" }));
    expect(platform.story("t")).toEqual(["working", "=()", "=hello", "completed final"]);
    expect(platform.answers.map(({ detail, sessionId }) => [detail.id, sessionId, detail.error.code])).toEqual(
      Array.from({ length: 4 }, () => ["r", "session-1", 0]),
    );
  });

  it("that streams is sent ten times a second, always in full", async () => {
    const stage = await Stage.open({
      agent: agentOf(async function* () {
        for (let piece = 0; piece < 50; piece++) {
          yield chunk("out", `${piece} `, piece > 0);
          await new Promise<void>((resolve) => void stage.clock.after(10, resolve));
        }
      }),
    });
    const platform = stage.connect();
    await platform.say(message("go", { taskId: "t" }));
    await stage.clock.advance(1_000);
    const texts = platform.story("t").slice(2, -1);
    expect(texts.length).toBeGreaterThanOrEqual(5);
    expect(texts.length).toBeLessThanOrEqual(7);
    for (const [index, text] of texts.entries()) expect(texts[index + 1]?.startsWith(text) ?? true).toBe(true);
    expect(texts.at(-1)).toBe(`=${Array.from({ length: 50 }, (_, piece) => `${piece} `).join("")}`);
  });

  it("is in pieces of 4,000 characters, and waits 300 ms after the last before it ends", async () => {
    const text = "长".repeat(9_000);
    const stage = await Stage.open({ agent: echo(), times: DEFAULT_LINK_TIMES });
    const platform = stage.connect();
    await platform.say(message(text, { taskId: "t" }));
    const pieces = platform.story("t").slice(2);
    expect(pieces.map((piece) => piece.length)).toEqual([4_001, 4_001, 1_001]);
    await stage.clock.advance(299);
    expect(platform.story("t")).toHaveLength(5);
    await stage.clock.advance(1);
    expect(platform.story("t").at(-1)).toBe("completed final");
  });

  it("that takes long has a keep-alive frame every 20 s, without text", async () => {
    const stage = await Stage.open({ agent: busy() });
    const platform = stage.connect();
    await platform.say(message("hi", { taskId: "t" }));
    await stage.clock.advance(59_000);
    expect(platform.story("t")).toEqual(["working", "=()", "working", "working"]);
  });

  it("of an agent that fails is a failure", async () => {
    const stage = await Stage.open({
      // biome-ignore lint/correctness/useYield: it fails before it says anything.
      agent: agentOf(async function* () {
        throw new Error("broken");
      }),
    });
    const platform = stage.connect();
    await platform.say(message("hi", { taskId: "t" }));
    expect(platform.story("t").at(-1)).toBe("failed final");
    expect(platform.answers.at(-1)?.detail.error.code).toBe(99_921_111);
  });

  it("of an agent that does not stream comes whole", async () => {
    const agent = echo();
    const stage = await Stage.open({ agent: { ...agent, profile: { ...agent.profile, streaming: false } } });
    const platform = stage.connect();
    await platform.say(message("hello", { taskId: "t" }));
    await stage.clock.advance(50);
    expect(platform.story("t")).toEqual(["working", "=()", "=hello", "completed final"]);
  });

  it("of an agent that only talks comes, too", async () => {
    const stage = await Stage.open({
      // biome-ignore lint/correctness/useYield: an agent that only answers yields nothing.
      agent: agentOf(async function* () {
        return textDraft("Hi.");
      }),
    });
    const platform = stage.connect();
    await platform.say(message("hello", { taskId: "t" }));
    expect(platform.story("t").slice(2)).toEqual(["=Hi.", "completed final"]);
  });

  it("is a task that can be read elsewhere, under the platform's id and the session's context", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    await platform.say(message("hello", { taskId: "session-1&1" }));
    const task = await stage.harness.get("session-1&1", { owner: "alice" });
    expect(task).toMatchObject({ contextId: "session-1", status: { state: "TASK_STATE_COMPLETED" } });
  });

  it("under an id of a task that has ended is a new task", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    await platform.say(message("one", { taskId: "t", id: "1" }));
    await platform.say(message("two", { taskId: "t", id: "2" }));
    expect(platform.story("t").slice(4)).toEqual(["working", "=()", "=two", "completed final"]);
    expect((await stage.harness.list()).tasks).toHaveLength(2);
  });

  it("under an id of another conversation's task is a new task", async () => {
    const stage = await Stage.open({ agent: asking() });
    const platform = stage.connect();
    await platform.say(message("one", { taskId: "t", sessionId: "s1" }));
    await platform.say(message("two", { taskId: "t", sessionId: "s2" }));
    const { tasks } = await stage.harness.list();
    expect(tasks.map(({ contextId }) => contextId).sort()).toEqual(["s1", "s2"]);
    expect(platform.answers.filter(({ sessionId }) => sessionId === "s2").at(-1)?.detail.result).toMatchObject({
      taskId: "t",
      status: { state: "input-required" },
    });
  });

  it("brings files where they can be uploaded, and names where they cannot", async () => {
    const agent = agentOf(async function* () {
      const file = { raw: Buffer.from("content").toString("base64"), filename: "a.txt", mediaType: "text/plain" };
      yield { artifact: { artifactId: "file", parts: [{ text: "Here." }, file] } };
    });
    const uploaded: string[] = [];
    const upload = async ({ bytes, mediaType, name }: { bytes: Uint8Array; mediaType: string; name: string }) => {
      uploaded.push(`${name} ${mediaType} ${Buffer.from(bytes).toString()}`);
      if (uploaded.length > 1) throw new Error("full");
      return "file-1";
    };
    const stage = await Stage.open({ agent, upload });
    const platform = stage.connect();
    await platform.say(message("send it", { taskId: "t" }));
    expect(platform.story("t").slice(2)).toEqual([
      "=Here.",
      '+{"kind":"file","file":{"name":"a.txt","mimeType":"text/plain","fileId":"file-1"}}',
      "completed final",
    ]);
    await platform.say(message("again", { taskId: "u" }));
    expect(platform.story("u").slice(2)).toEqual(["=Here.\na.txt", "completed final"]);
    expect(uploaded).toEqual(["a.txt text/plain content", "a.txt text/plain content"]);
    expect(stage.logged.map(({ message: line }) => line)).toEqual(["A file could not be uploaded to Xiaoyi."]);
  });
});

describe("a question", () => {
  it("is part of the answer on a phone, and any message under the same ids answers it", async () => {
    const stage = await Stage.open({ agent: asking() });
    const platform = stage.connect();
    const yes = message("yes", { taskId: "t", id: "r" });
    await platform.say(yes);
    expect(platform.story("t").slice(2)).toEqual(["=A draft.\n\nGo on?", "input-required: "]);
    await stage.clock.advance(60_000);
    expect(platform.story("t")).toHaveLength(4);
    await platform.say(yes);
    expect(platform.story("t").slice(4)).toEqual([
      "working",
      "=A draft.\n\nGo on?\n\nYou said yes.",
      "completed final",
    ]);
    expect((await stage.harness.list()).tasks).toHaveLength(1);
  });

  it("is a status on a desktop", async () => {
    const stage = await Stage.open({ agent: asking() });
    const platform = stage.connect();
    await platform.say(message("go", { taskId: "t", deviceId: "desktop-0815" }));
    expect(platform.story("t").slice(2)).toEqual(["=A draft.", "input-required: Go on?"]);
  });

  it("may be answered under other ids, and the answer is sent under those", async () => {
    const stage = await Stage.open({ agent: asking() });
    const platform = stage.connect();
    await platform.say(message("go", { taskId: "t", id: "1" }));
    await platform.say(message("yes", { taskId: "u", id: "2" }));
    expect(platform.story("u")).toEqual(["working", "=()", "=You said yes.", "completed final"]);
    expect((await stage.harness.get("t")).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("can be cancelled", async () => {
    const stage = await Stage.open({ agent: asking() });
    const platform = stage.connect();
    await platform.say(message("go", { taskId: "t" }));
    await platform.say({ jsonrpc: "2.0", id: "c", method: "tasks/cancel", agentId: AGENT_ID, sessionId: "app-1" });
    expect(platform.answers.at(-1)?.detail.result).toEqual({ id: "t", status: { state: "canceled" } });
    expect(platform.story("t").filter((line) => line.endsWith("final"))).toEqual(["canceled final"]);
  });
});

describe("messages of one session", () => {
  it("only the newest is answered; the other task continues and can be read", async () => {
    const gate = createGate();
    const stage = await Stage.open({
      agent: agentOf(async function* (turn) {
        if (inputText(turn) === "slow") await gate.pass();
        yield chunk("out", inputText(turn), false);
      }),
    });
    const platform = stage.connect();
    await platform.say(message("slow", { taskId: "t1" }));
    await platform.say(message("quick", { taskId: "t2" }));
    gate.open();
    await settle(20);
    expect(platform.story("t1")).toEqual(["working", "=()"]);
    expect(platform.story("t2")).toEqual(["working", "=()", "=quick", "completed final"]);
    expect((await stage.harness.get("t1")).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it.each([
    ["another id", "2"],
    ["the same id, but other words", "1"],
  ])("one more for a task under way is its next turn, with %s", async (_what, id) => {
    const gate = createGate();
    const turns: string[] = [];
    const stage = await Stage.open({
      agent: agentOf(async function* (turn) {
        turns.push(inputText(turn));
        yield status("TASK_STATE_WORKING");
        if (turns.length > 1) {
          yield chunk("out", turns.join(", "), false);
          return;
        }
        await gate.pass();
        yield status("TASK_STATE_INPUT_REQUIRED");
      }),
    });
    const platform = stage.connect();
    await platform.say(message("one", { taskId: "t", id: "1" }));
    await platform.say(message("two", { taskId: "t", id }));
    gate.open();
    await settle(20);
    await stage.clock.advance(1_000);
    expect(turns).toEqual(["one", "two"]);
    expect(platform.story("t").filter((line) => line.endsWith("final"))).toEqual(["completed final"]);
    expect(platform.story("t").at(-2)).toBe("=one, two");
    expect(platform.answers.at(-1)?.detail.id).toBe(id);
  });

  it("the same frame is taken once: at once, from another server, and soon after", async () => {
    const stage = await Stage.open({ agent: echo() });
    const main = stage.connect("main");
    const backup = stage.connect("backup");
    const frame = JSON.stringify(message("hello", { taskId: "t" }));
    main.send(frame);
    main.send(frame);
    backup.send(frame);
    await settle(20);
    await backup.say(frame);
    await backup.say({ ...JSON.parse(frame), timestamp: 1 });
    expect(main.story("t")).toEqual(["working", "=()", "=hello", "completed final"]);
    expect(backup.answers).toEqual([]);
    expect((await stage.harness.list()).tasks).toHaveLength(1);
    await stage.clock.advance(10_000);
    await main.say(frame);
    expect((await stage.harness.list()).tasks).toHaveLength(2);
  });

  it("are answered on the server they came from", async () => {
    const gate = createGate();
    const stage = await Stage.open({
      agent: agentOf(async function* (turn) {
        await gate.pass();
        yield chunk("out", inputText(turn), false);
      }),
    });
    const main = stage.connect("main");
    const backup = stage.connect("backup");
    await main.say(message("one", { taskId: "t1", sessionId: "s1" }));
    await backup.say(message("two", { taskId: "t2", sessionId: "s2" }));
    gate.open();
    await settle(20);
    expect(main.answers.every(({ taskId }) => taskId === "t1")).toBe(true);
    expect(backup.answers.every(({ taskId }) => taskId === "t2")).toBe(true);
    expect(main.story("t1").at(-1)).toBe("completed final");
    expect(backup.story("t2").at(-1)).toBe("completed final");
  });
});

describe("a request to cancel or clear", () => {
  it("that names an unknown task stops no other", async () => {
    const stage = await Stage.open({ agent: busy() });
    const platform = stage.connect();
    await platform.say(message("go", { taskId: "t", sessionId: "s" }));
    const cancel = { jsonrpc: "2.0", method: "tasks/cancel", agentId: AGENT_ID, sessionId: "s" };
    await platform.say({ ...cancel, id: "c1", taskId: "t&999" });
    expect(platform.answers.at(-1)?.detail.result).toEqual({ id: "t&999", status: { state: "unknown" } });
    await platform.say({ ...cancel, id: "c2" });
    expect(platform.answers.some(({ detail }) => detail.result.status?.state === "canceled")).toBe(true);
    expect(platform.story("t").at(-1)).toBe("canceled final");
  });

  it.each(["clearContext", "tasks/cancel"])("is answered on the server it came from: %s", async (method) => {
    const stage = await Stage.open({ agent: busy() });
    const main = stage.connect("main");
    const backup = stage.connect("backup");
    await backup.say(message("go", { taskId: "t", sessionId: "s", appSessionId: "app" }));
    await backup.close();
    await main.say({ jsonrpc: "2.0", id: "c", method, agentId: AGENT_ID, sessionId: "app" });
    expect(main.answers.map(({ detail, sessionId }) => [sessionId, detail.id])).toEqual([["s", "c"]]);
    const again = stage.connect("backup");
    await stage.clock.advance(1_000);
    expect(again.story("t").at(-1)).toBe("canceled final");
  });
});

describe("what devices did", () => {
  const event = [{ header: { namespace: "Common", name: "UploadExeResult" }, payload: { intentName: "Locate" } }];

  it("is for the task that waits for it", async () => {
    const said: Message[] = [];
    const stage = await Stage.open({
      agent: agentOf(async function* (turn) {
        said.push(turn.message);
        if (said.length === 1) yield status("TASK_STATE_INPUT_REQUIRED", "Where are you?");
        else yield chunk("out", "Found.", false);
      }),
    });
    const platform = stage.connect();
    await platform.say(message("near me", { taskId: "t" }));
    await platform.say(message("", { taskId: "other", parts: [{ kind: "data", data: { events: event } }] }));
    expect(said[1]?.parts).toEqual([{ data: { events: event } }]);
    expect(platform.story("t").at(-1)).toBe("completed final");
    expect(platform.story("other")).toEqual([]);
  });

  it("is dropped if no task waits for it, and logged once", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    for (const taskId of ["a", "b"]) {
      await platform.say(message("", { taskId, parts: [{ kind: "data", data: { events: event } }] }));
    }
    expect(platform.answers).toEqual([]);
    expect(stage.logged).toHaveLength(1);
    expect(stage.logged[0]?.fields).toEqual({ agentId: AGENT_ID, why: "event" });
  });
});

describe("cancelling and clearing", () => {
  const control = (method: string, more: object = {}) => ({
    jsonrpc: "2.0",
    id: "control-1",
    method,
    agentId: AGENT_ID,
    ...more,
  });

  it.each([
    ["by what the app calls its session", control("tasks/cancel", { sessionId: "app-1" })],
    ["by the conversation", control("tasks_cancel", { sessionId: "session-1" })],
    ["by params", control("tasks/cancel", { params: { sessionId: "session-1" } })],
    ["by the task in params", control("tasks/cancel", { sessionId: "app-1", params: { id: "t" } })],
    ["by the task beside the session", control("tasks/cancel", { sessionId: "app-1", taskId: "t" })],
    ["by the task as the id", { ...control("tasks/cancel", { sessionId: "app-1" }), id: "t" }],
    ["in an envelope", wrapped("message", control("tasks/cancel"))],
    ["as an action", { action: "tasks/cancel", agentId: AGENT_ID, sessionId: "app-1", id: "x", timestamp: 1 }],
  ])("finds the task %s", async (_how, frame) => {
    const stage = await Stage.open({ agent: busy() });
    const platform = stage.connect();
    await platform.say(message("hi", { taskId: "t" }));
    await platform.say(frame);
    const answers = platform.answers.filter(({ detail }) => detail.result.kind === undefined);
    expect(answers.map(({ detail }) => detail.result)).toEqual([{ id: "t", status: { state: "canceled" } }]);
    expect(answers[0]).toMatchObject({ sessionId: "session-1", taskId: "t" });
    expect(platform.story("t").filter((line) => line.endsWith("final"))).toEqual(["canceled final"]);
    expect((await stage.harness.get("t")).status.state).toBe("TASK_STATE_CANCELED");
  });

  it("is answered with the state of a task that is not running", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    await platform.say({ ...control("tasks/cancel", { sessionId: "nowhere" }), id: "1" });
    await platform.say(message("hi", { taskId: "t" }));
    await platform.say({ ...control("tasks/cancel", { sessionId: "app-1", taskId: "t" }), id: "2" });
    await platform.say({ ...control("tasks/cancel", {}), id: "3" });
    const results = platform.answers.filter(({ detail }) => detail.result.kind === undefined);
    expect(results.map(({ detail }) => detail)).toMatchObject([
      { id: "1", result: { status: { state: "unknown" } } },
      { id: "2", result: { id: "t", status: { state: "failed" } } },
    ]);
  });

  it("finds a task of before this process began", async () => {
    const stage = await Stage.open({ agent: asking() });
    await stage.connect().say(message("go", { taskId: "t" }));
    stage.harness.crash();
    const next = await Stage.open({ agent: asking(), after: stage });
    const platform = next.connect();
    await platform.say(control("tasks/cancel", { sessionId: "app-1", taskId: "t" }));
    expect(platform.answers.map(({ detail }) => detail.result)).toEqual([{ id: "t", status: { state: "canceled" } }]);
  });

  it.each([
    ["clearContext", control("clearContext", { sessionId: "app-1" })],
    ["clear_context", control("clear_context", { sessionId: "session-1" })],
    ["an envelope", wrapped("clearContext", control("clearContext"))],
    ["an envelope without content", { msgType: "clearContext", agentId: AGENT_ID, sessionId: "app-1", msgDetail: "" }],
    ["an action", { action: "clear", agentId: AGENT_ID, sessionId: "app-1", id: "x", timestamp: 1 }],
  ])("by %s, what follows is in another context", async (_how, frame) => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    await platform.say(message("one", { taskId: "t1" }));
    await platform.say(frame);
    await platform.say(message("two", { taskId: "t2" }));
    const answers = platform.answers.filter(({ detail }) => detail.result.kind === undefined);
    expect(answers.map(({ detail }) => detail.result)).toEqual([{ status: { state: "cleared" } }]);
    expect((await stage.harness.get("t1")).contextId).toBe("session-1");
    expect((await stage.harness.get("t2")).contextId).not.toBe("session-1");
  });

  it("what was cleared stays so in the next process, and is stored before the request is answered", async () => {
    const kept = new Map<string, string>();
    const written = createGate();
    const cleared = {
      entries: async () => [...kept],
      get: async (sessionId: string) => kept.get(sessionId),
      set: async (sessionId: string, contextId: string) => {
        await written.pass();
        kept.set(sessionId, contextId);
      },
    };
    const stage = await Stage.open({ agent: echo(), cleared });
    const platform = stage.connect();
    await platform.say(message("one", { taskId: "t1" }));
    await platform.say(control("clearContext", { sessionId: "app-1" }));
    const isCleared = () => platform.answers.some(({ detail }) => detail.result.status?.state === "cleared");
    expect(isCleared()).toBe(false);
    written.open();
    await settle();
    expect(isCleared()).toBe(true);
    const next = await Stage.open({ agent: echo(), cleared, after: stage });
    await next.connect().say(message("two", { taskId: "t2" }));
    const { contextId } = await next.harness.get("t2");
    expect([...kept]).toEqual([["session-1", contextId]]);
    expect(contextId).not.toBe("session-1");
  });

  it("clearing ends what is under way", async () => {
    const stage = await Stage.open({ agent: busy() });
    const platform = stage.connect();
    await platform.say(message("hi", { taskId: "t" }));
    await platform.say(control("clearContext", { sessionId: "app-1" }));
    expect((await stage.harness.get("t")).status.state).toBe("TASK_STATE_CANCELED");
    expect(platform.story("t").filter((line) => line.endsWith("final"))).toEqual(["canceled final"]);
  });

  it("is done once for a frame that comes twice", async () => {
    const stage = await Stage.open({ agent: echo() });
    const platform = stage.connect();
    const frame = control("clearContext", { sessionId: "s" });
    platform.send(frame);
    platform.send(frame);
    await settle(20);
    expect(platform.answers).toHaveLength(1);
  });
});

function wrapped(msgType: string, request: object): object {
  return { msgType, agentId: AGENT_ID, sessionId: "app-1", taskId: "", msgDetail: JSON.stringify(request) };
}
