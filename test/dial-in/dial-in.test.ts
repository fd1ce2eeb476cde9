/** Agents that dial in, called by those who know nothing of it. */
import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../src/core/model/ports.ts";
import { buildAgents } from "../../src/core/server/config/build-agents.ts";
import { parseConfig } from "../../src/core/server/config/load.ts";
import { HTTP_BINDINGS } from "../support/http-bindings.ts";
import { startServer } from "../support/lifecycle.ts";
import { exchangeBytes } from "../support/raw-socket.ts";
import { statesOf, userMessage, WireClient } from "../support/wire-client.ts";
import { textOf, type WireTask } from "../support/wire-types.ts";
import { type Credentials, dialAnswer, dialStatus, linkUrl, RawAgent, signedHeaders } from "./raw-agent.ts";

const HELPER: Credentials = { agentId: "agent-1", ak: "access-1", sk: "secret-1" };
const OTHER: Credentials = { agentId: "agent-2", ak: "access-2", sk: "secret-2" };

const CONFIG = `
agents:
  helper:
    link: { agentId: agent-1, ak: access-1, sk: secret-1 }
    name: Helper
    description: Helps from behind a wall.
    skills: [{ id: help, name: Help, description: Helps. }]
  other: { link: { agentId: agent-2, ak: access-2, sk: secret-2, patience: 50ms } }
  keyed: { link: { agentId: agent-3, uid: user-3, apiKey: key-3 } }
  plain: { use: echo }
`;

async function start() {
  const warnings: string[] = [];
  const log = { ...SILENT_LOG, warn: (_fields: object, message: string) => void warnings.push(message) };
  const config = parseConfig(CONFIG, { source: "dragoman.yaml", folder: "/", environment: {} });
  const agents = Object.fromEntries(await buildAgents(config));
  const server = await startServer({ grpcPort: false, agents, log });
  const { url } = server;
  return { server, url, client: new WireClient(HTTP_BINDINGS[0], `${url}/agents/helper`), warnings };
}

/** With the helper connected. */
async function startDialled() {
  const started = await start();
  return { ...started, agent: await RawAgent.dial(started.url, HELPER) };
}

/** All texts, the newest last. */
const answerOf = (task: WireTask) => (task.artifacts ?? []).map(({ parts }) => textOf(parts)).join(" | ");

describe("the card", () => {
  it("is there before the agent is, with what the configuration says", async () => {
    const { url } = await start();
    const headers = { "a2a-version": "1.0" };
    const helper = await (await fetch(`${url}/agents/helper/.well-known/agent-card.json`, { headers })).json();
    expect(helper).toMatchObject({
      name: "Helper",
      description: "Helps from behind a wall.",
      capabilities: { streaming: true },
      skills: [{ id: "help", name: "Help", description: "Helps.", tags: ["help"] }],
      supportedInterfaces: expect.arrayContaining([
        expect.objectContaining({ url: `${url}/agents/helper`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }),
      ]),
    });
    const other = await (await fetch(`${url}/agents/other/.well-known/agent-card.json`, { headers })).json();
    expect(other).toMatchObject({ name: "other", description: "An agent that dials in." });
    expect(JSON.stringify([helper, other])).not.toMatch(/secret-|access-|agent-1/);
  });
});

