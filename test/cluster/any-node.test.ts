/** Whatever a task is asked for, any node of its store answers, wherever the task runs. */
import { describe, expect, it } from "vitest";
import { Receiver } from "../push/receiver.ts";
import { BINDINGS } from "../support/bindings.ts";
import { statesOf, userMessage, type WireStream } from "../support/wire-client.ts";
import { CLUSTER_STORES, Cluster } from "./nodes.ts";

const REPLAY = { "a2a-extensions": "urn:dragoman:ext:replay:v1" };

describe.each(CLUSTER_STORES)("several nodes on $name", (spec) => {
  describe.each(BINDINGS)("over $name", (binding) => {
    async function start() {
      const cluster = new Cluster(binding, spec);
      return { cluster, here: await cluster.start(), there: await cluster.start() };
    }

    it("a task that runs on one is read, listed, followed and replayed on another", async () => {
      const { here, there } = await start();
      const { id } = await here.client().start("work; artifact one; hold go; artifact two");
      await here.stage.reached("go");
      expect((await there.client().get(id)).status.state).toBe("TASK_STATE_WORKING");
      expect((await there.client().list()).tasks.map((task) => task.id)).toEqual([id]);
      const followed = await there.client().subscribe(id);
      const replayed = await there.client().subscribe(id, { "last-event-id": "1", ...REPLAY });
      here.stage.open("go");
      expect(statesOf(await followed.rest()).at(-1)).toBe("COMPLETED");
      const numbers = (await replayed.rest()).map(({ number }) => number);
      expect(numbers).toEqual(numbers.map((_, at) => 2 + at));
      expect(await there.client().get(id)).toEqual(await here.client().get(id));
      expect(there.stage.started).toEqual([]);
    });

    it("a stream moves on to another with its cursor, and every number comes once", async () => {
      const { cluster, here, there } = await start();
      const third = await cluster.start();
      const script = "work; blocks 3; hold a; blocks 3; hold b; blocks 3";
      const first = await here.client().stream(script, {}, REPLAY);
      const { id } = await first.task();
      await here.stage.reached("a");
      const numbers = [1];
      const take = async (stream: WireStream, until: number) => {
        while ((numbers.at(-1) ?? 0) < until) numbers.push((await stream.next())?.number ?? Number.NaN);
      };
      await take(first, 4);
      const resume = (node: typeof here) =>
        node.client().subscribe(id, { "last-event-id": String(numbers.at(-1)), ...REPLAY });
      const second = await resume(there);
      here.stage.open("a");
      await here.stage.reached("b");
      await take(second, numbers.length + 2);
      const last = await resume(third);
      here.stage.open("b");
      for (const { number } of await last.rest()) numbers.push(number ?? Number.NaN);
      expect(numbers).toEqual(numbers.map((_, at) => at + 1));
      await first.rest();
      await second.rest();
    });

    it("a task that runs on one is cancelled on another, and its run is told", async () => {
      const { here, there } = await start();
      const { id } = await here.client().start("work; hold forever");
      await here.stage.reached("forever");
      expect((await there.client().cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
      expect(here.stage.stopped).toEqual(["work; hold forever"]);
      expect((await here.client().get(id)).status.state).toBe("TASK_STATE_CANCELED");
      expect((await there.client().cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
    });

    it("a message for it is left there and answered, and one for a task that waits is answered anywhere", async () => {
      const { here, there } = await start();
      const { id } = await here.client().start("work; hold go; artifact first");
      await here.stage.reached("go");
      const second = there.client().task(userMessage("work; input which?", { taskId: id }));
      const messages = async () => (await there.client().get(id)).history?.length;
      await expect.poll(messages).toBe(2);
      here.stage.open("go");
      expect((await second).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
      expect(here.stage.started).toHaveLength(2);
      const done = await there.client().task(userMessage("artifact third", { taskId: id }));
      expect(done.status.state).toBe("TASK_STATE_COMPLETED");
      expect(there.stage.started).toEqual(["artifact third"]);
      expect(done.history?.filter(({ role }) => role === "ROLE_USER")).toHaveLength(3);
    });

    it("sends with one key that race on all of them run once", async () => {
      const { cluster, here, there } = await start();
      const nodes = [here, there, await cluster.start()];
      for (let round = 0; round < 5; round++) {
        const key = { "idempotency-key": `race-${round}` };
        const message = userMessage(`work; artifact ${round}`);
        const tasks = await Promise.all(
          nodes.flatMap((node) => [node, node]).map((node) => node.client().task(message, {}, key)),
        );
        expect(new Set(tasks.map(({ id }) => id)).size).toBe(1);
        expect(
          nodes.flatMap(({ stage }) => stage.started).filter((text) => text === `work; artifact ${round}`),
        ).toHaveLength(1);
      }
    });

    it("answers with one key that race on all of them are one message", async () => {
      const { cluster, here, there } = await start();
      const nodes = [here, there, await cluster.start()];
      for (let round = 0; round < 5; round++) {
        const { id } = await here.client().task("work; input which?");
        const message = userMessage(`artifact ${round}`, { taskId: id });
        const key = { "idempotency-key": `answer-${round}` };
        const tasks = await Promise.all(
          nodes.flatMap((node) => [node, node, node]).map((node) => node.client().task(message, {}, key)),
        );
        expect(tasks.map(({ status }) => status.state)).toEqual(tasks.map(() => "TASK_STATE_COMPLETED"));
        const started = nodes.flatMap(({ stage }) => stage.started).filter((text) => text === `artifact ${round}`);
        expect(started).toHaveLength(1);
      }
    });

    it("a webhook that is registered on one is notified of each event once, and listed on all", async () => {
      const { here, there } = await start();
      const receiver = await Receiver.start();
      const { id } = await here.client().start("work; hold go; artifact one; artifact two");
      await here.stage.reached("go");
      const created = await there
        .client()
        .call("CreateTaskPushNotificationConfig", { taskId: id, url: receiver.url("/hook"), id: "hook" });
      expect(created.error).toBeUndefined();
      const listed = await here.client().call("ListTaskPushNotificationConfigs", { taskId: id });
      expect(JSON.stringify(listed.result)).toContain("/hook");
      here.stage.open("go");
      const task = await here.client().ended(id);
      expect(task.status.state).toBe("TASK_STATE_COMPLETED");
      await receiver.until(() => receiver.arrivals.some(({ body }) => body.includes("COMPLETED")));
      const numbers = receiver.arrivals.map(({ number }) => number);
      expect(new Set(numbers).size).toBe(numbers.length);
      expect(numbers).toEqual([...numbers].sort((one, other) => one - other));
      await there.client().call("DeleteTaskPushNotificationConfig", { taskId: id, id: "hook" });
      expect((await here.client().refusal("GetTaskPushNotificationConfig", { taskId: id, id: "hook" })).reason).toBe(
        "TASK_NOT_FOUND",
      );
    });
  });
});
