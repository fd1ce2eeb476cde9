import { describe, expect, it } from "vitest";
import { HTTP_BINDINGS } from "../support/bindings.ts";
import { EventStreamReader } from "../support/event-stream-reader.ts";
import { usedMebibytes } from "../support/memory.ts";
import { readMetric, untilMetric } from "../support/metrics.ts";
import { openRequest } from "../support/raw-http.ts";
import { describeStores, useScene } from "../support/scene.ts";
import { userMessage } from "../support/wire-client.ts";
import { textOf } from "../support/wire-types.ts";

const [JSON_RPC] = HTTP_BINDINGS;

describeStores("long streams", {}, (scene) => {
  const expected = Array.from({ length: 5_000 }, (_, at) => `${at},`).join("");

  it("of 5,000 chunks are complete, gapless and stored", async () => {
    const events = await (await scene.client().stream("work; chunks 5000")).rest();
    expect(events.map(({ number }) => number)).toEqual(events.map((_, at) => at + 1));
    const updates = events.flatMap(({ event }) => event.artifactUpdate ?? []);
    expect(updates.map(({ artifact }) => textOf(artifact.parts)).join("")).toBe(expected);
    const stored = await scene.client().get(events[0]?.event.task?.id ?? "");
    expect(textOf(stored.artifacts?.[0]?.parts ?? [])).toBe(expected);
  });

  it("of 5,000 events that cannot be merged arrive one by one, for several readers", async () => {
    const first = await scene.client().stream("work; hold many; blocks 5000 24");
    const { id } = await first.task();
    await scene.stage.reached("many");
    const second = await scene.client().subscribe(id);
    await second.task();
    scene.stage.open("many");
    const [one, two] = await Promise.all([first.rest(), second.rest()]);
    expect(one.flatMap(({ event }) => event.artifactUpdate ?? [])).toHaveLength(5_000);
    expect(two).toEqual(one.slice(one.length - two.length));
    expect(two.length).toBeGreaterThanOrEqual(5_001);
  });

  it("go on beside many others", async () => {
    const streams = await Promise.all(
      Array.from({ length: 50 }, (_, at) => scene.client().stream(`work; blocks ${20 + at}; artifact ok`)),
    );
    const all = await Promise.all(streams.map((stream) => stream.rest()));
    all.forEach((events, at) => {
      expect(events).toHaveLength(20 + at + 4);
      expect(events.map(({ number }) => number)).toEqual(events.map((_, index) => index + 1));
    });
  });
});

describe.each(HTTP_BINDINGS)("a reader that does not read over $name", (binding) => {
  const scene = useScene(binding, { times: { stalledReaderMs: 150 } });
  const BLOCKS = 400;

  it("is sent away and resumes from where it was", async () => {
    const client = scene.client();
    const started = await client.start(`work; hold stalled; blocks ${BLOCKS} 32768; hold said`);
    await scene.stage.reached("stalled");
    const reply = await openRequest(scene.server.url, binding.http.request("SubscribeToTask", { id: started.id }));
    reply.response.pause();
    scene.stage.open("stalled");
    await scene.stage.reached("said");
    await untilMetric(scene.server.url, "dragoman_readers_stalled_total", 1);
    await untilMetric(scene.server.url, "dragoman_streams_open", 0);
    scene.stage.open("said");

    const reader = new EventStreamReader(reply);
    reply.response.resume();
    const taken = await reader.rest();
    expect(reader.cut).toBe(true);
    const numbers = taken.map(({ id }) => Number(id));
    const last = numbers.at(-1) ?? 0;
    expect(numbers).toEqual(numbers.map((_, at) => (numbers[0] ?? 0) + at));
    const before = taken.filter(({ data }) => data.includes('"artifactUpdate"')).length;
    expect(before).toBeLessThan(BLOCKS);

    const cursor = { "last-event-id": String(last), "a2a-extensions": "urn:dragoman:ext:replay:v1" };
    const rest = await (await client.subscribe(started.id, cursor)).rest();
    expect(rest.map(({ number }) => number)).toEqual(rest.map((_, at) => last + 1 + at));
    expect(rest.at(-1)?.event.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(rest.flatMap(({ event }) => event.artifactUpdate ?? [])).toHaveLength(BLOCKS - before);
  });
});

describe("many readers that do not read", () => {
  const scene = useScene(JSON_RPC, { times: { stalledReaderMs: 20_000 } });

  it("are places in the log, not copies of it", async () => {
    const client = scene.client();
    const started = await client.start("work; hold crowd; blocks 320 65536; hold told");
    await scene.stage.reached("crowd");
    const raw = JSON_RPC.http.request("SubscribeToTask", { id: started.id });
    const replies = await Promise.all(Array.from({ length: 20 }, () => openRequest(scene.server.url, raw)));
    for (const { response } of replies) response.pause();
    const before = usedMebibytes();
    scene.stage.open("crowd");
    await scene.stage.reached("told");
    await untilMetric(scene.server.url, "dragoman_streams_open", 20);
    // The log itself is 20 MiB and the task as much again; a copy for each reader would be 400 MiB.
    expect(usedMebibytes() - before).toBeLessThan(150);
    for (const { hangUp } of replies) hangUp();
    await untilMetric(scene.server.url, "dragoman_streams_open", 0);
    expect(await readMetric(scene.server.url, "dragoman_readers_stalled_total")).toBe(0);
    await client.cancel(started.id);
  });
});

describeStores("many callers at once", {}, (scene) => {
  it("each get their own answer", async () => {
    const sends = Array.from({ length: 300 }, (_, at) =>
      scene.client().task(userMessage(`work; artifact answer ${at}`)),
    );
    const tasks = await Promise.all(sends);
    tasks.forEach((task, at) => {
      expect(textOf(task.artifacts?.[0]?.parts ?? [])).toBe(`answer ${at}`);
    });
    expect(await readMetric(scene.server.url, "dragoman_tasks_live")).toBe(0);
  });
});
