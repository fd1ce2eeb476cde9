import { createServer } from "node:http";
import express from "express";
import { describe, expect, test } from "vitest";
import { connect } from "../../src/client.ts";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { defineAgent } from "../../src/core/agents/define.ts";
import { dragoman } from "../../src/express.ts";
import { createHandler, type ServeOptions, serve } from "../../src/index.ts";
import { closeLater, listen, startServer } from "../support/lifecycle.ts";

const agents = { echo: createEchoAgent() };

/** Closed with the test. */
async function openHandler(options: Parameters<typeof createHandler>[0]) {
  const handle = await createHandler(options);
  closeLater(() => handle.close());
  return handle;
}

const SEND = {
  jsonrpc: "2.0",
  id: 7,
  method: "SendMessage",
  params: { message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }] } },
};

function post(url: string, body: unknown, headers: Record<string, string> = {}): Request {
  return new Request(url, {
    method: "POST",
    headers: { "content-type": "application/json", "a2a-version": "1.0", ...headers },
    body: JSON.stringify(body),
  });
}

describe("the web-standard handler", () => {
  const handler = () => openHandler({ agents, publicUrl: "https://example.com/a2a" });

  test("answers below the path it is mounted at, and names it in the card", async () => {
    const handle = await handler();
    const card = await (await handle(new Request("https://example.com/a2a/.well-known/agent-card.json"))).json();
    const urls = (card as { supportedInterfaces: { url: string }[] }).supportedInterfaces.map(({ url }) => url);
    // Only what a web handler can answer: no gRPC.
    expect(new Set(urls)).toEqual(
      new Set(["https://example.com/a2a/agents/echo", "https://example.com/a2a/agents/echo/rest"]),
    );
    const answer = await (await handle(post("https://example.com/a2a/agents/echo", SEND))).json();
    expect(answer).toMatchObject({ id: 7, result: { task: { status: { state: "TASK_STATE_COMPLETED" } } } });
  });

  test("streams, and a reader that cancels leaves the task alone", async () => {
    const handle = await handler();
    const stream = { ...SEND, method: "SendStreamingMessage" };
    const response = await handle(post("https://example.com/a2a/", stream));
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect((await response.text()).match(/^id: \d+$/gm)).toEqual(["id: 1", "id: 2", "id: 3", "id: 4"]);
    const left = await handle(post("https://example.com/a2a/", stream));
    const reader = left.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    const list = await handle(post("https://example.com/a2a/", { ...SEND, method: "ListTasks", params: {} }));
    expect(await list.json()).toMatchObject({ result: { totalSize: 2 } });
  });

  test("refuses a body over the limit and answers HEAD without one", async () => {
    const handle = await openHandler({ agents, publicUrl: "http://localhost", limits: { body: 100 } });
    expect((await handle(post("http://localhost/", SEND))).status).toBe(413);
    const head = await handle(new Request("http://localhost/.well-known/agent-card.json", { method: "HEAD" }));
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  describe("has the limits of Node's HTTP on what arrives", () => {
    const KEY = "alice-key-5f0c2b77d1";
    const CHUNK = 16 * 1024;

    const guarded = (limits: ServeOptions["limits"] = {}) =>
      openHandler({ agents, publicUrl: "http://localhost", auth: { apiKeys: [{ key: KEY, owner: "alice" }] }, limits });

    /** A body of which each chunk is made when it is read; `taken` says how many were. */
    function streamed(chunks: number, headers: Record<string, string> = {}) {
      const taken = { chunks: 0, cancelled: false };
      const body = new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            if (taken.chunks === chunks) controller.close();
            else controller.enqueue(new Uint8Array(CHUNK).fill(0x20));
            taken.chunks++;
          },
          cancel() {
            taken.cancelled = true;
          },
        },
        { highWaterMark: 0 },
      );
      const json = { "content-type": "application/json", "a2a-version": "1.0", ...headers };
      const init = { method: "POST", headers: json, body, duplex: "half" } as const;
      return { taken, request: new Request("http://localhost/", init) };
    }

    test("much is read only of callers that are authorised", async () => {
      const handle = await guarded();
      const { request, taken } = streamed(100);
      const reply = await handle(request);
      expect(reply.status).toBe(401);
      expect(reply.headers.get("www-authenticate")).toContain("Bearer");
      expect(taken).toEqual({ chunks: 2, cancelled: true });
      const known = streamed(100, { "x-api-key": KEY });
      expect(await (await handle(known.request)).json()).toMatchObject({ error: { code: -32700 } });
    });

    test("the length that is announced is enough to be refused", async () => {
      const handle = await guarded({ body: 10 * CHUNK });
      const { request, taken } = streamed(11, { "content-length": String(11 * CHUNK), "x-api-key": KEY });
      expect((await handle(request)).status).toBe(413);
      expect(taken.chunks).toBe(0);
    });

    test("compressed bodies are refused", async () => {
      const handle = await guarded();
      expect((await handle(streamed(1, { "content-encoding": "gzip", "x-api-key": KEY }).request)).status).toBe(415);
    });

    test("all that arrives shares one budget, of which callers without credentials have a part", async () => {
      const handle = await guarded({ arriving: 16 * CHUNK });
      const waiting: ReadableStreamDefaultController<Uint8Array>[] = [];
      const answers = ["", "", KEY].map((key) => {
        const body = new ReadableStream<Uint8Array>({
          start(controller) {
            controller.enqueue(new Uint8Array(2 * CHUNK).fill(0x20));
            waiting.push(controller);
          },
        });
        const headers = { "a2a-version": "1.0", "content-type": "application/json", ...(key && { "x-api-key": key }) };
        return handle(new Request("http://localhost/", { method: "POST", headers, body, duplex: "half" }));
      });
      // A fourth of the budget is used up, by which one more without credentials is recognised as such.
      expect((await handle(streamed(1).request)).status).toBe(401);
      const known = await handle(streamed(12, { "x-api-key": KEY }).request);
      expect(known.status).toBe(429);
      expect((await handle(streamed(9, { "x-api-key": KEY }).request)).status).toBe(200);
      for (const controller of waiting) controller.close();
      expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([401, 401, 200]);
      expect((await handle(streamed(15, { "x-api-key": KEY }).request)).status).toBe(200);
    });
  });
});