describe("a message", () => {
  it("goes to the agent, and its answer comes back as one artifact, as phones receive it", async () => {
    const { agent, client } = await startDialled();
    agent.heartbeat();
    const sent = client.task("Tell me");
    const request = await agent.next();
    expect(request).toMatchObject({
      jsonrpc: "2.0",
      method: "message/stream",
      agentId: "agent-1",
      params: { message: { role: "user", parts: [{ kind: "text", text: "Tell me" }] } },
    });
    expect(request.conversationId).toBe(request.params.sessionId);
    agent.status(request, "working");
    for (const text of ["One", "One, two", "One, two, three."]) agent.text(request, text);
    agent.status(request, "completed");
    agent.text(request, "One, two, three.", { final: true });
    const task = await sent;
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task.artifacts?.map(({ parts }) => parts)).toEqual([[{ text: "One, two, three." }]]);
    expect(await client.get(task.id)).toEqual(task);
  });

  it("is streamed as it is answered, as the documents print it", async () => {
    const { agent, client } = await startDialled();
    const stream = await client.stream("Tell me");
    const request = await agent.next();
    agent.status(request, "working", { text: "Thinking" });
    agent.text(request, "One", { id: "x" });
    agent.text(request, ", two", { id: "x", append: true });
    agent.status(request, "completed", { final: true });
    const events = await stream.rest();
    // The stream was opened because the agent took its time: the task worked before the agent reported it.
    expect(statesOf(events)).toEqual(["SUBMITTED", "WORKING", "WORKING", "COMPLETED"]);
    const chunks = events.flatMap(({ event }) => event.artifactUpdate ?? []);
    expect(chunks.map(({ append, artifact }) => [append === true, textOf(artifact.parts)])).toEqual([
      [false, "One"],
      [true, ", two"],
    ]);
  });

  it.each([true, false])(
    "is answered in pieces under an id each, as one artifact; the first appends: %s",
    async (append) => {
      const { agent, client } = await startDialled();
      const stream = await client.stream("Tell me");
      const request = await agent.next();
      agent.text(request, "One", { append, lastChunk: false });
      for (const text of [", two", ", three."]) agent.text(request, text, { append: true, lastChunk: false });
      agent.status(request, "completed");
      agent.text(request, "", { append: true, final: true });
      const events = await stream.rest();
      const chunks = events.flatMap(({ event }) => event.artifactUpdate ?? []);
      expect(chunks.map(({ artifact }) => textOf(artifact.parts)).join("")).toBe("One, two, three.");
      expect(new Set(chunks.map(({ artifact }) => artifact.artifactId)).size).toBe(1);
      const task = await client.get(events[0]?.event.task?.id ?? "");
      expect(task.artifacts?.map(({ parts }) => parts)).toEqual([[{ text: "One, two, three." }]]);
    },
  );

  it("shows what the agent thinks as it thinks it, not when there is much of it", async () => {
    const { agent, client } = await startDialled();
    const stream = await client.stream("Think");
    const request = await agent.next();
    await stream.task();
    for (const word of ["One", " word", " at", " a", " time"]) {
      const parts = [{ kind: "reasoningText", reasoningText: word }];
      agent.parts(request, parts, { append: true, final: false, id: "r" });
      let shown = "";
      // The task may be seen to begin before there is anything to show of it.
      while (shown === "") shown = textOf((await stream.event()).statusUpdate?.status.message?.parts ?? []);
      expect(shown).toBe(word);
    }
  });

  it("carries files and data both ways", async () => {
    const { agent, client, url } = await startDialled();
    const parts = [
      { raw: "aGk=", filename: "hi.txt", mediaType: "text/plain" },
      { url: "https://files.example/a.png", mediaType: "image/png" },
      { data: { n: 1 } },
    ];
    const sent = client.task(userMessage(parts));
    const request = await agent.next();
    expect(request.params.message.parts).toEqual([
      {
        kind: "file",
        file: { name: "hi.txt", mimeType: "text/plain", uri: expect.stringContaining(url), bytes: "aGk=" },
      },
      { kind: "file", file: { mimeType: "image/png", uri: "https://files.example/a.png" } },
      { kind: "data", data: { n: 1 } },
    ]);
    const file = { kind: "file", file: { name: "b.pdf", mimeType: "pdf", uri: "https://files.example/b.pdf" } };
    agent.text(request, "Here.", { id: "here" });
    agent.parts(request, [file, { kind: "data", data: { m: 2 } }], { append: true, final: true, id: "things" });
    expect((await sent).artifacts).toEqual([
      { artifactId: "here", parts: [{ text: "Here." }] },
      {
        artifactId: "things",
        parts: [
          { url: "https://files.example/b.pdf", filename: "b.pdf", mediaType: "application/pdf" },
          { data: { m: 2 } },
        ],
      },
    ]);
  });

  it("leads to a question, and continues under the same ids", async () => {
    const { agent, client } = await startDialled();
    const sent = client.task("Book a table");
    const first = await agent.next();
    agent.status(first, "input-required", { text: "For how many?" });
    const asked = await sent;
    expect(asked.status).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { parts: [{ text: "For how many?" }] },
    });
    const { contextId, id: taskId } = asked;
    const answered = client.task(userMessage("Four", { taskId, contextId }));
    const second = await agent.next();
    expect([second.id, second.params.id, second.params.sessionId]).toEqual([
      first.id,
      first.params.id,
      first.params.sessionId,
    ]);
    expect(second.params.message.parts).toEqual([{ kind: "text", text: "Four" }]);
    agent.text(second, "Booked.", { final: true });
    const done = await answered;
    expect([done.id, done.status.state, answerOf(done)]).toEqual([asked.id, "TASK_STATE_COMPLETED", "Booked."]);
  });

  it("that fails has the reason", async () => {
    const { agent, client } = await startDialled();
    const sent = client.task("Try");
    const request = await agent.next();
    agent.respond(
      request,
      {
        taskId: request.params.id,
        kind: "artifact-update",
        final: true,
        artifact: { artifactId: "x", parts: [{ kind: "text", text: "No luck." }] },
      },
      { code: 99921111, message: "Out of paper" },
    );
    const task = await sent;
    expect(task.status).toMatchObject({ state: "TASK_STATE_FAILED", message: { parts: [{ text: "Out of paper" }] } });
    expect(answerOf(task)).toBe("No luck.");
  });

  it("of each conversation is kept apart from others, and tasks of many run at once", async () => {
    const { agent, client } = await startDialled();
    const count = 50;
    const sent = Array.from({ length: count }, (_, at) => client.task(`question ${at}`));
    const sessions = new Set<string>();
    for (let at = 0; at < count; at++) {
      const request = await agent.next();
      sessions.add(request.params.sessionId);
      agent.text(request, `answer to ${request.params.message.parts[0]?.text}`, { final: true });
    }
    expect((await Promise.all(sent)).map(answerOf)).toEqual(
      Array.from({ length: count }, (_, at) => `answer to question ${at}`),
    );
    expect(sessions.size).toBe(count);
  });
});

