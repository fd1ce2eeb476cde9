import { createServer } from "node:http";
import { type AddressInfo, createServer as createListener } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fieldsOf } from "../../../../core/model/json.ts";
import { sign } from "../authentication.ts";
import { DEFAULT_STYLE } from "../link/wire-format.ts";
import type { Simulator } from "../simulator.ts";
import { CloudAgent, frame, type Handler, open, reply } from "../testing/cloud-agent.ts";
import { createStage, rulesOf } from "../testing/stage.ts";
import type { CloudOptions } from "./cloud-platform.ts";
import { post } from "./http-client.ts";

const stage = createStage();
let agent: CloudAgent;
beforeEach(async () => {
  agent = await CloudAgent.start();
});
afterEach(() => agent.close());

const SIGNED = { kind: "signed", accessKey: "key", secretKey: "secret" } as const;

const call = (options: Partial<CloudOptions> = {}): Promise<Simulator> =>
  stage.simulate({ http: { url: agent.url, credentials: SIGNED, ...options } });

describe("with sessions", () => {
  test("credentials are shown once, the id after that", async () => {
    const simulator = await call();
    const task = simulator.phone.say("hello");
    await task.waitUntilSettled();
    expect(task.screen()).toMatchObject({ text: "Hello there", state: "completed", painted: true });
    expect(agent.methods).toEqual(["initialize", "notifications/initialized", "message/stream"]);
    const [first, ...later] = agent.received.map(({ headers }) => headers);
    const ts = String(stage.clock.now());
    expect(first).toMatchObject({ accesskey: "key", sign: sign("secret", ts), ts });
    expect(first?.["agent-session-id"]).toBeUndefined();
    for (const headers of later) {
      expect(headers["agent-session-id"]).toBe("session-1");
      expect([headers.accesskey, headers.sign, headers.ts]).toEqual([undefined, undefined, undefined]);
    }
    expect(agent.received[0]?.body).toEqual({ jsonrpc: "2.0", id: expect.any(String), method: "initialize" });
    expect(agent.received[2]?.body).toEqual({
      jsonrpc: "2.0",
      id: task.requestId,
      method: "message/stream",
      params: expect.objectContaining({ id: task.id, sessionId: simulator.phone.conversationId }),
    });
    expect(simulator.violations).toEqual([]);
  });

  test("the id may have a space after it", async () => {
    const chunks: string[] = [];
    const wire = createListener((socket) =>
      socket.on("data", (data) => {
        chunks.push(data.toString());
        socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
      }),
    );
    await new Promise<void>((resolve) => wire.listen(0, "127.0.0.1", resolve));
    const url = new URL(`http://127.0.0.1:${(wire.address() as AddressInfo).port}`);
    (await post({ url, headers: { "agent-session-id": "session-1 " }, body: "" })).resume();
    wire.close();
    expect(chunks.join("")).toContain("agent-session-id: session-1 \r\n");
    const simulator = await call({ trailingSpace: true });
    await simulator.phone.say("hello").waitUntilSettled();
    expect(agent.methods).toEqual(["initialize", "notifications/initialized", "message/stream"]);
  });

  test("a refused id is replaced, an expired one too", async () => {
    const simulator = await call();
    await simulator.phone.say("one").waitUntilSettled();
    agent.sessions.clear();
    const second = simulator.phone.say("two");
    await second.waitUntilSettled();
    expect(second.ending).toBe("final");
    expect([simulator.cloud?.reopenedSessions, simulator.cloud?.sessionIds]).toEqual([1, ["session-2"]]);
    await stage.clock.advance(604_800_000);
    await simulator.phone.say("three").waitUntilSettled();
    expect([simulator.cloud?.reopenedSessions, simulator.cloud?.sessionIds]).toEqual([1, ["session-3"]]);
    expect(simulator.violations).toEqual([]);
  });

  test("several are in use at a time", async () => {
    const simulator = await call({ sessions: 5 });
    const phones = Array.from({ length: 20 }, () => simulator.addPhone());
    await Promise.all(phones.map((phone) => phone.say("hello").waitUntilSettled()));
    expect(simulator.cloud?.sessionIds).toHaveLength(5);
    const used = agent.received.filter(({ body }) => body.method === "message/stream");
    expect(new Set(used.map(({ headers }) => headers["agent-session-id"])).size).toBe(5);
    expect(agent.methods.filter((method) => method === "initialize")).toHaveLength(5);
  });
});

