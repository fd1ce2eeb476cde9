import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { connect, type RemoteAgent } from "../../../client.ts";
import type { Notice } from "../options.ts";
import {
  artifactUpdate,
  collect,
  type FakeAgentOptions,
  type Handler,
  openStream,
  REPLAY_CARD,
  type Recorded,
  restFrame,
  rpcFrame,
  sendJson,
  sendResult,
  sendRpcError,
  startFakeAgent,
  statusUpdate,
  task,
} from "../testing/fake-agent.ts";

const FAST = { attempts: 3, baseMs: 1, capMs: 2 };
const WORKING = { task: task("TASK_STATE_WORKING") };
const DONE = JSON.parse(JSON.stringify(statusUpdate("TASK_STATE_COMPLETED")));

/** Each connection is answered by the next of the steps. */
function steps(...handlers: Handler[]): Handler {
  return (request, response) => (handlers.shift() ?? tooMany)(request, response);
}

function tooMany(_: Recorded, response: ServerResponse): void {
  sendRpcError(response, -32603, undefined, 200);
}

const breaking =
  (text: string): Handler =>
  (_, response) => {
    openStream(response);
    // What is left unsaid of a chunked body makes this a break and not an end.
    response.write(text, () => setImmediate(() => response.destroy()));
  };

const closing =
  (text: string): Handler =>
  (_, response) => {
    openStream(response);
    response.end(text);
  };

async function agentFor(
  handler: Handler,
  options: FakeAgentOptions = {},
  streamSilenceMs = 20_000,
): Promise<{ agent: RemoteAgent; server: Awaited<ReturnType<typeof startFakeAgent>>; notices: Notice[] }> {
  const server = await startFakeAgent(handler, options);
  const notices: Notice[] = [];
  const agent = await connect(server.url, {
    retry: FAST,
    onNotice: (notice) => notices.push(notice),
    streamSilenceMs,
  });
  return { agent, server, notices };
}

async function eventsOf(agent: RemoteAgent): Promise<unknown[]> {
  return (await collect(agent.stream("go"))).map(({ event }) => event);
}

