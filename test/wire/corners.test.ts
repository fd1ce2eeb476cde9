import { setTimeout as after } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { HTTP_BINDINGS } from "../support/bindings.ts";
import { readMetric } from "../support/metrics.ts";
import { openRequest } from "../support/raw-http.ts";
import { describeBindings, describeStores, useScene } from "../support/scene.ts";
import { statesOf, userMessage } from "../support/wire-client.ts";

const [JSON_RPC] = HTTP_BINDINGS;
const REPLAY = { "a2a-extensions": "urn:dragoman:ext:replay:v1" };

describeStores("streams at rest", {}, (scene) => {
  it("open at once when they resume at the end of a log that is quiet", async () => {
    const first = await scene.client().stream("work; hold quiet; artifact ok");
    const { id } = await first.task();
    await scene.stage.reached("quiet");
    const second = await first.next();
    expect(second?.number).toBe(2);
    // The answer's headers must not wait for the next event: callers give up on servers that do not answer.
    const resumed = await scene.client().subscribe(id, { "last-event-id": "2", ...REPLAY });
    scene.stage.open("quiet");
    expect(await resumed.rest()).toEqual(await first.rest());
  });

  it("[AUTH-INTASK-001, AUTH-INTASK-005] stay open for a message to a task that waits for authentication", async () => {
    const first = await scene.client().stream("work; auth Log in first.; hold elsewhere; work; artifact private");
    const { id } = await first.task();
    await scene.stage.reached("elsewhere");
    const second = await scene.client().stream(userMessage("work still there", { taskId: id }));
    expect((await second.task()).status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    scene.stage.open("elsewhere");
    expect(statesOf(await second.rest()).at(-1)).toBe("COMPLETED");
    expect(statesOf(await first.rest()).at(-1)).toBe("COMPLETED");
    expect((await scene.client().get(id)).artifacts).toHaveLength(1);
  });

  it("are resumed by GET as by POST", async () => {
    const events = await (await scene.client().stream("work; blocks 4")).rest();
    const id = events[0]?.event.task?.id ?? "";
    const headers = { "a2a-version": "1.0", "last-event-id": "3" };
    const texts = await Promise.all(
      ["GET", "POST"].map(async (method) => {
        const path = `/rest/tasks/${id}:subscribe`;
        const { response } = await openRequest(scene.server.url, { method, path, headers });
        return (await response.toArray()).join("");
      }),
    );
    expect(texts[0]).toMatch(/^id: 3\ndata: \{"task":/);
    expect(texts[0]).toBe(texts[1]);
  });
});

describeBindings("empty text", {}, (scene) => {
  it("is absence where nothing is required", async () => {
    const message = userMessage("artifact ok", { contextId: "", taskId: "" });
    const task = await scene.client().task(message);
    expect(task.contextId).not.toBe("");
    const page = await scene.client().list({ contextId: task.contextId, pageToken: "" });
    expect(page.totalSize).toBe(1);
  });
});

describe("names that are nearly the same", () => {
  const names = ["a", "a\u0000b", "\u0000", "\ud800", "\ufffd", "\u00e9", "e\u0301", "A", " a", "%61"];

  describeStores("in every store", {}, (scene, binding) => {
    const usable = names.filter((name) => binding.name === "JSON-RPC" || !name.includes("\ud800"));

    it("are distinguished as contexts and as tenants", async () => {
      for (const name of usable) {
        const task = await scene.client().task(userMessage("artifact ok", { contextId: name }));
        expect(task.contextId).toBe(name);
        await scene.client().task("artifact ok", { tenant: name });
      }
      for (const name of usable) {
        const { tasks, totalSize } = await scene.client().list({ contextId: name });
        expect([totalSize, tasks[0]?.contextId], JSON.stringify(name)).toEqual([1, name]);
        expect((await scene.client().list({ tenant: name })).totalSize, JSON.stringify(name)).toBe(1);
      }
    });
  });
});

describe("a slow reader", () => {
  const scene = useScene(JSON_RPC, { times: { stalledReaderMs: 400 } });

  it("that reads all the time is not sent away, however long it takes", async () => {
    const client = scene.client();
    const started = await client.start("work; hold slow; blocks 200 65536");
    await scene.stage.reached("slow");
    const raw = JSON_RPC.http.request("SubscribeToTask", { id: started.id });
    const { response } = await openRequest(scene.server.url, raw);
    scene.stage.open("slow");
    let bytes = 0;
    let pieces = 0;
    for await (const chunk of response) {
      bytes += (chunk as Buffer).length;
      if (++pieces % 4 === 0) await after(20);
    }
    expect(bytes).toBeGreaterThan(200 * 65_536);
    expect(await readMetric(scene.server.url, "dragoman_readers_stalled_total")).toBe(0);
  });
});
