/** What a remote agent does with upstreams of all kinds, seen from its callers and from the raw upstream. */

import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import {
  artifactUpdate,
  cardOf,
  openStream,
  type Recorded,
  rpcFrame,
  sendJson,
  sendResult,
  startFakeAgent,
  statusUpdate,
  task,
} from "../../src/core/client/testing/fake-agent.ts";
import { FakeClock } from "../../src/core/engine/testing/fake-clock.ts";
import type { Log } from "../../src/core/model/ports.ts";
import { createUpstreamAgent } from "../../src/features/gateway/index.ts";
import { HTTP_BINDINGS } from "../support/bindings.ts";
import { startGateway, startUpstream, untilCard } from "../support/gateway.ts";
import { closeLater, freePort, startServer } from "../support/lifecycle.ts";
import { readMetric } from "../support/metrics.ts";
import { sendRaw } from "../support/raw-http.ts";
import { statesOf, userMessage, WireClient } from "../support/wire-client.ts";

const [JSON_RPC] = HTTP_BINDINGS;
const clientOf = ({ url }: { readonly url: string }, agent = "far") =>
  new WireClient(JSON_RPC, `${url}/agents/${agent}`);
const textOfArtifacts = ({
  artifacts = [],
}: {
  readonly artifacts?: readonly { parts: readonly { text?: string }[] }[];
}) => artifacts.flatMap(({ parts }) => parts.map(({ text }) => text)).join("");

function recordingLog() {
  const lines: string[] = [];
  const write = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const log: Log = { debug: write, info: write, warn: write, error: write };
  return { log, lines };
}

/** An upstream that is answered by the test, in A2A 1.0 over JSON-RPC. */
async function fakeUpstream(answer: (request: Recorded, response: ServerResponse) => void, more: object = {}) {
  const fake = await startFakeAgent(answer, more);
  closeLater(() => fake[Symbol.asyncDispose]());
  return fake;
}

/** Serves its card with an ETag, as long as there is one. */
async function cardUpstream(first: object) {
  const state = { card: JSON.stringify({ ...cardOf("http://127.0.0.1:9"), ...first }), etag: 1 };
  const asked: (string | undefined)[] = [];
  const fake = await fakeUpstream(
    ({ headers, path }, response) => {
      if (path.split("?")[0] !== "/.well-known/agent-card.json") return void response.writeHead(404).end();
      asked.push(headers["if-none-match"]);
      response.setHeader("etag", `"${state.etag}"`).setHeader("cache-control", "no-cache");
      if (headers["if-none-match"] === `"${state.etag}"`) response.writeHead(304).end();
      else response.setHeader("content-type", "application/json").end(state.card);
    },
    { cardless: true },
  );
  const change = (more: object) => {
    state.card = JSON.stringify({ ...JSON.parse(state.card), ...more });
    state.etag++;
  };
  return { url: fake.url, asked, change };
}

const SKILL = { id: "s1", name: "First", description: "Does the first.", tags: ["one"] };