test("a numbered stream is resumed after the last number; the declared extension leaves out the snapshot", async () => {
  const { agent, notices, server } = await agentFor(
    steps(
      breaking(`${rpcFrame(WORKING, 1)}${rpcFrame(artifactUpdate("a"), 2)}id: 3\ndata: {"half`),
      closing(rpcFrame(artifactUpdate("b"), 3) + rpcFrame(DONE, 4)),
    ),
    { card: REPLAY_CARD },
  );
  await using _ = server;
  const events = await collect(agent.stream("go"));
  expect(events.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
  expect(server.methods()).toEqual(["SendStreamingMessage", "SubscribeToTask"]);
  expect(server.requests[1]?.rpc.params).toEqual({ id: "t1" });
  expect(server.requests[1]?.headers).toMatchObject({
    "last-event-id": "2",
    "a2a-extensions": "urn:dragoman:ext:replay:v1",
  });
  expect(server.requests[0]?.headers["a2a-extensions"]).toBeUndefined();
  expect(notices.map(({ kind }) => kind)).toEqual(["reconnect"]);
});

test("without that extension the snapshot at the cursor is dropped", async () => {
  const { agent, server } = await agentFor(
    steps(
      breaking(rpcFrame(WORKING, 1) + rpcFrame(artifactUpdate("a"), 2)),
      closing(rpcFrame(WORKING, 2) + rpcFrame(artifactUpdate("b"), 3) + rpcFrame(DONE, 4)),
    ),
  );
  await using _ = server;
  expect((await collect(agent.stream("go"))).map(({ number }) => number)).toEqual([1, 2, 3, 4]);
  expect(server.requests[1]?.headers["last-event-id"]).toBe("2");
  expect(server.requests[1]?.headers["a2a-extensions"]).toBeUndefined();
});

test("a peer that sends all events again is not delivered twice", async () => {
  const { agent, server } = await agentFor(
    steps(
      breaking(rpcFrame(WORKING, 1) + rpcFrame(artifactUpdate("a"), 2)),
      closing(rpcFrame(WORKING, 1) + rpcFrame(artifactUpdate("a"), 2) + rpcFrame(DONE, 3)),
    ),
  );
  await using _ = server;
  expect((await collect(agent.stream("go"))).map(({ number }) => number)).toEqual([1, 2, 3]);
});

test("a cursor the peer no longer keeps gives the task as it is, then what follows", async () => {
  const { agent, server } = await agentFor(
    steps(breaking(rpcFrame(WORKING, 1)), closing(rpcFrame(WORKING, 9) + rpcFrame(DONE, 10))),
    { card: REPLAY_CARD },
  );
  await using _ = server;
  expect(await collect(agent.stream("go"))).toEqual([
    { number: 1, event: WORKING },
    { number: 9, event: WORKING },
    { number: 10, event: DONE },
  ]);
});

test("without numbers the snapshot is passed on and nothing is dropped", async () => {
  const snapshot = {
    task: { ...task("TASK_STATE_WORKING"), artifacts: [{ artifactId: "a1", parts: [{ text: "ab" }] }] },
  };
  const { agent, server } = await agentFor(
    steps(
      breaking(rpcFrame(WORKING) + rpcFrame(artifactUpdate("a"))),
      closing(rpcFrame(snapshot) + rpcFrame(artifactUpdate("c")) + rpcFrame(DONE)),
    ),
  );
  await using _ = server;
  expect(await eventsOf(agent)).toEqual([WORKING, artifactUpdate("a"), snapshot, artifactUpdate("c"), DONE]);
  expect(server.requests[1]?.headers["last-event-id"]).toBeUndefined();
});

test("ids that count the frames of a connection are not mistaken for numbers of the log", async () => {
  const snapshot = {
    task: { ...task("TASK_STATE_WORKING"), artifacts: [{ artifactId: "a1", parts: [{ text: "ab" }] }] },
  };
  const { agent, server } = await agentFor(
    steps(
      breaking(rpcFrame(WORKING, 1) + rpcFrame(artifactUpdate("a"), 2) + rpcFrame(artifactUpdate("b"), 3)),
      closing(rpcFrame(snapshot, 1) + rpcFrame(artifactUpdate("c"), 2) + rpcFrame(DONE, 3)),
    ),
  );
  await using _ = server;
  expect((await eventsOf(agent)).slice(3)).toEqual([snapshot, artifactUpdate("c"), DONE]);
});

test.each([-32001, -32004, -32602, -32603])(
  "a task that ended meanwhile is fetched when the peer answers %i to the subscription",
  async (code) => {
    const { agent, server } = await agentFor(
      steps(
        breaking(rpcFrame(WORKING)),
        (_, response) => sendRpcError(response, code),
        (_, response) => sendResult(response, task()),
      ),
    );
    await using _ = server;
    expect(await eventsOf(agent)).toEqual([WORKING, { task: task() }]);
    expect(server.methods()).toEqual(["SendStreamingMessage", "SubscribeToTask", "GetTask"]);
  },
);

test("a task is read between attempts to subscribe, and ends with the first that finds it ended", async () => {
  const { agent, server } = await agentFor(({ rpc }, response) => {
    if (rpc.method === "SendStreamingMessage") void breaking(rpcFrame(WORKING))({} as never, response);
    else if (rpc.method === "SubscribeToTask") response.writeHead(503).end();
    else sendResult(response, task());
  });
  await using _ = server;
  expect(await eventsOf(agent)).toEqual([WORKING, { task: task() }]);
  expect(server.methods()).toEqual(["SendStreamingMessage", "SubscribeToTask", "GetTask"]);
});

test("an error in the middle of a first stream is thrown, unless the task ended well", async () => {
  const failing = rpcFrame(WORKING).concat(
    `data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32603, message: "No." } })}\n\n`,
  );
  for (const state of ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]) {
    const { agent, server } = await agentFor(
      steps(closing(failing), (_, response) => sendResult(response, task(state))),
    );
    await using _ = server;
    const reading = eventsOf(agent);
    if (state === "TASK_STATE_WORKING") await expect(reading).rejects.toMatchObject({ code: "INTERNAL_ERROR" });
    else expect(await reading).toEqual([WORKING, { task: task() }]);
  }
});

