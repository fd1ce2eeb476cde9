/** Requests as the platform's documents print them, put to a running server. */

import { once } from "node:events";
import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { signTimestamp } from "../../src/features/xiaoyi/codec/signature.ts";
import { defineAgent } from "../../src/index.ts";
import { listen, startServer } from "../support/lifecycle.ts";
import { untilMetric } from "../support/metrics.ts";
import { openRequest, sendRaw } from "../support/raw-http.ts";
import { MESSAGE_STREAM, sleeper, withoutComments } from "./xiaoyi-http.ts";

const AK = "access-key";
const SK = "2e3b71f5def64d95a727314f028bf5aa";
const API_KEY = "your-api-key";

/** Asks before it answers. */
const asker = defineAgent({
  name: "Asker",
  description: "Asks.",
  async *run(turn) {
    if (turn.text === "start") yield turn.inputRequired("Which one?");
    else yield turn.artifact({ name: "answer", parts: [{ text: `You said ${turn.text}.` }] });
  },
});

/** Fails at what it does, or takes its time. */
let finish = () => {};
const worker = defineAgent({
  name: "Worker",
  description: "Works.",
  async *run(turn) {
    yield turn.working("On it");
    if (turn.text === "fail") throw new Error("secret reason");
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    yield turn.artifact({ name: "work", parts: [{ text: "Done." }] });
  },
});

const login = createServer((_request, response) => response.end('{"open_id":"o-1","access_token":"t"}'));
const tokenUrl = `http://127.0.0.1:${await listen(login)}/token`;
const server = await startServer({
  agents: { echo: createEchoAgent(), sleeper, asker, worker, hidden: createEchoAgent() },
  xiaoyi: {
    http: [
      { agent: "echo", ak: AK, sk: SK, account: { tokenUrl, clientId: "c", clientSecret: "s" } },
      { agent: "sleeper", apiKey: API_KEY, render: "spec" },
      { agent: "asker", apiKey: API_KEY, render: "spec" },
      { agent: "worker", apiKey: API_KEY },
    ],
  },
});

function post(agent: string, body: string, headers: Record<string, string>) {
  return sendRaw(`${server.url}/agents/${agent}`, {
    method: "POST",
    path: "/agent/message",
    headers: { "content-type": "application/json", ...headers },
    body,
  });
}

function signed(): Record<string, string> {
  const ts = String(Date.now());
  return { accessKey: AK, ts, sign: signTimestamp(SK, ts) };
}

const BEARER = { authorization: `Bearer ${API_KEY}` };

interface Frame {
  readonly id: string;
  readonly result: {
    readonly taskId: string;
    readonly kind: string;
    readonly final: boolean;
    readonly status?: { readonly state: string };
    readonly artifact?: { readonly parts: readonly { readonly kind: string; readonly text?: string }[] };
  };
  readonly error: { readonly code: number };
}

function framesIn(body: Buffer): Frame[] {
  return [...body.toString().matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data as string) as Frame);
}

/** Without those that only close an artifact. */
const textsIn = (frames: readonly Frame[]) =>
  frames.flatMap(({ result }) => result.artifact?.parts.flatMap(({ text = "" }) => (text === "" ? [] : text)) ?? []);

async function initialize(): Promise<string> {
  const reply = await post("echo", '{"jsonrpc":"2.0","id":"1","method":"initialize"}', signed());
  const body = reply.json;
  expect(body).toMatchObject({ id: "1", result: { version: "1.0", agentSessionTtl: "604800" }, error: { code: 0 } });
  return body.result.agentSessionId;
}