describe("without sessions", () => {
  test("credentials are shown every time", async () => {
    const simulator = await call({ mode: "stateless" });
    await simulator.phone.say("one").waitUntilSettled();
    await simulator.phone.say("two").waitUntilSettled();
    expect(agent.methods).toEqual(["message/stream", "message/stream"]);
    expect(agent.received.map(({ headers }) => headers.accesskey)).toEqual(["key", "key"]);
  });

  test("secrets are what is left of them after 64 characters", async () => {
    const credentials = { kind: "signed", accessKey: "a".repeat(70), secretKey: "s".repeat(70) } as const;
    const simulator = await call({ mode: "stateless", credentials });
    await simulator.phone.say("hello").waitUntilSettled();
    const { accesskey, sign: signature, ts } = agent.received[0]?.headers ?? {};
    expect([accesskey, signature]).toEqual(["a".repeat(64), sign("s".repeat(64), String(ts))]);
  });

  test.each<[string, CloudOptions["credentials"], string, string | undefined]>([
    ["a bearer key", { kind: "header", key: "k" }, "/agent/message", "Bearer k"],
    ["a bare key", { kind: "header", key: "k", bearer: false }, "/agent/message", "k"],
    ["a key in the query", { kind: "query", key: "k&k" }, "/agent/message?apiKey=k%26k", undefined],
    ["nothing", { kind: "none" }, "/agent/message", undefined],
  ])("%s is shown", async (_what, credentials, url, authorization) => {
    const simulator = await call({ mode: "stateless", credentials });
    await simulator.phone.say("hello").waitUntilSettled();
    expect([agent.received[0]?.url, agent.received[0]?.headers.authorization]).toEqual([url, authorization]);
  });

  test("a header of another name is used", async () => {
    const credentials = { kind: "header", key: "k", name: "X-Key", bearer: false } as const;
    const simulator = await call({ mode: "stateless", credentials });
    await simulator.phone.say("hello").waitUntilSettled();
    expect(agent.received[0]?.headers["x-key"]).toBe("k");
  });

  test("a token is fetched and used until it expires", async () => {
    const forms: string[] = [];
    const tokens = createServer((request, response) => {
      request.on("data", (data: Buffer) => forms.push(data.toString()));
      request.on("end", () => response.end(JSON.stringify({ access_token: `t${forms.length}`, expires_in: 60 })));
    });
    await new Promise<void>((resolve) => tokens.listen(0, "127.0.0.1", resolve));
    const tokenUrl = `http://127.0.0.1:${(tokens.address() as AddressInfo).port}/token`;
    const credentials = { kind: "oauth", tokenUrl, clientId: "c", clientSecret: "s", scope: "talk" } as const;
    const simulator = await call({ mode: "stateless", credentials });
    await simulator.phone.say("one").waitUntilSettled();
    await simulator.phone.say("two").waitUntilSettled();
    await stage.clock.advance(60_000);
    await simulator.phone.say("three").waitUntilSettled();
    tokens.close();
    expect(forms[0]).toBe("grant_type=client_credentials&client_id=c&client_secret=s&scope=talk");
    const seen = agent.received.map(({ headers }) => headers.authorization);
    expect(seen).toEqual(["Bearer t1", "Bearer t1", "Bearer t2"]);
  });
});

describe("requests that are not messages", () => {
  test("cancel and clear have no params", async () => {
    const simulator = await call();
    const task = simulator.phone.say("hello");
    await task.waitUntilSettled();
    const { conversationId } = simulator.phone;
    expect(await simulator.phone.cancel()).toBe("canceled");
    expect(await simulator.phone.clear()).toBe("cleared");
    const [cancel, clear] = agent.received.slice(-2).map(({ body }) => body);
    expect(cancel).toEqual({
      jsonrpc: "2.0",
      id: expect.any(String),
      method: "tasks/cancel",
      sessionId: conversationId,
    });
    expect(clear).toEqual({
      jsonrpc: "2.0",
      id: expect.any(String),
      method: "clearContext",
      sessionId: conversationId,
    });
    expect(simulator.violations).toEqual([]);
  });

  test("unless configured to", async () => {
    const simulator = await call();
    simulator.style = { ...DEFAULT_STYLE, controlSession: "params" };
    const task = simulator.phone.say("hello");
    await task.waitUntilSettled();
    await simulator.phone.cancel();
    expect(agent.received.at(-1)?.body.params).toEqual({ sessionId: simulator.phone.conversationId, id: task.id });
  });

  test("an account is bound and let go", async () => {
    const simulator = await call();
    const login = await simulator.cloud?.authorize("code");
    expect(login).toBe("login-1");
    expect(fieldsOf(agent.received.at(-1)?.body.params)).toMatchObject({
      message: { parts: [{ kind: "data", data: { authCode: "code" } }] },
    });
    simulator.phone.loginSessionId = login ?? "";
    await simulator.phone.say("hello").waitUntilSettled();
    expect(fieldsOf(agent.received.at(-1)?.body.params).agentLoginSessionId).toBe("login-1");
    expect(await simulator.cloud?.deauthorize("login-1")).toBe(true);
    agent.handlers.authorize = ({ body }, response) =>
      reply(response, { id: body.id, error: { code: -32603, message: "no" } });
    expect(await simulator.cloud?.authorize("code")).toBeUndefined();
    expect(simulator.violations).toEqual([]);
  });
});

