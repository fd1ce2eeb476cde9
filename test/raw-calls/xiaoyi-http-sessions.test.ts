/** Our client as the platform, and a server that requires a session for everything but `initialize`, as Xiaoyi's guide has it. */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConnectOptions, connect } from "../../src/client.ts";
import type { ExchangeTrace } from "../../src/core/client/options.ts";
import type { Message } from "../../src/core/model/message.ts";

interface Asked {
  readonly id: unknown;
  readonly method: string;
  readonly params?: { readonly agentLoginSessionId?: string; readonly message?: { readonly parts: readonly Part[] } };
}

interface Part {
  readonly data?: { readonly authCode?: string };
}

interface Received {
  readonly body: Asked;
  readonly headers: IncomingHttpHeaders;
}

type Refusal = (response: ServerResponse, id: unknown, message: string) => void;

const refuse =
  (status: number, code: number): Refusal =>
  (response, id, message) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result: null, error: { code, message } }));
  };

/** As the guide has it: every answer is a stream. */
const refuseInStream: Refusal = (response, id, message) => {
  response.setHeader("content-type", "text/event-stream");
  response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32001, message } })}\n\n`);
};

const CREDENTIALS = { authorization: "Bearer the-key" };

/** The sentences are those of a server that was written after the guide. */
class SessionServer {
  readonly received: Received[] = [];
  readonly sessions = new Set<string>();
  refuse: Refusal = refuse(200, -32001);
  /** Answers `initialize` in its own way. */
  onInitialize: ((response: ServerResponse, id: unknown) => void) | undefined;
  /** Answers `message/stream` in its own way, once the session is known. */
  onMessage: ((response: ServerResponse, id: unknown) => void) | undefined;
  #opened = 0;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as Asked;
        this.received.push({ body, headers: request.headers });
        this.#answer(body, request.headers, response);
      });
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/agent/message`;
  }

  get methods(): string[] {
    return this.received.map(({ body }) => body.method);
  }

  count(method: string): number {
    return this.methods.filter((one) => one === method).length;
  }

  start(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  open(response: ServerResponse, id: unknown): void {
    const agentSessionId = `session-${++this.#opened}`;
    this.sessions.add(agentSessionId);
    // Some send it with a space at its end.
    this.#result(response, id, { version: "1.0", agentSessionId: `${agentSessionId} `, agentSessionTtl: "604800" });
  }

  #answer({ id, method, params }: Asked, headers: IncomingHttpHeaders, response: ServerResponse): void {
    if (method === "initialize") {
      if (this.onInitialize !== undefined) this.onInitialize(response, id);
      else if (headers.authorization !== CREDENTIALS.authorization) refuse(401, -32600)(response, id, "Wrong key.");
      else this.open(response, id);
      return;
    }
    const session = headers["agent-session-id"];
    if (typeof session !== "string") this.refuse(response, id, "Missing agent-session-id header");
    else if (!this.sessions.has(session)) this.refuse(response, id, "agentSessionId expired");
    else if (method === "notifications/initialized") response.end();
    else if (method === "tasks/cancel") this.#result(response, id, { id: "t", status: { state: "canceled" } });
    else if (method === "authorize") this.#authorize(params?.message?.parts[0]?.data?.authCode, response, id);
    else if (this.onMessage !== undefined) this.onMessage(response, id);
    else this.#stream(response, id);
  }

  #authorize(authCode: string | undefined, response: ServerResponse, id: unknown): void {
    if (authCode === "the-code") this.#result(response, id, { version: "1.0", agentLoginSessionId: "the-login" });
    else refuse(200, -32602)(response, id, "The code is not known.");
  }

  #result(response: ServerResponse, id: unknown, result: object): void {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result, error: { code: 0, message: "" } }));
  }

  #stream(response: ServerResponse, id: unknown): void {
    const artifact = { artifactId: "a", parts: [{ kind: "text", text: "Hi!" }] };
    const result = { taskId: "t", kind: "artifact-update", append: false, lastChunk: true, final: true, artifact };
    response.setHeader("content-type", "text/event-stream");
    response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`);
  }
}

let server: SessionServer;
beforeEach(async () => {
  server = new SessionServer();
  await server.start();
});
afterEach(() => server.stop());

const reach = (options: ConnectOptions = {}) =>
  connect(server.url, { dialect: "xiaoyi-http", headers: CREDENTIALS, ...options });
const ANSWERED = { task: { artifacts: [{ parts: [{ text: "Hi!" }] }], status: { state: "TASK_STATE_COMPLETED" } } };
const OPENING = ["message/stream", "initialize", "notifications/initialized", "message/stream"];

describe("an agent that requires a session", () => {
  it.each<[string, Refusal]>([
    ["an error that names the session", refuse(200, -32001)],
    ["status 401", refuse(401, -32600)],
    ["status 401 with a page", (response) => void response.writeHead(401).end("<h1>Log in</h1>")],
    ["an error in a stream", refuseInStream],
  ])("and asks for it by %s is given one, which is kept", async (_, refusal) => {
    server.refuse = refusal;
    const agent = await reach();
    expect(await agent.send("hello")).toMatchObject(ANSWERED);
    expect(server.methods).toEqual(OPENING);
    expect(server.received.map(({ headers }) => headers["agent-session-id"])).toEqual([
      undefined,
      undefined,
      "session-1",
      "session-1",
    ]);
    expect(server.received[1]?.headers.authorization).toBe(CREDENTIALS.authorization);
    expect(server.received.at(-1)?.body).toEqual(server.received[0]?.body);
    expect(await agent.send("again")).toMatchObject(ANSWERED);
    expect(await agent.cancel("talk&1")).toMatchObject({ status: { state: "TASK_STATE_CANCELED" } });
    expect(server.methods.slice(4)).toEqual(["message/stream", "tasks/cancel"]);
  });

  it.each<[string, Refusal]>([
    ["whole", refuse(200, -32001)],
    ["in the stream", refuseInStream],
  ])("is streamed from, refused %s", async (_, refusal) => {
    server.refuse = refusal;
    const texts: unknown[] = [];
    for await (const { event } of (await reach()).stream("hello")) {
      if ("artifactUpdate" in event) texts.push(...event.artifactUpdate.artifact.parts);
    }
    expect(texts).toEqual([{ text: "Hi!" }]);
    expect(server.methods).toEqual(OPENING);
  });

  it("is asked for no session where it does not require one", async () => {
    const agent = await reach({ headers: { "agent-session-id": "given" } });
    server.sessions.add("given");
    expect(await agent.send("hello")).toMatchObject(ANSWERED);
    expect(server.methods).toEqual(["message/stream"]);
  });

  it("is given another when the first has expired", async () => {
    const agent = await reach();
    await agent.send("hello");
    server.sessions.clear();
    expect(await agent.send("later")).toMatchObject(ANSWERED);
    expect(server.methods).toEqual([...OPENING, ...OPENING]);
    expect(server.received.at(-1)?.headers["agent-session-id"]).toBe("session-2");
  });

  it("is asked for one session only by calls at the same time, at first and after it expired", async () => {
    const agent = await reach();
    const calls = () => Promise.all(Array.from({ length: 20 }, (_, index) => agent.send(`hello ${index}`)));
    for (const opened of [1, 2]) {
      for (const outcome of await calls()) expect(outcome).toMatchObject(ANSWERED);
      expect(server.count("initialize")).toBe(opened);
      server.sessions.clear();
    }
  });

  it("continues to open a session while a call waits for it", async () => {
    let open = (): void => {};
    let refusals = 0;
    const leaving = new AbortController();
    const agent = await reach({ onExchange: ({ direction }) => void (direction === "response" && ++refusals) });
    const asked = new Promise<void>((resolve) => {
      server.onInitialize = (response, id) => {
        open = () => server.open(response, id);
        resolve();
      };
    });
    const left = expect(agent.send("one", { signal: leaving.signal })).rejects.toMatchObject({ code: "aborted" });
    const stayed = agent.send("two");
    await asked;
    await vi.waitFor(() => expect(refusals).toBe(2));
    // Both have read their refusal, and wait for the session once they had their turn.
    await new Promise((resolve) => setImmediate(resolve));
    leaving.abort();
    await left;
    open();
    expect(await stayed).toMatchObject(ANSWERED);
    expect(server.count("initialize")).toBe(1);
  });

  it("keeps its ids out of traces", async () => {
    const traces: ExchangeTrace[] = [];
    const agent = await reach({ authCode: "the-code", onExchange: (trace) => void traces.push(trace) });
    await agent.send("hello");
    // The id of the conversation is derived, and may begin with the same characters.
    expect(JSON.stringify(traces)).not.toMatch(/session-1(?![\w-])|the-login|the-code|the-key/);
  });
});

describe("an agent that opens no session", () => {
  it("because the credentials are wrong is not asked again, and the error names both refusals", async () => {
    const agent = await reach({ headers: {} });
    await expect(agent.send("hello")).rejects.toMatchObject({
      code: "UNAUTHENTICATED",
      message: "Missing agent-session-id header. No session could be opened: Wrong key.",
    });
    expect(server.methods).toEqual(["message/stream", "initialize"]);
  });

  it.each<[string, (response: ServerResponse, id: unknown) => void, string]>([
    ["does not know how", (response, id) => refuse(200, -32601)(response, id, "No such method."), "No such method."],
    [
      "gives none",
      (response, id) => void response.end(JSON.stringify({ jsonrpc: "2.0", id, result: {} })),
      "result.agentSessionId is missing",
    ],
    [
      "gives one that breaks headers",
      (response, id) => void response.end(JSON.stringify({ jsonrpc: "2.0", id, result: { agentSessionId: "a\r\nb" } })),
      "is not a usable id",
    ],
  ])("because it %s gives a precise error", async (_, answer, words) => {
    server.onInitialize = answer;
    await expect((await reach()).send("hello")).rejects.toMatchObject({
      code: "UNAUTHENTICATED",
      message: expect.stringContaining(words),
    });
    expect(server.methods).toEqual(["message/stream", "initialize"]);
  });

  it("because it is overloaded is unavailable", async () => {
    server.onInitialize = (response) => void response.writeHead(503).end();
    await expect((await reach()).send("hello")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(server.count("message/stream")).toBe(1);
  });

  it("that it then accepts is asked once", async () => {
    server.onInitialize = (response, id) => {
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result: { agentSessionId: "unknown" } }));
    };
    await expect((await reach()).send("hello")).rejects.toMatchObject({
      code: "UNAUTHENTICATED",
      message: "The agent does not accept the session that it has just opened: agentSessionId expired",
    });
    expect(server.methods).toEqual(OPENING);
  });
});

describe("an error that speaks of a session", () => {
  it("is the answer where the task had begun, and nothing is sent twice", async () => {
    server.sessions.add("given");
    server.onMessage = (response, id) => {
      const working = { taskId: "t", kind: "status-update", final: false, status: { state: "working" } };
      const frames = [{ result: working }, { error: { code: -32001, message: "agentSessionId expired" } }];
      response.setHeader("content-type", "text/event-stream");
      response.end(frames.map((frame) => `data: ${JSON.stringify({ jsonrpc: "2.0", id, ...frame })}\n\n`).join(""));
    };
    const agent = await reach({ headers: { "agent-session-id": "given" } });
    await expect(agent.send("hello")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    expect(server.methods).toEqual(["message/stream"]);
  });

  it.each([
    [-32603, "The session store is missing: session not found", "INTERNAL_ERROR"],
    [-32602, "params.sessionId must be a string", "INVALID_PARAMS"],
    [-32001, "No such task in this session", "TASK_NOT_FOUND"],
  ])("may mean something else: %i %s", async (code, message, known) => {
    server.sessions.add("given");
    server.onMessage = (response, id) => refuse(200, code)(response, id, message);
    const agent = await reach({ headers: { "agent-session-id": "given" } });
    await expect(agent.send("hello")).rejects.toMatchObject({ code: known });
    expect(server.methods).toEqual(["message/stream"]);
  });
});

describe("a user's login", () => {
  it("is asked for once, within the session, and named by every message", async () => {
    const agent = await reach({ authCode: "the-code" });
    await Promise.all([agent.send("hello"), agent.send("hello again")]);
    await agent.send("later");
    expect(server.methods.slice(0, 4)).toEqual(["authorize", "initialize", "notifications/initialized", "authorize"]);
    expect(server.methods.slice(4)).toEqual(["message/stream", "message/stream", "message/stream"]);
    const logins = server.received.slice(4).map(({ body }) => body.params?.agentLoginSessionId);
    expect(logins).toEqual(["the-login", "the-login", "the-login"]);
  });

  it("that a message names itself stands", async () => {
    const metadata: Message["metadata"] = { "urn:dragoman:ext:xiaoyi:v1": { agentLoginSessionId: "another" } };
    await (await reach({ authCode: "the-code" })).send({ message: { parts: [{ text: "hi" }], metadata } });
    expect(server.received.at(-1)?.body.params?.agentLoginSessionId).toBe("another");
  });

  it("that is refused fails the call, and no message is sent", async () => {
    const agent = await reach({ authCode: "wrong" });
    await expect(agent.send("hello")).rejects.toMatchObject({
      code: "UNAUTHENTICATED",
      message: "The agent does not accept the login: The code is not known.",
    });
    expect(server.count("message/stream")).toBe(0);
  });
});