describe("a session", () => {
  it("goes as documented: initialize, initialized, a message, and on with nothing but the session's id", async () => {
    const session = { "agent-session-id": `${await initialize()} ` };
    const ready = await post("echo", '{"jsonrpc":"2.0","id":"2","method":"notifications/initialized"}', session);
    expect([ready.status, ready.text]).toEqual([200, ""]);

    const reply = await post("echo", withoutComments(MESSAGE_STREAM), session);
    expect([reply.status, reply.headers["content-type"]]).toEqual([200, "text/event-stream"]);
    const frames = framesIn(reply.body);
    for (const frame of frames) {
      expect(frame).toMatchObject({ id: "msg-1", result: { taskId: "task-001" }, error: { code: 0, message: "" } });
    }
    expect(frames[0]?.result).toMatchObject({ kind: "status-update", final: false, status: { state: "working" } });
    expect(textsIn(frames)).toEqual(["用户输入的 Query"]);
    expect(frames.at(-1)?.result).toEqual({
      taskId: "task-001",
      kind: "status-update",
      final: true,
      status: { state: "completed" },
    });
    expect(frames.filter(({ result }) => result.final)).toHaveLength(1);
  });

  it("leaves a task that is read in other dialects under the platform's id", async () => {
    const body = withoutComments(MESSAGE_STREAM).replace("task-001", "task-read-elsewhere");
    await post("echo", body, signed());
    const reply = await sendRaw(`${server.url}/agents/echo`, {
      path: "/rest/tasks/task-read-elsewhere",
      headers: { "a2a-version": "1.0" },
    });
    expect(reply.json).toMatchObject({
      id: "task-read-elsewhere",
      contextId: "sess-1",
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ parts: [{ text: "用户输入的 Query" }] }],
    });
  });

  it("answers an id that was used before under that id again", async () => {
    const body = withoutComments(MESSAGE_STREAM).replace("task-001", "task-used-twice");
    for (let time = 0; time < 2; time++) {
      const frames = framesIn((await post("echo", body, signed())).body);
      expect(frames.at(-1)?.result).toMatchObject({ taskId: "task-used-twice", status: { state: "completed" } });
      expect(textsIn(frames)).toEqual(["用户输入的 Query"]);
    }
  });

  it("answers an id that someone else has used, and leaves that task alone", async () => {
    const body = withoutComments(MESSAGE_STREAM).replace("task-001", "task-of-two");
    await post("asker", body, BEARER);
    const frames = framesIn((await post("echo", body, signed())).body);
    expect(frames.at(-1)?.result).toMatchObject({ taskId: "task-of-two", status: { state: "completed" } });
    const other = { path: "/rest/tasks/task-of-two", headers: { "a2a-version": "1.0" } };
    expect((await sendRaw(`${server.url}/agents/echo`, other)).status).toBe(404);
    expect((await sendRaw(`${server.url}/agents/asker`, other)).status).toBe(200);
  });

  it("lets users log in and out", async () => {
    const part = (data: string) => `"params":{"message":{"role":"user","parts":[{"kind":"data","data":${data}}]}}`;
    const reply = await post(
      "echo",
      `{"jsonrpc":"2.0","id":"9","method":"authorize",${part('{"authCode":"CODE"}')}}`,
      signed(),
    );
    const { result } = reply.json;
    expect(result).toEqual({ version: "1.0", agentLoginSessionId: expect.any(String) });
    const data = JSON.stringify({ agentLoginSessionId: result.agentLoginSessionId });
    const over = await post("echo", `{"jsonrpc":"2.0","id":"9","method":"deauthorize",${part(data)}}`, signed());
    expect(over.json).toMatchObject({ result: { version: "1.0" } });
  });
});