describe("a stream", () => {
  test("that is left does not end the task at the agent", async () => {
    const simulator = await call();
    if (simulator.cloud === undefined) throw new Error("no cloud");
    simulator.cloud.leaveAfter = 2;
    let gone: Promise<void> | undefined;
    agent.handlers["message/stream"] = ({ body }, response) => {
      gone = new Promise((resolve) => response.once("close", resolve));
      open(response);
      for (const state of ["submitted", "working"])
        frame(response, body, { kind: "status-update", final: false, status: { state } });
    };
    const task = simulator.phone.say("hello");
    await task.waitUntilSettled();
    await gone;
    expect([task.ending, task.shown]).toEqual(["left", 2]);
    expect(simulator.violations).toEqual([]);
  });

  test("may end with a question, which is answered under the same ids", async () => {
    const simulator = await call();
    const usual = agent.handlers["message/stream"];
    agent.handlers["message/stream"] = ({ body }, response) => {
      open(response);
      frame(response, body, { kind: "status-update", final: true, status: { state: "input-required" } });
      response.end();
    };
    const task = simulator.phone.say("hello");
    await task.waitUntilSettled();
    expect(task.asks).toBe(true);
    agent.handlers["message/stream"] = usual as Handler;
    expect(simulator.phone.say("yes")).toBe(task);
    await task.waitUntilSettled();
    expect(task.state).toBe("completed");
    expect(simulator.violations).toEqual([]);
  });

  test("may be an error instead, in either form", async () => {
    const simulator = await call();
    agent.handlers["message/stream"] = ({ body }, response) =>
      reply(response, { id: body.id, error: { code: "99911113", message: "slow down" } });
    const task = simulator.phone.say("hello");
    await task.waitUntilSettled();
    expect(task.screen()).toMatchObject({ state: "failed", failure: "slow down" });
    agent.handlers["message/stream"] = ({ body }, response) => {
      open(response).write(
        `data: ${JSON.stringify({ jsonrpc: "2.0", id: body.id, error: { code: -32603, message: "no" } })}\n\n`,
      );
      response.end();
    };
    const next = simulator.phone.say("hello");
    await next.waitUntilSettled();
    expect(next.screen().failure).toBe("no");
    expect(simulator.violations).toEqual([]);
  });

  test("that breaks is no answer", async () => {
    const simulator = await call();
    agent.handlers["message/stream"] = ({ body }, response) => {
      frame(open(response), body, { kind: "status-update", final: false, status: { state: "working" } });
      response.destroy();
    };
    const task = simulator.phone.say("hello");
    await task.waitUntilSettled();
    expect(task.ending).toBe("broken");
    expect(rulesOf(simulator)).toEqual(["http-status"]);
  });
});

