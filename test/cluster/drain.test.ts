/** A node that ends, or is cut off from the store, and those that take its place. */
import { describe, expect, it } from "vitest";
import { HTTP_BINDINGS } from "../support/http-bindings.ts";
import { statesOf, userMessage } from "../support/wire-client.ts";
import { textOf } from "../support/wire-types.ts";
import { CLUSTER_STORES, Cluster, type Node } from "./nodes.ts";

const REPLAY = { "a2a-extensions": "urn:dragoman:ext:replay:v1" };

/** Short enough for a test, and long enough for a machine that has much else to do. */
const LEASE = { leaseMs: 3_000 };

const until = (condition: () => Promise<boolean> | boolean) => expect.poll(condition, { interval: 20 }).toBe(true);

describe.each(CLUSTER_STORES)("nodes on $name", (spec) => {
  const start = async (options: Parameters<Cluster["start"]>[0] = {}) => {
    const cluster = new Cluster(HTTP_BINDINGS[0], spec);
    return { cluster, here: await cluster.start(options), there: await cluster.start(options) };
  };

  describe("a node that is closed", () => {
    it("hands a task that may be resumed over, and its stream continues on another", async () => {
      const { here, there } = await start();
      const stream = await here.client("patient").stream("work; blocks 3; hold go; blocks 2", {}, REPLAY);
      const { id } = await stream.task();
      await here.stage.reached("go");
      await here.server.close();
      const seen = await stream.rest();
      await there.stage.reached("go");
      there.stage.open("go");
      const last = seen.at(-1)?.number ?? 1;
      const resumed = await there.client("patient").subscribe(id, { "last-event-id": String(last), ...REPLAY });
      const rest = await resumed.rest();
      const numbers = [1, ...seen.map(({ number }) => number), ...rest.map(({ number }) => number)];
      expect(numbers).toEqual(numbers.map((_, at) => at + 1));
      expect(statesOf(rest).at(-1)).toBe("COMPLETED");
      expect(here.stage.stopped).toHaveLength(1);
      expect((await there.client("patient").get(id)).artifacts?.[0]?.parts).toHaveLength(2);
    });

    it("gives a run that must not be repeated the time there is, and then fails its task", async () => {
      const { here, there } = await start({ times: { ...LEASE, drainMs: 50 } });
      const { id } = await here.client().start("work; hold go");
      await here.stage.reached("go");
      await here.server.close();
      const task = await there.client().get(id);
      expect(task.status.state).toBe("TASK_STATE_FAILED");
      expect(textOf(task.status.message?.parts ?? [])).toMatch(/stopped before the task was finished/);
      expect(there.stage.started).toEqual([]);
      const short = await there.client().start("work; hold short; artifact done");
      await there.stage.reached("short");
      const closing = there.server.close();
      there.stage.open("short");
      await closing;
      expect(short.status.state).toBeDefined();
    });

    it("lets others begin what waits in line", async () => {
      const cluster = new Cluster(HTTP_BINDINGS[0], spec);
      const one = (node: Node["stage"]) => ({ agents: { stage: node.agent({ concurrency: 1 }) }, stage: node });
      const { Stage } = await import("../support/stage.ts");
      const here = await cluster.start({ ...one(new Stage()), times: { drainMs: 60_000 } });
      const first = here.client().task("work; hold go; artifact one");
      await here.stage.reached("go");
      const second = here.client().task("artifact two");
      await until(async () => (await here.client().list()).tasks.length === 2);
      const there = await cluster.start(one(new Stage()));
      const closing = here.server.close();
      // Its caller still gets the answer.
      expect((await second).status.state).toBe("TASK_STATE_COMPLETED");
      expect(there.stage.started).toEqual(["artifact two"]);
      here.stage.open("go");
      expect((await first).status.state).toBe("TASK_STATE_COMPLETED");
      await closing;
    });
  });

  describe("a node that is killed", () => {
    it("has its tasks continued by another, whose log shows one end", async () => {
      const { here, there } = await start({ times: LEASE });
      const { id } = await here.client("patient").start("work; hold go; artifact done");
      await here.stage.reached("go");
      const stream = await there.client("patient").subscribe(id, { "last-event-id": "1", ...REPLAY });
      here.access.leave("hangs");
      await there.stage.reached("go");
      there.stage.open("go");
      const events = await stream.rest();
      expect(events.map(({ number }) => number)).toEqual(events.map((_, at) => 2 + at));
      expect(statesOf(events).filter((state) => state === "COMPLETED")).toHaveLength(1);
      // The one that was only stopped notices it, and its run ends without a trace.
      await until(() => here.stage.stopped.length === 1);
      here.access.comeBack();
      expect(await there.client("patient").get(id)).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" } });
    });
  });

  describe("a store that is away", () => {
    it("makes a node unready, not dead, and every request is refused clearly until it is back", async () => {
      const { here } = await start({ times: { leaseMs: 60_000 } });
      const { id } = await here.client().start("work; hold go; artifact late");
      await here.stage.reached("go");
      here.access.leave();
      expect(await here.read("/healthz")).toMatchObject({ status: 200 });
      expect(await here.read("/readyz")).toMatchObject({ status: 503, text: expect.stringContaining("not available") });
      for (const [method, params] of [
        ["SendMessage", { message: userMessage("artifact lost") }],
        ["GetTask", { id: "unknown" }],
        ["ListTasks", {}],
        ["CancelTask", { id: "unknown" }],
        ["SubscribeToTask", { id }],
        ["SendMessage", { message: userMessage("more", { taskId: "unknown" }) }],
      ] as const) {
        const { error, headers } = await here.client().call(method, params);
        expect([method, error?.reason, headers["retry-after"]]).toEqual([method, "UNAVAILABLE", expect.any(String)]);
      }
      const listed = await here.read("/registry/agents");
      expect([listed.status, JSON.parse(listed.text).errorCode]).toEqual([200, undefined]);
      here.stage.open("go");
      here.access.comeBack();
      await until(async () => (await here.read("/readyz")).status === 200);
      await until(async () => (await here.client().get(id)).status.state === "TASK_STATE_COMPLETED");
      expect(here.stage.stopped).toEqual([]);
      await until(
        async () =>
          (await here.client().call("SendMessage", { message: userMessage("artifact again") })).error === undefined,
      );
    });
  });
});