describe("the card", () => {
  test("is that of the upstream with interfaces of the server, and follows its changes", async () => {
    const upstream = await cardUpstream({
      name: "Partner",
      skills: [SKILL],
      defaultInputModes: ["text/plain", "image/*"],
    });
    const clock = new FakeClock();
    const { log } = recordingLog();
    const overrides = { description: "As we describe it." };
    const far = createUpstreamAgent({
      agent: "far",
      url: `${upstream.url}/?k=secret`,
      connect: {},
      clock,
      random: () => 0.5,
      log,
      overrides,
    });
    const gateway = await startServer({ agents: { far } });
    const card = await untilCard(gateway, "far", ({ name }) => name === "Partner");
    expect(card).toMatchObject({
      description: "As we describe it.",
      skills: [SKILL],
      defaultInputModes: ["text/plain", "image/*"],
      supportedInterfaces: expect.arrayContaining([expect.objectContaining({ url: `${gateway.url}/agents/far` })]),
    });
    const { extensions } = card.capabilities as { extensions: object[] };
    expect(extensions).toContainEqual(
      expect.objectContaining({ uri: "urn:dragoman:ext:upstream:v1", params: { url: upstream.url } }),
    );
    const path = "/agents/far/.well-known/agent-card.json";
    const before = (await sendRaw(gateway.url, { path })).headers.etag;
    await clock.advance(300_000);
    await expect.poll(() => upstream.asked).toEqual([undefined, '"1"']);
    expect((await sendRaw(gateway.url, { path })).headers.etag).toBe(before);
    upstream.change({ skills: [SKILL, { ...SKILL, id: "s2" }] });
    // The next reading is scheduled when the one before has ended.
    await expect
      .poll(async () => {
        await clock.advance(300_000);
        return upstream.asked.length;
      })
      .toBeGreaterThan(2);
    await untilCard(gateway, "far", ({ skills }) => (skills as object[]).length === 2);
    expect((await sendRaw(gateway.url, { path })).headers.etag).not.toBe(before);
  });

  test("is bounded, and one that cannot be used leaves the last one in place", async () => {
    const long = "x".repeat(100_000);
    const upstream = await cardUpstream({
      name: long,
      description: long,
      iconUrl: "javascript:alert(1)",
      skills: Array.from({ length: 1_000 }, (_, at) => ({ ...SKILL, id: `s${at}`, description: "y".repeat(50) })),
    });
    const clock = new FakeClock();
    const { lines, log } = recordingLog();
    const far = createUpstreamAgent({ agent: "far", url: upstream.url, connect: {}, clock, random: () => 0.5, log });
    const gateway = await startServer({ agents: { far } });
    const card = await untilCard(gateway, "far", ({ name }) => name !== "far");
    expect((card.name as string).length).toBe(256);
    expect((card.description as string).length).toBe(8_192);
    expect(card.skills).toHaveLength(256);
    expect(card).not.toHaveProperty("iconUrl");
    upstream.change({ description: "z".repeat(2_000_000) });
    await expect
      .poll(async () => {
        await clock.advance(300_000);
        return lines.join("\n");
      })
      .toContain("Upstream's new card cannot be used");
    expect((await untilCard(gateway, "far", () => true)).name).toBe(card.name);
    expect((await sendRaw(gateway.url, { path: "/readyz" })).json).toEqual({ status: "ready" });
  });
});

describe("an upstream that is down", () => {
  test("is named by readiness, metrics, log and failed tasks, and noticed when it is back", async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const { lines, log } = recordingLog();
    const clock = new FakeClock();
    const far = createUpstreamAgent({
      agent: "far",
      url: `${url}/agents/stage`,
      connect: { retry: { attempts: 1, baseMs: 1, capMs: 1 } },
      clock,
      random: () => 0.5,
      log,
      breaker: { threshold: 3, baseMs: 8_000, capMs: 8_000 },
    });
    const gateway = await startServer({ agents: { far } });
    await expect
      .poll(async () => (await sendRaw(gateway.url, { path: "/readyz" })).json)
      .toEqual({ status: "ready", unreachable: ["far"] });
    expect((await sendRaw(gateway.url, { path: "/readyz" })).status).toBe(200);
    const metrics = (await sendRaw(gateway.url, { path: "/metrics" })).body.toString();
    expect(metrics).toContain(`dragoman_upstream_up{agent="far",upstream="${url}/agents/stage"} 0\n`);
    expect(metrics).toContain(`dragoman_upstream_failures_total{agent="far",upstream="${url}/agents/stage"} 1\n`);
    expect(lines.filter((line) => line.startsWith("Upstream not reachable"))).toHaveLength(1);
    const failures: (string | undefined)[] = [];
    for (let at = 0; at < 3; at++) {
      const { status } = await clientOf(gateway).task("artifact x");
      expect(status.state).toBe("TASK_STATE_FAILED");
      failures.push(status.message?.parts[0]?.text);
    }
    expect(failures[0]).toContain(`Upstream ${url}/agents/stage of agent far: Connection refused`);
    // Three failures in a row, that of the card included: calls are not attempted any more.
    expect(failures[2]).toBe(`Upstream ${url}/agents/stage of agent far: not reachable; the next attempt is in 6 s.`);
    await startUpstream({ port, grpcPort: 0 });
    await clock.advance(8_000);
    await expect.poll(async () => (await sendRaw(gateway.url, { path: "/readyz" })).json).toEqual({ status: "ready" });
    const done = await clientOf(gateway).task("artifact back");
    expect([done.status.state, textOfArtifacts(done)]).toEqual(["TASK_STATE_COMPLETED", "back"]);
    expect(lines.some((line) => line.startsWith("Upstream reachable again"))).toBe(true);
  });
});

