import { describe, expect, it } from "vitest";
import type { RemoteAgent } from "../../src/core/client/options.ts";
import { ProtocolError } from "../../src/core/model/errors.ts";
import type { StreamEvent } from "../../src/core/model/event.ts";
import type { ServeOptions } from "../../src/index.ts";
import { closeLater, startServer } from "../support/lifecycle.ts";
import { readMetric } from "../support/metrics.ts";
import { A2A_V1, callRpc, sendRaw } from "../support/raw-http.ts";
import { exchangeBytes, openSocket } from "../support/raw-socket.ts";
import { Stage } from "../support/stage.ts";
import { STORES } from "../support/store-specs.ts";
import { INTERFACES, speaking } from "./interfaces.ts";

/** Owners are whoever the header says they are. */
const authenticate: NonNullable<ServeOptions["authenticate"]> = ({ headers }) =>
  headers["x-owner"] === undefined ? undefined : { owner: headers["x-owner"], authenticated: true };

async function open(options: Partial<ServeOptions> = {}) {
  const stage = new Stage();
  const server = await startServer({ agents: { stage: stage.agent() }, authenticate, ...options });
  return { server, stage };
}

async function refusalOf(asked: Promise<unknown>): Promise<ProtocolError> {
  try {
    await asked;
  } catch (error) {
    if (ProtocolError.is(error)) return error;
    throw error;
  }
  throw new Error("It was not refused.");
}

const as = (owner: string) => ({ headers: { "x-owner": owner } });