describe("options", () => {
  // Options as they come from a program without types.
  const untyped = (options: object): never => ({ agents, ...options }) as never;

  test("are refused by all of their faults at once, with the name that may have been meant", async () => {
    const wrong = untyped({ publicUrl: "ftp://x", prot: 3, limits: { boddy: 1 }, times: { drainMs: -1 } });
    const refusal =
      /publicUrl: must be an http[\s\S]*limits\.boddy: unknown key; did you mean "body"[\s\S]*prot: unknown key; did you mean "port"/;
    await expect(createHandler(wrong)).rejects.toThrow(refusal);
    await expect(dragoman(wrong)).rejects.toThrow(refusal);
    await expect(serve(wrong)).rejects.toThrow(/^serve: [\s\S]*times\.drainMs: must be a number of 0 or more/);
  });

  test.each([
    [{ port: "4000" }, /port: must be a number, not text/],
    [{ port: 70_000 }, /port: must be 65535 or less/],
    [{ store: "mysql:x" }, /store: must be "memory:", "sqlite:<file>" or "postgres:.*", or a TaskStore/],
    [{ agents: { echo: {} } }, /agents\.echo: must be an agent: what defineAgent/],
    [{ card: "v2" }, /card: must be one of hybrid, v1, v03/],
    [{ log: () => {} }, /log: must be false or an object/],
    [{ path: "a2a" }, /path: must begin with a slash/],
    [{ authenticate: true }, /authenticate: must be a function/],
  ])("%o is refused", async (options, reason) => {
    await expect(serve(untyped({ port: 0, ...options }))).rejects.toThrow(reason);
  });

  test("limits may be switched off", async () => {
    await startServer({ agents, grpcPort: false, limits: { mergeAfter: Number.POSITIVE_INFINITY } });
  });

  test("a handler does not start without the address that its cards will name", async () => {
    await expect(createHandler(untyped({}))).rejects.toThrow(/^createHandler: publicUrl is required/);
    await expect(dragoman(untyped({}))).rejects.toThrow(/^dragoman: publicUrl is required/);
  });

  test("a misspelled option of connect or defineAgent is named", async () => {
    await expect(connect("http://127.0.0.1:9", untyped({ timoutMs: 1 }))).rejects.toThrow(/did you mean "timeoutMs"\?/);
    expect(() => defineAgent(untyped({ name: "A", description: "B", run: () => "", onCrsh: "fail" }))).toThrow(
      /unknown option "onCrsh"; did you mean "onCrash"\?/,
    );
  });
});