test("a task that the peer has lost is an error, once subscribing and reading agree", async () => {
  const { agent, server } = await agentFor(
    steps(
      breaking(rpcFrame(WORKING)),
      (_, response) => sendRpcError(response, -32602),
      (_, response) => sendRpcError(response, -32001, "TASK_NOT_FOUND"),
    ),
  );
  await using _ = server;
  await expect(eventsOf(agent)).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
});

test("a numbered stream that cannot be resumed and a task that cannot be read end in an error that helps", async () => {
  const { agent, server } = await agentFor(({ rpc }, response) => {
    if (rpc.method === "SendStreamingMessage") void breaking(rpcFrame(WORKING, 7))({} as never, response);
    else response.writeHead(503).end();
  });
  await using _ = server;
  await expect(eventsOf(agent)).rejects.toMatchObject({
    code: "broken-stream",
    taskId: "t1",
    after: 7,
    message: expect.stringContaining("task t1 broke and could not be resumed in 3 tries"),
  });
});

test("a clean close ends the iteration where someone must act, and only there", async () => {
  const asking = await agentFor(
    steps(closing(rpcFrame(WORKING, 1) + rpcFrame(statusUpdate("TASK_STATE_INPUT_REQUIRED"), 2))),
  );
  await using _asking = asking.server;
  expect(await eventsOf(asking.agent)).toHaveLength(2);
  expect(asking.server.requests).toHaveLength(1);

  const active = await agentFor(
    steps(closing(rpcFrame(WORKING, 1)), closing(rpcFrame(WORKING, 1) + rpcFrame(DONE, 2))),
  );
  await using _active = active.server;
  expect(await eventsOf(active.agent)).toEqual([WORKING, DONE]);
});

test("a break while authorisation is awaited is resumed, and after the end it is nothing", async () => {
  const auth = statusUpdate("TASK_STATE_AUTH_REQUIRED");
  const { agent, server } = await agentFor(
    steps(breaking(rpcFrame(WORKING, 1) + rpcFrame(auth, 2)), breaking(rpcFrame(WORKING, 2) + rpcFrame(DONE, 3))),
  );
  await using _ = server;
  expect((await collect(agent.stream("go"))).map(({ number }) => number)).toEqual([1, 2, 3]);
  expect(server.requests).toHaveLength(2);
});

test("a break before any task is never repaired by sending again", async () => {
  const { agent, server } = await agentFor(steps(breaking(": hello\n\n")));
  await using _ = server;
  await expect(eventsOf(agent)).rejects.toMatchObject({
    code: "broken-stream",
    message: expect.stringContaining("unknown whether the agent received the message"),
  });
  expect(server.requests).toHaveLength(1);
});

test("… unless an idempotency key makes that safe: then it is the same send", async () => {
  const { agent, server } = await agentFor(
    steps(
      breaking(": hello\n\n"),
      (_, response) => void response.writeHead(503).end(),
      closing(rpcFrame(WORKING, 1) + rpcFrame(DONE, 2)),
    ),
  );
  await using _ = server;
  expect(await collect(agent.stream("go", { idempotencyKey: "k" }))).toHaveLength(2);
  expect(server.methods()).toEqual(["SendStreamingMessage", "SendStreamingMessage", "SendStreamingMessage"]);
  const [first, second] = server.requests;
  expect(second?.body).toBe(first?.body);
  expect(second?.headers["idempotency-key"]).toBe("k");
});