describe.each(INTERFACES)("$dialect over $binding", (spoken) => {
  it("is refused with the time to wait when an owner asks too often; another owner is not", async () => {
    const { server } = await open({ limits: { ratePerOwner: 0.01, burstPerOwner: 1 } });
    const [alice, bob] = (await Promise.all(
      ["alice", "bob"].map((owner) => speaking(server.url, spoken, as(owner))),
    )) as [RemoteAgent, RemoteAgent];
    await alice.send("artifact ok");
    const { code, retryAfter } = await refusalOf(alice.send("artifact ok"));
    expect([code, retryAfter]).toEqual(["RESOURCE_EXHAUSTED", 100]);
    expect(await bob.send("artifact ok")).toMatchObject({ task: { status: { state: "TASK_STATE_COMPLETED" } } });
  });

  it("is refused when too much comes from an address, from any caller", async () => {
    const { server } = await open({ limits: { ratePerAddress: 0.01, burstPerAddress: 20 } });
    const agent = await speaking(server.url, spoken, as("alice"));
    const other = await speaking(server.url, spoken, as("bob"));
    for (;;) {
      const refused = await refusalOf(agent.send("artifact ok").then(() => other.send("artifact ok"))).catch(
        () => undefined,
      );
      if (refused === undefined) continue;
      expect(refused.code).toBe("RESOURCE_EXHAUSTED");
      expect(refused.retryAfter).toBeGreaterThan(50);
      break;
    }
    expect((await sendRaw(server.url, { path: "/healthz" })).status).toBe(200);
  });

  it("is refused while as many requests of the owner are under way as may be", async () => {
    const { server, stage } = await open({ limits: { requestsPerOwner: 2 } });
    const agent = await speaking(server.url, spoken, as("alice"));
    const bob = await speaking(server.url, spoken, as("bob"));
    const waiting = [agent.send("hold one"), agent.send("hold two")];
    await Promise.all([stage.reached("one"), stage.reached("two")]);
    const { code, retryAfter } = await refusalOf(agent.send("artifact ok"));
    expect([code, retryAfter]).toEqual(["RESOURCE_EXHAUSTED", 1]);
    await bob.send("artifact ok");
    stage.open("one");
    stage.open("two");
    await Promise.all(waiting);
    await agent.send("artifact ok");
  });

  it("is refused while the messages of the owner's tasks under way are as large as they may be", async () => {
    const { server, stage } = await open({ limits: { messageBytesPerOwner: 20_000 } });
    const [alice, bob] = (await Promise.all(
      ["alice", "bob"].map((owner) => speaking(server.url, spoken, as(owner))),
    )) as [RemoteAgent, RemoteAgent];
    const filler = `; work ${"x".repeat(8_000)}`;
    const held = alice.stream(`work; hold one${filler}`)[Symbol.asyncIterator]();
    const taskId = taskIn((await held.next()).value?.event);
    const waiting = alice.send(`hold two${filler}`);
    await Promise.all([stage.reached("one"), stage.reached("two")]);
    const refused = await refusalOf(alice.send(`artifact no${filler}`));
    expect(refused).toMatchObject({ code: "RESOURCE_EXHAUSTED", retryAfter: 5 });
    expect(refused.message).toContain("20000 bytes");
    expect((await refusalOf(firstOf(alice.stream(`artifact no${filler}`)))).code).toBe("RESOURCE_EXHAUSTED");
    const more = { message: { taskId, parts: [{ text: `artifact no${filler}` }] } };
    expect((await refusalOf(alice.send(more))).code).toBe("RESOURCE_EXHAUSTED");
    await alice.send("artifact small");
    await bob.send(`artifact other${filler}`);
    stage.open("one");
    stage.open("two");
    await waiting;
    while ((await held.next()).done !== true);
    await alice.send(`artifact after${filler}`);
    expect(stage.started.some((text) => text.startsWith("artifact no"))).toBe(false);
  });

  it("is refused above the open streams of an address, until one ends", async () => {
    const { server, stage } = await open({ limits: { streamsPerAddress: 1 } });
    const [alice, bob] = (await Promise.all(
      ["alice", "bob"].map((owner) => speaking(server.url, spoken, as(owner))),
    )) as [RemoteAgent, RemoteAgent];
    const first = alice.stream("work; hold gate")[Symbol.asyncIterator]();
    await first.next();
    const { code } = await refusalOf(firstOf(bob.stream("artifact ok")));
    expect(code).toBe("RESOURCE_EXHAUSTED");
    stage.open("gate");
    while ((await first.next()).done !== true);
    await firstOf(bob.stream("artifact ok"));
  });

  it("is refused before work starts when it came through too many agents, the same ones or others", async () => {
    const { server, stage } = await open({ limits: { hops: 2 } });
    const agent = await speaking(server.url, spoken);
    const self = `${server.url}/agents/stage`;
    await agent.send("artifact ok", { hops: { hops: 1, ancestors: ["https://a.example"] } });
    await agent.send("artifact again", { hops: { hops: 1, ancestors: [self, self] } });
    const tooFar = await refusalOf(agent.send("artifact far", { hops: { hops: 2, ancestors: [] } }));
    const circle = await refusalOf(agent.send("artifact round", { hops: { hops: 1, ancestors: [self, self, self] } }));
    expect([tooFar.code, circle.code]).toEqual(["UNSUPPORTED_OPERATION", "UNSUPPORTED_OPERATION"]);
    expect(tooFar.message).toContain("3 agents");
    expect(circle.message).toContain("3 agents");
    expect(stage.started).toEqual(["artifact ok", "artifact again"]);
  });
});

function taskIn(event: StreamEvent | undefined): string {
  if (event !== undefined && "statusUpdate" in event) return event.statusUpdate.taskId;
  if (event === undefined || !("task" in event)) throw new Error("There is no task.");
  return event.task.id;
}

async function firstOf<T>(events: AsyncIterable<T>): Promise<T | undefined> {
  for await (const event of events) return event;
  return undefined;
}