describe("an agent that is wrong", () => {
  const working = { kind: "status-update", final: false, status: { state: "working" } };
  const done = { kind: "status-update", final: true, status: { state: "completed" } };
  const wrong: readonly [string, string, string, Handler][] = [
    [
      "never ends",
      "no-final",
      "message/stream",
      ({ body }, response) => {
        frame(open(response), body, working);
        response.end();
      },
    ],
    [
      "ends twice",
      "two-finals",
      "message/stream",
      ({ body }, response) => {
        open(response);
        frame(response, body, done);
        frame(response, body, done);
        response.end();
      },
    ],
    [
      "goes on after the end",
      "content-after-final",
      "message/stream",
      ({ body }, response) => {
        open(response);
        frame(response, body, done);
        frame(response, body, working);
        response.end();
      },
    ],
    [
      "forgets the request",
      "id-not-echoed",
      "message/stream",
      ({ body }, response) => {
        frame(open(response), { ...body, id: "x" }, done);
        response.end();
      },
    ],
    [
      "forgets the task",
      "task-id-not-echoed",
      "message/stream",
      ({ body }, response) => {
        frame(open(response), body, { ...done, taskId: undefined });
        response.end();
      },
    ],
    [
      "streams as text",
      "wrong-content-type",
      "message/stream",
      ({ body }, response) => {
        response.writeHead(200, { "content-type": "text/plain" });
        frame(response, body, done);
        response.end();
      },
    ],
    [
      "streams no JSON",
      "bad-response",
      "message/stream",
      (_request, response) => {
        open(response).end("data: done\n\n");
      },
    ],
    [
      "refuses without a word",
      "http-status",
      "message/stream",
      (_request, response) => {
        response.writeHead(500).end();
      },
    ],
    [
      "answers a cancellation with a stream",
      "wrong-content-type",
      "tasks/cancel",
      ({ body }, response) => {
        open(response).end(
          JSON.stringify({ jsonrpc: "2.0", id: body.id, result: { id: body.id, status: { state: "canceled" } } }),
        );
      },
    ],
    [
      "answers a cancellation with another",
      "wrong-control-answer",
      "tasks/cancel",
      ({ body }, response) => reply(response, { id: body.id, result: { id: body.id, status: { state: "cleared" } } }),
    ],
    [
      "greets back",
      "not-empty",
      "notifications/initialized",
      ({ body }, response) => reply(response, { id: body.id, result: {} }),
    ],
    [
      "does not accept the greeting",
      "http-status",
      "notifications/initialized",
      (_request, response) => {
        response.writeHead(204).end();
      },
    ],
    [
      "gives out a long id",
      "session-id-too-long",
      "initialize",
      ({ body }, response) => {
        const agentSessionId = "s".repeat(65);
        agent.sessions.add(agentSessionId);
        reply(response, { id: body.id, result: { version: "1.0", agentSessionId, agentSessionTtl: 60 } });
      },
    ],
    [
      "gives out no id",
      "bad-response",
      "initialize",
      ({ body }, response) => reply(response, { id: body.id, result: { version: "1.0", agentSessionTtl: 60 } }),
    ],
    [
      "gives out an id without a time",
      "bad-response",
      "initialize",
      ({ body }, response) => {
        agent.sessions.add("s");
        reply(response, { id: body.id, result: { version: "1.0", agentSessionId: "s" } });
      },
    ],
  ];

  test.each(wrong)("%s: %s", async (_what, rule, method, handler) => {
    agent.handlers[method] = handler;
    const simulator = await call();
    await simulator.phone.say("hello").waitUntilSettled();
    await simulator.phone.cancel();
    // What keeps a session from being opened stands in the way of every request.
    expect(new Set(rulesOf(simulator))).toEqual(
      new Set(method === "initialize" && rule === "bad-response" ? [rule, "wrong-control-answer"] : [rule]),
    );
  });

  const unauthorized: Handler = (_request, response) => {
    const error = { code: -32001, message: "Who are you?" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: null, error });
    response.writeHead(401, { "content-type": "application/json" }).end(body);
  };
  const missing: Handler = (_request, response) => {
    response.writeHead(404, { "content-type": "application/json" }).end('{"error":"No such page"}');
  };

  test.each<[CloudOptions["mode"], string, Handler, string]>([
    ["session", "initialize", unauthorized, "HTTP 401: Who are you?"],
    ["stateless", "message/stream", unauthorized, "HTTP 401: Who are you?"],
    ["session", "initialize", missing, "HTTP 404: No such page"],
    ["stateless", "message/stream", missing, "HTTP 404: No such page"],
  ])("is quoted when it refuses: %s, %s", async (mode = "session", method, handler, detail) => {
    agent.handlers[method] = handler;
    const simulator = await call({ mode });
    const task = simulator.phone.say("hello");
    await task.waitUntilSettled();
    expect(task.ending).toBe("broken");
    expect(simulator.violations).toMatchObject([{ rule: "http-status", detail }]);
  });

  test("need not know the id of what it could not read", async () => {
    const simulator = await call();
    agent.handlers["message/stream"] = (_request, response) =>
      reply(response, { id: null, error: { code: -32700, message: "no JSON" } });
    const task = simulator.phone.say("hello");
    await task.waitUntilSettled();
    expect(task.screen().failure).toBe("no JSON");
    expect(simulator.violations).toEqual([]);
  });

  test("is away", async () => {
    const simulator = await call();
    await agent.close();
    const task = simulator.phone.say("hello");
    await task.waitUntilSettled();
    expect(task.ending).toBe("broken");
    expect(rulesOf(simulator)).toEqual(["http-status"]);
    agent = await CloudAgent.start();
  });
});