test("a half-open connection counts as broken after the silence that is allowed", async () => {
  const { agent, notices, server } = await agentFor(
    steps(
      (_, response) => {
        openStream(response);
        response.write(rpcFrame(WORKING, 1));
      },
      closing(rpcFrame(WORKING, 1) + rpcFrame(DONE, 2)),
    ),
    {},
    40,
  );
  await using _ = server;
  expect((await collect(agent.stream("go"))).map(({ number }) => number)).toEqual([1, 2]);
  expect(server.requests[1]?.headers["last-event-id"]).toBe("1");
  expect(notices[0]?.message).toContain("sent nothing for 40 ms");
});

test("a peer that sheds its readers is resumed, also over HTTP+JSON", async () => {
  const shed = restFrame({ error: { code: 503, status: "UNAVAILABLE", message: "Resume.", details: [] } });
  const { agent, server } = await agentFor(
    steps(closing(restFrame(WORKING, 1) + shed), closing(restFrame(WORKING, 1) + restFrame(DONE, 2))),
    { binding: "HTTP+JSON" },
  );
  await using _ = server;
  expect((await collect(agent.stream("go"))).map(({ number }) => number)).toEqual([1, 2]);
  expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    "POST /rest/message:stream",
    "POST /rest/tasks/t1:subscribe",
  ]);
});

test("subscribe goes on after a number and survives breaks and stumbles", async () => {
  const { agent, server } = await agentFor(
    steps(
      (_, response) => void response.writeHead(502).end("<html>"),
      breaking(rpcFrame(artifactUpdate("c"), 5)),
      (_, response) => void response.destroy(),
      closing(rpcFrame(DONE, 6)),
    ),
    { card: REPLAY_CARD },
  );
  await using _ = server;
  expect((await collect(agent.subscribe("t1", { after: 4 }))).map(({ number }) => number)).toEqual([5, 6]);
  expect(server.requests.map(({ headers }) => headers["last-event-id"])).toEqual(["4", "4", "5", "5"]);
});

test("what a peer says to a first subscription is thrown as it is", async () => {
  const { agent, server } = await agentFor(({ rpc }, response) =>
    sendRpcError(response, rpc.params?.id === "x" ? -32001 : -32004),
  );
  await using _ = server;
  await expect(collect(agent.subscribe("x"))).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  await expect(collect(agent.subscribe("t1"))).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION" });
  expect(server.requests).toHaveLength(2);
});

test.each([404, 405])(
  "a server that answers %i to POST is subscribed to with GET, from then on at once",
  async (status) => {
    const { agent, notices, server } = await agentFor(
      ({ method }, response) => {
        if (method === "POST") response.writeHead(status).end("no such route");
        else void closing(restFrame(WORKING, 1) + restFrame(DONE, 2))({} as never, response);
      },
      { binding: "HTTP+JSON" },
    );
    await using _ = server;
    expect(await collect(agent.subscribe("t1"))).toHaveLength(2);
    expect(await collect(agent.subscribe("t1"))).toHaveLength(2);
    expect(server.requests.map(({ method }) => method)).toEqual(["POST", "GET", "GET"]);
    expect(server.requests[1]?.headers["content-type"]).toBeUndefined();
    expect(notices.map(({ kind }) => kind)).toEqual(["fallback"]);
  },
);

test("a task that does not exist is not looked for with another verb", async () => {
  const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "TASK_NOT_FOUND" }];
  const { agent, server } = await agentFor(
    (_, response) => sendJson(response, { error: { code: 404, status: "NOT_FOUND", message: "No.", details } }, 404),
    { binding: "HTTP+JSON" },
  );
  await using _ = server;
  await expect(collect(agent.subscribe("x"))).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  expect(server.requests).toHaveLength(1);
});

test("a peer that only ever repeats the snapshot is given up", async () => {
  const { agent, server } = await agentFor(closing(rpcFrame(WORKING)));
  await using _ = server;
  await expect(eventsOf(agent)).rejects.toMatchObject({ code: "broken-stream", taskId: "t1" });
  expect(server.methods().filter((method) => method !== "GetTask")).toHaveLength(3);
});