describe("a conversation", () => {
  const message = (id: string, text: string) =>
    JSON.stringify({
      jsonrpc: "2.0",
      id: `m-${id}`,
      method: "message/stream",
      params: { id, sessionId: "sess-2", message: { role: "user", parts: [{ kind: "text", text }] } },
    });

  it("is stopped without params, and the stream ends as canceled", async () => {
    const stream = post("sleeper", message("s&1", "sleep"), BEARER);
    const cancel = '{"jsonrpc":"2.0","id":"c-1","sessionId":"sess-2","method":"tasks/cancel"}';
    await expect
      .poll(async () => (await post("sleeper", cancel, BEARER)).json)
      .toMatchObject({ id: "c-1", result: { id: "s&1", status: { state: "canceled" } }, error: { code: 0 } });
    const frames = framesIn((await stream).body);
    expect(frames.at(-1)?.result).toMatchObject({ final: true, status: { state: "canceled" } });
    const again = (await post("sleeper", cancel, BEARER)).json;
    expect(again).toMatchObject({ result: { status: { state: "unknown" } } });
  });

  it("is stopped neither by an unknown task id nor from another conversation", async () => {
    const stream = post("sleeper", message("s&0", "sleep"), BEARER);
    const running = { path: "/rest/tasks/s%260", headers: { "a2a-version": "1.0" } };
    await expect.poll(async () => (await sendRaw(`${server.url}/agents/sleeper`, running)).status).toBe(200);
    const cancel = async (words: object) => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: "c-0", method: "tasks/cancel", ...words });
      return (await post("sleeper", body, BEARER)).json;
    };
    const unknown = { result: { status: { state: "unknown" } } };
    expect(await cancel({ sessionId: "sess-2", taskId: "s&99" })).toMatchObject(unknown);
    expect(await cancel({ sessionId: "sess-2", params: { id: "s&99" } })).toMatchObject(unknown);
    expect(await cancel({ sessionId: "another", id: "s&0" })).toMatchObject(unknown);
    expect(await cancel({ sessionId: "sess-2", id: "s&0" })).toMatchObject({
      result: { id: "s&0", status: { state: "canceled" } },
    });
    expect(framesIn((await stream).body).at(-1)?.result).toMatchObject({ status: { state: "canceled" } });
  });

  it("continues with the question that was asked", async () => {
    const asked = framesIn((await post("asker", message("a&1", "start"), BEARER)).body);
    expect(asked.at(-1)?.result).toMatchObject({ final: true, status: { state: "input-required" } });
    const answered = framesIn((await post("asker", message("a&2", "this one"), BEARER)).body);
    expect(textsIn(answered)).toEqual(["You said this one."]);
    expect(answered.at(-1)?.result).toMatchObject({ taskId: "a&2", final: true, status: { state: "completed" } });
  });

  it("that fails ends with the failure in its last frame, without internal details", async () => {
    const reply = await post("worker", message("w&1", "fail"), BEARER);
    const last = framesIn(reply.body).at(-1);
    expect(last).toMatchObject({
      result: { final: true, status: { state: "failed" } },
      error: { code: 99_921_111, message: "任务执行异常，请重试" },
    });
    expect(reply.text).not.toContain("secret reason");
  });

  it("continues without a caller that left", async () => {
    const place = `${server.url}/agents/worker`;
    const open = await openRequest(place, {
      method: "POST",
      path: "/agent/message",
      headers: { "content-type": "application/json", ...BEARER },
      body: message("w&2", "work"),
    });
    await once(open.response, "data");
    open.hangUp();
    const task = { path: "/rest/tasks/w%262", headers: { "a2a-version": "1.0" } };
    await untilMetric(server.url, "dragoman_streams_open", 0);
    finish();
    await expect
      .poll(async () => (await sendRaw(place, task)).json)
      .toMatchObject({ status: { state: "TASK_STATE_COMPLETED" }, artifacts: [{ parts: [{ text: "Done." }] }] });
  });

  it("is cleared, with all that still runs in it", async () => {
    const stream = post("sleeper", message("s&2", "sleep"), BEARER);
    const running = { path: "/rest/tasks/s%262", headers: { "a2a-version": "1.0" } };
    await expect.poll(async () => (await sendRaw(`${server.url}/agents/sleeper`, running)).status).toBe(200);
    const clear = '{"jsonrpc":"2.0","id":"c-2","sessionId":"sess-2","method":"clearContext"}';
    expect((await post("sleeper", clear, BEARER)).json).toEqual({
      jsonrpc: "2.0",
      id: "c-2",
      result: { status: { state: "cleared" } },
      error: { code: 0, message: "" },
    });
    expect(framesIn((await stream).body).at(-1)?.result).toMatchObject({ status: { state: "canceled" } });
  });
});

describe("a conversation that was cleared", () => {
  it("starts a new context under its old id, and is stopped by it", async () => {
    const say = (agent: string, id: string, text: string) =>
      post(
        agent,
        JSON.stringify({
          jsonrpc: "2.0",
          id: `m-${id}`,
          method: "message/stream",
          params: { id, sessionId: "sess-3", message: { role: "user", parts: [{ kind: "text", text }] } },
        }),
        BEARER,
      );
    const contextOf = async (id: string) => {
      const place = { path: `/rest/tasks/${encodeURIComponent(id)}`, headers: { "a2a-version": "1.0" } };
      return (await sendRaw(`${server.url}/agents/asker`, place)).json.contextId;
    };
    const control = async (agent: string, method: string) => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: "c", sessionId: "sess-3", method });
      return (await post(agent, body, BEARER)).json.result;
    };
    await say("asker", "x&1", "hello");
    expect(await contextOf("x&1")).toBe("sess-3");
    expect(await control("asker", "clearContext")).toEqual({ status: { state: "cleared" } });
    await say("asker", "x&2", "start");
    const context = await contextOf("x&2");
    expect(context).not.toBe("sess-3");
    expect(textsIn(framesIn((await say("asker", "x&3", "this one")).body))).toEqual(["You said this one."]);
    await say("asker", "x&4", "start");
    expect(await contextOf("x&4")).toBe(context);
    expect(await control("asker", "tasks/cancel")).toEqual({ id: "x&4", status: { state: "canceled" } });
  });
});

describe("an agent that is not connected", () => {
  it("has no such place, for anyone", async () => {
    const reply = await post("hidden", withoutComments(MESSAGE_STREAM), signed());
    const nowhere = await sendRaw(`${server.url}/agents/hidden`, { method: "POST", path: "/nowhere", headers: {} });
    expect([reply.status, reply.text]).toEqual([404, nowhere.text]);
  });

  it("is not opened by another's key", async () => {
    expect((await post("sleeper", withoutComments(MESSAGE_STREAM), signed())).status).toBe(401);
  });
});
