import { afterAll, describe, expect, it } from "vitest";
import { type DragomanServer, serve } from "../../src/index.ts";
import { BINDINGS } from "../support/bindings.ts";
import { Stage } from "../support/stage.ts";
import { STORES } from "../support/store-specs.ts";
import { statesOf, userMessage, WireClient } from "../support/wire-client.ts";

const LASTING = STORES.filter(({ name }) => name !== "memory");
const REPLAY = { "a2a-extensions": "urn:dragoman:ext:replay:v1" };

describe.each(LASTING)("a server that is stopped and started again on $name", (spec) => {
  describe.each(BINDINGS)("over $name", (binding) => {
    const { store, remove } = spec.create();
    let running: DragomanServer | undefined;
    afterAll(async () => {
      await running?.close();
      remove();
    });

    /** A fresh process in all but name: nothing but the store is handed on. */
    const start = async () => {
      await running?.close();
      const stage = new Stage();
      const agents = { stage: stage.agent(), patient: stage.agent({ onCrash: "resume" }) };
      const server = await serve({ port: 0, log: false, store, agents, times: { drainMs: 0 } });
      running = server;
      const client = (agent = "stage") => new WireClient(binding, `${server.url}/agents/${agent}`);
      return { stage, server, client };
    };

    it("has every task, page, event and key it had before", async () => {
      const before = await start();
      const key = { "idempotency-key": "kept" };
      const message = userMessage("work; blocks 5; artifact ok");
      const events = await (await before.client().stream(message, {}, key)).rest();
      const id = events[0]?.event.task?.id ?? "";
      const replyKey = { "idempotency-key": "kept-reply" };
      const asking = userMessage("reply hello");
      const reply = await before.client().message(asking, replyKey);
      for (let at = 0; at < 5; at++) await before.client().task(`artifact ${at}`);
      const task = await before.client().get(id);
      const page = await before.client().list({ pageSize: 2, includeArtifacts: true });

      const { client, stage } = await start();
      expect(await client().get(id)).toEqual(task);
      expect(await client().list({ pageSize: 2, includeArtifacts: true })).toEqual(page);
      const next = await client().list({ pageSize: 2, pageToken: page.nextPageToken });
      expect(next.tasks).toHaveLength(2);
      expect(await (await client().subscribe(id, { "last-event-id": "3", ...REPLAY })).rest()).toEqual(events.slice(3));
      expect(await client().task(message, {}, key)).toEqual(task);
      expect(await client().message(asking, replyKey)).toEqual(reply);
      expect(stage.started).toEqual([]);
    });

    it("goes on with a task that waits, and its numbers go on too", async () => {
      const before = await start();
      const asked = await (await before.client().stream("work; input more?")).rest();
      const id = asked[0]?.event.task?.id ?? "";
      const { client } = await start();
      const stream = await client().subscribe(id, { "last-event-id": String(asked.at(-1)?.number) });
      const done = await client().task(userMessage("work; artifact ok", { taskId: id }));
      expect(done.status.state).toBe("TASK_STATE_COMPLETED");
      expect(done.history).toHaveLength(3);
      const rest = await stream.rest();
      if (binding.can.numbersUnasked) {
        expect(rest.map(({ number }) => number)).toEqual(rest.map((_, at) => asked.length + at));
      } else expect(statesOf(rest).at(-1)).toBe("COMPLETED");
    });

    it("ends open streams cleanly, and their readers resume", async () => {
      const before = await start();
      const asked = await before.client().task("input more?");
      const open = await before.client().subscribe(asked.id);
      const snapshot = await open.next();
      const ending = open.rest();
      const { client } = await start();
      expect(await ending).toEqual([]);
      expect(open.cut).toBe(false);
      const resumed = await client().subscribe(asked.id, { "last-event-id": String(snapshot?.number) });
      expect((await resumed.next())?.event).toEqual(snapshot?.event);
      await client().cancel(asked.id);
      expect(statesOf(await resumed.rest())).toEqual(["CANCELED"]);
    });

    it("fails what was running, unless its agent can be repeated", async () => {
      const before = await start();
      const fragile = await before.client().start("work; hold for-ever");
      const patient = await before.client("patient").start("work; artifact half; hold resumed; artifact whole");
      await Promise.all([before.stage.reached("for-ever"), before.stage.reached("resumed")]);
      const { client, stage } = await start();
      stage.open("resumed");
      const failed = await client().ended(fragile.id);
      expect(failed.status.state).toBe("TASK_STATE_FAILED");
      expect(failed.status.message?.parts[0]?.text).toMatch(/./);
      const done = await client("patient").ended(patient.id);
      expect(done.status.state).toBe("TASK_STATE_COMPLETED");
      expect(done.artifacts?.map(({ parts }) => parts)).toEqual([[{ text: "whole" }]]);
    });
  });
});