describe("a request", () => {
  const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

  test("is passed on with its trace, its hops and the credentials of the configuration", async () => {
    const fake = await fakeUpstream((_, response) => {
      openStream(response);
      response.end(rpcFrame({ task: task() }));
    });
    const gateway = await startGateway({ far: { remote: fake.url, credentials: { apiKey: "s3cret" } } });
    const headers = { traceparent: TRACE, tracestate: "a=1", "x-api-key": "the caller's own" };
    const metadata = { "urn:dragoman:ext:hops:v1": { hops: 3, ancestors: ["https://a.example"] } };
    const message = userMessage("hello");
    const { status } = await clientOf(gateway).task(message, { metadata }, headers);
    expect(status.state).toBe("TASK_STATE_COMPLETED");
    expect(fake.requests[0]?.headers).toMatchObject({ traceparent: TRACE, tracestate: "a=1", "x-api-key": "s3cret" });
    // An agent without the extension gets only the count.
    expect(fake.requests[0]?.rpc.params?.metadata).toEqual({ "urn:dragoman:ext:hops:v1": { hops: 4, ancestors: [] } });
  });

  test("that leaves out ids and names states of its own has its answer forwarded, with what was filled in counted", async () => {
    const status = (state: string) => ({ statusUpdate: { taskId: "", status: { state, message: { parts: [{}] } } } });
    const fake = await fakeUpstream((_, response) => {
      openStream(response);
      response.write(rpcFrame({ task: { ...task(), status: { state: "TASK_STATE_UNSPECIFIED" } } }));
      response.write(rpcFrame(status("TASK_STATE_MEDITATING")) + rpcFrame({ progressUpdate: { percent: 3 } }));
      response.write(rpcFrame({ artifactUpdate: { artifact: { parts: [{ text: "all " }] } } }));
      response.write(rpcFrame({ artifactUpdate: { artifact: { parts: [{ text: "of it" }] }, append: true } }));
      response.end(rpcFrame(status("TASK_STATE_COMPLETED")));
    });
    const gateway = await startGateway({ far: { remote: fake.url } });
    const answer = await clientOf(gateway).task("hello");
    expect([answer.status.state, textOfArtifacts(answer)]).toEqual(["TASK_STATE_COMPLETED", "all of it"]);
    const losses = 'dragoman_losses_total{dialect="a2a-v1",kind="filled"}';
    expect(await readMetric(gateway.url, losses)).toBeGreaterThan(5);
  });

  test("in a loop is refused", async () => {
    const port = await freePort();
    const one = `http://127.0.0.1:${port}/agents/one`;
    const gateway = await startGateway(
      { one: { remote: `http://127.0.0.1:${port}/agents/two` }, two: { remote: one } },
      { port, grpcPort: 0 },
    );
    const { status } = await clientOf(gateway, "one").task("round and round");
    expect(status.state).toBe("TASK_STATE_FAILED");
    expect(status.message?.parts[0]?.text).toContain("more than the 8 allowed");
  });

  test("goes to no private address that only the card names", async () => {
    const fake = await fakeUpstream(() => {}, {
      card: {
        supportedInterfaces: [
          { url: "http://10.255.255.1/rpc", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
          { url: "10.255.255.1:443", protocolBinding: "GRPC", protocolVersion: "1.0" },
        ],
      },
    });
    const { lines, log } = recordingLog();
    const gateway = await startGateway({ far: { remote: fake.url } }, { log });
    const { status } = await clientOf(gateway).task("hello");
    expect(status.message?.parts[0]?.text).toContain("Blocked by the guarded fetch");
    expect(lines.join("\n")).toContain("names gRPC on another host");
  });

  test("is authenticated by tokens that are requested once and renewed when refused", async () => {
    let issued = 0;
    const tokens = await fakeUpstream(
      (_, response) => {
        issued++;
        sendJson(response, { access_token: `token-${issued}`, token_type: "Bearer", expires_in: 3600 });
      },
      { cardless: true },
    );
    const fake = await fakeUpstream(({ headers }, response) => {
      if (headers.authorization === "Bearer token-1" && fake.requests.length > 2)
        return void response.writeHead(401).end();
      openStream(response);
      response.end(rpcFrame({ task: task() }));
    });
    const oauth = { tokenUrl: `${tokens.url}/token`, clientId: "gateway", clientSecret: "s3cret", scopes: ["call"] };
    const gateway = await startGateway({ far: { remote: fake.url, credentials: { oauth } } });
    for (let at = 0; at < 3; at++) await clientOf(gateway).task("hello");
    expect(fake.requests.map(({ headers }) => headers.authorization)).toEqual(
      ["token-1", "token-1", "token-1", "token-2"].map((token) => `Bearer ${token}`),
    );
    expect(tokens.requests[0]?.body).toContain("scope=call");
  });
});

describe("an upstream that", () => {
  const streaming =
    (...frames: object[]) =>
    (request: Recorded, response: ServerResponse) => {
      if (request.rpc.method === "CancelTask") return sendResult(response, task("TASK_STATE_CANCELED"));
      openStream(response);
      response.end(frames.map((frame) => rpcFrame(frame)).join(""));
    };

  test("answers with events of another task fails the task, and its own is cancelled", async () => {
    const fake = await fakeUpstream(
      streaming({ task: task("TASK_STATE_WORKING") }, artifactUpdate("mine"), {
        task: task("TASK_STATE_WORKING", "t2"),
      }),
    );
    const gateway = await startGateway({ far: { remote: fake.url } });
    const { status } = await clientOf(gateway).task("hello");
    expect(status.state).toBe("TASK_STATE_FAILED");
    expect(status.message?.parts[0]?.text).toBe(
      `Upstream ${fake.url} of agent far: The answer has events of another task.`,
    );
    await expect.poll(() => fake.methods()).toContain("CancelTask");
  });

  test("continues after the end is not listened to", async () => {
    const fake = await fakeUpstream(
      streaming(
        { task: task("TASK_STATE_WORKING") },
        artifactUpdate("all"),
        statusUpdate("TASK_STATE_COMPLETED"),
        artifactUpdate("more"),
        statusUpdate("TASK_STATE_WORKING"),
      ),
    );
    const gateway = await startGateway({ far: { remote: fake.url } });
    const done = await clientOf(gateway).task("hello");
    expect([done.status.state, textOfArtifacts(done)]).toEqual(["TASK_STATE_COMPLETED", "all"]);
  });

  test("closes its streams a little after their last event is not connected to anew for each message", async () => {
    const connections = new Set<unknown>();
    let close = () => {};
    const upstream = await fakeUpstream((_, response) => {
      connections.add(response.socket);
      openStream(response);
      response.write(rpcFrame({ task: task() }));
      close = () => void response.end();
    });
    const gateway = await startGateway({ far: { remote: upstream.url } });
    const client = clientOf(gateway);
    for (let count = 0; count < 10; count++) {
      expect((await client.task("hello")).status.state).toBe("TASK_STATE_COMPLETED");
      close();
    }
    // A message may be sent before the stream of the one before it has ended, but not before those of all others have.
    expect(connections.size).toBeLessThan(4);
  });

  test("breaks off and resumes with the task doubles nothing, neither chunks nor messages", async () => {
    const whole = { ...task("TASK_STATE_WORKING"), artifacts: [{ artifactId: "a1", parts: [{ text: "one two " }] }] };
    const said = (statusUpdate("TASK_STATE_WORKING", "Busy") as { statusUpdate: { status: object } }).statusUpdate
      .status;
    const fake = await fakeUpstream(({ rpc: { method } }, response) => {
      openStream(response);
      if (method === "SendStreamingMessage") {
        const frames = [
          { task: task("TASK_STATE_WORKING") },
          statusUpdate("TASK_STATE_WORKING", "Busy"),
          artifactUpdate("one "),
        ];
        response.write(frames.map((frame) => rpcFrame(frame)).join(""), () => setImmediate(() => response.destroy()));
      } else {
        response.end(
          [{ task: { ...whole, status: said } }, artifactUpdate("three"), statusUpdate("TASK_STATE_COMPLETED")]
            .map((frame) => rpcFrame(frame))
            .join(""),
        );
      }
    });
    const gateway = await startGateway({ far: { remote: fake.url } });
    const done = await clientOf(gateway).task("hello");
    expect([done.status.state, textOfArtifacts(done)]).toEqual(["TASK_STATE_COMPLETED", "one two three"]);
    expect(done.history?.map(({ parts }) => parts[0]?.text)).toEqual(["hello", "Busy"]);
  });

  test("asks for authorisation is followed until it continues", async () => {
    const { server, stage } = await startUpstream();
    const gateway = await startGateway({ far: { remote: `${server.url}/agents/stage` } });
    const stream = await clientOf(gateway).stream("auth Log in there; hold authorised; artifact thanks");
    const states: (string | undefined)[] = [];
    while (states.at(-1) !== "TASK_STATE_AUTH_REQUIRED") states.push((await stream.event()).statusUpdate?.status.state);
    stage.open("authorised");
    await stream.rest();
    expect((await clientOf(gateway).list({})).tasks).toMatchObject([{ status: { state: "TASK_STATE_COMPLETED" } }]);
  });

  test("waits for an answer after it asked for authorisation gets it", async () => {
    const { server } = await startUpstream();
    const gateway = await startGateway({ far: { remote: `${server.url}/agents/stage` } });
    const asked = await clientOf(gateway).task("auth Log in there");
    expect(asked.status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    const stream = await clientOf(gateway).stream(userMessage("artifact thanks", { taskId: asked.id }));
    await stream.rest();
    const done = await clientOf(gateway).get(asked.id);
    expect([done.status.state, textOfArtifacts(done)]).toEqual(["TASK_STATE_COMPLETED", "thanks"]);
  });

  test("floods is cut off at the limit of a task, and cancelled", async () => {
    const { server, stage } = await startUpstream();
    const gateway = await startGateway(
      { far: { remote: `${server.url}/agents/stage` } },
      { limits: { task: 100_000 } },
    );
    const script = "blocks 3000 100; hold never";
    const { status } = await clientOf(gateway).task(script);
    expect(status.state).toBe("TASK_STATE_FAILED");
    await expect.poll(() => stage.stopped).toContain(script);
  });

  test("sends a long text in single characters has it stored whole, in far fewer events", async () => {
    const text = Array.from({ length: 20_000 }, (_, at) => String(at % 10)).join("");
    const fake = await fakeUpstream((_, response) => {
      openStream(response);
      response.write(rpcFrame({ task: task("TASK_STATE_WORKING") }));
      for (const character of text) response.write(rpcFrame(artifactUpdate(character)));
      response.end(rpcFrame(statusUpdate("TASK_STATE_COMPLETED")));
    });
    const gateway = await startGateway({ far: { remote: fake.url } });
    const stream = await clientOf(gateway).stream("hello");
    const { id } = await stream.task();
    const events = await stream.rest();
    const done = await clientOf(gateway).get(id);
    expect(done.status.state).toBe("TASK_STATE_COMPLETED");
    expect(textOfArtifacts(done) === text).toBe(true);
    expect(events.length).toBeLessThan(text.length / 4);
  });

  test("goes back to a state that cannot follow is followed to its end", async () => {
    const fake = await fakeUpstream(
      streaming(
        { task: task("TASK_STATE_WORKING") },
        statusUpdate("TASK_STATE_SUBMITTED"),
        artifactUpdate("all"),
        { task: task("TASK_STATE_SUBMITTED") },
        statusUpdate("TASK_STATE_COMPLETED"),
      ),
    );
    const gateway = await startGateway({ far: { remote: fake.url } });
    const stream = await clientOf(gateway).stream("hello");
    const states = statesOf(await stream.rest());
    expect(states.filter((state) => state === "SUBMITTED").length).toBeLessThanOrEqual(1);
    expect(states.at(-1)).toBe("COMPLETED");
  });

  test("loses its answer is sent the same message again under the same key if it recognises repeats", async () => {
    const fake = await fakeUpstream(
      (_, response) => {
        if (fake.requests.length === 1) return void response.destroy();
        if (fake.requests.length === 2) return void response.writeHead(503, { "retry-after": "0" }).end();
        openStream(response);
        response.end(rpcFrame({ task: task() }));
      },
      { card: { capabilities: { streaming: true, extensions: [{ uri: "urn:dragoman:ext:idempotency:v1" }] } } },
    );
    const gateway = await startGateway({ far: { remote: fake.url } });
    const { status } = await clientOf(gateway).task("hello");
    expect(status.state).toBe("TASK_STATE_COMPLETED");
    expect(fake.requests).toHaveLength(3);
    const keys = fake.requests.map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/.+\/.+/);
    const ids = fake.requests.map(({ rpc: { params = {} } }) => (params.message as { messageId: string }).messageId);
    expect(new Set(ids).size).toBe(1);
  });

  test.each([429, 503])("does not recognise repeats and answers %i is not sent the message again", async (status) => {
    const fake = await fakeUpstream((_, response) => {
      response.writeHead(status, { "retry-after": "0" }).end();
    });
    const gateway = await startGateway({ far: { remote: fake.url } });
    const failed = (await clientOf(gateway).task("hello")).status;
    expect(failed.state).toBe("TASK_STATE_FAILED");
    expect(failed.message?.parts[0]?.text).toContain(`Upstream ${fake.url} of agent far: `);
    expect(fake.requests).toHaveLength(1);
  });

  test("may work on so many tasks at a time gets no more", async () => {
    const { server, stage } = await startUpstream();
    const gateway = await startGateway({ far: { remote: `${server.url}/agents/stage`, concurrency: 2 } });
    const tasks = [1, 2, 3, 4, 5].map((at) => clientOf(gateway).task(`work; hold crowd; artifact ${at}`));
    await stage.reached("crowd");
    await expect.poll(() => stage.atWork).toBe(2);
    stage.open("crowd");
    for (const { status } of await Promise.all(tasks)) expect(status.state).toBe("TASK_STATE_COMPLETED");
    expect(stage.mostAtWork).toBe(2);
  });

  test("waits for an answer is cancelled with the task, also if the gateway is closed at once", async () => {
    let answerCancel = () => {};
    const fake = await fakeUpstream(({ rpc: { method } }, response) => {
      if (method === "CancelTask") {
        answerCancel = () => sendResult(response, task("TASK_STATE_CANCELED"));
        return;
      }
      openStream(response);
      response.end(rpcFrame({ task: task("TASK_STATE_INPUT_REQUIRED") }));
    });
    const gateway = await startGateway({ far: { remote: fake.url } }, { times: { drainMs: 60_000 } });
    const asked = await clientOf(gateway).task("hello");
    expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    await clientOf(gateway).cancel(asked.id);
    let closed = false;
    const closing = gateway.close().then(() => {
      closed = true;
    });
    await expect.poll(() => fake.methods()).toContain("CancelTask");
    expect(closed).toBe(false);
    answerCancel();
    await closing;
  });
});