test("the Host header of a request never reaches a card", async () => {
  const handle = await openHandler({ agents, publicUrl: "https://example.com" });
  const cardAt = async (origin: string) => (await handle(new Request(`${origin}/.well-known/agent-card.json`))).text();
  expect(await cardAt("https://attacker.example")).not.toContain("attacker.example");
  expect(await cardAt("https://example.com")).toContain("https://example.com/agents/echo");
});

test("replace refuses what is not there and what is not an agent", async () => {
  const server = await startServer({ agents, grpcPort: false });
  expect(() => server.replace("nope", createEchoAgent())).toThrow(/there is no agent "nope"/);
  expect(() => server.replace("echo", { name: "x" } as never)).toThrow(/must be what defineAgent returns/);
});

test("serve with a path answers below it only, and its card leads there", async () => {
  const server = await startServer({ agents, grpcPort: false, path: "/a2a" });
  const origin = `http://127.0.0.1:${server.port}`;
  expect(server.url).toBe(`${origin}/a2a`);
  const statusOf = async (path: string) => (await fetch(origin + path)).status;
  expect(await Promise.all(["/healthz", "/a2axx/healthz", "/a2a/healthz"].map(statusOf))).toEqual([404, 404, 200]);
  const agent = await connect(`${origin}/a2a`);
  expect(agent.interface.url).toMatch(`${origin}/a2a/agents/echo`);
  const outcome = await agent.send("hello");
  expect("task" in outcome && outcome.task.artifacts?.[0]?.parts).toEqual([{ text: "hello" }]);
});

describe("the Express middleware", () => {
  /** An application with Dragoman mounted at `mount`, and a route of its own behind it. */
  async function application(mount: string, prepare: (app: express.Express) => void = () => {}): Promise<string> {
    const app = express();
    const listening = createServer(app);
    const origin = `http://127.0.0.1:${await listen(listening)}`;
    const middleware = await dragoman({ agents, publicUrl: origin + mount });
    prepare(app);
    app.use(mount, middleware);
    app.get("/hello", (_request, response) => void response.send("mine"));
    app.post("/agent/message", (_request, response) => void response.send("mine too"));
    closeLater(() => middleware.close());
    return origin;
  }

  test("passes on what is not its own, also at the root", async () => {
    const origin = await application("/");
    expect(await (await fetch(`${origin}/hello`)).text()).toBe("mine");
    expect(await (await fetch(`${origin}/agent/message`, { method: "POST" })).text()).toBe("mine too");
    expect((await fetch(`${origin}/nowhere`)).status).toBe(404);
    expect((await fetch(`${origin}/.well-known/agent-card.json`)).status).toBe(200);
  });

  test("takes a body that a parser has read before", async () => {
    const origin = await application("/a2a", (app) => app.use(express.json()));
    const answer = await (await fetch(post(`${origin}/a2a/agents/echo`, SEND))).json();
    expect(answer).toMatchObject({ id: 7, result: { task: { artifacts: [{ parts: [{ text: "hello" }] }] } } });
  });

  test("serves below its mount point, beside routes of the application's own", async () => {
    const origin = await application("/a2a");
    expect(await (await fetch(`${origin}/hello`)).text()).toBe("mine");
    const agent = await connect(`${origin}/a2a/agents/echo`);
    const outcome = await agent.send("hello");
    expect("task" in outcome && outcome.task.artifacts?.[0]?.parts).toEqual([{ text: "hello" }]);
    const numbers: (number | undefined)[] = [];
    for await (const { number } of agent.stream("again")) numbers.push(number);
    expect(numbers).toEqual([1, 2, 3, 4]);
  });
});