describe("cancelling", () => {
  it("reaches the agent", async () => {
    const { agent, client } = await startDialled();
    const started = await client.start("Take your time");
    const request = await agent.next();
    agent.text(request, "So far");
    const cancelled = client.cancel(started.id);
    const asked = await agent.next();
    expect(asked).toMatchObject({ method: "tasks/cancel", params: { id: request.params.id } });
    expect(asked.sessionId).toBe(request.params.sessionId);
    agent.cancelled(request, asked);
    const task = await cancelled;
    expect([task.status.state, answerOf(task)]).toEqual(["TASK_STATE_CANCELED", "So far"]);
  });
});

describe("an agent that cancels its task itself", () => {
  it.each(["by the status", "by an artifact after it"])("has a canceled task, ended %s", async (how) => {
    const { agent, client } = await startDialled();
    const sent = client.task("Begin");
    const request = await agent.next();
    if (how === "by the status") agent.status(request, "canceled", { final: true, text: "Stopped at the device." });
    else {
      agent.status(request, "canceled", { text: "Stopped at the device." });
      agent.text(request, "", { append: true, final: true });
    }
    const { id, status } = await sent;
    expect(status).toMatchObject({
      state: "TASK_STATE_CANCELED",
      message: { parts: [{ text: "Stopped at the device." }] },
    });
    expect((await client.get(id)).status).toEqual(status);
  });
});

