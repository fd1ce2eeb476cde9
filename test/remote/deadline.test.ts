/** How long a caller waits bounds every call that is made for it, however many servers those come through. */

import { describe, expect, test } from "vitest";
import { openStream, rpcFrame, sendResult, startFakeAgent, task } from "../../src/core/client/testing/fake-agent.ts";
import { BINDINGS, HTTP_BINDINGS } from "../support/bindings.ts";
import { startGateway, startUpstream, UPSTREAMS } from "../support/gateway.ts";
import { closeLater } from "../support/lifecycle.ts";
import { userMessage, WireClient } from "../support/wire-client.ts";

const [JSON_RPC] = HTTP_BINDINGS;
const HOPS = "urn:dragoman:ext:hops:v1";
const LATE = "The caller's deadline passed before the agent finished.";
const clientOf = ({ url }: { readonly url: string }, agent = "far") =>
  new WireClient(JSON_RPC, `${url}/agents/${agent}`);
const within = (remainingMs: unknown) => ({ metadata: { [HOPS]: { remainingMs } } });

/** An upstream in A2A 1.0 over JSON-RPC that completes every task, or leaves it under way. */
async function fakeUpstream(isSlow = false) {
  const fake = await startFakeAgent(({ rpc: { method } }, response) => {
    if (method === "CancelTask") return sendResult(response, task("TASK_STATE_CANCELED"));
    openStream(response);
    if (isSlow) response.write(rpcFrame({ task: task("TASK_STATE_WORKING") }));
    else response.end(rpcFrame({ task: task() }));
  });
  closeLater(() => fake[Symbol.asyncDispose]());
  /** What each request says of how it came here. */
  const hops = () =>
    fake.requests.map(({ rpc: { params = {} } }) => {
      const { [HOPS]: came = { hops: 0 } } = params.metadata as Record<string, { hops: number; remainingMs?: number }>;
      return came;
    });
  return { ...fake, hops };
}

describe("what remains of it", () => {
  test("is sent with the call: that of the agent, or that of the caller if it is shorter", async () => {
    const fake = await fakeUpstream();
    const gateway = await startGateway({
      bounded: { remote: fake.url, timeout: "1h" },
      free: { remote: fake.url },
    });
    await clientOf(gateway, "bounded").task("hello");
    await clientOf(gateway, "bounded").task(userMessage("hello"), within(60_000));
    await clientOf(gateway, "free").task(userMessage("hello"), within(60_000));
    await clientOf(gateway, "free").task("hello");
    const [own = 0, shorter = 0, passed = 0, none] = fake.hops().map(({ remainingMs }) => remainingMs);
    for (const [sent, limit] of [
      [own, 3_600_000],
      [shorter, 60_000],
      [passed, 60_000],
    ] as const) {
      expect(sent).toBeLessThanOrEqual(limit);
      expect(sent).toBeGreaterThan(0);
    }
    expect(own).toBeGreaterThan(60_000);
    expect(none).toBeUndefined();
  });

  test("gets shorter on the way through several servers", async () => {
    const fake = await fakeUpstream();
    const near = await startGateway({ far: { remote: fake.url } });
    const first = await startGateway({ far: { remote: `${near.url}/agents/far`, timeout: "10m" } });
    await clientOf(first).task(userMessage("hello"), within(60_000));
    const [{ hops, remainingMs } = { hops: 0 }] = fake.hops();
    expect(hops).toBe(2);
    expect(remainingMs).toBeLessThanOrEqual(60_000);
    expect(remainingMs).toBeGreaterThan(0);
  });
});

describe("when it passes", () => {
  test("the task fails with that as its reason and that of the upstream is cancelled", async () => {
    const fake = await fakeUpstream(true);
    const gateway = await startGateway({ far: { remote: fake.url } });
    const { status } = await clientOf(gateway).task(userMessage("hello"), within(500));
    expect([status.state, status.message?.parts[0]?.text]).toEqual(["TASK_STATE_FAILED", LATE]);
    await expect.poll(() => fake.methods()).toEqual(["SendStreamingMessage", "CancelTask"]);
  });

  test("nothing is left running, whatever the dialect of the upstream", async () => {
    const { server, stage } = await startUpstream();
    const gateways = await Promise.all(UPSTREAMS.map(({ remote }) => startGateway({ far: remote(server) })));
    const tasks = await Promise.all(
      gateways.map((gateway, at) => clientOf(gateway).task(userMessage(`work; hold ${at}`), within(1_500))),
    );
    expect(new Set(tasks.map(({ status }) => status.state))).toEqual(new Set(["TASK_STATE_FAILED"]));
    for (const { status } of tasks) expect(status.message?.parts[0]?.text).toContain(LATE);
    await expect.poll(() => stage.atWork).toBe(0);
    expect(stage.stopped.toSorted()).toEqual(stage.started.toSorted());
  });

  test("before the call is made, none is made", async () => {
    const fake = await fakeUpstream();
    const gateway = await startGateway({ far: { remote: fake.url } });
    const { status } = await clientOf(gateway).task(userMessage("hello"), within(0));
    expect([status.state, status.message?.parts[0]?.text]).toEqual(["TASK_STATE_FAILED", LATE]);
    expect(fake.requests).toEqual([]);
  });
});

describe.each(BINDINGS)("a value that is not a time, over $name", (binding) => {
  test.each([[-1], [0.5], [1e300], ["5000"], [[]], [{}], [true]])("%j is refused", async (remainingMs) => {
    const { server, stage } = await startUpstream();
    const client = new WireClient(binding, `${server.url}/agents/stage`);
    const error = await client.refusal("SendMessage", { message: userMessage("artifact x"), ...within(remainingMs) });
    expect(JSON.stringify(error)).toContain(`${HOPS}.remainingMs`);
    expect(stage.started).toEqual([]);
  });

  test("more than any timer could wait for is no limit", async () => {
    const { server } = await startUpstream();
    const client = new WireClient(binding, `${server.url}/agents/stage`);
    const { status } = await client.task(userMessage("artifact x"), within(2 ** 40));
    expect(status.state).toBe("TASK_STATE_COMPLETED");
  });
});