describe("over HTTP", () => {
  it("a limited request gets 429 and Retry-After in the words of its dialect, without its body being read", async () => {
    const { server } = await open({ limits: { ratePerAddress: 0.01, burstPerAddress: 1 } });
    await callRpc(server.url, "ListTasks");
    const rpc = await sendRaw(server.url, { method: "POST", headers: A2A_V1, body: "{ not json" });
    expect([rpc.status, rpc.headers["retry-after"]]).toEqual([429, "100"]);
    expect(rpc.json).toMatchObject({ jsonrpc: "2.0", id: null, error: { code: -32052 } });
    const rest = await sendRaw(server.url, { path: "/rest/tasks", headers: A2A_V1 });
    expect([rest.status, rest.headers["content-type"]]).toEqual([429, "application/a2a+json"]);
    const chain = await sendRaw(server.url, { method: "POST", path: "/tasks/send", headers: A2A_V1, body: "{}" });
    expect(chain.json).toMatchObject({ error: { code: "resource-exhausted", retryAfter: 100 } });
    const card = await sendRaw(server.url, { path: "/.well-known/agent-card.json" });
    expect([card.status, card.headers["retry-after"]]).toEqual([429, "100"]);
    expect((await sendRaw(server.url, { path: "/readyz" })).status).toBe(200);
    expect(await readMetric(server.url, "dragoman_requests_limited_total")).toBe(4);
  });

  it("headers that are too long are answered with 431", async () => {
    const { server } = await open({ limits: { headers: 2_048 } });
    const { status } = await sendRaw(server.url, { path: "/healthz", headers: { long: "x".repeat(4_000) } });
    expect(status).toBe(431);
  });

  it("headers and bodies that do not come are not waited for", async () => {
    const { server } = await open({ limits: { headersTimeout: 200, requestTimeout: 400 } });
    const slow = ["GET / HTTP/1.1\r\nhost: x\r\n", `POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99\r\n\r\n{`];
    const answers = await Promise.all(slow.map((text) => exchangeBytes(server.port, text)));
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("connections above those of an address are hung up on, and the place of a closed one is free", async () => {
    const { server } = await open({ limits: { connectionsPerAddress: 2 } });
    const held = [openSocket(server.port), openSocket(server.port)];
    await Promise.all(held.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
    expect(await exchangeBytes(server.port, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")).toBe("");
    for (const socket of held) socket.destroy();
    let answer = "";
    while (answer === "") {
      answer = await exchangeBytes(
        server.port,
        "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n",
      );
    }
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("gRPC hangs up on connections above those of an address, too", async () => {
    const { server } = await open({ limits: { connectionsPerAddress: 1 } });
    const [host = "", port = ""] = (server.grpc ?? "").split(":");
    const held = openSocket(Number(port), host);
    await new Promise((resolve) => held.once("connect", resolve));
    expect(await exchangeBytes(Number(port), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")).toBe("");
    held.destroy();
  });
});

describe.each(STORES)("stored bytes on $name", (spec) => {
  it("bound what an owner can start, and no one else", async () => {
    const { store, remove } = spec.create();
    closeLater(remove);
    const { server } = await open({ store, limits: { storedBytesPerOwner: 8_000 } });
    const alice = await speaking(server.url, INTERFACES[0], as("alice"));
    const bob = await speaking(server.url, INTERFACES[0], as("bob"));
    const { task } = (await alice.send(`input ${"x".repeat(5_000)}`)) as { task: { id: string } };
    const refused = await refusalOf(alice.send("artifact ok"));
    expect(refused).toMatchObject({ code: "RESOURCE_EXHAUSTED", metadata: { limit: "8000" } });
    expect(Number(refused.metadata?.storedBytes)).toBeGreaterThan(8_000);
    expect(await firstOf(alice.stream("artifact ok")).catch((error) => error.code)).toBe("RESOURCE_EXHAUSTED");
    const webhook = { url: "https://hook.example/" };
    expect(await refusalOf(alice.createPushConfig(task.id, webhook))).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    expect((await alice.get(task.id)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect((await alice.cancel(task.id)).status.state).toBe("TASK_STATE_CANCELED");
    await bob.send("artifact ok");
  });
});

describe.each(STORES)("pages of a list on $name", (spec) => {
  it("end before they become too long, and go on in the next", async () => {
    const { store, remove } = spec.create();
    closeLater(remove);
    const { server } = await open({ store, limits: { page: 30_000 } });
    for (const spoken of INTERFACES.filter(({ dialect }) => dialect === "a2a-v1")) {
      const owner = as(spoken.binding);
      const agent = await speaking(server.url, spoken, owner);
      const made: string[] = [];
      for (let count = 0; count < 5; count++) {
        const outcome = (await agent.send(`input ${"x".repeat(5_000)}`)) as { task: { id: string } };
        made.push(outcome.task.id);
      }
      const first = await agent.listPage({ pageSize: 100 });
      expect([first.tasks.length, first.totalSize, first.nextPageToken !== ""]).toEqual([2, 5, true]);
      const seen: string[] = [];
      for await (const { id } of agent.list({ pageSize: 100 })) seen.push(id);
      expect(seen.sort()).toEqual(made.sort());
    }
  });
});