describe("cancelling a question", () => {
  it("reaches the agent, too", async () => {
    const { agent, client } = await startDialled();
    const sent = client.task("Book a table");
    const request = await agent.next();
    agent.status(request, "input-required", { text: "For how many?" });
    const { id } = await sent;
    expect((await client.cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
    const asked = await agent.next();
    expect([asked.method, asked.params.id, asked.sessionId]).toEqual(["tasks/cancel", request.id, request.sessionId]);
  });
});

describe("a connection that breaks", () => {
  it("is continued by the next, and nothing is lost or sent twice", async () => {
    const { client, url } = await start();
    const first = await RawAgent.dial(url, HELPER);
    const stream = await client.stream("Go on");
    const request = await first.next();
    first.text(request, "Begun");
    const { id } = await stream.task();
    expect((await stream.event()).statusUpdate?.status.state).toBe("TASK_STATE_WORKING");
    expect((await stream.event()).artifactUpdate?.artifact.parts).toEqual([{ text: "Begun" }]);
    first.socket.terminate();
    const second = await RawAgent.dial(url, HELPER);
    second.text(request, "Begun and done", { final: true });
    const rest = (await stream.rest()).flatMap(({ event }) => event.artifactUpdate?.artifact.parts ?? []);
    expect(rest).toEqual([{ text: " and done" }]);
    const task = await client.get(id);
    expect([task.status.state, answerOf(task)]).toEqual(["TASK_STATE_COMPLETED", "Begun and done"]);
  });

  it("is waited for as long as the configuration says", async () => {
    const { url } = await start();
    const client = new WireClient(HTTP_BINDINGS[0], `${url}/agents/other`);
    const agent = await RawAgent.dial(url, OTHER);
    const sent = client.task("Wait");
    await agent.next();
    agent.socket.terminate();
    expect((await sent).status).toMatchObject({
      state: "TASK_STATE_FAILED",
      message: {
        parts: [{ text: "The connection to the agent was lost, and it did not come back within 0.05 s." }],
      },
    });
  });

  it("and whose agent dials twice has one link: the new one", async () => {
    const { client, url } = await start();
    const first = await RawAgent.dial(url, HELPER);
    const second = await RawAgent.dial(url, HELPER);
    expect(await first.closed).toBe(1000);
    const sent = client.task("Who?");
    second.text(await second.next(), "Me", { final: true });
    expect(answerOf(await sent)).toBe("Me");
  });
});

describe("who dials", () => {
  it("must have signed, lately, and for an agent of its own", async () => {
    const { url, warnings } = await start();
    const door = linkUrl(url);
    const { "x-sign": _, ...unsigned } = signedHeaders(HELPER);
    const quarter = 15 * 60_000;
    const attempts: [Record<string, string>, number][] = [
      [{}, 401],
      [unsigned, 401],
      [signedHeaders({ ...HELPER, sk: "secret-2" }), 401],
      [signedHeaders({ ...HELPER, ak: "access-2" }), 401],
      [signedHeaders({ ...HELPER, ak: "" }), 401],
      [{ ...signedHeaders(HELPER), "x-ts": String(Date.now() + 1) }, 401],
      [signedHeaders(HELPER, Date.now() - quarter), 401],
      [signedHeaders(HELPER, Date.now() + quarter + 60_000), 401],
      [signedHeaders({ ...HELPER, agentId: "agent-2" }), 403],
      [signedHeaders({ ...HELPER, agentId: "nobody" }), 403],
      [signedHeaders(HELPER, Date.now() - quarter + 60_000), 101],
      [signedHeaders(OTHER), 101],
    ];
    for (const [headers, status] of attempts)
      expect([headers, await dialStatus(door, headers)]).toEqual([headers, status]);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("refused");
  });

  it("may show a key instead, where the configuration has one for it", async () => {
    const { url } = await start();
    const door = linkUrl(url);
    const keyed = { "x-uid": "user-3", "x-api-key": "key-3", "x-agent-id": "agent-3", "x-request-from": "openclaw" };
    const attempts: [Record<string, string>, number][] = [
      [{ ...keyed, "x-api-key": "key-4" }, 401],
      [{ ...keyed, "x-uid": "user-4" }, 401],
      [{ "x-api-key": "key-3", "x-agent-id": "agent-3" }, 401],
      [{ "x-uid": "user-3", "x-agent-id": "agent-3" }, 401],
      [{ ...keyed, "x-agent-id": "agent-1" }, 403],
      [signedHeaders({ agentId: "agent-3", ak: "user-3", sk: "key-3" }), 401],
      [keyed, 101],
    ];
    for (const [headers, status] of attempts)
      expect([headers, await dialStatus(door, headers)]).toEqual([headers, status]);
    const agent = await RawAgent.dial(url, { agentId: "agent-3", ak: "", sk: "" }, keyed);
    const sent = new WireClient(HTTP_BINDINGS[0], `${url}/agents/keyed`).task("Who?");
    agent.text(await agent.next(), "Me", { final: true });
    expect(answerOf(await sent)).toBe("Me");
  });

  it("reads why it was refused, and no secret", async () => {
    const { url } = await start();
    const refused = async (path: string, headers: Record<string, string>) => {
      const { body, contentType, status } = await dialAnswer(path, headers);
      expect(contentType).toBe("application/json");
      expect(body).not.toMatch(/secret-|access-\d|key-3|agent-\d/);
      const { error } = JSON.parse(body);
      expect(error.code).toBe(status);
      return [status, error.status, error.message];
    };
    const door = linkUrl(url);
    expect(await refused(door, {})).toEqual([
      401,
      "UNAUTHENTICATED",
      "x-agent-id is required, with x-access-key, x-ts and x-sign or with x-uid and x-api-key.",
    ]);
    expect(await refused(door, signedHeaders({ ...HELPER, sk: "wrong" }))).toEqual([
      401,
      "UNAUTHENTICATED",
      "The access key, the signature, the user id or the API key is wrong.",
    ]);
    expect(await refused(door, signedHeaders(HELPER, 0))).toEqual([
      401,
      "UNAUTHENTICATED",
      "x-ts is more than 15 minutes away from the time of this server.",
    ]);
    expect(await refused(door, signedHeaders({ ...HELPER, agentId: "agent-2" }))).toEqual([
      403,
      "PERMISSION_DENIED",
      "The credentials do not belong to the agent that x-agent-id names.",
    ]);
    expect(await refused(`${door}/x`, signedHeaders(HELPER))).toEqual([
      404,
      "NOT_FOUND",
      "There is nothing at this path. Agents dial /openclaw/v1/ws/link.",
    ]);
  });

  it("must introduce itself as the one it signed for", async () => {
    const { url } = await start();
    const silent = await RawAgent.dialOnly(url, HELPER, signedHeaders(HELPER));
    silent.heartbeat();
    expect(await silent.closed).toBe(1008);
    const liar = await RawAgent.dialOnly(url, HELPER, signedHeaders(HELPER));
    liar.sendRaw(JSON.stringify({ msgType: "clawd_bot_init", agentId: "agent-2" }));
    expect(await liar.closed).toBe(1008);
  });

  it("finds nothing at other paths, while those who ask for other protocols are answered in this one", async () => {
    const { url } = await start();
    for (const path of ["/", "/openclaw/v1/ws", "/openclaw/v1/ws/link/x", "/agents/helper"]) {
      expect(await dialStatus(url.replace("http", "ws") + path, signedHeaders(HELPER))).toBe(404);
    }
    expect(await dialStatus(`${linkUrl(url)}?a=b`, signedHeaders(HELPER))).toBe(101);
    const { hostname, port } = new URL(url);
    const headers = "connection: Upgrade, HTTP2-Settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQ\r\n";
    const asked = `GET /healthz HTTP/1.1\r\nhost: ${hostname}:${port}\r\n${headers}\r\n`;
    const answer = await exchangeBytes(Number(port), asked);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("cannot upgrade by a request that is none", async () => {
    const { url } = await start();
    const { hostname, port } = new URL(url);
    const headers = { ...signedHeaders(HELPER), connection: "Upgrade", upgrade: "websocket" };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const asked = `GET /openclaw/v1/ws/link HTTP/1.1\r\nhost: ${hostname}\r\n${lines.join("")}\r\n`;
    const answer = await exchangeBytes(Number(port), asked);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe("hostile frames", () => {
  it("are dropped and counted, and the link serves on", async () => {
    const { agent, client, url } = await startDialled();
    const sent = client.task("Still there?");
    const request = await agent.next();
    const envelope = { msgType: "agent_response", agentId: "agent-1", taskId: request.params.id };
    const frames = [
      "",
      "\u0000",
      "{{{",
      '{"__proto__":{"msgType":"heartbeat"}}',
      "[".repeat(1_000_000),
      JSON.stringify({ ...envelope, msgDetail: 7 }),
      JSON.stringify({ ...envelope, msgDetail: '{"result":' }),
      JSON.stringify({
        ...envelope,
        taskId: "of somebody else",
        msgDetail: JSON.stringify({ result: { final: true } }),
      }),
      JSON.stringify({ ...envelope, agentId: "agent-2", msgDetail: JSON.stringify({ result: { final: true } }) }),
    ];
    for (const frame of frames) agent.sendRaw(frame);
    agent.socket.send(Buffer.from([0xff, 0xfe]), { binary: true });
    agent.text(request, "Yes", { final: true });
    expect(answerOf(await sent)).toBe("Yes");
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toContain(`dragoman_link_frames_dropped_total ${frames.length + 1}\n`);
  });

  it("that are too big end the link, not the server", async () => {
    const { agent, client, url } = await startDialled();
    agent.sendRaw("x".repeat(16 * 1024 * 1024 + 1));
    expect(await agent.closed).toBe(1009);
    const again = await RawAgent.dial(url, HELPER);
    const sent = client.task("And now?");
    again.text(await again.next(), "Fine", { final: true });
    expect(answerOf(await sent)).toBe("Fine");
  });

  it("for a task that cannot be read fail it", async () => {
    const { agent, client } = await startDialled();
    const sent = client.task("Well?");
    const request = await agent.next();
    agent.respond(request, { taskId: request.params.id, kind: "artifact-update", artifact: "no" });
    expect((await sent).status).toMatchObject({ state: "TASK_STATE_FAILED" });
  });
});

describe("shutting down", () => {
  it("closes the link", async () => {
    const { agent, server } = await startDialled();
    await server.close();
    expect(await agent.closed).toBe(1001);
  });
});
